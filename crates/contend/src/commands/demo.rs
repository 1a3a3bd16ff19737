//! `contend demo`: three pipelines on real work, and what is to be seen in them.

use anyhow::{Context as _, Result};
use contend_lab::support::inputs::{LINE, base64_lines};
use contend_profile::pipeline::gate::proc_path;
use contend_record::pipe::{BottleneckKind, PipeRecord};
use contend_report::render;
use contend_report::render::units::seconds;
use contend_shell::parse::parse;
use contend_sys::interrupt::Signals;

use super::pipe::{live_view, run_once};
use crate::exit::Exit;
use crate::output;
use crate::settings::PipelineSettings;

/// A pipeline of the demonstration.
struct Scene {
    title: &'static str,
    stages: &'static [&'static str],
}

const SCENES: [Scene; 3] = [
    Scene {
        title: "Four seds, one a stage",
        stages: &["sed 's/a/A/g'", "sed 's/b/B/g'", "sed 's/c/C/g'", "sed 's/d/D/g'"],
    },
    Scene {
        title: "The same, and a slow stage after them",
        stages: &[
            "sed 's/a/A/g'",
            "sed 's/b/B/g'",
            "sed 's/c/C/g'",
            "sed 's/d/D/g'",
            "sed 's/[0-9]//g'",
        ],
    },
    Scene {
        title: "The four fused into one, and the slow stage",
        stages: &["sed 's/a/A/g; s/b/B/g; s/c/C/g; s/d/D/g'", "sed 's/[0-9]//g'"],
    },
];

/// Runs the demonstration.
///
/// # Errors
/// When the input cannot be made, or a pipeline cannot be started.
pub fn run((pipeline, lines): (PipelineSettings, u64)) -> Result<Exit> {
    // It has no name, so nothing is left behind however contend ends.
    let mut input = tempfile::tempfile().context("cannot create a temporary file for the input")?;
    base64_lines(&mut input, lines).with_context(|| {
        format!("cannot write the input to a file in {}", std::env::temp_dir().display())
    })?;
    output::stdout(&format!(
        "The input: {lines} lines of base64, {} in a temporary file.\n",
        render::units::bytes((lines * (LINE as u64 + 1)) as f64)
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
        let record = run_once(&parsed, &pipeline, live.as_mut(), &signals)?;
        drop(live);
        if let Some(signal) = signals.interrupted() {
            return Ok(Exit::Signal(signal));
        }
        output::stdout(&render::pipe::report(&record, output::width()))?;
        records.push(record);
    }
    output::stdout(&format!("\n{}", explanation(&records)))?;
    Ok(Exit::Success)
}

/// What the three runs show, in their own figures.
fn explanation(records: &[PipeRecord]) -> String {
    let [spread, slowed, fused] = records else { return String::new() };
    let real = |record: &PipeRecord| record.wall_seconds;
    let cpu = |record: &PipeRecord| record.total.user_seconds + record.total.system_seconds;
    let rate = |record: &PipeRecord| {
        format!("real {}, CPU {}", seconds(real(record)), seconds(cpu(record)))
    };
    let points = [
        format!(
            "1. {}. {} Real time alone misleads: user and system time together are what a \
             pipeline costs, whatever the CPUs hide by working side by side.",
            rate(spread),
            about_spread(spread),
        ),
        format!("2. {}. {}", rate(slowed), about_slowed(slowed)),
        format!(
            "3. {}. Fusing the quick stages {} the real time ({:.2} times) and {} the CPU time \
             ({:.2} times), for there are fewer pipes to pay for. {}",
            rate(fused),
            comparison(real(fused), real(slowed)),
            real(fused) / real(slowed),
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
            "Four equal stages would keep four CPUs busy; here there {}: the CPUs set the pace.",
            if cpus < 1.5 { "is one".to_owned() } else { format!("are {cpus}") }
        ),
        BottleneckKind::Stage => {
            "The stages do equal work side by side: this is what pipes are best at.".to_owned()
        }
        _ => "Too little was to be seen to say what set the pace; give it more --lines.".to_owned(),
    }
}

fn about_slowed(record: &PipeRecord) -> String {
    let Some(slowest) = record.stages.last() else { return String::new() };
    let share = format!("{:.0} % on a CPU", slowest.cpu_percent);
    match (record.bottleneck.kind, record.bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) if index == slowest.index => format!(
            "One slow stage, {share}, and the others wait for it: they are blocked, and more CPUs \
             would not help."
        ),
        (BottleneckKind::Machine, _) => format!(
            "One slow stage, {share}, would set the pace if there were CPUs enough; with so few, \
             all stages wait for a CPU."
        ),
        _ => format!("The slow stage was {share}, but not for long enough to set the pace."),
    }
}

fn about_fused(record: &PipeRecord) -> &'static str {
    match record.bottleneck.kind {
        BottleneckKind::Stage => {
            "The slow stage still sets the pace: to go faster, change the slow stage."
        }
        BottleneckKind::Machine => "The CPUs still set the pace: whatever saves CPU time helps.",
        _ => "It was too short to say what set the pace.",
    }
}

fn comparison(new: f64, old: f64) -> &'static str {
    match new / old {
        ratio if ratio < 0.95 => "lowers",
        ratio if ratio > 1.05 => "raises",
        _ => "hardly changes",
    }
}
