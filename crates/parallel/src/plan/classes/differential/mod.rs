//! Differential tests of every class. A command runs over chunks of random input and over the whole
//! input. Both outputs must be the same once those of the chunks are combined, and must have the
//! properties that the class claims.
//!
//! `PROPTEST_CASES` sets the number of inputs for each command and locale.

mod commands;
mod expressions;
mod inputs;
mod neighbours;
mod parts;
mod programs;
mod reference;

use std::collections::BTreeSet;
use std::io::Write as _;

use contend_commands::Simple;
use contend_commands::tr::Effect;
use contend_shell::environment::Environment;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::{Class, Combinable, PerRecord, Subject, classify};
use crate::plan::ir::{Combine, StatusRule};
use inputs::Kind;
use programs::{CommandOutput, Program};

/// Number of inputs for each command and locale, unless `PROPTEST_CASES` sets it.
const CASES: u32 = 2;
const LOCALES: [&str; 2] = ["C", "C.UTF-8"];

/// A command to test in a locale.
struct TestedCommand {
    /// The command as written in the table, with placeholders for files.
    wording: &'static str,
    text: String,
    simple: Simple,
    class: Combinable,
    locale: &'static str,
    folder: tempfile::TempDir,
}

/// The outcome of testing a command with one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CaseOutcome {
    /// The outputs were compared.
    Compared,
    /// The input could not be cut.
    Whole,
    /// The input did not satisfy the guard.
    Guarded,
    /// A chunk or the combination of the outputs failed, so contend would run the command again
    /// over the whole input.
    Failed,
}

/// Numbers of tested inputs by outcome.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    compared: u32,
    whole: u32,
    guarded: u32,
    failed: u32,
}

impl Tally {
    fn count(&mut self, outcome: CaseOutcome) {
        let counted = match outcome {
            CaseOutcome::Compared => &mut self.compared,
            CaseOutcome::Whole => &mut self.whole,
            CaseOutcome::Guarded => &mut self.guarded,
            CaseOutcome::Failed => &mut self.failed,
        };
        *counted += 1;
    }
}

/// Reports a skipped test, uncaptured by the test harness. `.ci/run` counts these lines.
fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED classes of commands: {reason}");
}

/// Returns the number of inputs for each command and locale that `PROPTEST_CASES` sets, or `None`
/// if it is unset or not a number.
fn requested_cases() -> Option<u32> {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok())
}

fn cases() -> u32 {
    requested_cases().unwrap_or(CASES)
}

