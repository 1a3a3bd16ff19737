//! The Firefox Profiler's format for processed profiles, version 60: tables of columns in JSON
//! (<https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md>). The
//! profiler upgrades files of earlier versions.
//!
//! A thread has a marker for each span, and samples at equal intervals, which the profiler needs for
//! its graphs and its call tree. The stack of a sample is one frame, the thread's state. The first
//! thread is not one of the program: it has the causes and the number of running threads.
//!
//! The columns are made while they are written. `fxprof-processed-profile`, which writes the same
//! format, would hold all markers in memory first, at six times the size of a span.

mod tables;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};
use std::iter;

use contend_record::doctor::{Cause, ThreadState};
use contend_record::trace::{Activity, EventKind, Evidence, ThreadTrace, Trace};
use serde::Serialize;
use serde_json::json;

use super::{About, evidence_name, notes, object, target};
use crate::render::doctor::{cause_name, state_name};
use tables::{
    Category, Column, Constants, Markers, Meta, Profile, Row, Rows, Samples, Shared, Thread,
};

/// Shortest time between two samples of a thread, in nanoseconds.
const MIN_INTERVAL_NANOS: u64 = 1_000_000;
/// Largest number of samples of all threads.
const MAX_SAMPLES: u64 = 200_000;
/// Largest number of threads that are shown at first.
const MAX_VISIBLE: usize = 20;

/// Data of a marker. The names of the variants are those of the schemas in `tables.rs`.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Data<'a> {
    Running {
        #[serde(skip_serializing_if = "Option::is_none")]
        cpu: Option<u16>,
    },
    Queued,
    Working {
        count: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    Waiting {
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<&'a str>,
        evidence: usize,
    },
    Event {
        thread: &'a str,
    },
    Cause,
    Level {
        running: f64,
    },
}

/// Strings, each once.
#[derive(Debug, Default)]
struct Strings {
    list: Vec<String>,
    indexes: HashMap<String, usize>,
}

impl Strings {
    fn index(&mut self, text: &str) -> usize {
        if let Some(&index) = self.indexes.get(text) {
            return index;
        }
        self.list.push(text.to_owned());
        self.indexes.insert(text.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }
}

/// Indexes of the strings that markers use.
#[derive(Debug)]
struct Names {
    /// By number of the state.
    states: Vec<usize>,
    /// By number of the cause.
    causes: Vec<usize>,
    /// By number of the wait.
    objects: Vec<Option<usize>>,
    /// By number of the work.
    work: Vec<usize>,
    executed: usize,
    renamed: usize,
    level: usize,
}

impl Names {
    fn of(trace: &Trace, strings: &mut Strings) -> Self {
        let states = ThreadState::ALL.map(|state| strings.index(state_name(state))).to_vec();
        let causes = Cause::ALL.map(|cause| strings.index(cause_name(cause))).to_vec();
        let mut of_wait = |wait| match object(wait).as_str() {
            "" => None,
            text => Some(strings.index(text)),
        };
        let objects = trace.waits.iter().map(&mut of_wait).collect();
        let work = trace.work.iter().map(|work| strings.index(&work.name)).collect();
        Self {
            states,
            causes,
            objects,
            work,
            executed: strings.index("executed"),
            renamed: strings.index("renamed"),
            level: strings.index("running threads"),
        }
    }
}

/// Writes a trace.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write(trace: &Trace, about: About<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut strings = Strings::default();
    let names = Names::of(trace, &mut strings);
    let evidence = [Evidence::Sampled, Evidence::Assumed, Evidence::Recorded, Evidence::None]
        .map(|evidence| strings.index(evidence_name(evidence)));
    let context = Context { trace, about, names, evidence, interval: interval(trace) };
    let shared = Shared::new(&strings.list, &context.names.states);
    let profile = Profile {
        meta: context.meta(),
        libs: [],
        shared,
        threads: Column::new(|| {
            let threads = trace.threads.iter().map(|thread| context.thread(thread));
            iter::once(context.causes()).chain(threads)
        }),
    };
    serde_json::to_writer(&mut *out, &profile)?;
    out.flush()
}

