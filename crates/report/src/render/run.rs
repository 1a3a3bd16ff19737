//! Renders the plan and the outcome of a parallel run as text for a terminal.

use std::fmt::Write as _;

use contend_record::run::{
    Class, CombineRecord, CommandRecord, DividedOutcome, Division, GroupRecord, HostParts,
    LineOrder, MergeRecord, Outcome, Part, PlanRecord, RunRecord, SortKey, SourceRecord, Stage,
    StageOutcome, StepRecord, TakenOver, WorkKind, WorkSpan,
};
use contend_record::shell::quote;

use super::layout::{
    BOLD, MIN_REPORT_COLUMNS, aligned, cut, dimmed, paragraph, paragraph_after, plain_table,
    styled_lines, wrapped,
};
use super::text::printable;
use super::units::{bytes, counted, seconds};

/// Renders the plan, or the stages that contend takes over from a shell, with the reason why each
/// stage does or does not run in parallel, and the reason for the decision.
pub fn explanation(record: &RunRecord, width: usize) -> String {
    let width = width.max(MIN_REPORT_COLUMNS);
    let mut out = String::new();
    if let Some(plan) = &record.plan {
        stages(&mut out, plan, width);
        out.push('\n');
        let measures = record.decision.parallel && record.division.is_none();
        steps(&mut out, plan, record.jobs, measures, width);
        if let Some(division) = &record.division {
            let text = format!(
                "the first step that runs several at a time is divided into {}, which run by --on {}",
                divided_into(division),
                division.engine
            );
            hanging(&mut out, "", &text, width);
            out.push_str(&parts(division, width));
        }
    }
    if !record.taken.is_empty() || !record.left.is_empty() {
        shell_text(&mut out, record, width);
        out.push('\n');
    }
    let runs = if record.decision.parallel { "parallel:" } else { "plain:" };
    let _ = write!(out, "{BOLD}{runs}{BOLD:#} ");
    paragraph_after(&mut out, runs.len() + 1, &record.decision.why, width);
    out
}

/// Largest number of parts that are listed in a terminal.
const LISTED_PARTS: usize = 100;

/// Returns a table of the parts; empty if there is no list of them.
fn parts(division: &Division, width: usize) -> String {
    if division.list.is_empty() {
        return String::new();
    }
    let mut table = plain_table();
    let mut row = |cells: [String; 4]| {
        let cells = cells.into_iter().enumerate();
        table.add_row(cells.map(|(index, cell)| aligned(usize::from(index == 3), cell)));
    };
    row(["part", "first byte", "last byte", "files"].map(str::to_owned));
    for (index, Part { first, last, files }) in division.list.iter().enumerate().take(LISTED_PARTS)
    {
        let files = cut(&printable(&files.join(" ")), width / 2);
        row([(index + 1).to_string(), first.to_string(), last.to_string(), files]);
    }
    let mut out = format!("\n{}", styled_lines(table, None, width));
    if let Some(left) = division.list.len().checked_sub(LISTED_PARTS).filter(|&left| left > 0) {
        let _ = writeln!(out, "... and {} (--json has all)", counted(left as u64, "more part"));
    }
    out
}

fn stages(out: &mut String, plan: &PlanRecord, width: usize) {
    for (index, stage) in plan.stages.iter().enumerate() {
        let text = cut(&printable(&stage.text), width.saturating_sub(4));
        let _ = writeln!(out, "{BOLD}{:<2} {text}{BOLD:#}", index + 1);
        hanging(out, "   ", &reason(stage), width);
    }
}

/// Describes how a stage can run over chunks, and why.
fn reason(stage: &Stage) -> String {
    let class = match stage.class {
        Class::PerRecord => "parallel",
        Class::Combinable => "parallel, then combined",
        Class::Opaque => "runs alone",
        Class::LeftOut => "dropped",
    };
    format!("{class}: {}", stage.why)
}

