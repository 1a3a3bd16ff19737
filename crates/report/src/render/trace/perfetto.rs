//! Perfetto's format: a sequence of packets with descriptors of tracks and the events on them
//! (<https://perfetto.dev/docs/reference/synthetic-track-event>).
//!
//! ```text
//! Trace ─▶ TracePacket … ─┬─ ClockSnapshot     how CLOCK_MONOTONIC relates to other clocks
//!                         ├─ InternedData      names, to which events refer by number
//!                         ├─ TrackDescriptor   cause, running threads, processes, threads
//!                         └─ TrackEvent        begin and end of a slice, instant, value of a counter
//! ```
//!
//! Modules of constants have the numbers of a message's fields.

use std::collections::BTreeMap;
use std::io::{self, Write};

use contend_record::doctor::{Cause, ThreadState};
use contend_record::trace::{Activity, EventKind, Evidence, ThreadTrace, Trace, WaitObject};

use super::About;
use super::protobuf::Message;
use crate::render::doctor::{cause_name, state_name};

/// Fields of `Trace`.
mod trace_field {
    pub const PACKET: u32 = 1;
}

/// Fields of `TracePacket`.
mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
}

/// Fields of `TracePacketDefaults`.
mod defaults {
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
}

/// Fields of `ClockSnapshot` and of `ClockSnapshot.Clock`.
mod clock {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY_TRACE_CLOCK: u32 = 2;
    pub const ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;
}

/// Fields of `InternedData` and of its entries.
mod interned {
    pub const EVENT_NAMES: u32 = 2;
    pub const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
}

/// Fields of `TrackDescriptor`.
mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const DESCRIPTION: u32 = 14;
}

/// Fields of `ProcessDescriptor`.
mod process {
    pub const PID: u32 = 1;
    pub const CMDLINE: u32 = 2;
    pub const PROCESS_NAME: u32 = 6;
}

/// Fields of `ThreadDescriptor`.
mod thread {
    pub const PID: u32 = 1;
    pub const TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
}

/// Fields of `CounterDescriptor`.
mod counter {
    pub const UNIT: u32 = 3;
}

/// Fields of `TrackEvent`.
mod event {
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
}

/// Fields of `DebugAnnotation`.
mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const BOOL_VALUE: u32 = 2;
    pub const UINT_VALUE: u32 = 3;
    pub const STRING_VALUE: u32 = 6;
    pub const POINTER_VALUE: u32 = 7;
}

/// `BuiltinClock`.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;
/// `TracePacket.SequenceFlags`.
const INCREMENTAL_STATE_CLEARED: u64 = 1;
const NEEDS_INCREMENTAL_STATE: u64 = 2;
/// `TrackEvent.Type`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// `CounterDescriptor.Unit`.
const UNIT_COUNT: u64 = 2;

/// The only sequence of packets.
const SEQUENCE: u64 = 1;
/// Number of the track with the causes.
const CAUSE_TRACK: u64 = 1;
/// Number of the track with the number of running threads.
const COUNTER_TRACK: u64 = 2;
/// Number of the first track of a process or a thread.
const FIRST_TRACK: u64 = 3;

/// Names of annotations. Their numbers begin with 1.
const ANNOTATIONS: [&str; 8] =
    ["cpu", "futex", "fd", "target", "limit_ns", "assumed", "count", "bytes"];
const CPU: u64 = 1;
const FUTEX: u64 = 2;
const FD: u64 = 3;
const TARGET: u64 = 4;
const LIMIT_NANOS: u64 = 5;
const ASSUMED: u64 = 6;
const COUNT: u64 = 7;
const BYTES: u64 = 8;

/// Writes a trace.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write(trace: &Trace, about: About<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer { out, message: Message::default() };
    writer.start(trace)?;
    let threads = writer.descriptors(trace, about)?;
    writer.moments(trace, about)?;
    for (time, running) in trace.running_threads() {
        writer.event(time, COUNTER_TRACK, COUNTER, |event| {
            event.integer(event::COUNTER_VALUE, running);
        })?;
    }
    for (track, thread) in threads {
        writer.thread(trace, thread, track)?;
    }
    writer.out.flush()
}

