//! Runs one group from its input to its output: over chunks, with a fallback to one run over the
//! whole input.

use std::fs::File;
use std::sync::atomic::Ordering;

use super::error::GroupError;
use super::fallback::Fallback;
use super::input::{Answers, Beginning, ChunkSource, Input, Lull};
use super::pilot::{self, Trial};
use super::progress::{Progress, Reader};
use super::sink::Sink;
use super::threads::is_scarcity;
use super::{Context, combine, concatenate, sorted, whole};
use crate::plan::estimate;
use crate::plan::ir::{Combine, Group};

/// The maximum number of bytes of a stream that are read to decide whether chunks pay off.
const MAX_PEEK_BYTES: usize = 1 << 20;

/// Runs a group from `input` to `output`, and returns the reader of the input.
///
/// # Errors
/// Returns an error if the input cannot be read, a command cannot be started, commands fail over
/// chunks of a stream, or the output cannot be written.
pub(super) fn run(
    group: &Group,
    context: &Context<'_>,
    input: Input,
    output: File,
) -> Result<Reader, GroupError> {
    let longest = usize::try_from(context.memory / 4).unwrap_or(usize::MAX);
    let mut chunks = ChunkSource::new(context.launcher, input, &group.cut, &group.guard)
        .with_lulls(lull(group, context))
        .with_records_up_to(longest);
    if context.is_first {
        chunks = chunks.counted(context.tally.input());
    }
    let sink = Sink::for_group(output, context);
    let reader_left = sink.reader_left();
    let trial = judge(group, context, &chunks, sink.is_file())?;
    let reader = if trial.is_worth_it {
        let context = Context { rate: trial.rate, ..*context };
        run_into(group, &context, &chunks, sink)?
    } else {
        context.tally.note_fallback(group, &Fallback::NotFaster);
        whole::plain(group, context, &chunks, sink)?
    };
    if reader_left.load(Ordering::Relaxed) {
        context.tally.cut_off(group);
    }
    Ok(reader)
}

/// Returns how to proceed when the group's input falls silent or is slow.
fn lull<'a>(group: &Group, context: &Context<'a>) -> Lull<'a> {
    if !estimate::answers_early(&context.steps[context.at..]) {
        return Lull::Waits;
    }
    let answers = if estimate::runs_others(group) { Answers::Pieces } else { Answers::Lines };
    Lull::RunsPlain { earlier: &context.plain[..context.at], answers }
}

/// Decides whether the group runs over chunks. It does if the user has set the size of chunks, and
/// does not if its input is a stream that ends early, falls silent or is slow. Otherwise,
/// [`pilot::judge`] decides. `to_file` tells whether the output is a regular file.
fn judge(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    to_file: bool,
) -> Result<Trial, GroupError> {
    if context.chunk_bytes.is_some() {
        return Ok(Trial { is_worth_it: true, rate: None });
    }
    if !chunks.can_be_read_again() {
        let enough =
            estimate::break_even_bytes(&context.steps[context.at], chunks.line()?, context.jobs);
        let enough = usize::try_from(enough).map_or(MAX_PEEK_BYTES, |it| it.min(MAX_PEEK_BYTES));
        if chunks.begins(enough)? != Beginning::Flowing {
            return Ok(Trial { is_worth_it: false, rate: None });
        }
    }
    pilot::judge(group, context, chunks, to_file)
}

/// Runs the group over chunks, or once over the whole input if that fails or if the commands fail
/// even on empty input. Returns the reader of the input.
fn run_into(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    mut sink: Sink<'_>,
) -> Result<Reader, GroupError> {
    let is_ordered = match &group.combine {
        Combine::Concatenate | Combine::Adjoin { .. } => true,
        Combine::Through(_) => !group.any_order,
        _ => false,
    };
    // A stream cannot be read again, so commands are tried on empty input before anything is read.
    if !is_ordered
        && !chunks.can_be_read_again()
        && !whole::succeeds_on_empty_input(group, context)?
    {
        context.tally.note_fallback(group, &Fallback::CommandsAlwaysFail);
        return whole::run(group, context, chunks, &mut sink);
    }
    match over_chunks(group, context, chunks, sink)? {
        Progress::Done => Ok(Reader::Contend),
        Progress::StartAgain(mut sink, why) => {
            context.tally.note_fallback(group, &why);
            sink.start_again();
            context.tally.start_again(group);
            whole::run(group, context, chunks, &mut sink)
        }
    }
}

