//! Suite `pipeline`: the tables of the study that it follows with the figures of this machine, and
//! which conclusions of the study they confirm.

mod conclusions;
mod judging;
mod study;
#[cfg(test)]
mod tests;

use contend_record::lab::{Case, RunRecord, Stage, View};
use contend_record::parameters::names;

use super::super::layout::{BOLD, cut, paragraph, paragraph_after};
use super::super::units::{bytes, nanoseconds, percent, seconds};
use super::find;
use super::table::{figure, grid, row};

/// Renders all tables and the conclusions.
pub fn chapter(record: &RunRecord, width: usize) -> String {
    let parts: Vec<_> = [sed, json, json_stages, ten, filter, hold, startup, conclusions::part]
        .into_iter()
        .filter_map(|part| part(record, width))
        .collect();
    if parts.is_empty() {
        return String::new(); // nothing was measured that could stand beside it
    }
    let heading = "Beside the study";
    let mut out = format!("\n{BOLD}{heading}{BOLD:#}");
    let rest = " (pipelines in the shell, 2021; its figures are of a machine with 4 cores and 8 \
                threads)";
    paragraph_after(&mut out, heading.len(), rest, width);
    format!("{out}\n{}", parts.join("\n"))
}

/// Renders a table with a sentence below it; `None` if the table has only its heading.
fn explained(rows: &[Vec<String>], words: usize, text: &str, width: usize) -> Option<String> {
    if rows.len() < 2 {
        return None;
    }
    let mut out = grid(rows, words, width);
    paragraph(&mut out, "", text, width);
    Some(out)
}

/// Returns the CPU time of a pipeline, or of several copies, in nanoseconds.
fn cpu(case: &Case) -> f64 {
    case.metric("user").unwrap_or(0.0) + case.metric("system").unwrap_or(0.0)
}

/// Returns CPU time in percent of wall time.
fn cpu_percent(case: &Case) -> f64 {
    100.0 * cpu(case) / real(case).max(1.0)
}

/// Returns the wall time, in nanoseconds.
fn real(case: &Case) -> f64 {
    case.median.unwrap_or(0.0)
}

/// Returns the bytes of input that are read in a second.
fn throughput(case: &Case) -> f64 {
    case.metric("input").unwrap_or(0.0) / (real(case) / 1e9).max(1e-9)
}

fn rate(case: &Case) -> String {
    format!("{}/s", bytes(throughput(case)))
}

/// Returns the study's wall time and CPU use, if it has them, and this machine's wall, user and
/// system time and CPU use.
fn both(study: Option<&study::Whole>, case: &Case) -> [String; 6] {
    [
        study.map_or_else(String::new, |whole| seconds(whole.real)),
        study.map_or_else(String::new, |whole| format!("{:.0}%", whole.cpu_percent())),
        nanoseconds(real(case)),
        figure(case.metric("user")),
        figure(case.metric("system")),
        percent(cpu(case), real(case)),
    ]
}

const HEADINGS: [&str; 6] = ["study", "cpu", "real", "user", "sys", "cpu"];

/// Returns this title and the headings of [`both`].
fn headings(title: &str) -> Vec<String> {
    [title].iter().chain(&HEADINGS).map(|&word| word.to_owned()).collect()
}

fn sed(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![headings("four seds")];
    let room = width.saturating_sub(40);
    for (form, slow, study, stages) in study::SED {
        let Some(case) =
            find(record, View::PipelineSed, &[(names::FORM, form), (names::SLOW, slow)])
        else {
            continue;
        };
        let title = if slow == "yes" { format!("{form}, slow stage") } else { form.to_owned() };
        rows.push([title].into_iter().chain(both(Some(&study), case)).collect());
        rows.extend(stage_rows(&case.stages, stages, 1, room).filter(|_| slow == "yes"));
    }
    let text = "Real time alone misleads: user and system time are its price. Below the pipelines \
                with the slow stage stand their stages.";
    explained(&rows, 1, text, width)
}

/// A row for each stage: its name in so much room, empty cells, the study's CPU use where there is
/// one, and its figures.
fn stage_rows<'a>(
    stages: &'a [Stage],
    study: &'a [f64],
    empty: usize,
    room: usize,
) -> impl Iterator<Item = Vec<String>> + 'a {
    stages.iter().enumerate().map(move |(index, stage)| {
        let mut row = vec![cut(&format!("  {}", stage.stage), room)];
        row.resize(1 + empty, String::new());
        row.push(study.get(index).map_or_else(String::new, |percent| format!("{percent:.0}%")));
        row.extend([&stage.real, &stage.user, &stage.system].map(|one| figure(Some(one.median))));
        row.push(format!("{:.0}%", stage.cpu_percent()));
        row
    })
}

/// Returns the case of the JSON pipeline with this awk and tokenizer.
fn json_case<'a>(
    record: &'a RunRecord,
    awk: &str,
    tokenizer: &str,
    copies: &str,
) -> Option<&'a Case> {
    let parameters = [(names::AWK, awk), (names::TOKENIZER, tokenizer), (names::COPIES, copies)];
    find(record, View::PipelineJson, &parameters)
}