/// Writes the stages that contend takes over from a shell and those that it leaves to the shell, in
/// the order of their lines.
fn shell_text(out: &mut String, record: &RunRecord, width: usize) {
    let taken = record.taken.iter().map(|taken| (taken.line, taken_over(taken)));
    let left = record.left.iter().map(|left| {
        (left.line, (left.text.as_str(), vec![format!("left to the shell: {}", left.why)]))
    });
    let mut all: Vec<_> = taken.chain(left).collect();
    all.sort_by_key(|(line, _)| *line);
    let digits = all.last().map_or(1, |(line, _)| line.to_string().len());
    for (line, (text, reasons)) in all {
        let mark = format!("line {line:>digits$}  ");
        let text = cut(&printable(text), width.saturating_sub(mark.len()));
        let _ = writeln!(out, "{BOLD}{mark}{BOLD:#}{text}");
        for reason in reasons {
            hanging(out, &" ".repeat(mark.len()), &reason, width);
        }
    }
    if let Some(text) = others_left(record) {
        hanging(out, "", &text, width);
    }
}

/// Says how many further commands contend leaves to the shell; `None` if there are none.
pub(super) fn others_left(record: &RunRecord) -> Option<String> {
    let others = record.left_others.filter(|others| *others > 0)?;
    let commands = counted(others as u64, "other command");
    Some(format!(
        "left to the shell: {commands} (builtins, functions, or not known to run on chunks)"
    ))
}

/// Returns the text of stages that contend takes over, and a description of how each stage can run.
/// If that is not known before the stages run, returns a single description for all of them.
fn taken_over(taken: &TakenOver) -> (&str, Vec<String>) {
    let reasons = match taken.stages.as_slice() {
        [] => vec![
            "decided at run time, when the shell has expanded the words (--stats shows how it ran)"
                .to_owned(),
        ],
        stages => { stages.iter() }
            .map(|stage| format!("`{}`: {}", printable(&stage.text), reason(stage)))
            .collect(),
    };
    (&taken.text, reasons)
}

/// Writes the source and the steps of a plan. If `measures` is set, a note says that the decision for each step is made
/// at run time.
fn steps(out: &mut String, plan: &PlanRecord, jobs: usize, measures: bool, width: usize) {
    let source = match &plan.source {
        SourceRecord::Standard => "standard input".to_owned(),
        SourceRecord::Files(names) => names.join(", "),
        SourceRecord::Own => "what the first stage generates or opens".to_owned(),
    };
    hanging(out, "reads ", &source, width);
    for step in &plan.steps {
        match step {
            StepRecord::Serial(commands) => {
                let texts: Vec<_> = commands.iter().map(|c| shown(c.stage, plan)).collect();
                hanging(out, "then  ", &format!("alone: {}", texts.join(" | ")), width);
            }
            StepRecord::Parallel(group) => {
                let combine = how(group, plan);
                let texts: Vec<_> = group.each.iter().map(|one| command(one, plan)).collect();
                let text = format!("{jobs} at a time: {}; {combine}", texts.join(" | "));
                hanging(out, "then  ", &text, width);
            }
        }
    }
    let is_parallel = |step: &StepRecord| matches!(step, StepRecord::Parallel(_));
    if measures && plan.steps.iter().any(is_parallel) {
        let text = "at run time, contend measures the stages on a sample: a step that chunks would \
                    not make faster runs once over its whole input";
        hanging(out, "", text, width);
    }
}

/// Returns the program and the arguments of a command, quoted for a shell, without control
/// characters. For a program that contend has generated, such as one for awk, returns the source of
/// its stage.
fn command(command: &CommandRecord, plan: &PlanRecord) -> String {
    let is_generated = command.arguments.iter().any(|argument| argument.contains('\n'));
    if is_generated && plan.stages.get(command.stage).is_some() {
        return shown(command.stage, plan);
    }
    let words = std::iter::once(&command.program).chain(&command.arguments);
    printable(&words.map(|word| quote(word)).collect::<Vec<_>>().join(" "))
}

/// Writes a wrapped paragraph to the right of a mark, with further lines indented by the width of
/// the mark.
fn hanging(out: &mut String, mark: &str, text: &str, width: usize) {
    let indent = " ".repeat(mark.len());
    let options = textwrap::Options::new(width).initial_indent(mark).subsequent_indent(&indent);
    for line in wrapped(text, options) {
        let _ = writeln!(out, "{line}");
    }
}

fn shown(stage: usize, plan: &PlanRecord) -> String {
    plan.stages.get(stage).map_or_else(String::new, |stage| printable(&stage.text))
}