/// Returns the time between two samples of a thread, in nanoseconds.
fn interval(trace: &Trace) -> u64 {
    let times = trace.threads.iter().map(|thread| thread.end - thread.begun);
    (times.sum::<u64>() / MAX_SAMPLES).max(MIN_INTERVAL_NANOS)
}

struct Context<'a> {
    trace: &'a Trace,
    about: About<'a>,
    names: Names,
    /// Indexes of the names of evidence: sampled, assumed, none.
    evidence: [usize; 4],
    /// Time between two samples of a thread, in nanoseconds.
    interval: u64,
}

impl Context<'_> {
    fn meta(&self) -> Meta {
        let about = self.about;
        let entry = |label: &str, value: &str| json!({ "label": label, "format": "string", "value": value });
        let mut entries = vec![entry("Result", about.result)];
        entries.extend(notes(self.trace).iter().map(|note| entry("Note", note)));
        // The thread with the causes comes before those of the program.
        let mut busiest: Vec<(u64, usize)> = (1..)
            .zip(&self.trace.threads)
            .map(|(index, one)| (running_nanos(self.trace, one), index))
            .collect();
        busiest.sort_unstable_by_key(|(nanos, _)| Reverse(*nanos));
        let busiest: Vec<usize> =
            busiest.into_iter().take(MAX_VISIBLE).map(|(_, index)| index).collect();
        Meta {
            interval: milliseconds(self.interval),
            start_time: milliseconds(self.trace.start.realtime),
            start_time_as_clock_monotonic_nanoseconds_since_boot: self.trace.start.monotonic,
            product: format!("{}: {}", about.verb, about.command),
            arguments: about.command.to_owned(),
            oscpu: about.host.kernel.clone(),
            cpu_name: about.host.cpu_model.clone(),
            logical_cpus: about.host.cpus_online,
            extra: json!([{ "label": about.verb, "entries": entries }]),
            initial_selected_threads: vec![busiest.first().copied().unwrap_or(0)],
            initial_visible_threads: iter::once(0).chain(busiest).collect(),
            constants: Constants::default(),
        }
    }

    /// Returns the time since the start, in milliseconds.
    fn since_start(&self, time: u64) -> f64 {
        milliseconds(time.saturating_sub(self.trace.start.monotonic))
    }

    /// Returns the thread with the causes and the number of running threads.
    fn causes(&self) -> Thread<'_> {
        let levels = mean_levels(self.trace, self.interval);
        let rows = move || -> Rows<'_> {
            let level = |&(time, running): &(u64, f64)| Row {
                name: self.names.level,
                start: self.since_start(time),
                end: None,
                category: Category::Other,
                data: Data::Level { running },
            };
            // The rows own the levels, since they are made more than once.
            let levels: Vec<Row<'_>> = levels.iter().map(level).collect();
            let moments = self.trace.moments().map(|(start, end, cause)| Row {
                name: self.names.causes[super::cause(self.about, cause) as usize],
                start: self.since_start(start),
                end: Some(self.since_start(end)),
                category: cause_category(cause),
                data: Data::Cause,
            });
            Box::new(moments.chain(levels))
        };
        Thread {
            name: "cause".to_owned(),
            is_main: true,
            process_name: self.about.verb.to_owned(),
            process_type: "default",
            process_startup_time: 0.0,
            process_shutdown_time: None,
            register_time: 0.0,
            unregister_time: None,
            paused_ranges: [],
            pid: "contend".to_owned(),
            tid: "contend".to_owned(),
            samples: Samples { weight_type: "samples", ..Samples::default() },
            markers: Markers(Box::new(rows)),
        }
    }

    fn thread<'a>(&'a self, thread: &'a ThreadTrace) -> Thread<'a> {
        let end = Some(self.since_start(thread.end)).filter(|_| thread.has_ended);
        Thread {
            name: thread.name.clone(),
            is_main: thread.tid == thread.pid,
            process_name: self.trace.process_name(thread.pid).to_owned(),
            process_type: "default",
            process_startup_time: 0.0,
            process_shutdown_time: None,
            register_time: self.since_start(thread.begun),
            unregister_time: end,
            paused_ranges: [],
            pid: thread.pid.to_string(),
            tid: thread.tid.to_string(),
            samples: self.samples(thread),
            markers: Markers(Box::new(move || self.rows(thread))),
        }
    }

    /// Returns the markers of a thread: its spans, then its events.
    fn rows<'a>(&'a self, thread: &'a ThreadTrace) -> Rows<'a> {
        let spans = thread.spans().map(|(start, end, activity)| {
            let state = self.trace.state(activity);
            Row {
                name: match activity {
                    Activity::Working { work } => self.names.work[work as usize],
                    _ => self.names.states[state as usize],
                },
                start: self.since_start(start),
                end: Some(self.since_start(end)),
                category: Category::of(state),
                data: self.data(activity),
            }
        });
        let events = thread.events.iter().map(|event| Row {
            name: match event.kind {
                EventKind::Executed => self.names.executed,
                EventKind::Renamed => self.names.renamed,
            },
            start: self.since_start(event.time),
            end: None,
            category: Category::Process,
            data: Data::Event { thread: &event.name },
        });
        Box::new(spans.chain(events))
    }

    fn data(&self, activity: Activity) -> Data<'_> {
        match activity {
            Activity::Running { cpu } => Data::Running { cpu },
            Activity::Queued => Data::Queued,
            Activity::Working { work } => {
                let work = &self.trace.work[work as usize];
                Data::Working { count: work.count, bytes: work.bytes }
            }
            Activity::Waiting { wait, evidence } => Data::Waiting {
                object: self.names.objects[wait as usize],
                target: target(&self.trace.waits[wait as usize]),
                evidence: self.evidence[evidence as usize],
            },
        }
    }

    /// Returns samples of a thread at equal intervals, and one at its end.
    fn samples(&self, thread: &ThreadTrace) -> Samples {
        let mut samples = Samples { weight_type: "samples", ..Samples::default() };
        let mut due = thread.begun;
        let mut last = self.trace.start.monotonic;
        let mut running = 0;
        for (start, end, activity) in thread.spans() {
            let state = self.trace.state(activity);
            let mut since = start;
            while due < end || end == thread.end && since < end {
                let time = due.min(end);
                if state == ThreadState::Running {
                    running += time - since;
                }
                samples.stack.push(state as usize);
                samples.time_deltas.push(milliseconds(time.saturating_sub(last)));
                samples.thread_cpu_delta.push(running);
                (since, last, running) = (time, time, 0);
                due = time + self.interval;
            }
            if state == ThreadState::Running {
                running += end - since;
            }
        }
        samples.length = samples.stack.len();
        samples
    }
}

