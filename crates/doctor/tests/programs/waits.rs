//! Makes a thread wait for each primitive of the standard library. The thread's name says which. Ends
//! with its standard input.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Starts a thread that waits and must not stop waiting.
fn start(name: &str, wait: impl FnOnce() + Send + 'static) {
    let run = || {
        wait();
        std::process::abort();
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).expect("a thread");
}

/// Waits for a condition variable that has been notified `notifications` times before.
fn wait_after(notifications: u32) {
    let (condition, mutex) = (Condvar::new(), Mutex::new(()));
    for _ in 0..notifications {
        condition.notify_one();
    }
    drop(condition.wait(mutex.lock().expect("its only user")));
}

/// Returns whether a thread of this process with this name waits.
fn is_asleep(name: &str) -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs");
    tasks.flatten().any(|task| {
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        read("comm").trim_end() == name && read("stat").contains(") S ")
    })
}

fn main() {
    let mutex: &'static Mutex<()> = Box::leak(Box::default());
    let _mutex = mutex.lock();
    start("mutex", || drop(mutex.lock()));

    // A reader and a writer wait for writers.
    let written: &'static RwLock<()> = Box::leak(Box::default());
    let _written = written.write();
    start("read_lock", || drop(written.read()));
    let crowded: &'static RwLock<()> = Box::leak(Box::default());
    let _crowded = crowded.write();
    start("write_lock", || drop(crowded.write()));
    while !is_asleep("write_lock") {
        thread::yield_now();
    }
    start("crowded_read", || drop(crowded.read()));

    // A writer waits for a reader, and later readers wait for the writer.
    let read: &'static RwLock<()> = Box::leak(Box::default());
    let _read = read.read();
    start("drain_readers", || drop(read.write()));
    while !is_asleep("drain_readers") {
        thread::yield_now();
    }
    start("behind_writer", || drop(read.read()));

    start("condvar", || wait_after(0));
    start("condvar_1", || wait_after(1));
    start("condvar_2", || wait_after(2));
    start("condvar_timed", || {
        let (condition, mutex) = (Condvar::new(), Mutex::new(()));
        drop(condition.wait_timeout(mutex.lock().expect("its only user"), HOUR));
    });
    start("park", thread::park);
    start("park_timed", || thread::park_timeout(HOUR));
    start("sleep", || thread::sleep(HOUR));
    let (_sender, receiver) = channel::<()>();
    start("recv", move || _ = receiver.recv());
    let (_timed_sender, timed_receiver) = channel::<()>();
    start("recv_timed", move || _ = timed_receiver.recv_timeout(HOUR));
    start("barrier", || drop(Barrier::new(2).wait()));
    start("join", || drop(thread::spawn(thread::park).join()));
    start("scope", || {
        thread::scope(|scope| drop(scope.spawn(thread::park)));
    });
    let once: Arc<Once> = Arc::new(Once::new());
    let other = Arc::clone(&once);
    start("initialiser", move || other.call_once(thread::park));
    start("once", move || {
        while !is_asleep("initialiser") {
            thread::yield_now();
        }
        once.call_once(|| {});
    });
    let (mut socket, _peer) = UnixStream::pair().expect("sockets");
    start("socket", move || drop(socket.read(&mut [0])));
    let mut child = Command::new("cat").stdin(Stdio::inherit()).spawn().expect("cat");
    start("child", move || drop(child.wait()));
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("a pipe");
    std::process::exit(0);
}
