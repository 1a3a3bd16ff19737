//! Records of context switches, started and ended threads, delivered by the kernel
//! (`perf_event_open(2)`). No privilege is needed for the user's own processes unless
//! `kernel.perf_event_paranoid` exceeds 2.
//!
//! Each followed thread has one event on each CPU, which its new threads and children inherit. The
//! events count nothing. All events of one CPU write their records into one ring buffer:
//!
//! ```text
//! thread 1 ──event──┐                       ┌─────────────────────────┐
//! thread 2 ──event──┼─▶ ring of CPU 0 ────▶ │ read: merged by time,   │──▶ Record …
//! thread 1 ──event──┐                       │ up to a point in time   │
//! thread 2 ──event──┼─▶ ring of CPU 1 ────▶ └─────────────────────────┘
//! ```
//!
//! With a privilege ([`Recorder::with_wakes`]), the same events also record which thread wakes which.
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::mapping::{Backing, Mapping};
use crate::waking::{Waking, WokenBy};

/// A record about one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Time of the event, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// PID of the process, in this process's PID namespace.
    pub process: i32,
    /// ID of the thread.
    pub thread: i32,
    /// Number of the CPU.
    pub cpu: u32,
    /// What happened.
    pub event: Event,
}

/// What happened to a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The scheduler gave it the CPU.
    In,
    /// It left the CPU, because it had to wait.
    Blocked,
    /// It left the CPU, although it could have continued: the scheduler preempted it, or it yielded.
    Preempted,
    /// The process `parent` created the thread; a new process if the record's process is another.
    Started {
        /// PID of the creating process.
        parent: i32,
    },
    /// Its process executed a program, whose file has this name; at most 15 bytes of it.
    Executed(Box<str>),
    /// It got this name, of at most 15 bytes.
    Renamed(Box<str>),
    /// It ended.
    Ended,
    /// What it was executing in user mode ([`Recorder::sample`]): the address of the instruction,
    /// followed by the return addresses of its callers, as far as frame pointers tell. Without them,
    /// the first return address or all of them may be missing or wrong.
    At(Box<[u64]>),
    /// While it was on the CPU, another thread was woken ([`Recorder::with_wakes`]). That thread may
    /// still be on its way to sleep; it then goes on without a record of a context switch.
    ///
    /// Some kernels deliver the record to the events of the woken thread, too. If both threads are
    /// followed, it then comes twice, the second time right after the first. If only the woken one is,
    /// the record's thread is one that is not followed: 0 if the CPU was idle or the thread is in
    /// another PID namespace.
    Woke {
        /// ID of the woken thread, which may be one that is not followed.
        thread: i32,
        /// Whether the record's thread or an interrupt has woken it.
        by: WokenBy,
    },
    /// The ring was full, and this many records were lost, of any threads.
    Lost(u64),
}

/// Size of a ring that fits into the memory that every user may lock for each CPU
/// (`kernel.perf_event_mlock_kb`), in bytes.
const MAX_RING_BYTES: usize = 512 << 10;
/// Largest size of a ring with wake-ups, whose records are several times as large. Users that may
/// record them may lock more memory.
const MAX_RING_BYTES_WITH_WAKES: usize = 2 << 20;

/// The rings of all CPUs, and the events that fill them.
#[derive(Debug)]
pub struct Recorder {
    rings: Vec<Ring>,
    /// The tracepoint that records wake-ups, if they are recorded.
    waking: Option<Waking>,
    /// Events whose records go to the ring of another event.
    events: Vec<OwnedFd>,
    /// Events that sample addresses, by thread.
    sampling: HashMap<Pid, Vec<OwnedFd>>,
    /// Bytes copied from a ring.
    bytes: Vec<u8>,
    /// Records that have been read from the rings, but not delivered.
    pending: Vec<Record>,
}

impl Recorder {
    /// Starts to record what `thread` does on `cpus`, and all threads and processes that it will
    /// create. Threads that it has created before must be followed on their own ([`Self::follow`]).
    ///
    /// # Errors
    /// `EACCES` or `EPERM` if this user may not observe the thread, or not at all; `ENOENT` or
    /// `ENOSYS` if the kernel lacks such events; `ESRCH` if there is no such thread; `EMFILE`.
    pub fn new(thread: Pid, cpus: &[usize]) -> io::Result<Self> {
        Self::open(thread, cpus, None)
    }

