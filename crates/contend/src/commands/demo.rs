//! `contend demo`: three pipelines on real work, and what is to be seen in them.

use anyhow::{Context as _, Result};
use contend_lab::support::inputs::{LINE, base64_lines};
use contend_profile::pipeline::gate::proc_path;
use contend_record::pipe::{BottleneckKind, PipeRecord};
use contend_record::units::time;
use contend_report::render;
use contend_report::render::pipe::Detail;
use contend_shell::parse::parse;
use contend_sys::interrupt::Signals;

use super::pipe::run_once;
use crate::exit::Exit;
use crate::output;
use crate::settings::How;

/// A pipeline of the demonstration.
struct Scene {
    title: &'static str,
    stages: &'static [&'static str],
}

const SCENES: [Scene; 3] = [
    Scene {
        title: "Four seds, one in each stage",
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
        title: "The four merged into one, followed by the slow stage",
        stages: &["sed 's/a/A/g; s/b/B/g; s/c/C/g; s/d/D/g'", "sed 's/[0-9]//g'"],
    },
];

/// Runs the demonstration.
///
/// # Errors
/// When the input cannot be made, or a pipeline cannot be started.
pub fn run((how, lines): (How, u64)) -> Result<Exit> {
    // It has no name, so nothing is left behind however contend ends.
    let mut input = tempfile::tempfile().context("cannot make a temporary file for the input")?;
    base64_lines(&mut input, lines).with_context(|| {
        format!("cannot write the input to a file in {}", std::env::temp_dir().display())
    })?;
    output::stdout(&format!(
        "The input: {lines} lines of base64, {} in a temporary file.\n",
        render::units::bytes((lines * (LINE as u64 + 1)) as f64)
    ))?;

    let how = How { stdin: Some(proc_path(&input).into()), ..how };
    let signals = Signals::block().context("cannot receive signals")?;
    let mut records = Vec::new();
    for (number, scene) in SCENES.iter().enumerate() {
        let text = format!("cat | {}", scene.stages.join(" | "));
        let command = "contend pipe --discard --stdin data.txt";
        output::stdout(&format!("\n{}. {}\n\n$ {command} \"{text}\"\n", number + 1, scene.title))?;
        let record = run_once(&parse(&text)?, &how, &signals)?;
        if let Some(signal) = signals.interrupted() {
            return Ok(Exit::Signal(signal));
        }
        output::stdout(&render::pipe::report(&record, Detail::Summary, output::width()))?;
        records.push(record);
    }
    output::stdout(&format!("\n{}", explanation(&records)))?;
    Ok(Exit::Success)
}

/// What the three runs show, in their own figures.
fn explanation(records: &[PipeRecord]) -> String {
    let [spread, slowed, fused] = records else { return String::new() };
    let wall = |record: &PipeRecord| record.wall_seconds;
    let cpu = |record: &PipeRecord| record.total.user_seconds + record.total.system_seconds;
    let rate =
        |record: &PipeRecord| format!("{} wall, {} CPU", time(wall(record)), time(cpu(record)));
    let points = [
        format!(
            "1. {}. {} Wall time alone misleads: CPU time is what a pipeline costs, even where \
             several CPUs share the work and hide it.",
            rate(spread),
            about_spread(spread),
        ),
        format!("2. {}. {}", rate(slowed), about_slowed(slowed)),
        format!(
            "3. {}. Merging the quick stages {} the wall time ({:.2} times) and {} the CPU time \
             ({:.2} times), because data passes through fewer pipes. {}",
            rate(fused),
            comparison(wall(fused), wall(slowed)),
            wall(fused) / wall(slowed),
            comparison(cpu(fused), cpu(slowed)),
            cpu(fused) / cpu(slowed),
            about_fused(fused),
        ),
    ];
    let width = output::width().clamp(40, 100);
    let wrapped = |text: &str, indent| {
        let options = textwrap::Options::new(width).subsequent_indent(indent);
        textwrap::fill(text, options) + "\n"
    };
    let last = "Now try your own: contend pipe 'A | B | C'. One run is one sample; --runs 7 gives \
                medians and intervals.";
    let points: String = points.iter().map(|point| wrapped(point, "   ")).collect();
    format!("What this shows\n\n{points}\n{}", wrapped(last, ""))
}

fn about_spread(record: &PipeRecord) -> String {
    let cpus = record.host.usable_cpus();
    match record.bottleneck.kind {
        BottleneckKind::Machine => format!(
            "Four equal stages could keep four CPUs busy; this machine has {}, so the CPUs are the \
             bottleneck.",
            if cpus < 1.5 { "one".to_owned() } else { cpus.to_string() }
        ),
        BottleneckKind::Stage => {
            "The stages do equal work at the same time, which is what pipes are best at.".to_owned()
        }
        _ => "The run was too short for a verdict: raise --lines.".to_owned(),
    }
}

fn about_slowed(record: &PipeRecord) -> String {
    let Some(slowest) = record.stages.last() else { return String::new() };
    let share = format!("{:.0} % of its time on a CPU", slowest.cpu_percent);
    match (record.bottleneck.kind, record.bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) if index == slowest.index => format!(
            "The slow stage spends {share}, and the others are blocked by it: more CPUs would not \
             help."
        ),
        (BottleneckKind::Machine, _) => format!(
            "The slow stage spends {share}. With more CPUs it would be the bottleneck; here all \
             stages queue for a CPU."
        ),
        _ => format!(
            "The slow stage spends {share}, which is too short a time to be the bottleneck."
        ),
    }
}

fn about_fused(record: &PipeRecord) -> &'static str {
    match record.bottleneck.kind {
        BottleneckKind::Stage => {
            "The slow stage is still the bottleneck: to go faster, change that stage."
        }
        BottleneckKind::Machine => {
            "The CPUs are still the bottleneck: whatever saves CPU time helps."
        }
        _ => "The run was too short for a verdict.",
    }
}

fn comparison(new: f64, old: f64) -> &'static str {
    match new / old {
        ratio if ratio < 0.95 => "lowers",
        ratio if ratio > 1.05 => "raises",
        _ => "hardly changes",
    }
}
