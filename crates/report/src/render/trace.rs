//! Writes a trace in the format of a viewer.
//!
//! | names of files | format | viewers |
//! |---|---|---|
//! | `*.json`, `*.json.gz` | processed profile of the Firefox Profiler (`firefox`) | <https://profiler.firefox.com>, samply |
//! | `*.pftrace`, `*.perfetto-trace` | track events of Perfetto (`perfetto`) | <https://ui.perfetto.dev>, `trace_processor_shell` |
//!
//! Both formats have a track for each thread with its spans, one for the cause of each moment, and one for the
//! number of running threads. Nothing is copied: a writer reads the trace, and writes as it goes.

mod firefox;
mod perfetto;
mod protobuf;
pub mod work;

use std::io::{self, Write};
use std::path::Path;

use contend_record::Host;
use contend_record::doctor::{Cause, DoctorRecord};
use contend_record::pipe::PipeRecord;
use contend_record::run::RunRecord;
use contend_record::trace::{Evidence, Source, Trace, Wait, WaitObject};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::units::{counted, seconds};

/// The format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The Firefox Profiler's processed profile: JSON.
    Firefox,
    /// The same, compressed.
    FirefoxGzip,
    /// Perfetto's: protocol buffers.
    Perfetto,
}

/// Ends of file names, with the format that each stands for.
const FORMATS: [(&str, Format); 4] = [
    (".json", Format::Firefox),
    (".json.gz", Format::FirefoxGzip),
    (".pftrace", Format::Perfetto),
    (".perfetto-trace", Format::Perfetto),
];

impl Format {
    /// Returns the format of a file by its name; `None` if the name has another end.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.as_encoded_bytes();
        let is_end = |end: &str| name.ends_with(end.as_bytes());
        FORMATS.iter().find(|(end, _)| is_end(end)).map(|(_, format)| *format)
    }
}

/// What a trace shows, from the record of the same measurement.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The verb that has measured it, such as `contend doctor`.
    verb: &'static str,
    command: &'a str,
    /// The result in a paragraph.
    result: &'a str,
    host: &'a Host,
    /// Whether other programs used the CPUs for which threads were queued.
    has_other_load: bool,
}

impl<'a> From<&'a DoctorRecord> for About<'a> {
    fn from(record: &'a DoctorRecord) -> Self {
        Self {
            verb: "contend doctor",
            command: &record.command,
            result: &record.diagnosis,
            host: &record.host,
            has_other_load: record.moments.iter().any(|moments| moments.cause == Cause::OtherLoad),
        }
    }
}

impl<'a> From<&'a PipeRecord> for About<'a> {
    fn from(record: &'a PipeRecord) -> Self {
        Self {
            verb: "contend pipe",
            command: &record.command,
            result: &record.bottleneck.evidence,
            host: &record.host,
            has_other_load: false,
        }
    }
}

impl<'a> From<&'a RunRecord> for About<'a> {
    fn from(record: &'a RunRecord) -> Self {
        Self {
            verb: "contend run",
            command: &record.command,
            result: &record.decision.why,
            host: &record.host,
            has_other_load: false,
        }
    }
}

/// Writes a trace. `about` is made from the record of the same measurement.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write(
    trace: &Trace,
    about: About<'_>,
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Firefox => firefox::write(trace, about, out),
        Format::FirefoxGzip => {
            let mut encoder = GzEncoder::new(out, Compression::fast());
            firefox::write(trace, about, &mut encoder)?;
            encoder.finish()?.flush()
        }
        Format::Perfetto => perfetto::write(trace, about, out),
    }
}