fn how(group: &GroupRecord, plan: &PlanRecord) -> String {
    match &group.combine {
        CombineRecord::Concatenate => "outputs concatenated in order".to_owned(),
        CombineRecord::Adjoin { .. } => "outputs joined where equal lines meet".to_owned(),
        CombineRecord::Merge(MergeRecord { lines: Some(order), .. }) => {
            format!("outputs merged in sorted order ({})", order_name(order))
        }
        CombineRecord::Merge(_) => "outputs merged by sort -m".to_owned(),
        CombineRecord::Counts { .. } => "counted lines merged".to_owned(),
        CombineRecord::Numbers(_) => "numbers combined".to_owned(),
        CombineRecord::Totals(_) => "totals summed".to_owned(),
        CombineRecord::Through(command) => {
            format!("outputs through {}", shown(command.stage, plan))
        }
    }
}

fn is_whole_line(key: &SortKey) -> bool {
    (key.from.field, key.from.bytes, &key.to) == (0, 0, &None)
}

/// Describes the order of sorted lines.
fn order_name(order: &LineOrder) -> String {
    let (name, reverse) = match order.keys.as_slice() {
        [] => ("by bytes", order.reverse),
        [key] if is_whole_line(key) && key.numeric => ("by number", key.reverse),
        [key] if is_whole_line(key) && key.fold => ("ignoring case", key.reverse),
        [key] if is_whole_line(key) => ("by bytes", key.reverse),
        [key] => (if key.numeric { "by a numeric key" } else { "by a key" }, key.reverse),
        keys => return format!("by {} keys", keys.len()),
    };
    format!("{name}{}", if reverse { ", descending" } else { "" })
}

/// Renders [`statistics`] below the source of the stages, which tells several pipelines of a script
/// apart. Returns an empty string without an outcome.
pub fn statistics_in_script(record: &RunRecord, width: usize) -> String {
    let statistics = statistics(record, width);
    let Some(plan) = record.plan.as_ref().filter(|_| !statistics.is_empty()) else {
        return statistics;
    };
    let stages: Vec<_> = plan.stages.iter().map(|stage| printable(&stage.text)).collect();
    let source = cut(&stages.join(" | "), width.max(MIN_REPORT_COLUMNS));
    format!("{BOLD}{source}{BOLD:#}\n{statistics}")
}

/// Renders the wall time of shell text, and how many of its pipelines ran in parallel; if none was
/// taken over, the reason.
pub fn script_summary(record: &RunRecord, width: usize) -> String {
    let width = width.max(MIN_REPORT_COLUMNS);
    let mut out = String::new();
    let Some(outcome) = &record.outcome else { return out };
    let (name, text) = script_result(record, outcome);
    let _ = write!(out, "{BOLD}{name}:{BOLD:#} ");
    paragraph_after(&mut out, name.len() + 2, &text, width);
    out
}

/// Returns how shell text ran, in a word, and its wall time with the number of its pipelines that ran in
/// parallel; if none was taken over, with the reason.
fn script_result(record: &RunRecord, outcome: &Outcome) -> (&'static str, String) {
    let (name, text) = if record.taken.is_empty() {
        ("plain", record.decision.why.clone())
    } else {
        let parts =
            |one: &&RunRecord| one.outcome.as_ref().is_some_and(|outcome| outcome.parts > 0);
        let parallel: Vec<_> = record.pipelines.iter().filter(parts).collect();
        let times = parallel.iter().filter_map(|one| one.outcome.as_ref());
        let time: f64 = times.map(|outcome| outcome.wall_seconds).sum();
        let all = counted(record.pipelines.len() as u64, "pipeline");
        let text = match parallel.len() {
            _ if record.pipelines.is_empty() => {
                "contend took over none of the pipelines".to_owned()
            }
            0 => format!("none of {all} that contend took over ran in parallel"),
            count => format!(
                "{count} of {all} that contend took over ran in parallel, for {}",
                seconds(time)
            ),
        };
        ("total", text)
    };
    (name, format!("{}; {text}", seconds(outcome.wall_seconds)))
}

