//! Explains what the suite's measurements mean for pipelines on the machine of the run.

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::names;

use super::super::super::units::{nanoseconds, ratio};
use super::super::find;
use super::judging::real_time;
use super::{cpu, json_pairs, real, throughput};

/// Returns a sentence for each group of pipelines that was measured, except groups that
/// disturbances make incomparable.
pub fn sentences(record: &RunRecord) -> Vec<String> {
    [seds, copies, filter, startup].into_iter().filter_map(|sentence| sentence(record)).collect()
}

/// Formats the times of `new` as multiples of those of `old`, as in `0.40 times the wall time and
/// 1.50 times the CPU time`. Leaves out wall time if disturbances spoiled that of either case.
fn compared(record: &RunRecord, new: &Case, old: &Case) -> String {
    let cpu_time = format!("{} times the CPU time", ratio(cpu(new) / cpu(old).max(1.0)));
    match real_time(record, new, old) {
        Some(_) => {
            format!("{} times the wall time and {cpu_time}", ratio(real(new) / real(old).max(1.0)))
        }
        None => cpu_time,
    }
}

fn seds(record: &RunRecord) -> Option<String> {
    let case =
        |form, slow| find(record, View::PipelineSed, &[(names::FORM, form), (names::SLOW, slow)]);
    let (piped, fused) = (case("piped", "no")?, case("fused", "no")?);
    let slow = case("piped", "yes").zip(case("fused", "yes")).map_or_else(String::new, |pair| {
        format!("; with a slow stage after them, {}", compared(record, pair.0, pair.1))
    });
    Some(format!(
        "Four seds in a pipe take {} of a single sed{slow}.",
        compared(record, piped, fused)
    ))
}

fn copies(record: &RunRecord) -> Option<String> {
    let pairs = json_pairs(record, "10");
    if pairs.iter().any(|(_, one, four)| real_time(record, four, one).is_none()) {
        return None; // wall times are disturbed
    }
    let faster = pairs.iter().filter(|(_, one, four)| throughput(four) > throughput(one)).count();
    (!pairs.is_empty()).then(|| {
        format!(
            "With ten copies at once, the pipeline with more stages has the higher throughput under {faster} \
             of {} awks: split stages only while CPUs are idle.",
            pairs.len()
        )
    })
}

fn filter(record: &RunRecord) -> Option<String> {
    let case = |order| {
        find(record, View::PipelineFilter, &[(names::FILTER, "grep"), (names::ORDER, order)])
    };
    let (late, early) = (case("late")?, case("early")?);
    Some(format!(
        "Filtering with grep first instead of last takes {}.",
        compared(record, early, late)
    ))
}

fn startup(record: &RunRecord) -> Option<String> {
    let case = find(record, View::PipelineStartup, &[(names::COMMAND, "mawk")])?;
    Some(format!(
        "Starting mawk costs {} of CPU time: a loop that starts it for every line pays that for each line, \
         a pipeline once per stage.",
        nanoseconds(case.metric("cpu_self")? + case.metric("cpu_children")?)
    ))
}