struct Writer<'a, W: Write> {
    out: &'a mut W,
    /// The current packet, whose memory is used again.
    message: Message,
}

impl<W: Write> Writer<'_, W> {
    /// Writes a packet of the sequence.
    fn packet(&mut self, flags: u64, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.message.clear();
        self.message.message(trace_field::PACKET, |packet| {
            packet.integer(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            packet.integer(packet::SEQUENCE_FLAGS, flags);
            fill(packet);
        });
        self.out.write_all(self.message.bytes())
    }

    /// Writes the clocks, the clock of all time stamps, and the names to which events refer.
    fn start(&mut self, trace: &Trace) -> io::Result<()> {
        let clocks = [
            (MONOTONIC, trace.start.monotonic),
            (BOOTTIME, trace.start.boottime),
            (REALTIME, trace.start.realtime),
        ];
        self.packet(INCREMENTAL_STATE_CLEARED, |packet| {
            packet.integer(packet::FIRST_PACKET_ON_SEQUENCE, 1);
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, time) in clocks {
                    snapshot.message(clock::CLOCKS, |clock| {
                        clock.integer(clock::ID, id);
                        clock.integer(clock::TIMESTAMP, time);
                    });
                }
                snapshot.integer(clock::PRIMARY_TRACE_CLOCK, MONOTONIC);
            });
            packet.message(packet::TRACE_PACKET_DEFAULTS, |defaults| {
                defaults.integer(defaults::TIMESTAMP_CLOCK_ID, MONOTONIC);
            });
            packet.message(packet::INTERNED_DATA, |data| {
                let states = ThreadState::ALL.iter().map(|state| state_name(*state));
                let causes = Cause::ALL.iter().map(|cause| cause_name(*cause));
                for (number, name) in (1..).zip(states.chain(causes)) {
                    intern(data, interned::EVENT_NAMES, number, name);
                }
                for (number, name) in (1..).zip(ANNOTATIONS) {
                    intern(data, interned::DEBUG_ANNOTATION_NAMES, number, name);
                }
            });
        })
    }

    /// Describes all tracks. Returns the threads with the numbers of their tracks.
    fn descriptors<'t>(
        &mut self,
        trace: &'t Trace,
        about: About<'_>,
    ) -> io::Result<Vec<(u64, &'t ThreadTrace)>> {
        let mut description = about.result.to_owned();
        for note in super::notes(trace) {
            description.push_str(&format!("\nNote: {note}."));
        }
        self.descriptor(trace.start.monotonic, CAUSE_TRACK, |track| {
            track.string(descriptor::NAME, "cause");
            track.string(descriptor::DESCRIPTION, &description);
        })?;
        self.descriptor(trace.start.monotonic, COUNTER_TRACK, |track| {
            track.string(descriptor::NAME, "running threads");
            track.message(descriptor::COUNTER, |counter| {
                counter.integer(counter::UNIT, UNIT_COUNT);
            });
        })?;
        let mut processes: BTreeMap<i32, Vec<&ThreadTrace>> = BTreeMap::new();
        for thread in &trace.threads {
            processes.entry(thread.pid).or_default().push(thread);
        }
        let mut threads = Vec::new();
        let mut number = FIRST_TRACK;
        for (pid, members) in processes {
            let process = number;
            self.process(trace, pid, process)?;
            for thread in members {
                number += 1;
                self.descriptor(thread.begun, number, |track| {
                    track.integer(descriptor::PARENT_UUID, process);
                    track.message(descriptor::THREAD, |message| {
                        message.id(thread::PID, thread.pid);
                        message.id(thread::TID, thread.tid);
                        message.string(thread::THREAD_NAME, &thread.name);
                    });
                })?;
                threads.push((number, thread));
            }
            number += 1;
        }
        Ok(threads)
    }

    fn process(&mut self, trace: &Trace, pid: i32, number: u64) -> io::Result<()> {
        self.descriptor(trace.start.monotonic, number, |track| {
            track.message(descriptor::PROCESS, |message| {
                message.id(process::PID, pid);
                if let Some(command) = trace.command(pid) {
                    message.string(process::CMDLINE, command);
                }
                message.string(process::PROCESS_NAME, trace.process_name(pid));
            });
        })
    }

    fn descriptor(
        &mut self,
        time: u64,
        number: u64,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.packet(NEEDS_INCREMENTAL_STATE, |packet| {
            packet.integer(packet::TIMESTAMP, time);
            packet.message(packet::TRACK_DESCRIPTOR, |track| {
                track.integer(descriptor::UUID, number);
                fill(track);
            });
        })
    }

    fn event(
        &mut self,
        time: u64,
        track: u64,
        kind: u64,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.packet(NEEDS_INCREMENTAL_STATE, |packet| {
            packet.integer(packet::TIMESTAMP, time);
            packet.message(packet::TRACK_EVENT, |event| {
                event.integer(event::TYPE, kind);
                event.integer(event::TRACK_UUID, track);
                fill(event);
            });
        })
    }

    fn slice(
        &mut self,
        (start, end): (u64, u64),
        track: u64,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.event(start, track, SLICE_BEGIN, fill)?;
        self.event(end, track, SLICE_END, |_| {})
    }

    fn moments(&mut self, trace: &Trace, about: About<'_>) -> io::Result<()> {
        for (start, end, cause) in trace.moments() {
            let number = ThreadState::ALL.len() as u64 + 1 + super::cause(about, cause) as u64;
            self.slice((start, end), CAUSE_TRACK, |event| {
                event.integer(event::NAME_IID, number);
            })?;
        }
        Ok(())
    }

    fn thread(&mut self, trace: &Trace, thread: &ThreadTrace, track: u64) -> io::Result<()> {
        for (start, end, activity) in thread.spans() {
            self.slice((start, end), track, |event| span(event, trace, activity))?;
        }
        for happened in &thread.events {
            self.event(happened.time, track, INSTANT, |event| {
                let name = &happened.name;
                event.string(
                    event::NAME,
                    &match happened.kind {
                        EventKind::Executed => format!("executed {name}"),
                        EventKind::Renamed => format!("renamed to {name}"),
                    },
                );
            })?;
        }
        Ok(())
    }
}