/// Returns every awk that was measured with both tokenizers: its name, one command, four commands.
fn json_pairs<'a>(record: &'a RunRecord, copies: &str) -> Vec<(&'a str, &'a Case, &'a Case)> {
    let mut names: Vec<&str> = Vec::new();
    for case in record.cases_of(View::PipelineJson) {
        let name = case.parameters.text(names::AWK).unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let pair = |name: &'a str| {
        let of = |tokenizer| json_case(record, name, tokenizer, copies);
        Some((name, of("one")?, of("four")?))
    };
    names.into_iter().filter_map(pair).collect()
}

fn json(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![headings("JSON in awk")];
    for (awk, one, four) in json_pairs(record, "1") {
        for (tokenizer, case) in [("one", one), ("four", four)] {
            let study = study::JSON.iter().find(|known| known.0 == awk && known.1 == tokenizer);
            let figures = both(study.map(|known| &known.2), case);
            rows.push([format!("{awk}, {tokenizer}")].into_iter().chain(figures).collect());
        }
    }
    let inputs = json_pairs(record, "1").into_iter().filter_map(|(_, one, _)| one.metric("input"));
    let text = format!(
        "The study's input is 24.3 MB, here it is {}; busybox, which the study does not have, gets \
         a tenth of it. The programs here check more: escapes, numbers, control characters, the \
         order of tokens.",
        bytes(inputs.fold(0.0, f64::max))
    );
    explained(&rows, 1, &text, width)
}

fn json_stages(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![row(["stage by stage", "study", "real", "user", "sys", "cpu"])];
    for (awk, one, four) in json_pairs(record, "1") {
        for (tokenizer, case) in [("one", one), ("four", four)] {
            let study = study::JSON.iter().find(|known| known.0 == awk && known.1 == tokenizer);
            let study = study.map_or(&[][..], |known| known.3);
            let title = format!("{awk}, {tokenizer}");
            rows.push([title].into_iter().chain(vec![String::new(); 5]).collect());
            rows.extend(stage_rows(&case.stages, study, 0, width));
        }
    }
    let text = "User and system time of a stage by its real time: the stage near 100 % sets the \
                pace, unless all wait for a CPU.";
    explained(&rows, 1, text, width)
}

fn ten(record: &RunRecord, width: usize) -> Option<String> {
    let heading = ["ten copies", "study", "real", "a copy", "user", "sys", "cpu", "in all"];
    let mut rows = vec![row(heading)];
    for (awk, one, four) in json_pairs(record, "10") {
        for (tokenizer, case) in [("one", one), ("four", four)] {
            let study = study::TEN.iter().find(|known| known.0 == awk && known.1 == tokenizer);
            rows.push(vec![
                format!("{awk}, {tokenizer}"),
                study.map_or_else(String::new, |(_, _, whole)| seconds(whole.real)),
                nanoseconds(real(case)),
                figure(case.metric("copy_real")),
                figure(case.metric("user")),
                figure(case.metric("system")),
                percent(cpu(case), real(case)),
                rate(case),
            ]);
        }
    }
    let text = "Each copy of the study read all of its 24.3 MB, here a fortieth of what one copy \
                gets alone: its times are to be compared with each other, not with the study's. `a \
                copy` is the median of the ten.";
    explained(&rows, 1, text, width)
}

fn filter(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![headings("filter")];
    for (by, order, study) in study::FILTER {
        let case =
            find(record, View::PipelineFilter, &[(names::FILTER, by), (names::ORDER, order)]);
        let title = format!("{by}, {order}");
        rows.extend(case.map(|case| [title].into_iter().chain(both(Some(&study), case)).collect()));
    }
    let text = "The same lines come out in either order. The study's input is the million lines of \
                its seds; here it is as many in the full form.";
    explained(&rows, 1, text, width)
}

fn hold(record: &RunRecord, width: usize) -> Option<String> {
    let heading = ["held for", "study, s", "line 1", "2", "3", "4", "5"];
    let mut rows = vec![row(heading)];
    for (stage, study) in study::HOLD {
        let Some(case) = find(record, View::PipelineHold, &[(names::STAGE, stage)]) else {
            continue;
        };
        let mut row = vec![stage.to_owned(), study.to_owned()];
        row.extend((1..=5).map(|line| held(case, line).map_or_else(String::new, seconds)));
        rows.push(row);
    }
    let text = "From production to arrival, line by line. The study produced one line a second, \
                here it is one each 0.2 s in the full form.";
    explained(&rows, 1, text, width)
}

/// Returns the time between the production and the arrival of a line, in seconds.
fn held(case: &Case, line: usize) -> Option<f64> {
    let at = |what: &str| {
        let what = format!("line {line} {what}");
        case.timeline.iter().find(|step| step.what == what).map(|step| step.at_seconds)
    };
    Some((at("arrives")? - at("is produced")?).max(0.0))
}

fn startup(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![row(["starting", "study: about", "elapsed", "CPU self", "CPU children"])];
    for (title, command, study) in study::STARTUP {
        let Some(case) = find(record, View::PipelineStartup, &[(names::COMMAND, command)]) else {
            continue;
        };
        let figures = [case.median, case.metric("cpu_self"), case.metric("cpu_children")];
        let words = [title.to_owned(), study.to_owned()];
        rows.push(words.into_iter().chain(figures.map(figure)).collect());
    }
    let text = "The study gives these as its author's feeling. A loop that starts one awk a turn \
                pays this a thousand times; a pipeline pays it once a stage.";
    explained(&rows, 1, text, width)
}
