//! The tracepoint `sched:sched_waking`, with which the kernel tells which thread wakes which
//! ([`Recorder::with_wakes`](crate::perf::Recorder::with_wakes)).
//!
//! The number of the tracepoint and the layout of its records differ between kernels. tracefs
//! describes both, in a file that usually only root may read:
//!
//! ```text
//! name: sched_waking
//! ID: 375
//! format:
//!         field:unsigned char common_flags;  offset:2;   size:1;  signed:0;
//!         field:pid_t pid;                   offset:24;  size:4;  signed:1;
//! ```

use std::fmt;
use std::io;
use std::os::linux::fs::MetadataExt as _;
use std::path::Path;

/// The file that describes the tracepoint, where tracefs or else debugfs is usually mounted.
const FORMATS: [&str; 2] = [
    "/sys/kernel/tracing/events/sched/sched_waking/format",
    "/sys/kernel/debug/tracing/events/sched/sched_waking/format",
];
/// Inode of the first PID namespace (`PID_NS_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Bits of `common_flags`: in a hard interrupt, in a soft one, in a non-maskable one.
const HARD_INTERRUPT: u8 = 0x08;
const SOFT_INTERRUPT: u8 = 0x10;
const NON_MASKABLE: u8 = 0x40;

/// The tracepoint, as this kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waking {
    /// Its number, for `perf_event_open(2)`.
    pub(crate) id: u64,
    /// Offset in a record of the flags, one byte.
    flags: usize,
    /// Offset in a record of the ID of the woken thread, an `i32`.
    woken: usize,
}

/// Why the tracepoint cannot be used.
#[derive(Debug)]
pub enum Unavailable {
    /// Its description cannot be read: tracefs is not mounted, or this user may not read it.
    NotReadable(io::Error),
    /// Its description lacks a field.
    OtherFormat,
    /// This process is in a PID namespace, but the tracepoint has the thread IDs of the first one.
    PidNamespace,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReadable(_) => "cannot read the description of sched:sched_waking in tracefs",
            Self::OtherFormat => "the kernel's sched:sched_waking has other fields",
            Self::PidNamespace => "sched:sched_waking has other thread IDs in a PID namespace",
        })
    }
}

impl std::error::Error for Unavailable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotReadable(error) => Some(error),
            Self::OtherFormat | Self::PidNamespace => None,
        }
    }
}

/// On whose behalf a CPU makes a thread runnable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WokenBy {
    /// The thread that runs, in a system call or a page fault of its own.
    Thread,
    /// A soft interrupt: a packet that arrives from a network, but also one that the running thread
    /// itself sends to this machine; a timer of low resolution.
    SoftInterrupt,
    /// A hard interrupt: a timer, or a device. The running thread has nothing to do with it.
    HardInterrupt,
}

impl Waking {
    /// Reads the description of the tracepoint.
    ///
    /// # Errors
    /// Returns why it cannot be used here.
    pub fn find() -> Result<Self, Unavailable> {
        // Without /proc, threads cannot be observed anyway.
        let namespace = std::fs::metadata("/proc/self/ns/pid").map(|file| file.st_ino());
        if namespace.is_ok_and(|inode| inode != FIRST_PID_NAMESPACE) {
            return Err(Unavailable::PidNamespace);
        }
        let text = read_first(&FORMATS).map_err(Unavailable::NotReadable)?;
        Self::parse(&text).ok_or(Unavailable::OtherFormat)
    }

    /// Parses the description in tracefs.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        Some(Self { id, flags: offset(text, "common_flags", 1)?, woken: offset(text, "pid", 4)? })
    }

    /// Returns the woken thread and who wakes it, from the data of a record.
    pub(crate) fn read(&self, data: &[u8]) -> Option<(i32, WokenBy)> {
        let flags = *data.get(self.flags)?;
        let woken = data.get(self.woken..self.woken + 4)?.try_into().ok()?;
        let by = match flags {
            _ if flags & (HARD_INTERRUPT | NON_MASKABLE) != 0 => WokenBy::HardInterrupt,
            _ if flags & SOFT_INTERRUPT != 0 => WokenBy::SoftInterrupt,
            _ => WokenBy::Thread,
        };
        Some((i32::from_ne_bytes(woken), by))
    }
}

