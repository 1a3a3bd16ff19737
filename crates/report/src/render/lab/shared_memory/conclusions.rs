//! The conclusions of the article, and whether the measurements of a run confirm them.

use contend_record::lab::RunRecord;
use contend_record::parameters::names;

use super::super::super::units::{count, nanoseconds};
use super::super::conclusion::{
    Conclusion, Judgement, Reason, Verdict, compared, is_disturbed, not_measured,
};
use super::super::table::ratio_of;
use super::{both, copied, form};

pub const CONCLUSIONS: [Conclusion; 3] = [
    Conclusion {
        letter: 'A',
        claim: "small messages through a pipe cost at least two system calls each, and many context \
                switches",
        judge: two_calls,
    },
    Conclusion {
        letter: 'B',
        claim: "shared memory needs no system call per message, and is faster",
        judge: no_calls,
    },
    Conclusion {
        letter: 'C',
        claim: "copying by mmap is 4 to 5 times as fast as by read and write",
        judge: copying,
    },
];

/// Minimum number of context switches per message that counts as many. The article's program had
/// one for every six messages.
const MIN_SWITCHES_PER_MESSAGE: f64 = 0.1;

/// Number of system calls per message below which messages count as sent without system calls.
const MAX_NEGLIGIBLE_CALLS_PER_MESSAGE: f64 = 0.01;
/// Number of system calls per message below which disturbances may have caused them.
const MAX_DISTURBED_CALLS_PER_MESSAGE: f64 = 0.5;

fn two_calls(record: &RunRecord) -> Judgement {
    let figures = || {
        let pipe = form(record, "pipe")?;
        let messages = pipe.parameters.number(names::MESSAGES)? as f64;
        let calls = both(pipe, "calls")? / messages;
        let switches = both(pipe, "voluntary_switches")?;
        Some((pipe, calls, switches, switches / messages))
    };
    let Some((pipe, calls, switches, each)) = figures() else {
        return not_measured("Not all of its cases were measured.");
    };
    let text = format!(
        "A message takes {calls:.2} system calls. Both processes had {} voluntary switches in all; the \
         article's had 178,208 on FreeBSD.",
        count(switches)
    );
    (
        // The number of calls follows from the program, that of switches from the scheduler.
        Verdict::all(&[
            Verdict::of(calls >= 1.995),
            Verdict::of(each >= MIN_SWITCHES_PER_MESSAGE).with_samples_of(&[pipe]),
        ]),
        text,
    )
}

fn no_calls(record: &RunRecord) -> Judgement {
    let figures = || {
        let (pipe, ring) = (form(record, "pipe")?, form(record, "ring")?);
        let messages = ring.parameters.number(names::MESSAGES)? as f64;
        let times = ratio_of(&ring.samples, &pipe.samples, record.seed)?;
        let medians = [pipe.median?, ring.median?];
        Some(([pipe, ring], medians, times, both(ring, "calls")?, messages))
    };
    let Some((cases, [pipe, ring], times, calls, messages)) = figures() else {
        return not_measured("Not all of its cases were measured.");
    };
    let lost = form(record, "cell-unguarded").and_then(|case| case.metric("lost"));
    let lost = lost.map_or_else(String::new, |lost| {
        format!(" Without a handshake there are none, but {} messages are lost.", count(lost))
    });
    let text = format!(
        "{} messages through a ring take {} system calls in all, to sleep and to wake up, and {times} \
         times as long as through the pipe.{lost}",
        count(messages),
        count(calls),
    );
    let faster = if is_disturbed(record) && (0.8..1.25).contains(&(ring / pipe)) {
        Verdict::Inconclusive(Reason::Disturbed)
    } else {
        Verdict::of(ring < pipe)
    };
    let without_calls = match calls / messages {
        ..MAX_NEGLIGIBLE_CALLS_PER_MESSAGE => Verdict::Confirmed,
        // A partner that loses its CPU to other programs makes the other partner sleep.
        ..MAX_DISTURBED_CALLS_PER_MESSAGE if is_disturbed(record) => {
            Verdict::Inconclusive(Reason::Disturbed)
        }
        _ => Verdict::NotConfirmed,
    };
    let verdicts = [without_calls, faster].map(|verdict| verdict.with_samples_of(&cases));
    compared(Verdict::all(&verdicts), text, &[cases])
}

/// Range of ratios that count as 4 to 5 times. It includes its lower end, but not its upper end.
const FOUR_TO_FIVE: [f64; 2] = [3.5, 6.0];

fn copying(record: &RunRecord) -> Judgement {
    let mapping = copied(record, "mmap-bytes", None);
    let Some((mapping, mapped)) = mapping.and_then(|case| Some((case, case.median?))) else {
        return not_measured("Not all of its cases were measured.");
    };
    let known = [
        ("fgetc and fputc", copied(record, "fgetc-fputc", None)),
        ("read and write of 512 bytes", copied(record, "read-write", Some("512"))),
        ("read and write of 64 KiB", copied(record, "read-write", Some("65536"))),
    ];
    let times: Vec<_> = known
        .iter()
        .filter_map(|&(name, case)| {
            let case = case?;
            let shown = ratio_of(&case.samples, &mapping.samples, record.seed)?;
            Some((name, case, case.median? / mapped, shown))
        })
        .collect();
    if times.is_empty() {
        return not_measured("Not all of its cases were measured.");
    }
    let ratios: Vec<_> =
        times.iter().map(|(name, .., times)| format!("{name} {times} times as long")).collect();
    let text = format!(
        "Copying byte by byte between two mappings, as its program does, takes {}; {}.",
        nanoseconds(mapped),
        ratios.join("; "),
    );
    let all =
        times.iter().all(|(_, _, times, _)| (FOUR_TO_FIVE[0]..FOUR_TO_FIVE[1]).contains(times));
    let pairs: Vec<_> = times.iter().map(|&(_, case, ..)| [case, mapping]).collect();
    compared(Verdict::of(all).with_samples_of(pairs.as_flattened()), text, &pairs)
}