fn intern(data: &mut Message, field: u32, number: u64, name: &str) {
    data.message(field, |entry| {
        entry.integer(interned::IID, number);
        entry.string(interned::NAME, name);
    });
}

/// Adds the name and the annotations of a span.
fn span(event: &mut Message, trace: &Trace, activity: Activity) {
    if let Activity::Working { work } = activity {
        let work = &trace.work[work as usize];
        event.string(event::NAME, &work.name);
        annotate(event, COUNT, |value| value.integer(annotation::UINT_VALUE, work.count));
        if let Some(bytes) = work.bytes {
            annotate(event, BYTES, |value| value.integer(annotation::UINT_VALUE, bytes));
        }
        return;
    }
    // The names of states come first, and their numbers begin with 1.
    event.integer(event::NAME_IID, trace.state(activity) as u64 + 1);
    match activity {
        Activity::Running { cpu: Some(cpu) } => {
            annotate(event, CPU, |value| value.integer(annotation::UINT_VALUE, cpu.into()));
        }
        Activity::Running { cpu: None } | Activity::Working { .. } | Activity::Queued => {}
        Activity::Waiting { wait, evidence } => {
            if let Some(object) = &trace.waits[wait as usize].object {
                annotate_object(event, object);
            }
            if evidence == Evidence::Assumed {
                annotate(event, ASSUMED, |value| value.integer(annotation::BOOL_VALUE, 1));
            }
        }
    }
}

