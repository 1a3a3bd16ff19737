//! A plan and what came of it as text for a terminal.

use std::fmt::Write as _;

use contend_record::run::{Class, Combine, Group, Plan, RunRecord, Source, Step};

use super::layout::{BOLD, NARROWEST, dimmed, paragraph};
use super::text::printable;
use super::units::{bytes, counted, seconds};

/// The plan, and for every stage why it is parallel or not.
pub fn explanation(record: &RunRecord, width: usize) -> String {
    let width = width.max(NARROWEST);
    let mut out = String::new();
    if let Some(plan) = &record.plan {
        stages(&mut out, plan, width);
        out.push('\n');
        steps(&mut out, plan, record.jobs, width);
    }
    let runs = if record.decision.parallel { "parallel" } else { "plain" };
    let _ = write!(out, "{BOLD}runs {runs}:{BOLD:#} ");
    super::layout::paragraph_after(&mut out, "runs plain: ".len(), &record.decision.why, width);
    out
}

fn stages(out: &mut String, plan: &Plan, width: usize) {
    for (index, stage) in plan.stages.iter().enumerate() {
        let _ = writeln!(out, "{BOLD}{}  {}{BOLD:#}", index + 1, printable(&stage.text));
        let class = match stage.class {
            Class::PerRecord => "parallel",
            Class::Combinable => "parallel, then combined",
            Class::Opaque => "runs alone",
            Class::LeftOut => "left out",
        };
        paragraph(out, "   ", &format!("{class}: {}", stage.why), width);
    }
}

fn steps(out: &mut String, plan: &Plan, jobs: usize, width: usize) {
    let source = match &plan.source {
        Source::Standard => "standard input".to_owned(),
        Source::Files(names) => names.join(", "),
        Source::Own => "what the first stage makes or opens".to_owned(),
    };
    paragraph(out, "reads ", &source, width);
    for step in &plan.steps {
        match step {
            Step::Serial(commands) => {
                let texts: Vec<_> = commands.iter().map(|c| shown(c.stage, plan)).collect();
                paragraph(out, "then  ", &format!("alone: {}", texts.join(" | ")), width);
            }
            Step::Parallel(group) => {
                let combine = how(group, plan);
                let texts: Vec<_> = group
                    .each
                    .iter()
                    .map(|c| {
                        printable(&format!("{} {}", c.program, c.arguments.join(" ")))
                            .trim()
                            .to_owned()
                    })
                    .collect();
                let text = format!("{jobs} at a time: {}; {combine}", texts.join(" | "));
                paragraph(out, "then  ", &text, width);
            }
        }
    }
}

fn shown(stage: usize, plan: &Plan) -> String {
    plan.stages.get(stage).map_or_else(String::new, |stage| printable(&stage.text))
}

fn how(group: &Group, plan: &Plan) -> String {
    match &group.combine {
        Combine::Concatenate => "outputs one behind the other".to_owned(),
        Combine::Adjoin { .. } => "outputs joined where equal lines meet".to_owned(),
        Combine::Merge(merge) if merge.lines.is_some() => "outputs merged by bytes".to_owned(),
        Combine::Merge(_) => "outputs merged by sort -m".to_owned(),
        Combine::Counts { .. } => "counted lines merged".to_owned(),
        Combine::Numbers(_) => "numbers put together".to_owned(),
        Combine::Totals(_) => "totals added up".to_owned(),
        Combine::Through(command) => format!("outputs through {}", shown(command.stage, plan)),
    }
}

/// What was done and what it took, in a few lines.
pub fn statistics(record: &RunRecord, width: usize) -> String {
    let width = width.max(NARROWEST);
    let mut out = String::new();
    let Some(outcome) = &record.outcome else { return out };
    let runs = if record.decision.parallel { "parallel" } else { "plain" };
    let cpu: f64 = outcome.stages.iter().map(|stage| stage.cpu_seconds).sum();
    let mut headline = format!(
        "{runs}, {} in {}; {} of CPU time in the stages, {} in contend",
        bytes(outcome.input_bytes as f64),
        seconds(outcome.wall_seconds),
        seconds(cpu),
        seconds(outcome.own_cpu_seconds),
    );
    if !record.decision.parallel {
        headline = format!("{headline}; {}", record.decision.why);
    }
    paragraph(&mut out, "", &headline, width);
    let plan = record.plan.iter().flat_map(|plan| &plan.stages);
    for (stage, figures) in plan.zip(&outcome.stages) {
        let line = format!(
            "{}  {}: {} of CPU time, {}",
            figures.index,
            printable(&stage.text),
            seconds(figures.cpu_seconds),
            counted(figures.starts, "start"),
        );
        paragraph(&mut out, "", &line, width);
    }
    for why in &outcome.in_one_piece {
        paragraph(&mut out, "- ", why, width);
    }
    let memory = format!(
        "contend used up to {}, a single command up to {}",
        bytes(outcome.own_max_rss_bytes as f64),
        bytes(outcome.command_max_rss_bytes as f64),
    );
    dimmed(&mut out, &memory, width);
    out
}