    /// As [`Self::new`], but also records each time that a followed thread wakes another one
    /// ([`Event::Woke`]).
    ///
    /// The kernel then spends some 100 ns more on every wake-up on the machine, and for followed
    /// threads as much again for each record.
    ///
    /// # Errors
    /// As for [`Self::new`]; `EACCES` or `EPERM` also without `CAP_PERFMON` (Linux 5.8) or
    /// `CAP_SYS_ADMIN`, unless `kernel.perf_event_paranoid` is -1.
    pub fn with_wakes(thread: Pid, cpus: &[usize], waking: Waking) -> io::Result<Self> {
        Self::open(thread, cpus, Some(waking))
    }

    /// Returns whether wake-ups are recorded.
    pub fn has_wakes(&self) -> bool {
        self.waking.is_some()
    }

    fn open(thread: Pid, cpus: &[usize], waking: Option<Waking>) -> io::Result<Self> {
        let ring = |&cpu: &usize| Ring::new(thread, cpu, waking);
        let rings = cpus.iter().map(ring).collect::<io::Result<_>>()?;
        Ok(Self {
            rings,
            waking,
            events: Vec::new(),
            sampling: HashMap::new(),
            bytes: Vec::new(),
            pending: Vec::new(),
        })
    }

    /// Starts to record another thread, and all threads and processes that it will create.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn follow(&mut self, thread: Pid) -> io::Result<()> {
        for ring in &self.rings {
            let event = open(thread, ring.cpu, Purpose::switches(self.waking))?;
            redirect(&event, &ring.event)?;
            self.events.push(event);
        }
        Ok(())
    }

    /// Returns the number of descriptors that each call of [`Self::follow`] or [`Self::sample`] takes up.
    pub fn descriptors(&self) -> usize {
        self.rings.len()
    }

    /// Starts to record the addresses that `thread` executes, once in every `period` for which it runs.
    /// Only user mode counts.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn sample(&mut self, thread: Pid, period: Duration) -> io::Result<()> {
        let mut events = Vec::new();
        for ring in &self.rings {
            let event = open(thread, ring.cpu, Purpose::Addresses { period })?;
            redirect(&event, &ring.event)?;
            events.push(event);
        }
        self.sampling.insert(thread, events);
        Ok(())
    }

    /// Stops what [`Self::sample`] has started for `thread`, if anything.
    pub fn stop_sampling(&mut self, thread: Pid) {
        self.sampling.remove(&thread);
    }

    /// Returns the records that [`Self::read`] has not passed yet, in no particular order.
    pub fn peek(&mut self) -> &[Record] {
        self.take();
        &self.pending
    }

    /// Takes all records from the rings.
    fn take(&mut self) {
        for ring in &mut self.rings {
            ring.take(&mut self.bytes);
            self.pending.extend(Records { rest: &self.bytes, waking: self.waking });
        }
    }

    /// Passes all records with times before `until`, in nanoseconds of `CLOCK_MONOTONIC`, to `each`,
    /// in the order of their times. `until` must not be in the future: records before it that are
    /// written later come out of order, in a later call.
    pub fn read(&mut self, until: u64, each: &mut impl FnMut(Record)) {
        self.take();
        self.pending.sort_by_key(|record| record.time);
        let end = self.pending.partition_point(|record| record.time < until);
        self.pending.drain(..end).for_each(each);
    }
}

/// The ring buffer of one CPU.
#[derive(Debug)]
struct Ring {
    cpu: usize,
    /// The event for which the ring was mapped. It stays open, because others write here, too.
    event: OwnedFd,
    /// A page of metadata, followed by the data.
    memory: Mapping,
    /// Size of the data in bytes, a power of two.
    size: usize,
    /// Offset of the first unread byte, counted from the start of recording.
    tail: u64,
}

/// Offsets in the page of metadata (`struct perf_event_mmap_page`), in bytes.
const HEAD_OFFSET: usize = 1024;
const TAIL_OFFSET: usize = 1032;