fn tried(table: &[(Kind, &'static str)]) {
    let (mut tally, mut missing, mut failures) = (Tally::default(), BTreeSet::new(), Vec::new());
    for (kind, text) in table {
        for locale in LOCALES {
            let subject = match TestedCommand::new(*kind, text, locale) {
                Ok(subject) => subject,
                Err(reason) => {
                    missing.insert(reason);
                    continue;
                }
            };
            match subject.try_all(*kind, cases()) {
                Ok(counted) => add(&mut tally, counted),
                Err(failure) => failures.push(format!("{locale}: {text}: {failure}")),
            }
        }
    }
    for reason in &missing {
        skip(reason);
    }
    if requested_cases().is_some() {
        let _ = writeln!(std::io::stderr(), "{} commands: {tally:?}", table.len());
    }
    assert!(failures.is_empty(), "{} wrong:\n{}", failures.len(), failures.join("\n\n"));
    let all = tally.compared + tally.whole + tally.guarded + tally.failed;
    assert!(tally.compared * 2 >= all, "too little was compared: {tally:?}");
}

fn add(tally: &mut Tally, more: Tally) {
    tally.compared += more.compared;
    tally.whole += more.whole;
    tally.guarded += more.guarded;
    tally.failed += more.failed;
}

impl TestedCommand {
    /// Prepares a command for tests. The error says why it cannot be tested on this machine.
    fn new(kind: Kind, wording: &'static str, locale: &'static str) -> Result<Self, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut text = wording.to_owned();
        for (name, key) in inputs::FILES {
            let file = folder.path().join(&name[1..]);
            std::fs::write(&file, inputs::file_for(kind, *key)).expect("written");
            text = text.replace(name, file.to_str().expect("UTF-8"));
        }
        let simple = Simple::read(&text).expect("a simple command");
        let names = [simple.program.text.as_str(), "grep", "head"];
        let environment = Environment::of_this_machine(&names, locale);
        if !environment.is_file(&simple.program.text) {
            return Err(format!("there is no {}", simple.program.text));
        }
        let class = match classify(&Subject { simple: &simple, environment: &environment }) {
            Class::Combinable(class) => class,
            Class::PerRecord(each) => Combinable::ordered(each, Combine::Concatenate),
            Class::Opaque(why) if why.ends_with("here") => return Err(why.into_owned()),
            other => panic!("{text}: {other:?}"),
        };
        Ok(Self { wording, text, simple, class, locale, folder })
    }

    fn try_all(&self, kind: Kind, cases: u32) -> Result<Tally, String> {
        self.try_nothing()?;
        let config =
            Config { cases, max_shrink_iters: 300, failure_persistence: None, ..Config::default() };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &self.seed());
        let mut runner = TestRunner::new_with_rng(config, rng);
        let tally = std::cell::RefCell::new(Tally::default());
        let result = runner.run(&inputs::cases(kind), |(input, seed)| {
            let outcome = self.try_one(&input.0, seed).map_err(TestCaseError::fail)?;
            tally.borrow_mut().count(outcome);
            Ok(())
        });
        result.map_err(|failure| failure.to_string())?;
        Ok(tally.into_inner())
    }

    /// Returns the seed of the command's inputs, which are the same in each run.
    fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        for (place, byte) in self.wording.bytes().chain(self.locale.bytes()).enumerate() {
            seed[place % 32] ^= byte;
        }
        seed
    }

    fn each(&self) -> &PerRecord {
        &self.class.each
    }

    fn run(&self, input: &[u8]) -> CommandOutput {
        Program::of(&self.simple, None, self.locale).run(input)
    }

    fn run_part(&self, part: &[u8]) -> CommandOutput {
        let each = self.each();
        let in_c = each.ascii_in_c && part.is_ascii() && !part.contains(&0);
        let locale = if in_c { "C" } else { self.locale };
        Program::of(&self.simple, each.arguments.as_deref(), locale).run(part)
    }

    /// Checks the command over an empty chunk, which an earlier filter may leave. The command must
    /// succeed. If outputs are concatenated, it must write nothing, unless the class says that it
    /// writes on empty input. The error has the output.
    fn try_nothing(&self) -> Result<(), String> {
        let ran = self.run_part(b"");
        let acts = self.each().writes_on_empty_input;
        let silent = acts || self.class.combine != Combine::Concatenate || ran.output.is_empty();
        let ok = silent && self.is_expected(&ran);
        ok.then_some(()).ok_or_else(|| format!("of nothing it makes {ran:?}"))
    }

    fn is_expected(&self, ran: &CommandOutput) -> bool {
        let expected = match self.each().status {
            StatusRule::Zero => ran.status == 0,
            StatusRule::Matches => ran.status < 2,
        };
        expected && ran.errors.is_empty()
    }

    /// Cuts the input at random positions that the class allows, and checks the outputs of the
    /// chunks. The error describes the chunk that fails, the property that an output lacks, or the
    /// difference.
    fn try_one(&self, input: &[u8], seed: u64) -> Result<CaseOutcome, String> {
        let mut random = fastrand::Rng::with_seed(seed);
        let each = self.each();
        let Some(mut parts) = parts::cut(&each.cut, input, &mut random) else {
            return Ok(CaseOutcome::Whole);
        };
        let separator = each.cut.records.separator();
        if !parts.iter().all(|part| parts::holds(&each.guard, separator, part)) {
            return Ok(CaseOutcome::Guarded);
        }
        if self.class.any_order {
            parts = parts::in_any_order(&parts, &mut random);
        } else if random.bool() && !each.writes_on_empty_input {
            parts.insert(random.usize(..parts.len()), Vec::new());
        }
        let outputs: Vec<CommandOutput> = parts.iter().map(|part| self.run_part(part)).collect();
        let whole = self.run(input);
        if let Some(failed) = outputs.iter().find(|ran| !self.is_expected(ran)) {
            let ok = each.may_fail || !self.is_expected(&whole);
            return ok
                .then_some(CaseOutcome::Failed)
                .ok_or_else(|| format!("a part fails: {failed:?}"));
        }
        parts::check_outputs(each, &parts, &outputs)?;
        let Some(output) = reference::combined(self, &outputs) else {
            return Ok(CaseOutcome::Failed);
        };
        let status = outputs.iter().map(|ran| ran.status).min().unwrap_or(0);
        if (&output, status) != (&whole.output, whole.status) || !whole.errors.is_empty() {
            let parts: Vec<_> = parts.iter().map(|part| part.escape_ascii().to_string()).collect();
            let together = output.escape_ascii();
            return Err(format!("{whole:?}\nbut together {status} {together}\nparts {parts:?}"));
        }
        self.try_another_order(input, &whole, &mut random)?;
        Ok(CaseOutcome::Compared)
    }

    /// Checks that the command also writes the output `whole` if the records of the input are
    /// shuffled. Checks nothing unless the class claims that and the input ends with a separator.
    /// The error has both outputs.
    fn try_another_order(
        &self,
        input: &[u8],
        whole: &CommandOutput,
        random: &mut fastrand::Rng,
    ) -> Result<(), String> {
        let separator = self.each().cut.records.separator();
        if !self.class.ignores_order || input.last() != Some(&separator) {
            return Ok(());
        }
        let mut records: Vec<_> = input.split_inclusive(|byte| *byte == separator).collect();
        random.shuffle(&mut records);
        let shuffled = self.run(&records.concat());
        let same = shuffled.output == whole.output;
        same.then_some(()).ok_or_else(|| format!("another order: {whole:?} {shuffled:?}"))
    }
}

