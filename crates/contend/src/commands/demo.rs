//! `contend demo`: profiles three pipelines, and explains the results.

use anyhow::{Context as _, Result};
use contend_lab::support::inputs::{BASE64_LINE_BYTES, base64_lines};
use contend_profile::pipeline::gate::proc_path;
use contend_record::pipe::{BottleneckKind, PipeRecord};
use contend_record::units::time;
use contend_report::render;
use contend_report::render::pipe::Detail;
use contend_shell::parse::parse;
use contend_sys::interrupt::Signals;

use super::pipe::{live_view, run_once};
use crate::exit::Exit;
use crate::output;
use crate::settings::PipelineSettings;

/// A pipeline of the demo. `cat` runs before its stages.
struct Scene {
    title: &'static str,
    stages: &'static [&'static str],
}

const SCENES: [Scene; 3] = [
    Scene {
        title: "Four sed commands, each a stage",
        stages: &["sed 's/a/A/g'", "sed 's/b/B/g'", "sed 's/c/C/g'", "sed 's/d/D/g'"],
    },
    Scene {
        title: "The same, followed by a slow stage",
        stages: &[
            "sed 's/a/A/g'",
            "sed 's/b/B/g'",
            "sed 's/c/C/g'",
            "sed 's/d/D/g'",
            "sed 's/[0-9]//g'",
        ],
    },
    Scene {
        title: "The four fused into one stage, followed by the slow one",
        stages: &["sed 's/a/A/g; s/b/B/g; s/c/C/g; s/d/D/g'", "sed 's/[0-9]//g'"],
    },
];

/// Profiles the demo's pipelines with the given settings and number of input lines, and prints the
/// reports and an explanation.
///
/// # Errors
/// Returns an error if the input or standard output cannot be written, or a pipeline cannot be
/// started.
pub fn run((pipeline, lines): (PipelineSettings, u64)) -> Result<Exit> {
    // The file has no name, so the kernel removes it however contend ends.
    let mut input = tempfile::tempfile().context("cannot create a temporary file for the input")?;
    base64_lines(&mut input, lines).with_context(|| {
        format!("cannot write the input to a file in {}", std::env::temp_dir().display())
    })?;
    output::stdout(&format!(
        "Input: {lines} lines of base64, {} in a temporary file.\n",
        render::units::bytes((lines * (BASE64_LINE_BYTES as u64 + 1)) as f64)
    ))?;

    let pipeline = PipelineSettings { stdin: Some(proc_path(&input).into()), ..pipeline };
    let signals = Signals::block().context("cannot block signals")?;
    let mut records = Vec::new();
    for (number, scene) in SCENES.iter().enumerate() {
        let text = format!("cat | {}", scene.stages.join(" | "));
        let command = "contend pipe --discard --stdin data.txt";
        output::stdout(&format!("\n{}. {}\n\n$ {command} \"{text}\"\n", number + 1, scene.title))?;
        let parsed = parse(&text)?;
        let mut live = live_view(&parsed, &pipeline, 1);
        let (record, _) = run_once(&parsed, &pipeline, false, live.as_mut(), &signals)?;
        drop(live);
        if let Some(signal) = signals.interrupted() {
            return Ok(Exit::Signal(signal));
        }
        output::stdout(&render::pipe::report(&record, Detail::Summary, output::width()))?;
        records.push(record);
    }
    output::stdout(&format!("\n{}", explanation(&records)))?;
    Ok(Exit::Success)
}