impl Ring {
    /// Opens an event, and maps a ring for it. The ring is smaller if this user may not lock more
    /// memory.
    fn new(thread: Pid, cpu: usize, waking: Option<Waking>) -> io::Result<Self> {
        let event = open(thread, cpu, Purpose::switches(waking))?;
        let page = rustix::param::page_size();
        let most = if waking.is_some() { MAX_RING_BYTES_WITH_WAKES } else { MAX_RING_BYTES };
        let mut size = most.max(page).next_power_of_two();
        loop {
            match Mapping::new(Backing::File(event.as_fd()), page + size) {
                Ok(memory) => return Ok(Self { cpu, event, memory, size, tail: 0 }),
                Err(error) if size > page && is_short_of_memory(&error) => size /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Replaces the contents of `bytes` by all complete records in the ring, and frees their space.
    fn take(&mut self, bytes: &mut Vec<u8>) {
        let head = self.word(HEAD_OFFSET).load(Ordering::Acquire);
        let length = usize::try_from(head.wrapping_sub(self.tail)).unwrap_or(0).min(self.size);
        bytes.clear();
        bytes.resize(length, 0);
        let data = self.memory.length() - self.size;
        let start = usize::try_from(self.tail % self.size as u64).unwrap_or(0);
        let first = length.min(self.size - start);
        let (one, two) = bytes.split_at_mut(first);
        self.copy(data + start, one);
        self.copy(data, two);
        // The copies are complete before the kernel may overwrite the space.
        fence(Ordering::SeqCst);
        self.word(TAIL_OFFSET).store(head, Ordering::Release);
        self.tail = head;
    }

    /// Copies bytes from offset `from` of the mapping. The kernel must have written them and must
    /// not know yet that they have been read.
    fn copy(&self, from: usize, to: &mut [u8]) {
        assert!(from + to.len() <= self.memory.length(), "the ring is shorter");
        // SAFETY: within the mapping, as just checked.
        let source = unsafe { self.memory.start().add(from) };
        // SAFETY: the ranges do not overlap, since `to` is memory of Rust. The kernel does not write
        // to the source until the tail is moved past it.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), to.as_mut_ptr(), to.len()) };
    }

    /// Returns the word at `offset` in the page of metadata.
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the page is longer than both offsets.
        let place = unsafe { self.memory.start().add(offset) };
        // SAFETY: aligned to 8 bytes and valid as long as the mapping, which `self` borrows. The
        // kernel, too, accesses the word as a whole.
        unsafe { AtomicU64::from_ptr(place.cast().as_ptr()) }
    }
}

fn is_short_of_memory(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::PERM | Errno::NOMEM | Errno::AGAIN))
}