/// Renders the outcome with the figures of each stage, and the CPU time and memory used. For shell
/// text, renders [`script_summary`]. Returns an empty string without an outcome.
pub fn statistics(record: &RunRecord, width: usize) -> String {
    let width = width.max(MIN_REPORT_COLUMNS);
    let mut out = String::new();
    let Some(outcome) = &record.outcome else { return out };
    if record.plan.is_none() {
        return script_summary(record, width);
    }
    let (name, headline) = result(record, outcome);
    let _ = write!(out, "{BOLD}{name}:{BOLD:#} ");
    paragraph_after(&mut out, name.len() + 2, &headline, width);
    if let Some(plan) = &record.plan {
        out.push_str(&stage_table(plan, outcome, record.decision.parallel, width));
    }
    for why in &outcome.in_one_piece {
        paragraph(&mut out, "- ", why, width);
    }
    if let (Some(division), Some(divided)) = (&record.division, &outcome.divided) {
        paragraph(&mut out, "- ", &divided_among(division, divided), width);
        for failure in &divided.failures {
            paragraph(&mut out, "- ", &printable(failure), width);
        }
    }
    dimmed(&mut out, &resources(outcome), width);
    out
}

/// Says which machines ran how many parts.
pub(super) fn divided_among(division: &Division, divided: &DividedOutcome) -> String {
    let host = |host: &HostParts| {
        let combinations = match host.combinations {
            0 => String::new(),
            count => format!(" and {}", counted(count, "combination")),
        };
        let (parts, wall) = (counted(host.parts, "part"), seconds(host.wall_seconds));
        format!("{} {parts}{combinations} in {wall}", host.name)
    };
    let hosts: Vec<String> = divided.hosts.iter().map(host).collect();
    let attempts = match divided.attempts {
        attempts if attempts == division.parts + division.combinations => String::new(),
        attempts => format!("; {}", counted(attempts, "attempt")),
    };
    let begin = divided.start_seconds.map_or_else(String::new, |start| {
        let at_once = divided.at_once;
        format!("; the first began after {}, and up to {at_once} ran at once", seconds(start))
    });
    let (divided, engine, hosts) = (divided_into(division), &division.engine, hosts.join(", "));
    format!("{divided}, by {engine}: {hosts}{attempts}{begin}")
}

/// Says how the input is divided.
pub(super) fn divided_into(division: &Division) -> String {
    let parts = counted(division.parts, "part");
    let combinations = match division.combinations {
        0 => String::new(),
        count => format!(" and {} of their outputs", counted(count, "combination")),
    };
    format!("{parts} of at most {}{combinations}", bytes(division.part_bytes as f64))
}

/// Returns how a pipeline or a script ran, in a word or two, and its wall time with the amounts or the reason.
pub(super) fn result(record: &RunRecord, outcome: &Outcome) -> (&'static str, String) {
    if record.plan.is_none() {
        return script_result(record, outcome);
    }
    let name = match (record.decision.parallel, outcome.parts) {
        (true, 0) => "not in chunks",
        (true, _) => "parallel",
        (false, _) => "plain",
    };
    (name, headline(record, outcome))
}

fn headline(record: &RunRecord, outcome: &Outcome) -> String {
    let wall = outcome.wall_seconds;
    if !record.decision.parallel {
        return format!("{}; {}", seconds(wall), record.decision.why);
    }
    let all = match outcome.input_bytes {
        // contend did not see the input: the first stage generates or opens it.
        0 => seconds(wall),
        input => {
            let rate = input as f64 / wall.max(1e-6);
            format!("{} in {}, {}/s", bytes(input as f64), seconds(wall), bytes(rate))
        }
    };
    match outcome.parts {
        0 => all,
        // Another line says where the parts ran.
        _ if record.division.is_some() => all,
        parts => format!("{all}; {}, {} at a time", counted(parts, "chunk"), record.jobs),
    }
}

/// Returns the CPU time and the peak memory of a pipeline.
pub(super) fn resources(outcome: &Outcome) -> String {
    let in_processes = outcome.stages.iter().filter(|stage| stage.starts > 0);
    let cpu: f64 = in_processes.map(|stage| stage.cpu_seconds).sum();
    format!(
        "CPU time: {} in the stages, {} in contend; peak memory: {}",
        seconds(cpu),
        seconds(outcome.own_cpu_seconds),
        peak_memory(outcome),
    )
}

