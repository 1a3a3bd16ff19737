//! What the article says, and whether this run's figures bear it out.

use contend_record::lab::RunRecord;
use contend_record::parameters::names;

use super::super::super::units::{count, nanoseconds, percent};
use super::super::verdict::{Conclusion, Verdict, is_disturbed};
use super::{both, copied, form};

pub const FINDINGS: [Conclusion; 3] = [
    Conclusion {
        letter: 'A',
        claim: "small messages through a pipe cost at least two system calls each, and many switches",
        judge: two_calls,
    },
    Conclusion {
        letter: 'B',
        claim: "shared memory needs no system call for a message, and is faster for it",
        judge: no_calls,
    },
    Conclusion {
        letter: 'C',
        claim: "copying by mmap is 4 to 5 times as fast as by read and write",
        judge: copying,
    },
];

const NOT_MEASURED: &str = "It was not measured.";

/// So many switches a message are many: the article's program had one for every six messages.
const MANY: f64 = 0.1;

fn two_calls(record: &RunRecord) -> (Verdict, String) {
    let figures = || {
        let pipe = form(record, "pipe")?;
        let messages = pipe.parameters.number(names::MESSAGES)? as f64;
        let calls = both(pipe, "calls")? / messages;
        let switches = both(pipe, "voluntary_switches")?;
        Some((calls, switches, switches / messages))
    };
    let Some((calls, switches, each)) = figures() else {
        return (Verdict::Open, NOT_MEASURED.to_owned());
    };
    let by_switches = if each >= MANY {
        String::new()
    } else {
        " Switches are few on Linux, where a pipe is filled and emptied by the page: the article's \
         178,208 do not carry over."
            .to_owned()
    };
    let text = format!(
        "A message takes {calls:.2} system calls; both sides waited {} times in all.{by_switches}",
        count(switches)
    );
    (Verdict::all(&[Verdict::of(calls >= 1.995), Verdict::of(each >= MANY)]), text)
}

fn no_calls(record: &RunRecord) -> (Verdict, String) {
    let figures = || {
        let (pipe, ring) = (form(record, "pipe")?, form(record, "ring")?);
        let messages = ring.parameters.number(names::MESSAGES)? as f64;
        Some((pipe.median?, ring.median?, both(ring, "calls")?, messages))
    };
    let Some((pipe, ring, calls, messages)) = figures() else {
        return (Verdict::Open, NOT_MEASURED.to_owned());
    };
    let lost = form(record, "cell-unguarded").and_then(|case| case.metric("lost"));
    let lost = lost.map_or_else(String::new, |lost| {
        format!(" Without any handshake there would be none, and {} messages lost.", count(lost))
    });
    let text = format!(
        "Through a ring all messages together take {} system calls, those to sleep and to wake, and {} of \
         the pipe's time.{lost}",
        count(calls),
        percent(ring, pipe),
    );
    let faster = if is_disturbed(record) && (0.8..1.25).contains(&(ring / pipe)) {
        Verdict::Open
    } else {
        Verdict::of(ring < pipe)
    };
    (Verdict::all(&[Verdict::of(calls / messages < 0.01), faster]), text)
}

/// What the article had may have been anything between these.
const TIMES: [f64; 2] = [3.5, 6.0];

fn copying(record: &RunRecord) -> (Verdict, String) {
    let Some(mapped) = copied(record, "mmap-bytes", None).and_then(|case| case.median) else {
        return (Verdict::Open, NOT_MEASURED.to_owned());
    };
    let known = [
        ("fgetc and fputc", copied(record, "fgetc-fputc", None)),
        ("512 bytes at a time", copied(record, "read-write", Some("512"))),
        ("64 KiB at a time", copied(record, "read-write", Some("65536"))),
    ];
    let times: Vec<_> = known
        .iter()
        .filter_map(|(name, case)| Some((*name, case.as_ref()?.median? / mapped)))
        .collect();
    if times.is_empty() {
        return (Verdict::Open, NOT_MEASURED.to_owned());
    }
    let said: Vec<_> =
        times.iter().map(|(name, times)| format!("{times:.2} times ({name})")).collect();
    let text = format!(
        "Its program, both files mapped and copied byte by byte, takes {}; the others take {} of that. It \
         depends on what it is set beside.",
        nanoseconds(mapped),
        said.join(", "),
    );
    let all = times.iter().all(|(_, times)| (TIMES[0]..TIMES[1]).contains(times));
    (Verdict::of(all), text)
}