/// Returns the mean number of running threads in each interval, with the beginning of the interval. An
/// interval is left out if it has the same number as the ones before and after it.
fn mean_levels(trace: &Trace, interval: u64) -> Vec<(u64, f64)> {
    let levels = trace.running_threads();
    let ends = levels.iter().skip(1).map(|next| next.0).chain(iter::once(trace.end));
    let mut means: Vec<(u64, f64)> = Vec::new();
    let mut begun = trace.start.monotonic;
    let mut sum = 0;
    for (&(start, running), end) in levels.iter().zip(ends) {
        let mut since = start;
        while since < end {
            let until = end.min(begun + interval);
            sum += running * (until - since);
            since = until;
            if until == begun + interval || until == trace.end {
                let mean = sum as f64 / (until - begun) as f64;
                if let [.., before, last] = means.as_mut_slice()
                    && before.1.total_cmp(&last.1).is_eq()
                    && last.1.total_cmp(&mean).is_eq()
                {
                    last.0 = begun;
                } else {
                    means.push((begun, mean));
                }
                (begun, sum) = (until, 0);
            }
        }
    }
    means
}

fn running_nanos(trace: &Trace, thread: &ThreadTrace) -> u64 {
    let spans =
        thread.spans().filter(|(.., activity)| trace.state(*activity) == ThreadState::Running);
    spans.map(|(start, end, _)| end - start).sum()
}