/// Renders the peak memory of contend and, as far as it is known, that of the largest command and
/// that of all processes together.
fn peak_memory(outcome: &Outcome) -> String {
    let own = outcome.own_max_rss_bytes;
    let mut peaks = format!("contend {}", bytes(own as f64));
    if let Some(command) = visible_command_memory(outcome) {
        let _ = write!(peaks, ", largest command {}", bytes(command as f64));
    }
    if let Some(all) = peak_memory_of_all(outcome) {
        let _ = write!(peaks, ", all processes {}", bytes(all as f64));
    }
    peaks
}

/// Returns the peak memory of contend and its commands together, in bytes; `None` if it was not sampled.
pub(crate) fn peak_memory_of_all(outcome: &Outcome) -> Option<u64> {
    // Sampling may miss a short peak, but the sum is never below the largest part.
    let command = visible_command_memory(outcome).unwrap_or(0);
    outcome.peak_memory_bytes.map(|sampled| sampled.max(outcome.own_max_rss_bytes).max(command))
}

/// Returns the peak memory of the largest command, in bytes; `None` if it is not known.
fn visible_command_memory(outcome: &Outcome) -> Option<u64> {
    // The kernel counts the memory of contend as the child's until the child executes its program,
    // so a smaller command is not visible.
    let (own, command) = (outcome.own_max_rss_bytes, outcome.command_max_rss_bytes);
    (command > own.saturating_add(own / 20)).then_some(command)
}

/// Renders a table with a row for each stage. In a parallel run, dropped stages, and sorts that
/// contend performs as part of its merge, have no figures.
fn stage_table(plan: &PlanRecord, outcome: &Outcome, parallel: bool, width: usize) -> String {
    let mut table = plain_table();
    let heading = ["#", "stage", "status", "CPU", "processes"];
    let cells = heading.iter().enumerate().map(|(at, text)| aligned(at, (*text).to_owned()));
    table.set_header(cells);
    // Leaves room for the other columns, their gaps, and a note on work done elsewhere.
    let room = width.saturating_sub(34);
    for (index, stage) in plan.stages.iter().enumerate() {
        let figures = outcome.stages.get(index).cloned().unwrap_or_default();
        let [status, cpu, starts] = stage_figures(Some(stage.class), &figures, parallel);
        let text = cut(&printable(&stage.text), room);
        let row = [(index + 1).to_string(), text, status, cpu, starts];
        table.add_row(row.into_iter().enumerate().map(|(at, text)| aligned(at, text)));
    }
    styled_lines(table, None, width)
}

/// Formats exit status, CPU time and number of processes of a stage. `class` is `None` if it is unknown.
pub(super) fn stage_figures(
    class: Option<Class>,
    figures: &StageOutcome,
    parallel: bool,
) -> [String; 3] {
    match class {
        Some(Class::LeftOut) if parallel => ["", "dropped", ""].map(str::to_owned),
        _ if figures.starts == 0 && figures.cpu_seconds == 0.0 && parallel => {
            ["", "in contend", ""].map(str::to_owned)
        }
        _ => [
            figures.exit_code.to_string(),
            seconds(figures.cpu_seconds),
            match figures.starts {
                0 if parallel => "in contend".to_owned(),
                starts => starts.to_string(),
            },
        ],
    }
}

/// Returns the name of a kind of work.
pub(super) fn work_name(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::Chunk => "chunk",
        WorkKind::Finish => "finish",
        WorkKind::Sort => "sort",
        WorkKind::Merge => "merge",
        WorkKind::Combine => "combine",
        WorkKind::Whole => "whole",
    }
}