/// Returns an explanation of the three runs, with their wall and CPU times. Returns an empty string
/// if there are fewer or more runs.
fn explanation(records: &[PipeRecord]) -> String {
    let [spread, slowed, fused] = records else { return String::new() };
    let wall = |record: &PipeRecord| record.wall_seconds;
    let cpu = |record: &PipeRecord| record.total.user_seconds + record.total.system_seconds;
    let rate =
        |record: &PipeRecord| format!("{} wall, {} CPU", time(wall(record)), time(cpu(record)));
    let points = [
        format!(
            "1. {}. {} Wall time alone is misleading: the cost of a pipeline is its CPU time, user \
             and system, which parallel stages hide.",
            rate(spread),
            about_spread(spread),
        ),
        format!("2. {}. {}", rate(slowed), about_slowed(slowed)),
        format!(
            "3. {}. Fusing the fast stages {}. {} {}",
            rate(fused),
            about_pipes(cpu(fused), cpu(slowed)),
            about_wall(slowed, fused),
            about_fused(fused),
        ),
    ];
    let width = output::width().clamp(40, 100);
    let wrapped = |text: &str, indent| {
        let options = textwrap::Options::new(width).subsequent_indent(indent);
        textwrap::fill(text, options) + "\n"
    };
    let last = "Next, profile your own: contend pipe 'A | B | C'. --runs 7 adds medians and \
                intervals.";
    let points: String = points.iter().map(|point| wrapped(point, "   ")).collect();
    format!("What this shows\n\n{points}\n{}", wrapped(last, ""))
}

/// Returns a clause that compares the CPU time with fewer pipes, `new`, to that with more, `old`.
fn about_pipes(new: f64, old: f64) -> String {
    let because = match comparison(new, old) {
        "lowers" => ", because there are fewer pipes",
        "raises" => ", although there are fewer pipes: the runs were disturbed",
        _ => ": most of it is the work of the stages, not that of the pipes",
    };
    format!("{} the CPU time ({:.2} times){because}", comparison(new, old), new / old)
}

/// Returns a sentence that compares the wall times, or says that the load of other programs
/// prevents the comparison.
fn about_wall(slowed: &PipeRecord, fused: &PipeRecord) -> String {
    const MAX_OTHERS_SHARE: f64 = 0.2;
    let others = |record: &PipeRecord| record.observation.others_cpu_share.unwrap_or(0.0);
    let share = others(slowed).max(others(fused));
    if share > MAX_OTHERS_SHARE {
        return format!(
            "Wall times cannot be compared: other programs used {:.0} % of the CPUs.",
            100.0 * share
        );
    }
    let (new, old) = (fused.wall_seconds, slowed.wall_seconds);
    format!("It {} the wall time ({:.2} times).", comparison(new, old), new / old)
}

fn about_spread(record: &PipeRecord) -> String {
    let cpus = record.host.usable_cpus();
    match record.bottleneck.kind {
        BottleneckKind::Machine => format!(
            "Four equal stages could keep four CPUs busy. This machine has {cpus}, so the bottleneck is \
             the CPU.",
        ),
        BottleneckKind::Stage => {
            "The stages do equal work in parallel, which is the best case for a pipeline."
                .to_owned()
        }
        _ => "The run was too short to find the bottleneck; use more --lines.".to_owned(),
    }
}

fn about_slowed(record: &PipeRecord) -> String {
    let Some(slowest) = record.stages.last() else { return String::new() };
    let share = format!("running {:.0} % of the time", slowest.cpu_percent);
    match (record.bottleneck.kind, record.bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) if index == slowest.index => format!(
            "The slow stage, {share}, is the bottleneck. The others are blocked on it, so more CPUs would \
             not help."
        ),
        (BottleneckKind::Machine, _) => format!(
            "The slow stage, {share}, would be the bottleneck if there were enough CPUs; here, all stages \
             queue for a CPU."
        ),
        _ => format!(
            "The slow stage was {share}, but the run was too short to make it the bottleneck."
        ),
    }
}

fn about_fused(record: &PipeRecord) -> &'static str {
    match record.bottleneck.kind {
        BottleneckKind::Stage => {
            "The slow stage is still the bottleneck: only a faster slow stage makes the pipeline faster."
        }
        BottleneckKind::Machine => "The CPU is still the bottleneck: any saved CPU time helps.",
        _ => "The run was too short to find the bottleneck.",
    }
}

fn comparison(new: f64, old: f64) -> &'static str {
    match new / old {
        ratio if ratio < 0.95 => "lowers",
        ratio if ratio > 1.05 => "raises",
        _ => "hardly changes",
    }
}