/// The first 112 bytes of `struct perf_event_attr`; later fields are 0.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config_1: u64,
    config_2: u64,
    branch_sample_type: u64,
    sample_registers: u64,
    sample_stack: u32,
    clock: i32,
    sample_registers_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_COUNT_SW_DUMMY`: an event that never counts, for its records alone.
const DUMMY: u64 = 9;
/// `PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU`, which decides the end of each record.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7;
/// Bits of `Attributes::flags`: inherit, `exclude_kernel`, `exclude_hv`, comm, task,
/// `sample_id_all`, `use_clockid` and `context_switch`.
const FLAGS: u64 = 1 << 1 | 1 << 5 | 1 << 6 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 25 | 1 << 26;
/// Bits of `Attributes::flags` for a tracepoint: as `FLAGS`, but without `exclude_kernel`, where all
/// wake-ups happen, and with `exclude_callchain_kernel` and `exclude_callchain_user`.
const WAKE_FLAGS: u64 = FLAGS & !(1 << 5) | 1 << 21 | 1 << 22;
/// `PERF_COUNT_SW_CPU_CLOCK`: time that the thread runs, in nanoseconds.
const CPU_CLOCK: u64 = 0;
/// Fields of all samples: those of `SAMPLE_TYPE`, then `PERF_SAMPLE_CALLCHAIN`, the address and those
/// of the callers, and `PERF_SAMPLE_RAW`, the data of a tracepoint. Samples of both kinds of events
/// are in the same ring, so both have both fields.
const FULL_SAMPLE_TYPE: u64 = SAMPLE_TYPE | 1 << 5 | 1 << 10;
/// Largest number of addresses in a sample.
const MAX_CALLERS: u16 = 32;
/// Addresses from this one are marks of what follows (`PERF_CONTEXT_MAX`).
const FIRST_MARK: u64 = 4095_u64.wrapping_neg();
/// Bits of `Attributes::flags`: `exclude_kernel`, `exclude_hv`, `sample_id_all`,
/// `exclude_callchain_kernel` and `use_clockid`.
const ADDRESS_FLAGS: u64 = 1 << 5 | 1 << 6 | 1 << 18 | 1 << 21 | 1 << 25;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: u32 = 0x2405;

/// What an event records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Context switches, forks, execs and exits, of the thread and its new threads and children.
    Switches,
    /// As `Switches`, and wake-ups.
    SwitchesAndWakes(Waking),
    /// Addresses that the thread itself executes, once in every `period` for which it runs.
    Addresses { period: Duration },
}

impl Purpose {
    fn switches(waking: Option<Waking>) -> Self {
        waking.map_or(Self::Switches, Self::SwitchesAndWakes)
    }
}

/// Opens an event for `thread` on `cpu`.
fn open(thread: Pid, cpu: usize, purpose: Purpose) -> io::Result<OwnedFd> {
    let common = Attributes {
        kind: SOFTWARE,
        size: u32::try_from(size_of::<Attributes>()).unwrap_or(u32::MAX),
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let attributes = match purpose {
        Purpose::Switches => {
            Attributes { config: DUMMY, sample_type: SAMPLE_TYPE, flags: FLAGS, ..common }
        }
        // A tracepoint's event delivers records of context switches like any other. A second event
        // for each thread would double the descriptors, and the kernel's work for each new thread.
        Purpose::SwitchesAndWakes(waking) => Attributes {
            kind: TRACEPOINT,
            config: waking.id,
            sample_period: 1,
            sample_type: FULL_SAMPLE_TYPE,
            flags: WAKE_FLAGS,
            ..common
        },
        Purpose::Addresses { period } => Attributes {
            config: CPU_CLOCK,
            sample_period: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            sample_type: FULL_SAMPLE_TYPE,
            flags: ADDRESS_FLAGS,
            sample_max_stack: MAX_CALLERS,
            ..common
        },
    };
    let cpu = libc::c_int::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
    let no_group: libc::c_int = -1;
    // SAFETY: the kernel only reads the structure, and only the length that it states.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread.as_raw_nonzero().get(),
            cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    let fd = libc::c_int::try_from(opened).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes the records of `event` go to the ring that was mapped for `owner`, on the same CPU.
fn redirect(event: &OwnedFd, owner: &OwnedFd) -> io::Result<()> {
    // SAFETY: the request takes a descriptor and touches no memory of this process.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT.into(), owner.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An iterator over the records in bytes from a ring. Skips other kinds of records.
struct Records<'a> {
    rest: &'a [u8],
    waking: Option<Waking>,
}

/// Length of the header of a record: type (`u32`), flags (`u16`) and length (`u16`).
const HEADER_BYTES: usize = 8;
/// Length of the end of a record: PID and TID, time, and CPU.
const TRAILER_BYTES: usize = 24;

/// Type of a record with a sample (`PERF_RECORD_SAMPLE`).
const SAMPLE: u32 = 9;
/// Bits in the header of a record about a context switch.
const SWITCH_OUT: u16 = 1 << 13;
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Bit in the header of a record about a new name, set if a program was executed.
const NAME_BY_EXEC: u16 = 1 << 13;

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let kind = u32_at(self.rest, 0)?;
            let flags = u16_at(self.rest, 4)?;
            let length = usize::from(u16_at(self.rest, 6)?);
            if length < HEADER_BYTES || length > self.rest.len() {
                self.rest = &[];
                return None;
            }
            let (whole, rest) = self.rest.split_at(length);
            self.rest = rest;
            let parsed = match kind {
                SAMPLE => parse_sample(whole, self.waking),
                _ => parse(kind, flags, whole),
            };
            if let Some(record) = parsed {
                return Some(record);
            }
        }
    }
}

/// Parses one record with its header, except a sample. Returns `None` if it is of another kind.
fn parse(kind: u32, flags: u16, whole: &[u8]) -> Option<Record> {
    let trailer = whole.len().checked_sub(TRAILER_BYTES).filter(|&at| at >= HEADER_BYTES)?;
    let mut process = i32_at(whole, trailer)?;
    let mut thread = i32_at(whole, trailer + 4)?;
    let event = match kind {
        2 => Event::Lost(u64_at(whole, HEADER_BYTES + 8)?),
        3 => {
            // The trailer is about the thread that wrote the record, which may have named another.
            process = i32_at(whole, HEADER_BYTES)?;
            thread = i32_at(whole, HEADER_BYTES + 4)?;
            let name = name_in(whole)?;
            if flags & NAME_BY_EXEC == 0 { Event::Renamed(name) } else { Event::Executed(name) }
        }
        4 | 7 => {
            // The trailer is about the thread that wrote the record, which may be the creator.
            process = i32_at(whole, HEADER_BYTES)?;
            thread = i32_at(whole, HEADER_BYTES + 8)?;
            let parent = i32_at(whole, HEADER_BYTES + 4)?;
            if kind == 4 { Event::Ended } else { Event::Started { parent } }
        }
        14 if flags & SWITCH_OUT == 0 => Event::In,
        14 if flags & SWITCH_OUT_PREEMPT == 0 => Event::Blocked,
        14 => Event::Preempted,
        _ => return None,
    };
    let time = u64_at(whole, trailer + 8)?;
    let cpu = u32_at(whole, trailer + 16)?;
    Some(Record { time, process, thread, cpu, event })
}

/// Returns the name in a record about a new name: after PID and TID, padded with zeros.
fn name_in(whole: &[u8]) -> Option<Box<str>> {
    let text = whole.get(HEADER_BYTES + 8..whole.len().checked_sub(TRAILER_BYTES)?)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    Some(String::from_utf8_lossy(&text[..end]).into())
}

/// Parses a sample: the fields that end other records, the addresses, and the data of a tracepoint.
fn parse_sample(whole: &[u8], waking: Option<Waking>) -> Option<Record> {
    let callers = HEADER_BYTES + TRAILER_BYTES;
    let count = usize::try_from(u64_at(whole, callers)?).ok()?;
    let address = |index: usize| u64_at(whole, callers + 8 * (index + 1));
    let addresses = (0..count).map_while(address).filter(|&at| at < FIRST_MARK);
    let event = match tracepoint_data(whole, callers, count)? {
        [] => Event::At(addresses.collect()),
        data => {
            let (thread, by) = waking?.read(data)?;
            Event::Woke { thread, by }
        }
    };
    Some(Record {
        process: i32_at(whole, HEADER_BYTES)?,
        thread: i32_at(whole, HEADER_BYTES + 4)?,
        time: u64_at(whole, HEADER_BYTES + 8)?,
        cpu: u32_at(whole, HEADER_BYTES + 16)?,
        event,
    })
}

/// Returns the data of a tracepoint in a sample with `count` addresses after the offset `callers`. They
/// are empty for other events, for which the kernel writes four zeros. Returns `None` if the sample is
/// too short.
fn tracepoint_data(whole: &[u8], callers: usize, count: usize) -> Option<&[u8]> {
    const NO_DATA_BYTES: usize = 4;
    let start = callers.checked_add(count.checked_add(1)?.checked_mul(8)?)?;
    let size = usize::try_from(u32_at(whole, start)?).ok()?;
    let data = whole.get(start + 4..)?.get(..size)?;
    Some(if size > NO_DATA_BYTES { data } else { &[] })
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_ne_bytes)
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    array_at(bytes, at).map(i32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    fn now() -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        Duration::new(
            u64::try_from(time.tv_sec).expect("after boot"),
            u32::try_from(time.tv_nsec).expect("below a second"),
        )
        .as_nanos()
        .try_into()
        .expect("fewer than 584 years")
    }

    fn record(kind: u32, flags: u16, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(HEADER_BYTES + body.len() + TRAILER_BYTES).expect("short");
        let mut bytes = Vec::new();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        bytes.extend(body);
        bytes.extend([7_u32, 8].into_iter().flat_map(u32::to_ne_bytes));
        bytes.extend(99_u64.to_ne_bytes());
        bytes.extend([1_u32, 0].into_iter().flat_map(u32::to_ne_bytes));
        bytes
    }

    #[test]
    fn records_are_parsed_and_others_are_skipped() {
        let four: Vec<u8> = [20_u32, 7, 21, 8].into_iter().flat_map(u32::to_ne_bytes).collect();
        let fork: Vec<u8> = [four, 5_u64.to_ne_bytes().to_vec()].concat();
        let lost: Vec<u8> = [1_u64, 30].into_iter().flat_map(u64::to_ne_bytes).collect();
        let bytes = [
            record(14, 0, &[]),
            record(14, SWITCH_OUT, &[]),
            record(11, 0, &[0; 16]),
            record(14, SWITCH_OUT | SWITCH_OUT_PREEMPT, &[]),
            record(7, 0, &fork),
            record(3, 0, b"\x14\0\0\0\x15\0\0\0worker 1\0\0\0\0\0\0\0\0"),
            record(3, NAME_BY_EXEC, b"\x07\0\0\0\x08\0\0\0sleep\0\0\0"),
            record(2, 0, &lost),
        ]
        .concat();
        let parsed: Vec<Record> = Records { rest: &bytes, waking: None }.collect();
        let events: Vec<Event> = parsed.iter().map(|record| record.event.clone()).collect();
        let expected = [
            Event::In,
            Event::Blocked,
            Event::Preempted,
            Event::Started { parent: 7 },
            Event::Renamed("worker 1".into()),
            Event::Executed("sleep".into()),
            Event::Lost(30),
        ];
        assert_eq!(events, expected);
        assert_eq!(parsed[0], Record { time: 99, process: 7, thread: 8, cpu: 1, event: Event::In });
        assert_eq!((parsed[3].process, parsed[3].thread), (20, 21));
        assert_eq!((parsed[4].process, parsed[4].thread), (20, 21));
        assert_eq!(
            Records { rest: &bytes[..40], waking: None }.count(),
            1,
            "an incomplete record is left out"
        );
        assert_eq!(Records { rest: &[0; 64], waking: None }.count(), 0);
    }

    /// Returns a sample by thread 8, with two addresses, and with the data of a tracepoint.
    fn sample(data: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend([7_u32, 8].into_iter().flat_map(u32::to_ne_bytes));
        body.extend(99_u64.to_ne_bytes());
        body.extend([1_u32, 0].into_iter().flat_map(u32::to_ne_bytes));
        let callers = [3, FIRST_MARK + 3, 0x1000, 0x2000];
        body.extend(callers.into_iter().flat_map(u64::to_ne_bytes));
        body.extend(u32::try_from(data.len()).expect("short").to_ne_bytes());
        body.extend(data);
        let length = u16::try_from(HEADER_BYTES + body.len()).expect("short");
        let mut bytes = SAMPLE.to_ne_bytes().to_vec();
        bytes.extend([2, length].into_iter().flat_map(u16::to_ne_bytes));
        bytes.extend(body);
        bytes
    }

    #[test]
    fn samples_of_addresses_and_of_wake_ups_are_distinguished() {
        let format = "ID: 1\nfield:unsigned char common_flags; offset:2; size:1;\n\
                      field:pid_t pid; offset:24; size:4;";
        let waking = Waking::parse(format).expect("both fields");
        let mut data = [0; 36];
        data[24..28].copy_from_slice(&9_i32.to_ne_bytes());
        let bytes = [sample(&[0; 4]), sample(&data), record(14, 0, &[])].concat();
        let parsed: Vec<Record> = Records { rest: &bytes, waking: Some(waking) }.collect();
        let at = |event: Event| Record { time: 99, process: 7, thread: 8, cpu: 1, event };
        let expected = [
            at(Event::At([0x1000, 0x2000].into())),
            at(Event::Woke { thread: 9, by: WokenBy::Thread }),
            at(Event::In),
        ];
        assert_eq!(parsed, expected);
        let unasked = Records { rest: &bytes, waking: None }.map(|record| record.event);
        assert_eq!(unasked.collect::<Vec<_>>(), [expected[0].event.clone(), Event::In]);
        // A length that exceeds the record.
        let mut cut = sample(&data);
        let at = cut.len() - data.len() - 4;
        cut[at] = 0xff;
        assert_eq!(parse_sample(&cut, Some(waking)), None);
    }

    /// Checks all events of a shell that runs commands: each process starts, executes and ends once,
    /// and leaves each CPU that it was given.
    #[test]
    fn switches_and_children_of_a_process_are_recorded() {
        let script = "read line; for i in 1 2 3; do sleep 0.01; done";
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell");
        let shell = Pid::from_child(&child);
        let cpus = crate::cpu::allowed_list();
        let mut recorder = match Recorder::new(shell, &cpus) {
            Ok(recorder) => recorder,
            Err(error) => {
                child.kill().and_then(|()| child.wait()).expect("a child");
                let errno = Errno::from_io_error(&error);
                let expected = [Errno::ACCESS, Errno::PERM, Errno::NOSYS, Errno::NOENT];
                assert!(errno.is_some_and(|errno| expected.contains(&errno)), "{error}");
                return;
            }
        };
        let begun = now();
        drop(child.stdin.take());
        child.wait().expect("a child");
        let mut records = Vec::new();
        recorder.read(now(), &mut |record| records.push(record));
        assert!(records.is_sorted_by_key(|record| record.time));
        assert!(records.iter().all(|record| record.time + 1_000_000_000 > begun));
        let count = |event: &dyn Fn(&Event) -> bool| {
            records.iter().filter(|record| event(&record.event)).count()
        };
        assert_eq!(count(&|event| matches!(event, Event::Started { .. })), 3, "{records:?}");
        let slept = |event: &Event| *event == Event::Executed("sleep".into());
        assert_eq!(count(&slept), 3, "{records:?}");
        assert_eq!(count(&|event| *event == Event::Ended), 4, "{records:?}");
        // Within a thread, events alternate: on a CPU, off it.
        let mut on_cpu: HashMap<i32, bool> = HashMap::new();
        for record in &records {
            let before = on_cpu.get(&record.thread).copied();
            match record.event {
                Event::In => assert_ne!(before, Some(true), "{record:?}"),
                Event::Blocked | Event::Preempted => assert_ne!(before, Some(false), "{record:?}"),
                _ => continue,
            }
            on_cpu.insert(record.thread, record.event == Event::In);
        }
        let sleeps = records.iter().filter(|record| record.event == Event::Blocked).count();
        assert!(sleeps >= 3, "{sleeps} waits");
    }

    #[test]
    fn addresses_of_a_busy_thread_are_in_its_code() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let pid = Pid::from_child(&child);
        let mut addresses = Vec::new();
        let recorder = Recorder::new(pid, &crate::cpu::online_list());
        if let Ok(mut recorder) = recorder {
            recorder
                .sample(pid, Duration::from_millis(2))
                .expect("its switches may be recorded, too");
            while addresses.len() < 5 {
                std::thread::sleep(Duration::from_millis(10));
                recorder.read(now(), &mut |record| {
                    if let Event::At(stack) = record.event {
                        assert_eq!(record.thread, pid.as_raw_nonzero().get());
                        assert!(stack.len() <= usize::from(MAX_CALLERS), "{stack:?}");
                        addresses.push(stack[0]);
                    }
                });
            }
            recorder.stop_sampling(pid);
        }
        let mut code = [0; 4];
        for address in addresses {
            let read = crate::memory::read(pid, address, &mut code);
            assert!(read.is_ok(), "nothing is mapped at {address:#x}");
        }
        child.kill().and_then(|()| child.wait()).expect("a child");
    }

    #[test]
    fn a_thread_that_has_ended_cannot_be_followed() {
        let mut child = Command::new("true").spawn().expect("true");
        let pid = Pid::from_child(&child);
        child.wait().expect("a child");
        Recorder::new(pid, &crate::cpu::allowed_list()).expect_err("it has ended");
    }
}