/// Runs the group over chunks, in the way that its combiner requires. The result is
/// [`Progress::StartAgain`] if that is impossible, or if it fails and the commands can still run
/// once over the whole input.
pub(super) fn over_chunks<'a>(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    mut sink: Sink<'a>,
) -> Result<Progress<'a>, GroupError> {
    let sorting = sorted::task(group).filter(|_| group.any_order);
    let fallback = match &group.combine {
        _ if let Some(task) = &sorting => sorted::run(task, context, chunks, &mut sink)?,
        Combine::Concatenate | Combine::Adjoin { .. } => {
            return concatenate::run(group, context, chunks, sink);
        }
        Combine::Through(command) if !group.any_order => {
            return concatenate::through(group, command, context, chunks, sink);
        }
        Combine::Totals(_) if !chunks.can_be_read_again() => {
            Some(Fallback::TotalsOfStream.refined(chunks))
        }
        _ if !group.any_order && !chunks.can_be_read_again() => {
            Some(Fallback::OrderOfStream.refined(chunks))
        }
        _ => match combine::run(group, context, chunks, &mut sink) {
            Err(GroupError::Failed(_)) if chunks.can_be_read_again() => {
                Some(Fallback::CommandFailed.refined(chunks))
            }
            Err(GroupError::Transfer(error))
                if is_scarcity(&error)
                    && (chunks.can_be_read_again() || chunks.none_was_taken()) =>
            {
                Some(Fallback::Scarcity)
            }
            gathered => gathered?,
        },
    };
    Ok(fallback.map_or(Progress::Done, |why| Progress::StartAgain(sink, why)))
}

#[cfg(test)]
mod tests {
    use contend_commands::testing::simple;
    use contend_shell::environment::Environment;

    use crate::plan::ir::{Column, Numbers, Operator, StatusRule};

    use super::super::testing::{Ran, Setting, command, file_input, group, shell, stream_input};
    use super::*;

    const TEXT: &str = "one\ntwo\nthree\nfour\nfive\n";
    const UPPER: &str = "ONE\nTWO\nTHREE\nFOUR\nFIVE\n";

    fn upper() -> Group {
        group(command("tr", &["a-z", "A-Z"]), Combine::Concatenate)
    }

    #[test]
    fn outputs_of_parts_are_concatenated() {
        for input in [file_input(TEXT), stream_input(TEXT)] {
            let Ran { result, output, notes, chunks } = Setting::default().run(&upper(), input);
            assert_eq!(result.ok(), Some(Reader::Contend));
            assert_eq!((output.as_str(), notes.len()), (UPPER, 0));
            assert!(chunks > 2, "{chunks} parts");
        }
    }

    #[test]
    fn without_a_gain_the_commands_read_the_input_themselves() {
        let setting = Setting { chunk_bytes: None, ..Setting::default() };
        let Ran { result, output, notes, .. } = setting.run(&upper(), file_input(TEXT));
        assert_eq!((result.ok(), output.as_str()), (Some(Reader::Commands), UPPER));
        assert!(notes.iter().any(|note| note.ends_with(&Fallback::NotFaster.to_string())));
    }

    #[test]
    fn a_failure_over_a_part_is_repaired_by_one_run_over_all() {
        // Both scripts fail unless they read the first line, as they do over the whole input.
        let stderr = "read -r line; echo $line; cat; [ $line = one ] || echo remark >&2";
        let fails = "read -r line; echo $line; cat; [ $line = one ]";
        for text in [stderr, fails] {
            let group = group(shell(text), Combine::Concatenate);
            for input in [file_input(TEXT), stream_input(TEXT)] {
                let Ran { result, output, notes, .. } = Setting::default().run(&group, input);
                assert!(result.is_ok());
                assert_eq!(output, TEXT);
                let why = Fallback::CommandFailed.to_string();
                assert!(notes.iter().any(|note| note.ends_with(&why)), "{notes:?}");
            }
        }
    }