/// Reads the first of the files that can be read. Otherwise, returns the error that says most: a
/// missing permission, rather than a missing file.
fn read_first(paths: &[&str]) -> io::Result<String> {
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    for path in paths {
        match std::fs::read_to_string(Path::new(path)) {
            Ok(text) => return Ok(text),
            Err(new) if error.kind() == io::ErrorKind::NotFound => error = new,
            Err(_) => {}
        }
    }
    Err(error)
}

/// Returns the offset of the field `name`, if it has `size` bytes.
fn offset(format: &str, name: &str, size: usize) -> Option<usize> {
    let field = format.lines().find_map(|line| {
        let (declaration, rest) = line.trim_start().strip_prefix("field:")?.split_once(';')?;
        (declaration.split_whitespace().next_back()? == name).then_some(rest)
    })?;
    let number = |key: &str| -> Option<usize> {
        let value = field.split(';').find_map(|part| part.trim().strip_prefix(key))?;
        value.trim().parse().ok()
    };
    (number("size:")? == size).then(|| number("offset:")).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use rustix::process::Pid;
    use rustix::thread::gettid;
    use rustix::time::{ClockId, clock_gettime};

    use crate::perf::{Event, Recorder};

    const FORMAT: &str = "name: sched_waking
ID: 375
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;

print fmt: \"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio
";

    #[test]
    fn the_description_gives_number_and_offsets() {
        let expected = Waking { id: 375, flags: 2, woken: 24 };
        assert_eq!(Waking::parse(FORMAT), Some(expected));
        let other = FORMAT.replace("offset:24;", "offset:32;").replace("ID: 375", "ID: 9");
        assert_eq!(Waking::parse(&other), Some(Waking { id: 9, flags: 2, woken: 32 }));
    }

    #[test]
    fn other_descriptions_are_refused() {
        let changed = |from: &str, to: &str| Waking::parse(&FORMAT.replace(from, to));
        assert_eq!(changed("pid_t pid;", "pid_t tid;"), None);
        assert_eq!(
            changed(
                "\tfield:pid_t pid;\toffset:24;\tsize:4",
                "\tfield:pid_t pid;\toffset:24;\tsize:8"
            ),
            None
        );
        assert_eq!(changed("common_flags", "common_bits"), None);
        assert_eq!(changed("ID: 375", "ID: x"), None);
        assert_eq!(Waking::parse(""), None);
    }

    #[test]
    fn records_name_the_woken_thread_and_the_context() {
        let waking = Waking::parse(FORMAT).expect("known fields");
        let read = |flags: u8| {
            let mut data = [0; 36];
            data[2] = flags;
            data[24..28].copy_from_slice(&4711_i32.to_ne_bytes());
            waking.read(&data)
        };
        // Disabled interrupts, and a pending preemption.
        assert_eq!(read(0x01 | 0x04), Some((4711, WokenBy::Thread)));
        assert_eq!(read(0x01 | SOFT_INTERRUPT), Some((4711, WokenBy::SoftInterrupt)));
        assert_eq!(read(HARD_INTERRUPT), Some((4711, WokenBy::HardInterrupt)));
        let nested = HARD_INTERRUPT | SOFT_INTERRUPT;
        assert_eq!(read(nested), Some((4711, WokenBy::HardInterrupt)));
        assert_eq!(read(NON_MASKABLE), Some((4711, WokenBy::HardInterrupt)));
        assert_eq!(waking.read(&[0; 27]), None, "too short");
    }

    /// Number of messages in each direction.
    const TURNS: usize = 100;

    /// One side of an exchange of messages.
    struct Side {
        input: PipeReader,
        output: PipeWriter,
    }

    impl Side {
        /// Sends a message as soon as the other thread waits for it, and awaits the answer.
        fn ask(&mut self, other: Pid) {
            wait_until_asleep(other);
            self.output.write_all(b"x").expect("a pipe");
            self.input.read_exact(&mut [0]).expect("an answer");
        }

        /// Awaits a message, and answers as soon as the other thread waits for it.
        fn answer(&mut self, other: Pid) {
            self.input.read_exact(&mut [0]).expect("a message");
            wait_until_asleep(other);
            self.output.write_all(b"y").expect("a pipe");
        }
    }

    fn wait_until_asleep(thread: Pid) {
        let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
        while !std::fs::read_to_string(&path).expect("alive").contains(") S ") {
            thread::yield_now();
        }
    }

    fn now() -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("after boot")
    }

    /// Returns a recorder for both threads, or `None`, with a message, if it is not permitted.
    fn recorder(first: Pid, second: Pid) -> Option<Recorder> {
        let waking = Waking::find().map_err(|error| eprintln!("skipped: {error}")).ok()?;
        let recorder = Recorder::with_wakes(first, &crate::cpu::online_list(), waking);
        let mut recorder = recorder.map_err(|error| eprintln!("skipped: {error}")).ok()?;
        recorder.follow(second).expect("as the first one");
        Some(recorder)
    }

    /// A thread that waits until it is told the ID of another one, and then exchanges messages with it.
    struct Partner {
        id: Pid,
        start: mpsc::Sender<Pid>,
        thread: thread::JoinHandle<()>,
    }

    impl Partner {
        fn spawn(exchange: impl FnOnce(Pid) + Send + 'static) -> Self {
            let (tell, told) = mpsc::channel();
            let (start, started) = mpsc::channel();
            let thread = thread::spawn(move || {
                tell.send(gettid()).expect("the test waits");
                exchange(started.recv().expect("the test starts it"));
            });
            Self { id: told.recv().expect("a thread"), start, thread }
        }
    }

    /// Returns two threads, of which the first asks and the second answers. Each sends only while the
    /// other waits, so that each message is a wake-up.
    fn partners() -> (Partner, Partner) {
        let (input, to_first) = pipe().expect("a pipe");
        let (to_second, output) = pipe().expect("a pipe");
        let mut first = Side { input, output };
        let mut second = Side { input: to_second, output: to_first };
        let listens = Arc::new(AtomicBool::new(false));
        let is_listening = Arc::clone(&listens);
        let first = Partner::spawn(move |other| {
            // From then on, the other one only sleeps for messages.
            while !is_listening.load(Ordering::Acquire) {
                thread::yield_now();
            }
            (0..TURNS).for_each(|_| first.ask(other));
        });
        let second = Partner::spawn(move |other| {
            listens.store(true, Ordering::Release);
            (0..TURNS).for_each(|_| second.answer(other));
        });
        (first, second)
    }

    #[test]
    fn each_message_between_two_threads_is_a_wake_up() {
        let (first, second) = partners();
        let recorder = recorder(first.id, second.id);
        second.start.send(first.id).expect("it waits");
        first.start.send(second.id).expect("it waits");
        first.thread.join().expect("no failure");
        second.thread.join().expect("no failure");
        let Some(mut recorder) = recorder else { return };
        let [first, second] = [first.id, second.id].map(|id| id.as_raw_nonzero().get());
        let mut wakes = Vec::new();
        recorder.read(now(), &mut |record| {
            if let Event::Woke { thread, by: WokenBy::Thread } = record.event
                && [record.thread, thread].iter().all(|id| [first, second].contains(id))
            {
                wakes.push((record.thread, thread));
            }
        });
        // Some kernels record each wake-up twice.
        wakes.dedup();
        let both = [(first, second), (second, first)];
        let expected: Vec<_> = both.into_iter().cycle().take(2 * TURNS).collect();
        assert_eq!(wakes, expected);
    }

    /// Two threads share a CPU. One sleeps again and again, and the other computes when timers end the
    /// sleeps.
    #[test]
    fn a_timer_is_not_taken_for_the_thread_that_runs() {
        let sleeps = Arc::new(AtomicBool::new(true));
        let is_sleeping = Arc::clone(&sleeps);
        let cpu = crate::cpu::allowed_list()[0];
        let stay = move || crate::cpu::pin(cpu).expect("it may run there");
        let busy = Partner::spawn(move |_| {
            stay();
            while is_sleeping.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let sleeper = Partner::spawn(move |_| {
            stay();
            (0..TURNS).for_each(|_| thread::sleep(Duration::from_micros(100)));
            sleeps.store(false, Ordering::Relaxed);
        });
        let recorder = recorder(busy.id, sleeper.id);
        busy.start.send(sleeper.id).expect("it waits");
        sleeper.start.send(busy.id).expect("it waits");
        sleeper.thread.join().expect("no failure");
        busy.thread.join().expect("no failure");
        let Some(mut recorder) = recorder else { return };
        let [busy, sleeper] = [busy.id, sleeper.id].map(|id| id.as_raw_nonzero().get());
        let mut by_timer = 0;
        recorder.read(now(), &mut |record| {
            if let Event::Woke { thread, by } = record.event
                && (record.thread, thread) == (busy, sleeper)
            {
                assert_eq!(by, WokenBy::HardInterrupt, "{record:?}");
                by_timer += 1;
            }
        });
        assert!(by_timer > 0, "no timer has interrupted the busy thread");
    }
}
