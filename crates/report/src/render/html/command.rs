//! The command lines that make records like those of the pages again, with the options that the records show.
//! Other options, such as `--stdin`, are not recorded; the pages name some of them.

use contend_record::advice::Trial;
use contend_record::doctor::{DoctorRecord, Relation};
use contend_record::pipe::PipeRecord;
use contend_record::run::RunRecord;
use contend_record::shell::{quote, quote_text};
use contend_record::versus::{Variant, VersusRecord};

/// The shell that runs pipelines without `--shell`, if it is installed.
const DEFAULT_SHELL: &str = "bash";
/// Time limit of `--try` without `--budget`, in seconds.
const DEFAULT_BUDGET_SECONDS: f64 = 30.0;

/// A command line that a page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub text: String,
    pub purpose: Purpose,
}

/// What a command line does again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It measures again. The record does not keep some options, for example `unrecorded`.
    Measurement { unrecorded: &'static [&'static str] },
    /// It compares the same saved runs.
    Comparison,
}

impl CommandLine {
    fn measuring(text: String, unrecorded: &'static [&'static str]) -> Self {
        Self { text, purpose: Purpose::Measurement { unrecorded } }
    }

    /// Returns the words before the command line.
    pub(super) fn label(&self) -> &'static str {
        match self.purpose {
            Purpose::Measurement { .. } => "To measure again",
            Purpose::Comparison => "Command",
        }
    }

    /// Says which options the command line may lack. `None` if the record keeps all of them.
    pub(super) fn note(&self) -> Option<String> {
        let Purpose::Measurement { unrecorded } = self.purpose else { return None };
        let options = match unrecorded {
            [] => return None,
            [one] => (*one).to_owned(),
            [others @ .., last] => format!("{} or {last}", others.join(", ")),
        };
        Some(format!("Options that the record does not keep, such as {options}, are missing."))
    }
}

/// Returns the command line that profiles the pipeline of a record.
pub(super) fn of_pipe(record: &PipeRecord) -> CommandLine {
    if let Some(attached) = &record.attached {
        // All stages are found from any of them.
        let pid = attached.pids.first().map_or_else(|| "PID".to_owned(), ToString::to_string);
        return CommandLine::measuring(format!("contend pipe --pid {pid}"), &["--for"]);
    }
    let mut words = vec!["contend pipe".to_owned()];
    words.extend(shell_option(&record.shell));
    words.extend(record.runs.as_ref().map(|runs| format!("--runs {}", runs.count)));
    words.extend(record.trial.iter().flat_map(trial_options));
    words.extend(record.what_if.iter().map(|one| format!("--what-if {}", quote(&one.question))));
    words.push(argument(&record.command));
    let unrecorded = &["--stdin", "--setup", "--pipefail", "--discard"];
    CommandLine::measuring(words.join(" "), unrecorded)
}

/// Returns the options of a trial of rewrites.
fn trial_options(trial: &Trial) -> Vec<String> {
    let mut options = vec!["--try".to_owned()];
    if (trial.budget_seconds - DEFAULT_BUDGET_SECONDS).abs() > f64::EPSILON {
        options.push(format!("--budget {}", trial.budget_seconds));
    }
    let copies: Vec<usize> = trial.load.iter().map(|point| point.copies).collect();
    options.extend(match copies.as_slice() {
        [] => None,
        [copies] | [1, copies] => Some(format!("--copies {copies}")),
        several => {
            let several: Vec<_> = several.iter().map(ToString::to_string).collect();
            Some(format!("--sweep-copies {}", several.join(",")))
        }
    });
    options
}