fn cause_category(cause: Cause) -> Category {
    match cause {
        Cause::Busy | Cause::Serial => Category::Cpu,
        Cause::OtherLoad | Cause::Limited => Category::Queue,
        Cause::Lock => Category::Lock,
        Cause::Sleep => Category::Timer,
        Cause::Disk => Category::Io,
        Cause::Child | Cause::Stopped => Category::Process,
        Cause::Idle | Cause::Unknown => Category::Other,
    }
}

fn milliseconds(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use contend_record::trace::Source;
    use serde_json::Value;

    use super::*;
    use crate::render::trace::testing;

    fn profile(trace: &Trace) -> Value {
        let mut bytes = Vec::new();
        write(trace, About::from(&testing::record()), &mut bytes).expect("memory");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn column<'a>(table: &'a Value, name: &str) -> &'a Vec<Value> {
        table[name].as_array().unwrap_or_else(|| panic!("{name}"))
    }

    fn floats(table: &Value, name: &str) -> Vec<f64> {
        column(table, name).iter().filter_map(Value::as_f64).collect()
    }

    /// Returns the names, starts and ends of the markers of a thread.
    fn markers(profile: &Value, thread: usize) -> Vec<(String, f64, Option<f64>)> {
        let table = &profile["threads"][thread]["markers"];
        let length = usize::try_from(table["length"].as_u64().expect("a length")).expect("small");
        for name in ["data", "name", "startTime", "endTime", "phase", "category"] {
            assert_eq!(column(table, name).len(), length, "{name}");
        }
        let marker = |index: usize| {
            let name = column(table, "name")[index]
                .as_u64()
                .and_then(|index| usize::try_from(index).ok())
                .expect("an index");
            let name = profile["shared"]["stringArray"][name].as_str().expect("a name");
            let phase = u64::from(column(table, "endTime")[index].is_number());
            assert_eq!(column(table, "phase")[index], phase);
            let time = |name: &str| column(table, name)[index].as_f64();
            (name.to_owned(), time("startTime").expect("a time"), time("endTime"))
        };
        (0..length).map(marker).collect()
    }

    #[test]
    fn spans_and_events_are_markers() {
        let profile = profile(&testing::trace());
        let expected = [
            ("running", 0.0, Some(1.0)),
            ("lock", 1.0, Some(3.0)),
            ("queued for a CPU", 3.0, Some(3.5)),
            ("running", 3.5, Some(4.0)),
        ];
        let expected = expected.map(|(name, start, end)| (name.to_owned(), start, end));
        assert_eq!(markers(&profile, 1), expected);
        let worker = markers(&profile, 2);
        assert_eq!(worker.last(), Some(&("renamed".to_owned(), 0.6, None)));
        let data = &profile["threads"][1]["markers"]["data"];
        assert_eq!(data[0], json!({ "type": "running", "cpu": 0 }));
        let strings = &profile["shared"]["stringArray"];
        let object = data[1]["object"]
            .as_u64()
            .and_then(|index| usize::try_from(index).ok())
            .expect("an index");
        assert_eq!(strings[object], "futex 0x7f0012345678");
        let pipe = &profile["threads"][2]["markers"]["data"][1];
        assert_eq!(pipe["target"], "pipe:[9]");
        let evidence = pipe["evidence"]
            .as_u64()
            .and_then(|index| usize::try_from(index).ok())
            .expect("an index");
        assert!(strings[evidence].as_str().expect("a string").starts_with("assumed"));
    }

    #[test]
    fn causes_and_levels_are_in_a_thread_of_their_own() {
        let profile = profile(&testing::trace());
        let causes = markers(&profile, 0);
        let names: Vec<&str> = causes.iter().map(|(name, ..)| &**name).collect();
        let expected = [
            "some CPUs busy, no other thread ready",
            "all its CPUs busy",
            "none ran: lock",
            // The record says that other programs used the CPUs.
            "ready, but others used the CPUs",
        ];
        assert_eq!(names[..4], expected);
        // The mean number in each millisecond: 1 and from its middle 2, then 1 until its middle.
        let data = column(&profile["threads"][0]["markers"], "data");
        let levels: Vec<f64> = data.iter().filter_map(|data| data["running"].as_f64()).collect();
        assert_eq!(levels, [1.5, 0.5, 0.0, 0.5]);
    }

    #[test]
    fn equal_levels_in_a_row_have_two_points() {
        let mut trace = testing::trace();
        trace.end = 1_000_000 * testing::MICRO;
        let interval = 1000 * testing::MICRO;
        let levels = mean_levels(&trace, interval);
        let milliseconds = |(time, level): (u64, f64)| (time / interval, level);
        let levels: Vec<_> = levels.into_iter().map(milliseconds).collect();
        assert_eq!(levels, [(1, 1.5), (2, 0.5), (3, 0.0), (4, 0.5), (5, 0.0), (999, 0.0)]);
    }

    #[test]
    fn samples_have_the_running_time_between_them() {
        let profile = profile(&testing::trace());
        let samples = &profile["threads"][1]["samples"];
        assert_eq!(floats(samples, "timeDeltas"), [0.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(floats(samples, "threadCPUDelta"), [0.0, 1e6, 0.0, 0.0, 5e5]);
        let state = |state: ThreadState| state as u64;
        let expected = [
            ThreadState::Running,
            ThreadState::Lock,
            ThreadState::Lock,
            ThreadState::Runnable,
            ThreadState::Running,
        ];
        assert_eq!(*column(samples, "stack"), expected.map(state));
        assert_eq!(samples["length"], 5);
        // Running time is not lost at the end of a thread.
        let worker = floats(&profile["threads"][2]["samples"], "threadCPUDelta");
        assert!((worker.iter().sum::<f64>() - 1e6).abs() < 1e-3);
    }

    #[test]
    fn the_profile_has_the_fields_that_the_profiler_needs() {
        let mut trace = testing::trace();
        trace.source = Source::Samples { reason: "not permitted".to_owned() };
        let profile = profile(&trace);
        let meta = &profile["meta"];
        assert_eq!(meta["preprocessedProfileVersion"], 60);
        assert_eq!(meta["startTime"], 1.700_000_001e12);
        assert_eq!(meta["initialSelectedThreads"], json!([1]));
        assert_eq!(meta["initialVisibleThreads"], json!([0, 1, 2]));
        let entries = meta["extra"][0]["entries"].as_array().expect("a list");
        assert_eq!(entries.len(), 2, "{entries:?}");
        let threads = profile["threads"].as_array().expect("a list");
        let ids: Vec<_> = threads.iter().map(|thread| (&thread["pid"], &thread["tid"])).collect();
        assert_eq!(json!(ids), json!([["contend", "contend"], ["7", "7"], ["7", "8"]]));
        assert_eq!(threads[2]["registerTime"], 0.5);
        assert_eq!(threads[2]["unregisterTime"], 2.5);
        assert_eq!(threads[1]["unregisterTime"], Value::Null);
        for (name, table) in profile["shared"].as_object().expect("an object") {
            let Some(length) = table["length"].as_u64() else {
                assert_eq!(name, "stringArray");
                continue;
            };
            let columns = table.as_object().expect("an object").iter();
            for (column, values) in columns.filter(|(column, _)| *column != "length") {
                let values = values.as_array().expect("a column").len();
                assert_eq!(values as u64, length, "{name}.{column}");
            }
        }
    }
}