/// Returns the positions of the stages whose work a span is.
pub(super) fn work_stages(span: &WorkSpan) -> String {
    if span.first_stage == span.last_stage {
        span.first_stage.to_string()
    } else {
        format!("{}–{}", span.first_stage, span.last_stage)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::plain;
    use super::*;
    use contend_record::run::{Decision, FieldPlace};

    fn stage(text: &str, class: Class) -> Stage {
        let why = "its reason, which is long enough to need more than one line of a terminal";
        Stage { text: text.to_owned(), class, why: why.to_owned() }
    }

    fn record() -> RunRecord {
        let stages = vec![
            stage("cat access.log", Class::LeftOut),
            stage("sed 's/a long expression/that does not fit into 60 columns/'", Class::PerRecord),
            stage("sort", Class::Combinable),
        ];
        let figures = StageOutcome { index: 2, exit_code: 0, cpu_seconds: 1.5, starts: 12 };
        let outcome = Outcome {
            wall_seconds: 2.0,
            own_cpu_seconds: 0.25,
            own_max_rss_bytes: 20_000_000,
            command_max_rss_bytes: 3_000_000,
            peak_memory_bytes: Some(22_000_000),
            input_bytes: 100_000_000,
            parts: 12,
            in_one_piece: vec![
                "stages 2 to 3 ran once over the whole input: its input is not UTF-8".to_owned(),
            ],
            stages: vec![StageOutcome::default(), figures],
            ..Outcome::default()
        };
        let why = "much is expected, which is worth the overhead of chunks".to_owned();
        RunRecord {
            plan: Some(PlanRecord {
                stages,
                source: SourceRecord::Files(vec!["access.log".into()]),
                steps: vec![],
            }),
            decision: Decision { parallel: true, why, ..Decision::default() },
            jobs: 2,
            outcome: Some(outcome),
            ..RunRecord::default()
        }
    }

    #[test]
    fn statistics_say_what_was_done_where() {
        insta::assert_snapshot!(plain(&statistics(&record(), 60)));
    }

    #[test]
    fn statistics_in_a_script_begin_with_the_source() {
        let text = plain(&statistics_in_script(&record(), 60));
        let (source, rest) = text.split_once('\n').expect("several lines");
        assert_eq!(source, "cat access.log | sed 's/a long expression/that does not fit…");
        assert_eq!(rest, plain(&statistics(&record(), 60)));
        let unfinished = RunRecord { outcome: None, ..record() };
        assert_eq!(statistics_in_script(&unfinished, 60), "");
    }

    #[test]
    fn a_script_s_summary_has_the_pipelines_that_ran_in_parallel() {
        let taken = vec![TakenOver { line: 1, text: "sort a".to_owned(), stages: Vec::new() }];
        let script = RunRecord { taken, pipelines: vec![record(), record()], ..record() };
        assert_eq!(
            plain(&script_summary(&script, 80)),
            "total: 2.00s; 2 of 2 pipelines that contend took over ran in parallel, for 4.00s\n"
        );
        let by_shell = RunRecord { plan: None, ..script.clone() };
        assert_eq!(statistics(&by_shell, 80), script_summary(&script, 80));
        let untouched = RunRecord { pipelines: Vec::new(), ..script.clone() };
        let text = plain(&script_summary(&untouched, 80));
        assert_eq!(text, "total: 2.00s; contend took over none of the pipelines\n");
        let none = RunRecord { taken: Vec::new(), ..script };
        let text = plain(&script_summary(&none, 80));
        assert_eq!(text, format!("plain: 2.00s; {}\n", none.decision.why));
    }

    #[test]
    fn a_merge_has_the_name_of_its_order() {
        let key = |numeric, field, reverse| SortKey {
            from: FieldPlace { field, bytes: 0, skips_blanks: false },
            to: None,
            numeric,
            fold: false,
            reverse,
        };
        let name = |keys: &[SortKey], reverse| {
            order_name(&LineOrder { keys: keys.to_vec(), reverse, ..LineOrder::default() })
        };
        assert_eq!(name(&[], false), "by bytes");
        assert_eq!(name(&[], true), "by bytes, descending");
        assert_eq!(name(&[key(true, 0, false)], false), "by number");
        assert_eq!(name(&[key(true, 0, true)], true), "by number, descending");
        assert_eq!(name(&[key(false, 1, false)], false), "by a key");
        assert_eq!(name(&[key(true, 1, false), key(false, 0, false)], false), "by 2 keys");
    }

    #[test]
    fn an_explanation_keeps_within_its_columns() {
        insta::assert_snapshot!(plain(&explanation(&record(), 60)));
        for width in [60, 80, 120] {
            for text in [explanation(&record(), width), statistics(&record(), width)] {
                let text = plain(&text);
                assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            }
        }
    }
}