    #[test]
    fn commands_that_fail_over_nothing_fall_back_over_a_stream() {
        let mut count = group(
            shell("wc -l; false"),
            Combine::Numbers(Numbers { columns: vec![Column::Sum], width: 1 }),
        );
        count.any_order = true;
        let Ran { result, output, notes, .. } = Setting::default().run(&count, stream_input(TEXT));
        assert_eq!((result.ok(), output.trim()), (Some(Reader::Contend), "5"));
        let why = Fallback::CommandsAlwaysFail.to_string();
        assert!(notes.iter().any(|note| note.ends_with(&why)), "{notes:?}");
    }

    #[test]
    fn numbers_of_parts_are_added_up() {
        let mut count = group(
            command("wc", &["-l"]),
            Combine::Numbers(Numbers { columns: vec![Column::Sum], width: 1 }),
        );
        count.any_order = true;
        for input in [file_input(TEXT), stream_input(TEXT)] {
            let Ran { result, output, .. } = Setting::default().run(&count, input);
            assert_eq!((result.ok(), output.as_str()), (Some(Reader::Contend), "5\n"));
        }
    }

    #[test]
    fn rejected_input_falls_back_with_a_reason() {
        let mut group = upper();
        group.guard = crate::plan::ir::Guard { terminated: true, ..crate::plan::ir::Guard::NONE };
        let text = "one\ntwo\nthree";
        let Ran { result, output, notes, .. } = Setting::default().run(&group, file_input(text));
        assert_eq!((result.ok(), output.as_str()), (Some(Reader::Commands), "ONE\nTWO\nTHREE"));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(!notes[0].contains(&Fallback::CommandFailed.to_string()), "{notes:?}");
    }

    #[test]
    fn a_command_without_a_match_in_some_parts_has_not_failed() {
        let mut grep = command("grep", &["four"]);
        grep.status = StatusRule::Matches;
        let group = group(grep, Combine::Concatenate);
        let Ran { result, output, notes, .. } = Setting::default().run(&group, file_input(TEXT));
        assert_eq!(
            (result.ok(), output.as_str(), notes.len()),
            (Some(Reader::Contend), "four\n", 0)
        );
    }

    #[test]
    fn outputs_go_through_one_more_command() {
        let sum = Combine::Through(shell("cat; echo end"));
        for input in [file_input(TEXT), stream_input(TEXT)] {
            let group = group(command("tr", &["a-z", "A-Z"]), sum.clone());
            let Ran { result, output, .. } = Setting::default().run(&group, input);
            assert_eq!(result.ok(), Some(Reader::Contend));
            assert_eq!(output, format!("{UPPER}end\n"));
        }
    }

    #[test]
    fn operators_do_what_their_commands_do() {
        let environment = Environment::for_tests("C");
        let numbers = Numbers { columns: vec![Column::Sum], width: 1 };
        let sorted = Combine::Counts { reverse: false, folder: None };
        for (text, combine) in [
            ("tr a-z A-Z", Combine::Concatenate),
            ("wc -l", Combine::Numbers(numbers)),
            ("tr -d aeiou", sorted.clone()),
        ] {
            let simple = simple(text);
            let arguments: Vec<&str> = simple.arguments.iter().map(|it| it.text.as_str()).collect();
            let plain = command(simple.name(), &arguments);
            let operator = Operator::read(&simple, &environment);
            assert!(operator.is_some(), "{text}");
            let outputs = [None, operator].map(|operator| {
                let mut group = group(plain.clone(), combine.clone());
                group.each[0].operator = operator;
                group.any_order = combine != Combine::Concatenate;
                if combine == sorted {
                    let mut sort = command("sort", &[]);
                    sort.sorts = true;
                    group.serial.push(sort.clone());
                    group.each.push(sort);
                }
                [file_input(TEXT), stream_input(TEXT)].map(|input| {
                    let setting = Setting::default();
                    let Ran { result, output, notes, .. } = setting.run(&group, input);
                    assert_eq!((result.ok(), notes.len()), (Some(Reader::Contend), 0), "{text}");
                    let tally = setting.tally.stages()[&0];
                    let is_inside = group.each[0].operator.is_some();
                    assert_eq!((tally.status, is_inside), (0, tally.starts == 0), "{text}");
                    output
                })
            });
            let [[expected, ..], ..] = &outputs;
            assert!(outputs.iter().flatten().all(|output| output == expected), "{outputs:?}");
        }
    }
}
