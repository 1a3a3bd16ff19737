//! One group from its input to its output, over parts or, where that turns out not to do, in one
//! piece.

use std::fs::File;
use std::sync::atomic::Ordering;

use contend_record::run::{Combine, Group};

use super::error::GroupError;
use super::fallback::Fallback;
use super::input::{Answers, Beginning, Input, Lull, Parts};
use super::pilot::{self, Trial};
use super::sink::Sink;
use super::threads::is_scarcity;
use super::{Context, combine, concatenate, sorted, whole};
use crate::plan::estimate;

/// No more of a stream than this is waited for to see whether it is worth the trouble, in bytes.
const SHORT: usize = 1 << 20;

/// Who has read the input of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Its commands themselves, as far as they needed it.
    Commands,
    /// It was read here, and handed to commands.
    Contend,
}

/// Runs a group.
///
/// # Errors
/// See [`GroupError`].
pub(super) fn run(
    group: &Group,
    context: &Context<'_>,
    input: Input,
    output: File,
) -> Result<Reader, GroupError> {
    let longest = usize::try_from(context.memory / 4).unwrap_or(usize::MAX);
    let mut parts = Parts::new(context.launcher, input, &group.cut, &group.guard)
        .with_lulls(lull(group, context))
        .with_records_up_to(longest);
    if context.is_first {
        parts = parts.counted(context.tally.input());
    }
    let told = Some(context.tally).filter(|_| context.is_last);
    let sink = Sink::new(output, told, context.launcher);
    let reader_left = sink.reader_left();
    let trial = judge(group, context, &parts, sink.is_file())?;
    let reader = if trial.is_worth_it {
        let context = Context { rate: trial.rate, ..*context };
        run_into(group, &context, &parts, sink)?
    } else {
        context.tally.in_one_piece(group, &Fallback::NotFaster);
        whole::plain(group, context, &parts, sink)?
    };
    if reader_left.load(Ordering::Relaxed) {
        context.tally.cut_off(group);
    }
    Ok(reader)
}

/// What happens when the group's input falls silent.
fn lull<'a>(group: &Group, context: &Context<'a>) -> Lull<'a> {
    if !estimate::answers_early(&context.steps[context.at..]) {
        return Lull::IsWaitedOut;
    }
    let answers = if estimate::runs_others(group) { Answers::Pieces } else { Answers::Lines };
    Lull::RunsPlain { earlier: &context.plain[..context.at], answers }
}

/// Whether parts are worth it, by what can be known before.
fn judge(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    to_file: bool,
) -> Result<Trial, GroupError> {
    if context.part_bytes.is_some() {
        return Ok(Trial { is_worth_it: true, rate: None });
    }
    if !parts.can_be_read_again() {
        let enough = estimate::enough(&context.steps[context.at], parts.line()?, context.jobs);
        let enough = usize::try_from(enough).map_or(SHORT, |it| it.min(SHORT));
        if parts.begins(enough)? != Beginning::Flowing {
            return Ok(Trial { is_worth_it: false, rate: None });
        }
    }
    pilot::judge(group, context, parts, to_file)
}

/// Runs it over parts, or in one piece if that turns out not to do.
fn run_into(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    mut sink: Sink<'_>,
) -> Result<Reader, GroupError> {
    let is_ordered = match &group.combine {
        Combine::Concatenate | Combine::Adjoin { .. } => true,
        Combine::Through(_) => !group.any_order,
        _ => false,
    };
    // Over a stream it has to be known before anything is read whether commands fail.
    if !is_ordered && !parts.can_be_read_again() && !whole::accepts_its_commands(group, context)? {
        context.tally.in_one_piece(group, &Fallback::CommandsAlwaysFail);
        return whole::run(group, context, parts, &mut sink);
    }
    match over_parts(group, context, parts, sink)? {
        Progress::Done => Ok(Reader::Contend),
        Progress::StartAgain(mut sink, why) => {
            context.tally.in_one_piece(group, &why);
            sink.start_again();
            context.tally.start_again(group);
            whole::run(group, context, parts, &mut sink)
        }
    }
}

/// How far a group got over parts.
pub(super) enum Progress<'a> {
    /// To its end, or its reader wants no more.
    Done,
    /// All has to be done again in one piece, into this sink.
    StartAgain(Sink<'a>, Fallback),
}

/// Runs it over parts, in the way that suits how outputs are combined.
fn over_parts<'a>(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    mut sink: Sink<'a>,
) -> Result<Progress<'a>, GroupError> {
    let sorting = sorted::task(group).filter(|_| group.any_order);
    let fallback = match &group.combine {
        _ if let Some(task) = &sorting => sorted::run(task, context, parts, &mut sink)?,
        Combine::Concatenate | Combine::Adjoin { .. } => {
            return concatenate::run(group, context, parts, sink);
        }
        Combine::Through(command) if !group.any_order => {
            return concatenate::through(group, command, context, parts, sink);
        }
        Combine::Totals(_) if !parts.can_be_read_again() => {
            Some(Fallback::TotalsOfStream.over(parts))
        }
        _ if !group.any_order && !parts.can_be_read_again() => {
            Some(Fallback::OrderOfStream.over(parts))
        }
        _ => match combine::run(group, context, parts, &mut sink) {
            Err(GroupError::Failed(_)) if parts.can_be_read_again() => {
                Some(Fallback::CommandFailed.over(parts))
            }
            Err(GroupError::Transfer(error))
                if is_scarcity(&error) && (parts.can_be_read_again() || parts.none_was_taken()) =>
            {
                Some(Fallback::Scarcity)
            }
            gathered => gathered?,
        },
    };
    Ok(fallback.map_or(Progress::Done, |why| Progress::StartAgain(sink, why)))
}