fn annotate_object(event: &mut Message, object: &WaitObject) {
    match object {
        WaitObject::Futex { address } => {
            annotate(event, FUTEX, |value| value.integer(annotation::POINTER_VALUE, *address));
        }
        WaitObject::Descriptor { fd, target } => {
            let fd = u64::try_from(*fd).unwrap_or(0);
            annotate(event, FD, |value| value.integer(annotation::UINT_VALUE, fd));
            if let Some(target) = target {
                annotate(event, TARGET, |value| value.string(annotation::STRING_VALUE, target));
            }
        }
        WaitObject::Timer { limit } | WaitObject::Descriptors { limit } => {
            if let Some(limit) = limit {
                let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
                annotate(event, LIMIT_NANOS, |value| value.integer(annotation::UINT_VALUE, nanos));
            }
        }
    }
}

fn annotate(event: &mut Message, name: u64, value: impl FnOnce(&mut Message)) {
    event.message(event::DEBUG_ANNOTATIONS, |annotation| {
        annotation.integer(annotation::NAME_IID, name);
        value(annotation);
    });
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use contend_record::trace::Source;

    use super::super::protobuf::reader::{Fields, Value};
    use super::*;
    use crate::render::trace::testing::{self, MICRO};

    fn packets(trace: &Trace) -> Vec<Fields> {
        let mut bytes = Vec::new();
        write(trace, About::from(&testing::record()), &mut bytes).expect("memory");
        Fields::decode(&bytes).all(1).map(Value::fields).collect()
    }

    /// Numbers of fields, from Perfetto's definitions: packets.
    const TIMESTAMP: u64 = 8;
    const TRACK_EVENT: u64 = 11;
    const TRACK_DESCRIPTOR: u64 = 60;

    /// Returns the names that the first packet defines, by number.
    fn names(packets: &[Fields]) -> HashMap<u64, String> {
        let interned = packets[0].get(12).expect("interned data").fields();
        let entry = |entry: Fields| {
            let number = entry.get(1).expect("a number").integer();
            (number, entry.get(2).expect("a name").text().to_owned())
        };
        interned.all(2).map(|value| entry(value.fields())).collect()
    }

    /// Returns the events of a track: time, type and name.
    fn events(packets: &[Fields], track: u64) -> Vec<(u64, u64, Option<String>)> {
        let names = names(packets);
        let mut found = Vec::new();
        for packet in packets {
            let Some(event) = packet.get(TRACK_EVENT).map(Value::fields) else { continue };
            if event.get(11).expect("a track").integer() == track {
                let time = packet.get(TIMESTAMP).expect("a time").integer();
                let name = event.get(10).map(|number| names[&number.integer()].clone());
                let name = name.or(event.get(23).map(|name| name.text().to_owned()));
                found.push((time / MICRO, event.get(9).expect("a type").integer(), name));
            }
        }
        found
    }

    /// Returns the descriptor of each track by its number.
    fn descriptors(packets: &[Fields]) -> HashMap<u64, Fields> {
        let tracks = packets.iter().filter_map(|packet| packet.get(TRACK_DESCRIPTOR));
        let tracks = tracks.map(Value::fields);
        tracks.map(|track| (track.get(1).expect("a number").integer(), track)).collect()
    }

    #[test]
    fn the_first_packet_has_the_clocks() {
        let packets = packets(&testing::trace());
        for (index, packet) in packets.iter().enumerate() {
            assert_eq!(packet.get(10).expect("a sequence").integer(), 1);
            let flags = if index == 0 { 1 } else { 2 };
            assert_eq!(packet.get(13).expect("flags").integer(), flags);
        }
        let snapshot = packets[0].get(6).expect("a snapshot").fields();
        let clocks: HashMap<u64, u64> = snapshot
            .all(1)
            .map(Value::fields)
            .map(|clock| {
                let time = clock.get(2).expect("a time").integer();
                (clock.get(1).expect("a clock").integer(), time / MICRO)
            })
            .collect();
        let expected = [(3, 1000), (6, 901_000), (1, 1_700_000_001_000_000)];
        assert_eq!(clocks, HashMap::from(expected));
        assert_eq!(snapshot.get(2).expect("the main clock").integer(), 3);
        let defaults = packets[0].get(59).expect("defaults").fields();
        assert_eq!(defaults.get(58).expect("a clock").integer(), 3);
    }

    #[test]
    fn processes_and_threads_have_tracks() {
        let tracks = descriptors(&packets(&testing::trace()));
        assert_eq!(tracks.len(), 5);
        let process = tracks[&3].get(3).expect("a process").fields();
        assert_eq!(process.get(1).expect("a PID").integer(), 7);
        assert_eq!(process.get(2).expect("a command").text(), "prog --fast");
        assert_eq!(process.get(6).expect("a name").text(), "prog");
        for (number, id, name) in [(4, 7, "prog"), (5, 8, "worker")] {
            assert_eq!(tracks[&number].get(5).expect("a parent").integer(), 3);
            let thread = tracks[&number].get(4).expect("a thread").fields();
            assert_eq!(thread.get(1).expect("a PID").integer(), 7);
            assert_eq!(thread.get(2).expect("an ID").integer(), id);
            assert_eq!(thread.get(5).expect("a name").text(), name);
        }
    }

    #[test]
    fn spans_are_slices() {
        let packets = packets(&testing::trace());
        let name = |name: &str| Some(name.to_owned());
        let expected = [
            (1000, SLICE_BEGIN, name("running")),
            (2000, SLICE_END, None),
            (2000, SLICE_BEGIN, name("lock")),
            (4000, SLICE_END, None),
            (4000, SLICE_BEGIN, name("queued for a CPU")),
            (4500, SLICE_END, None),
            (4500, SLICE_BEGIN, name("running")),
            (5000, SLICE_END, None),
        ];
        assert_eq!(events(&packets, 4), expected);
        let worker = events(&packets, 5);
        assert_eq!(worker.last(), Some(&(1600, INSTANT, name("renamed to worker"))));
        let causes: Vec<_> = events(&packets, 1).into_iter().filter_map(|event| event.2).collect();
        assert_eq!(causes[2..], ["none ran: lock", "ready, but others used the CPUs"]);
    }

    #[test]
    fn the_counter_has_the_number_of_running_threads() {
        let mut values = Vec::new();
        for packet in packets(&testing::trace()) {
            let Some(event) = packet.get(TRACK_EVENT).map(Value::fields) else { continue };
            if let Some(value) = event.get(30) {
                assert_eq!(event.get(9).expect("a type").integer(), COUNTER);
                let time = packet.get(TIMESTAMP).expect("a time").integer();
                values.push((time / MICRO, value.integer()));
            }
        }
        assert_eq!(values, [(1000, 1), (1500, 2), (2000, 1), (2500, 0), (4500, 1), (5000, 0)]);
    }

    #[test]
    fn waits_have_their_object() {
        let mut annotations = Vec::new();
        for packet in packets(&testing::trace()) {
            let Some(event) = packet.get(TRACK_EVENT).map(Value::fields) else { continue };
            for annotation in event.all(4).map(Value::fields) {
                let name = annotation.get(1).expect("a name").integer();
                let (field, value) = annotation.0[1].clone();
                annotations.push((
                    ANNOTATIONS[usize::try_from(name).expect("small") - 1],
                    field,
                    value,
                ));
            }
        }
        let integer = |name, field, value| (name, field, Value::Integer(value));
        let expected = [
            integer("cpu", 3, 0),
            integer("futex", 7, 0x7f00_1234_5678),
            integer("cpu", 3, 1),
            integer("cpu", 3, 1),
            integer("fd", 3, 5),
            ("target", 6, Value::Bytes(b"pipe:[9]".to_vec())),
            integer("assumed", 2, 1),
            integer("limit_ns", 3, 1_000_000),
        ];
        assert_eq!(annotations, expected);
    }

    #[test]
    fn the_track_of_causes_has_the_diagnosis_and_notes() {
        let mut trace = testing::trace();
        trace.source = Source::Samples { reason: "not permitted".to_owned() };
        let tracks = descriptors(&packets(&trace));
        let description = tracks[&1].get(14).expect("a description").text().to_owned();
        assert!(description.starts_with("It waits for a lock.\nNote: the trace"), "{description}");
        assert!(description.ends_with("is guessed: not permitted."), "{description}");
    }
}