#[test]
fn filters() {
    tried(commands::FILTERS);
}

#[test]
fn tables_of_bytes() {
    tried(commands::TABLES_OF_BYTES);
}

/// Applies the effect of `tr` to bytes.
fn by_table(effect: &Effect, input: &[u8]) -> Vec<u8> {
    let mut output: Vec<u8> = Vec::new();
    for byte in input.iter().filter_map(|byte| effect.image(*byte)) {
        if !(effect.squeezes(byte) && output.last() == Some(&byte)) {
            output.push(byte);
        }
    }
    output
}

#[test]
fn tables_say_what_tr_does() {
    let mut random = fastrand::Rng::with_seed(3);
    for (_, text) in commands::TABLES_OF_BYTES {
        let Ok(subject) = TestedCommand::new(Kind::Lines, text, "C") else { return skip("no tr") };
        let effect = Effect::read(&subject.simple, true).expect("understood");
        let all = (0..=255).flat_map(|byte: u8| [byte, byte]);
        let some = std::iter::repeat_with(|| random.choice(*b"aabbcz \n\n\t,-[]").expect("one"));
        let input: Vec<u8> = all.chain(some.take(500)).collect();
        let output = subject.run(&input).output;
        assert!(output == by_table(&effect, &input), "{text}: {}", output.escape_ascii());
    }
}

#[test]
fn pieces_of_lines() {
    tried(commands::PIECES);
}

#[test]
fn items() {
    tried(commands::ITEMS);
}

#[test]
fn sorted() {
    tried(commands::SORTED);
}

#[test]
fn counted() {
    tried(commands::COUNTED);
}

#[test]
fn values() {
    tried(commands::VALUES);
}