/// Returns what a reader of the trace has to know, in sentences without a full stop: nothing, if it is
/// complete and exact.
pub fn notes(trace: &Trace) -> Vec<String> {
    let mut notes = Vec::new();
    match &trace.source {
        Source::Switches | Source::Log { is_combined: false } => {}
        Source::Samples { reason } => notes.push(format!(
            "the trace is made from samples, so that the order of events between two of them is \
             guessed: {reason}"
        )),
        Source::Log { is_combined: true } => notes.push(
            "there was too much work to record in full, so that neighbouring spans are combined"
                .to_owned(),
        ),
    }
    if !trace.is_complete() {
        let spans: usize = trace.threads.iter().map(|thread| thread.spans.len()).sum();
        let since_start =
            |time: u64| seconds(time.saturating_sub(trace.start.monotonic) as f64 / 1e9);
        notes.push(format!(
            "the trace ends after {} of {}: it has {}, and the limit on its size is reached",
            since_start(trace.end),
            since_start(trace.observed_until),
            counted(spans as u64, "span"),
        ));
    }
    notes
}

/// Returns the cause as the record names it: which programs used the CPUs is known only for the whole
/// observation.
fn cause(about: About<'_>, cause: Cause) -> Cause {
    match cause {
        Cause::Limited if about.has_other_load => Cause::OtherLoad,
        cause => cause,
    }
}

/// Returns what is waited for in a few words, without the target of a descriptor; empty if it is
/// unknown.
fn object(wait: &Wait) -> String {
    match &wait.object {
        Some(WaitObject::Futex { address }) => format!("futex {address:#x}"),
        Some(WaitObject::Descriptor { fd, .. }) => format!("descriptor {fd}"),
        Some(WaitObject::Timer { limit: Some(limit) }) => seconds(limit.as_secs_f64()),
        Some(WaitObject::Descriptors { limit: Some(limit) }) => {
            format!("at most {}", seconds(limit.as_secs_f64()))
        }
        Some(WaitObject::Timer { limit: None } | WaitObject::Descriptors { limit: None })
        | None => String::new(),
    }
}

/// Returns the target of the descriptor that is waited for, if it is known.
fn target(wait: &Wait) -> Option<&str> {
    match &wait.object {
        Some(WaitObject::Descriptor { target, .. }) => target.as_deref(),
        _ => None,
    }
}

fn evidence_name(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Sampled => "sampled",
        Evidence::Assumed => "assumed, as in the last sampled wait",
        Evidence::Recorded => "recorded by the thread itself",
        Evidence::None => "unknown",
    }
}

#[cfg(test)]
pub mod testing {
    //! A trace for tests.

    use std::time::Duration;

    use contend_record::doctor::{DoctorRecord, Moments, ThreadState};
    use contend_record::trace::{
        Activity, Clocks, Event, EventKind, Evidence, Moment, ProcessTrace, Span, ThreadTrace,
    };

    use super::*;

    /// A microsecond, in nanoseconds.
    pub const MICRO: u64 = 1000;

    /// Returns the spans that begin at these times, in microseconds.
    fn spans(list: &[(u64, Activity)]) -> Vec<Span> {
        let span = |&(start, activity): &(u64, Activity)| Span { start: start * MICRO, activity };
        list.iter().map(span).collect()
    }

    /// Returns a trace from 1000 to 5000 µs of two threads.
    pub fn trace() -> Trace {
        let waiting = |wait, evidence| Activity::Waiting { wait, evidence };
        let running = |cpu| Activity::Running { cpu: Some(cpu) };
        let thread = |tid, name: &str, begun: u64, end: u64, spans, events| ThreadTrace {
            pid: 7,
            tid,
            name: name.to_owned(),
            begun: begun * MICRO,
            end: end * MICRO,
            has_ended: end < 5000,
            spans,
            events,
        };
        let main = spans(&[
            (1000, running(0)),
            (2000, waiting(1, Evidence::Sampled)),
            (4000, Activity::Queued),
            (4500, running(1)),
        ]);
        let worker = spans(&[
            (1500, running(1)),
            (2500, waiting(2, Evidence::Assumed)),
            (3000, waiting(3, Evidence::Sampled)),
        ]);
        let renamed =
            Event { time: 1600 * MICRO, kind: EventKind::Renamed, name: "worker".to_owned() };
        let wait = |state, object| Wait { state, object: Some(object) };
        Trace {
            start: Clocks {
                monotonic: 1000 * MICRO,
                boottime: 901_000 * MICRO,
                realtime: 1_700_000_001_000_000 * MICRO,
            },
            end: 5000 * MICRO,
            observed_until: 5000 * MICRO,
            source: Source::Switches,
            processes: vec![ProcessTrace { pid: 7, command: "prog --fast".to_owned(), name: None }],
            threads: vec![
                thread(7, "prog", 1000, 5000, main, Vec::new()),
                thread(8, "worker", 1500, 3500, worker, vec![renamed]),
            ],
            waits: vec![
                Wait { state: ThreadState::Unknown, object: None },
                wait(ThreadState::Lock, WaitObject::Futex { address: 0x7f00_1234_5678 }),
                wait(
                    ThreadState::Pipe,
                    WaitObject::Descriptor { fd: 5, target: Some("pipe:[9]".to_owned()) },
                ),
                wait(
                    ThreadState::Sleep,
                    WaitObject::Timer { limit: Some(Duration::from_millis(1)) },
                ),
            ],
            work: Vec::new(),
            moments: vec![
                Moment { start: 1000 * MICRO, cause: Cause::Serial },
                Moment { start: 1500 * MICRO, cause: Cause::Busy },
                Moment { start: 2500 * MICRO, cause: Cause::Lock },
                Moment { start: 4000 * MICRO, cause: Cause::Limited },
            ],
        }
    }

