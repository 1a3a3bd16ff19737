//! Tests that each mechanism by which a task can wait is classified as the right [`Wait`].
//!
//! For each mechanism, a thread of the test waits, and a [`Task`] samples it from outside, like any
//! other thread.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use contend_sys::Pid;
use rustix::event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd, poll};
use rustix::fs::FlockOperation;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use super::target::End;
use super::task::Task;
use super::{Ends, State, Tree, Wait};

/// The objects that the threads wait for. The opposite ends of the pipes and sockets are never read
/// or written.
struct World {
    input: (PipeReader, PipeWriter),
    output: (PipeReader, PipeWriter),
    other: (PipeReader, PipeWriter),
    full: (PipeReader, PipeWriter),
    sockets: (UnixStream, UnixStream),
    locked: Mutex<()>,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let pipe = || std::io::pipe().expect("a pipe");
        let world = Self {
            input: pipe(),
            output: pipe(),
            other: pipe(),
            full: pipe(),
            sockets: UnixStream::pair().expect("sockets"),
            locked: Mutex::new(()),
            folder: tempfile::tempdir().expect("a folder"),
        };
        for mut writer in [&world.output.1, &world.full.1] {
            writer.write_all(&vec![0; 64 * 1024]).expect("an empty pipe has room");
        }
        world
    }

    fn ends(&self) -> Ends {
        Ends {
            input: End::of(own_pid(), self.input.0.as_raw_fd()),
            output: End::of(own_pid(), self.output.1.as_raw_fd()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn own_pid() -> Pid {
    rustix::process::getpid()
}

/// A mechanism: its name, the expected wait, and a function that waits and never returns.
type Case = (&'static str, Wait, fn(&World));

const CASES: &[Case] = &[
    ("read the input", Wait::Starved, |w| read(&w.input.0)),
    ("write the output", Wait::Blocked, |w| write(&w.output.1)),
    ("read another pipe", Wait::Pipe, |w| read(&w.other.0)),
    ("write another pipe", Wait::Pipe, |w| write(&w.full.1)),
    ("open a FIFO", Wait::Pipe, open_fifo),
    ("read a socket", Wait::Network, |w| {
        let _ = (&w.sockets.0).read(&mut [0]);
    }),
    ("accept a connection", Wait::Network, |w| {
        let _ = UnixListener::bind(w.path("socket")).expect("a socket").accept();
    }),
    ("sleep", Wait::Sleep, |_| std::thread::sleep(Duration::from_secs(1_000))),
    ("poll nothing", Wait::Sleep, |_| poll_all(&[])),
    ("read a timer", Wait::Sleep, |_| {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty());
        let _ = rustix::io::read(timer.expect("a timer"), &mut [0; 8]);
    }),
    ("read an event counter", Wait::Lock, |_| {
        let _ = rustix::io::read(counter(), &mut [0; 8]);
    }),
    ("lock a mutex", Wait::Lock, |w| drop(w.locked.lock())),
    ("wait for a thread", Wait::Lock, |_| {
        let _ = std::thread::spawn(|| std::thread::sleep(Duration::from_secs(1_000))).join();
    }),
    ("lock a file", Wait::Lock, |w| {
        let open = || File::create(w.path("lock")).expect("a file");
        let (first, second) = (open(), open());
        rustix::fs::flock(&first, FlockOperation::LockExclusive).expect("free");
        let _ = rustix::fs::flock(&second, FlockOperation::LockExclusive);
    }),
    ("wait for a child", Wait::Child, |w| {
        let mut child = Command::new("cat");
        let input = w.other.0.try_clone().expect("a descriptor");
        let child = child.stdin(input).stdout(Stdio::null()).spawn();
        let _ = child.expect("cat starts").wait();
    }),
    ("poll the input", Wait::Starved, |w| poll_all(&[(w.input.0.as_fd(), PollFlags::IN)])),
    ("poll the output", Wait::Blocked, |w| poll_all(&[(w.output.1.as_fd(), PollFlags::OUT)])),
    ("poll a socket", Wait::Network, |w| poll_all(&[(w.sockets.0.as_fd(), PollFlags::IN)])),
    ("poll another pipe", Wait::Pipe, |w| poll_all(&[(w.other.0.as_fd(), PollFlags::IN)])),
    ("poll a socket and the input", Wait::Network, |w| {
        poll_all(&[(w.input.0.as_fd(), PollFlags::IN), (w.sockets.0.as_fd(), PollFlags::IN)]);
    }),
    ("poll a counter and the input", Wait::Starved, |w| {
        poll_all(&[(counter().as_fd(), PollFlags::IN), (w.input.0.as_fd(), PollFlags::IN)]);
    }),
    ("epoll the input", Wait::Starved, |w| epoll_for(w.input.0.as_fd())),
    ("epoll a socket", Wait::Network, |w| epoll_for(w.sockets.0.as_fd())),
    ("epoll another pipe", Wait::Pipe, |w| epoll_for(w.other.0.as_fd())),
];

fn read(mut pipe: &PipeReader) {
    let _ = pipe.read(&mut [0]);
}

fn write(mut pipe: &PipeWriter) {
    let _ = pipe.write(&[0; 8192]);
}

fn open_fifo(world: &World) {
    let fifo = world.path("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts");
    assert!(made.success());
    let _ = File::open(&fifo);
}

fn counter() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC).expect("a counter")
}

fn poll_all(fds: &[(std::os::fd::BorrowedFd<'_>, PollFlags)]) {
    let mut fds: Vec<_> =
        fds.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    let limit = rustix::event::Timespec { tv_sec: 1_000, tv_nsec: 0 };
    let _ = poll(&mut fds, Some(&limit));
}

fn epoll_for(fd: std::os::fd::BorrowedFd<'_>) {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a set");
    epoll::add(&set, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
        .expect("a registration");
    let mut events = Vec::with_capacity(1);
    let _ = epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None);
}

/// Starts a thread that runs `wait`, and opens a task that samples it.
fn start(world: &Arc<World>, wait: fn(&World)) -> Task {
    let (sender, receiver) = mpsc::channel();
    let world = Arc::clone(world);
    // The thread still waits at the end of the test, and ends with the process.
    std::thread::spawn(move || {
        sender.send(rustix::thread::gettid()).expect("the receiver is alive");
        wait(&world);
    });
    Task::open(own_pid(), receiver.recv().expect("the thread has started")).expect("alive")
}

#[test]
fn every_wait_is_classified_correctly() {
    let world = Arc::new(World::new());
    let _held = world.locked.lock().expect("free");
    let ends = world.ends();
    let mut buffer = [0; 4096];
    let mut tasks: Vec<_> =
        CASES.iter().map(|(name, wait, run)| (name, *wait, start(&world, *run))).collect();
    // A waiting thread stays in its wait, however often it is sampled.
    for (name, expected, task) in &mut tasks {
        let expected = State::Waiting(*expected);
        let mut in_a_row = 0;
        for _ in 0..20_000 {
            let state = task.sample(&ends, &mut buffer).expect("alive");
            in_a_row = if state == expected { in_a_row + 1 } else { 0 };
            if in_a_row == 20 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(in_a_row, 20, "{name}: {:?} instead of {expected:?}", task.state);
    }
}

#[test]
fn a_stopped_process_waits_for_job_control() {
    let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
    let pid = Pid::from_child(&child);
    let mut tree = Tree::open(pid).expect("alive");
    rustix::process::kill_process(pid, contend_sys::Signal::STOP).expect("a child");
    let mut buffer = [0; 8192];
    let mut becomes = |expected: Wait| {
        (0..20_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            tree.refresh(&mut buffer);
            tree.sample(Duration::from_millis(1), &mut buffer);
            tree.state() == State::Waiting(expected)
        })
    };
    assert!(becomes(Wait::Stopped));
    rustix::process::kill_process(pid, contend_sys::Signal::CONT).expect("a child");
    assert!(becomes(Wait::Sleep), "the call that the kernel restarts is the same wait");
    child.kill().expect("alive");
    child.wait().expect("a child");
}

/// Checks that a stage with a zombie child is still found starved. Some commands, such as `xargs`,
/// reap a child only when they start the next one. Until then, the `syscall` file of the zombie
/// reads like that of a task waiting for a page.
#[test]
fn a_zombie_of_a_stage_does_not_hide_what_the_stage_waits_for() {
    let script = "sleep 0.05 & read -r line";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh starts");
    let mut tree = Tree::open(Pid::from_child(&child)).expect("alive");
    let mut buffer = [0; 8192];
    let step = Duration::from_millis(1);
    let mut had_child = false;
    let mut starved = 0;
    // While the programs are loaded, they may really wait for the disk.
    let mut disk_before = Duration::ZERO;
    for _ in 0..20_000 {
        std::thread::sleep(step);
        tree.refresh(&mut buffer);
        tree.sample(step, &mut buffer);
        had_child |= tree.process_ids().count() > 1;
        let alone = had_child && tree.process_ids().count() == 1;
        if !alone {
            disk_before = tree.seen.waited(Wait::Disk);
        }
        let is_starved = tree.state() == State::Waiting(Wait::Starved);
        starved = if alone && is_starved { starved + 1 } else { 0 };
        if starved == 50 {
            break;
        }
    }
    assert_eq!(starved, 50, "{:?}", tree.state());
    assert_eq!(tree.seen.waited(Wait::Disk), disk_before);
    drop(child.stdin.take());
    child.wait().expect("a child");
}