/// Returns the command line that makes a comparison of pipelines again. `None` without a pipeline.
pub(super) fn of_versus(record: &VersusRecord) -> Option<CommandLine> {
    let (first, others) = record.variants.split_first()?;
    if !record.in_turn {
        let text = of_saved_runs(&record.variants)?;
        return Some(CommandLine { text, purpose: Purpose::Comparison });
    }
    let mut words = vec!["contend pipe".to_owned()];
    words.extend(shell_option(&record.shell));
    words.push(format!("--runs {}", record.rounds));
    if record.warmup_rounds > 0 {
        words.push(format!("--warmup {}", record.warmup_rounds));
    }
    words.extend(record.prepare.as_ref().map(|text| format!("--prepare {}", quote_text(text))));
    words.push(format!("--seed {}", record.seed));
    let conditions = record.conditions.iter();
    words.extend(conditions.map(|tested| format!("--fail-if {}", quote(&tested.condition))));
    // The pipelines of `--scan` have the values of their parameters filled in.
    words.extend(others.iter().map(|other| format!("--vs {}", quote_text(&other.command))));
    words.push(argument(&first.command));
    Some(CommandLine::measuring(words.join(" "), &["--stdin", "--setup", "--pipefail"]))
}

/// Returns the command line that compares saved runs, from the words for their origins. `None` if there are no
/// such words.
fn of_saved_runs(variants: &[Variant]) -> Option<String> {
    let mut names = Vec::new();
    for variant in variants {
        let (from, _started_at) = variant.origin.as_ref()?.rsplit_once(", ")?;
        // The pipelines of a saved comparison are named together.
        let from = match from.split_once(" of ") {
            Some((name, from)) if name.bytes().all(|byte| byte.is_ascii_uppercase()) => from,
            _ => from,
        };
        let number = from.strip_prefix("run ").and_then(|rest| rest.split(' ').next());
        let name = match number {
            Some(number) => quote(number),
            None if from == "standard input" => "-".to_owned(),
            None => quote(from),
        };
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    Some(format!("contend compare {}", names.join(" ")))
}

/// Returns the command line that observes the program of a diagnosis.
pub(super) fn of_doctor(record: &DoctorRecord) -> CommandLine {
    if record.started {
        let (tries, unrecorded): (_, &[_]) = match record.trials {
            Some(_) => (" --try", &["--for", "--runs", "--budget", "--prepare"]),
            None => ("", &["--for"]),
        };
        // The words of the command are already quoted.
        let text = format!("contend doctor{tries} -- {}", record.command);
        return CommandLine::measuring(text, unrecorded);
    }
    let named = record.processes.iter().filter(|process| process.relation == Relation::Named);
    let mut pids: Vec<String> = named.map(|process| process.pid.to_string()).collect();
    if pids.is_empty() {
        pids.push("PID".to_owned());
    }
    CommandLine::measuring(format!("contend doctor {}", pids.join(" ")), &["--for"])
}

/// Returns the command line that runs the pipeline or the script of a record in parallel. `None` if the record
/// does not say which of the two it is.
pub(super) fn of_run(record: &RunRecord) -> Option<CommandLine> {
    let mut words = vec!["contend run".to_owned(), format!("--jobs {}", record.jobs)];
    if record.outcome.is_none() {
        words.push("--explain".to_owned());
    }
    if record.outcome.as_ref().is_some_and(|outcome| outcome.check.is_some()) {
        words.push("--check".to_owned());
    }
    words.push(match kind(record)? {
        Kind::Text => argument(&record.command),
        Kind::Script => script(&record.command),
    });
    let unrecorded = &["--memory", "--map", "--shell", "--pipefail"];
    Some(CommandLine::measuring(words.join(" "), unrecorded))
}

/// What contend has run.
enum Kind {
    /// The text of a pipeline, or other shell text.
    Text,
    /// A script.
    Script,
}

/// Returns what contend has run. `None` if that is unclear: for a name with arguments, of which contend has
/// taken over nothing.
fn kind(record: &RunRecord) -> Option<Kind> {
    // The name of a script and its arguments are quoted words, between which there are spaces.
    let is_syntax = |c: char| "|&;<>()$`\"\n*?[#{}!".contains(c);
    let without_escapes = record.command.replace("\\'", "");
    let mut outside_quotes = without_escapes.split('\'').step_by(2);
    if record.plan.is_some() || outside_quotes.any(|text| text.contains(is_syntax)) {
        return Some(Kind::Text);
    }
    let taken = record.taken.iter().map(|taken| taken.text.as_str());
    let texts = taken.chain(record.left.iter().map(|left| left.text.as_str()));
    texts
        .map(|text| record.command.contains(text))
        .reduce(|all, one| all && one)
        .map(|is_part| if is_part { Kind::Text } else { Kind::Script })
}

/// Returns the option and the arguments that run a script, whose name and arguments are quoted words.
fn script(words: &str) -> String {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = words.find(|c: char| {
        is_quoted ^= c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !is_quoted;
        c == ' ' && !is_quoted
    });
    match end {
        None => format!("--file {words}"),
        Some(end) => format!("--file {} --{}", &words[..end], &words[end..]),
    }
}

/// Returns the option that names the shell, if it is not the default one.
fn shell_option(shell: &str) -> Option<String> {
    let is_default = shell.is_empty() || shell == DEFAULT_SHELL;
    (!is_default).then(|| format!("--shell {}", quote(shell)))
}

/// Returns the text of a pipeline as the last argument.
fn argument(text: &str) -> String {
    let end_of_options = if text.starts_with('-') { "-- " } else { "" };
    format!("{end_of_options}{}", quote_text(text))
}

#[cfg(test)]
mod tests {
    use contend_record::advice::{LoadPoint, TrialInput, WhatIf};
    use contend_record::doctor::Process;
    use contend_record::pipe::{Attached, Runs};
    use contend_record::remedy::RemedyTrial;
    use contend_record::run::{Check, Left, Outcome, PlanRecord, SourceRecord, TakenOver};
    use contend_record::stats::Estimate;

    use super::super::super::testing::VERSUS;
    use super::*;

    fn estimate() -> Estimate {
        Estimate::from_samples(vec![1.0], 1).expect("there is a sample")
    }

    #[test]
    fn a_profile_has_the_options_that_its_record_shows() {
        let mut record =
            PipeRecord { command: "sort x | uniq".to_owned(), ..PipeRecord::default() };
        assert_eq!(of_pipe(&record).text, "contend pipe 'sort x | uniq'");
        record.runs = Some(Runs {
            count: 10,
            wall_seconds: estimate(),
            cpu_seconds: estimate(),
            same_bottleneck: 10,
            stages: Vec::new(),
        });
        record.shell = "dash".to_owned();
        record.what_if = vec![WhatIf {
            question: "cpus 8".to_owned(),
            wall_seconds: 1.0,
            cpu_seconds: 1.0,
            bottleneck: String::new(),
        }];
        let expected = "contend pipe --shell dash --runs 10 --what-if 'cpus 8' 'sort x | uniq'";
        assert_eq!(of_pipe(&record).text, expected);
        record.attached = Some(Attached { pids: vec![7, 8], has_ended: true });
        assert_eq!(of_pipe(&record).text, "contend pipe --pid 7");
    }

    #[test]
    fn a_trial_has_its_budget_and_its_copies() {
        let mut trial = Trial::without_candidates(TrialInput::Own, DEFAULT_BUDGET_SECONDS);
        assert_eq!(trial_options(&trial), ["--try"]);
        let point = |copies| LoadPoint { copies, figures: Vec::new() };
        trial.load = vec![point(1), point(4)];
        assert_eq!(trial_options(&trial), ["--try", "--copies 4"]);
        trial.load.push(point(8));
        trial.budget_seconds = 2.5;
        assert_eq!(trial_options(&trial), ["--try", "--budget 2.5", "--sweep-copies 1,4,8"]);
    }

    #[test]
    fn a_comparison_has_all_of_its_pipelines() {
        let mut record: VersusRecord = serde_json::from_str(VERSUS).expect("a record");
        let line =
            |record: &VersusRecord| of_versus(record).map(|line| line.text).unwrap_or_default();
        assert_eq!(
            line(&record),
            "contend pipe --runs 6 --seed 564203 --vs 'sort -n numbers.txt | tail -n 1' \
             'sort numbers.txt | tail -n 1'"
        );
        record.in_turn = false;
        let mut saved = |origins: [&str; 2]| {
            for (variant, origin) in record.variants.iter_mut().zip(origins) {
                variant.origin = Some(origin.to_owned());
            }
            line(&record)
        };
        let start = "2026-01-02 03:04:05";
        let origins = [format!("run 7 (a, b), {start}"), format!("my file.json, {start}")];
        assert_eq!(saved([&origins[0], &origins[1]]), "contend compare 7 'my file.json'");
        let origins = [format!("A of run 7, {start}"), format!("B of run 7, {start}")];
        assert_eq!(saved([&origins[0], &origins[1]]), "contend compare 7");
    }

    #[test]
    fn a_diagnosis_has_its_command_or_its_processes() {
        let command = "python3 'a b.py'".to_owned();
        let mut record = DoctorRecord { started: true, command, ..DoctorRecord::default() };
        assert_eq!(of_doctor(&record).text, "contend doctor -- python3 'a b.py'");
        record.trials = Some(RemedyTrial {
            trial: Trial::without_candidates(TrialInput::Own, 60.0),
            output_compared: true,
            remedies: Vec::new(),
        });
        assert_eq!(of_doctor(&record).text, "contend doctor --try -- python3 'a b.py'");
        record.started = false;
        let process = |pid, relation| Process { pid, relation, ..Process::default() };
        record.processes = vec![
            process(7, Relation::Named),
            process(8, Relation::Descendant),
            process(9, Relation::Named),
        ];
        assert_eq!(of_doctor(&record).text, "contend doctor 7 9");
    }

    #[test]
    fn a_parallel_run_is_that_of_a_pipeline_or_of_a_script() {
        let run = |command: &str| RunRecord {
            jobs: 2,
            command: command.to_owned(),
            outcome: Some(Outcome::default()),
            ..RunRecord::default()
        };
        let line = |record: &RunRecord| of_run(record).map(|line| line.text);
        let plan = PlanRecord { stages: Vec::new(), source: SourceRecord::Own, steps: Vec::new() };
        let mut pipeline = RunRecord { plan: Some(plan), ..run("sort x") };
        assert_eq!(line(&pipeline).as_deref(), Some("contend run --jobs 2 'sort x'"));
        pipeline.outcome = Some(Outcome { check: Some(Check::default()), ..Outcome::default() });
        assert_eq!(line(&pipeline).as_deref(), Some("contend run --jobs 2 --check 'sort x'"));
        pipeline.outcome = None;
        assert_eq!(line(&pipeline).as_deref(), Some("contend run --jobs 2 --explain 'sort x'"));

        let text = run("sort x; ls");
        assert_eq!(line(&text).as_deref(), Some("contend run --jobs 2 'sort x; ls'"));
        let taken = vec![TakenOver { line: 3, text: "sort x".to_owned(), ..TakenOver::default() }];
        let script = RunRecord { taken, ..run("'a b.sh' -v x") };
        assert_eq!(line(&script).as_deref(), Some("contend run --jobs 2 --file 'a b.sh' -- -v x"));
        assert_eq!(super::script(r"'a'\'' b' c"), r"--file 'a'\'' b' -- c");
        let left = vec![Left { line: 3, text: "cd /".to_owned(), ..Left::default() }];
        let script = RunRecord { left, ..run("a.sh") };
        assert_eq!(line(&script).as_deref(), Some("contend run --jobs 2 --file a.sh"));
        assert_eq!(line(&run("cd /")), None, "a pipeline or a script");
    }

    #[test]
    fn options_that_are_not_recorded_are_named() {
        let note = |line: CommandLine| line.note().unwrap_or_default();
        let pipe = of_pipe(&PipeRecord::default());
        assert_eq!(pipe.label(), "To measure again");
        assert!(note(pipe).contains("such as --stdin, --setup, --pipefail or --discard, are"));
        let only = "Options that the record does not keep, such as --for, are missing.";
        assert_eq!(note(of_doctor(&DoctorRecord::default())), only);
        let mut record: VersusRecord = serde_json::from_str(VERSUS).expect("a record");
        assert!(note(of_versus(&record).expect("pipelines")).contains("--setup or --pipefail"));
        record.in_turn = false;
        for variant in &mut record.variants {
            variant.origin = Some("run 7, 2026-01-02 03:04:05".to_owned());
        }
        let saved = of_versus(&record).expect("saved runs");
        assert_eq!((saved.label(), saved.note()), ("Command", None));
    }
}