    /// Returns the record of the same observation, with load of other programs.
    pub fn record() -> DoctorRecord {
        let moments = Moments { cause: Cause::OtherLoad, seconds: 0.001, share: 0.25 };
        DoctorRecord {
            command: "prog --fast".to_owned(),
            diagnosis: "It waits for a lock.".to_owned(),
            moments: vec![moments],
            ..DoctorRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn the_name_of_a_file_tells_the_format() {
        let cases = [
            ("t.json", Some(Format::Firefox)),
            ("a/b.c/t.json.gz", Some(Format::FirefoxGzip)),
            ("t.pftrace", Some(Format::Perfetto)),
            ("t.perfetto-trace", Some(Format::Perfetto)),
            ("t.json.pftrace", Some(Format::Perfetto)),
            ("t.JSON", None),
            ("json", None),
            ("t.gz", None),
            ("-", None),
            ("t.json/", Some(Format::Firefox)),
            ("", None),
            ("..", None),
        ];
        for (name, format) in cases {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn a_compressed_trace_is_the_same() {
        let mut plain = Vec::new();
        let mut compressed = Vec::new();
        let (trace, record) = (testing::trace(), testing::record());
        let about = About::from(&record);
        write(&trace, about, Format::Firefox, &mut plain).expect("memory");
        write(&trace, about, Format::FirefoxGzip, &mut compressed).expect("memory");
        let mut decoded = Vec::new();
        GzDecoder::new(&*compressed).read_to_end(&mut decoded).expect("a gzip file");
        assert_eq!(decoded, plain);
        assert!(compressed.len() < plain.len());
    }

    #[test]
    fn incomplete_and_inexact_traces_are_marked() {
        let mut trace = testing::trace();
        assert_eq!(notes(&trace), [""; 0]);
        trace.source = Source::Samples { reason: "not permitted".to_owned() };
        trace.observed_until = 2_001_000 * testing::MICRO;
        let expected = [
            "the trace is made from samples, so that the order of events between two of them is \
             guessed: not permitted",
            "the trace ends after 4.0ms of 2.00s: it has 7 spans, and the limit on its size is reached",
        ];
        assert_eq!(notes(&trace), expected);
    }

    /// A writer with little space.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(bytes.len()) {
                Some(rest) => self.0 = rest,
                None => return Err(io::ErrorKind::StorageFull.into()),
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_in_every_format() {
        let (trace, record) = (testing::trace(), testing::record());
        for format in [Format::Firefox, Format::FirefoxGzip, Format::Perfetto] {
            for space in [0, 100, 500] {
                let error = write(&trace, About::from(&record), format, &mut Full(space));
                let kind = error.expect_err("no space").kind();
                assert_eq!(kind, io::ErrorKind::StorageFull, "{format:?} {space}");
            }
        }
    }
}
