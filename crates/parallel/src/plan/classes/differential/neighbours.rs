//! Tests the properties of output that a class claims, by running two commands one after the other
//! over chunks.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::inputs::{self, Kind};
use super::programs::CommandOutput;
use super::{LOCALES, TestedCommand, commands, parts, reference};
use crate::plan::ir::{Combine, Guard, Records};

/// Number of pairs to compare in each locale, per input with which a single command is tested.
const PAIRS: u32 = 60;

#[test]
fn neighbours() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut random = fastrand::Rng::with_seed(5);
    let mut failures = Vec::new();
    let wanted = super::cases() * PAIRS;
    for locale in LOCALES {
        let (all, mut compared) = (subjects(locale), 0);
        for _ in 0..wanted * 8 {
            let (Some(first), Some(second)) = (random.choice(&all), random.choice(&all)) else {
                break;
            };
            let Some(guard) = joined(first, second) else { continue };
            let kind = random.choice([Kind::Lines, Kind::Text]).expect("one");
            let tree = inputs::cases(kind).new_tree(&mut runner).expect("an input");
            let (input, seed) = tree.current();
            match try_both(first, second, &guard, &input.0, seed) {
                Ok(true) => compared += 1,
                Ok(false) => {}
                Err(failure) => failures.push(failure),
            }
            if compared == wanted {
                break;
            }
        }
        assert!(compared == wanted || all.is_empty(), "too little was compared: {compared}");
    }
    assert!(failures.is_empty(), "{} wrong:\n{}", failures.len(), failures.join("\n\n"));
}

fn subjects(locale: &'static str) -> Vec<TestedCommand> {
    let tables = [commands::FILTERS, commands::TABLES_OF_BYTES, commands::PIECES, commands::SORTED];
    let of_lines = |(kind, _): &&(Kind, _)| matches!(kind, Kind::Lines | Kind::Text);
    let rows = tables.into_iter().flatten().chain(commands::COUNTED).filter(of_lines);
    rows.filter_map(|(kind, text)| TestedCommand::new(*kind, text, locale).ok()).collect()
}

/// Returns the guard for the input of two neighbours. Returns `None` unless the outputs of the
/// first command are concatenated, and the second one accepts their lines and allows a cut after
/// each of them.
fn joined(first: &TestedCommand, second: &TestedCommand) -> Option<Guard> {
    let (each, next) = (first.each(), second.each());
    let anywhere = next.cut.before.is_all() && next.cut.after.is_all();
    let plain = first.class.combine == Combine::Concatenate && next.cut.differ.is_none();
    let fits = each.output.records == Some(next.cut.records) && next.cut.records == Records::Lines;
    let clean = next.guard.without.intersection(each.output.adds).is_empty();
    let encoded = !next.guard.utf8 || each.output.keeps_utf8;
    (anywhere && plain && fits && clean && encoded).then(|| each.guard.and(&next.guard))
}

/// Runs both commands over chunks and over the whole input. Returns whether the outputs could be
/// compared; the error describes a difference.
fn try_both(
    first: &TestedCommand,
    second: &TestedCommand,
    guard: &Guard,
    input: &[u8],
    seed: u64,
) -> Result<bool, String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let separator = first.each().cut.records.separator();
    let Some(parts) = parts::cut(&first.each().cut, input, &mut random) else { return Ok(false) };
    if !parts.iter().all(|part| parts::holds(guard, separator, part)) {
        return Ok(false);
    }
    let both = |part: &Vec<u8>| {
        let ran = first.run_part(part);
        let next = second.run_part(&ran.output);
        (first.is_expected(&ran) && second.is_expected(&next)).then_some(next)
    };
    let Some(outputs): Option<Vec<CommandOutput>> = parts.iter().map(both).collect() else {
        return Ok(false);
    };
    let Some(output) = reference::combined(second, &outputs) else { return Ok(false) };
    let whole = second.run(&first.run(input).output);
    if output == whole.output {
        return Ok(true);
    }
    let (output, input) = (output.escape_ascii(), input.escape_ascii());
    let texts = format!("{} | {}", first.text, second.text);
    Err(format!("{}: {texts}: {whole:?} but together {output} of {input} {seed}", first.locale))
}
