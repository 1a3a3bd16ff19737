//! Tests of whole runtimes, which also run with `AddressSanitizer`.

use std::collections::HashSet;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::{Address, Context, Id, Interest, NoReply, Receptor, SendError, Source};

/// Time after which a test that waits for something fails.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Delay of units that never wake.
const FOREVER: Duration = Duration::from_hours(10_000);

/// Starts a runtime with one Worker and 1 MiB of memory.
fn small_runtime() -> Receptor {
    Receptor::builder().workers(1).memory(1 << 20).start().expect("a thread")
}

/// A value that owns a heap allocation and counts its drops.
struct Owner(String, Arc<AtomicU64>);

impl Drop for Owner {
    fn drop(&mut self) {
        assert!(self.0.starts_with("unit"), "this was never written: {}", self.0);
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// Starts a unit that owns an allocation and never wakes.
fn spawn_sleeper(receptor: &Receptor, dropped: &Arc<AtomicU64>) -> Id {
    let owner = Owner("unit".into(), Arc::clone(dropped));
    let waits = move |context: &mut Context<'_>| {
        let text = Box::new(owner);
        context.after(FOREVER, move |context| {
            drop(text);
            context.end()
        })
    };
    receptor.spawn(waits).expect("room")
}

/// Starts a unit that receives numbers and adds them to `got`.
fn spawn_receiver(receptor: &Receptor, got: &Arc<AtomicU64>) -> Address<u64> {
    let got = Arc::clone(got);
    let begin = move |context: &mut Context<'_, u64>| {
        context.receive(move |context, message| {
            got.fetch_add(message, Ordering::SeqCst);
            context.keep_receiving()
        })
    };
    receptor.spawn_receiving(begin).expect("room")
}

/// Runs a closure in a callback, which the Worker runs after all earlier messages, and returns its
/// result.
fn on_worker<T: Send + 'static>(
    receptor: &Receptor,
    body: impl FnOnce(&mut Context<'_>) -> T + Send + 'static,
) -> T {
    let callback = move |context: &mut Context<'_>, reply: crate::Reply<T>| {
        reply.send(body(context));
        context.end()
    };
    receptor.spawn_reply(callback).expect("room").wait().expect("an answer")
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < TIMEOUT, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Cancels each given unit twice: first from outside the runtime, then in a callback.
fn cancel_all(receptor: &Receptor, ids: &[Id]) {
    for &id in ids {
        receptor.cancel(id);
    }
    let ids = ids.to_vec();
    on_worker(receptor, move |context| ids.into_iter().for_each(|id| context.cancel(id)));
}

#[test]
fn ids_of_a_dropped_runtime_stay_stale_after_256_more_runtimes() {
    let dropped = Arc::new(AtomicU64::new(0));
    let first = small_runtime();
    let old: Vec<Id> = (0..50).map(|_| spawn_sleeper(&first, &dropped)).collect();
    drop(first);
    assert_eq!(dropped.load(Ordering::SeqCst), 50);
    for _ in 0..255 {
        drop(small_runtime());
    }
    let last = small_runtime();
    let unit = spawn_sleeper(&last, &dropped);
    cancel_all(&last, &old);
    wait_until(|| last.alive() == 1);
    assert_eq!(dropped.load(Ordering::SeqCst), 50);
    cancel_all(&last, &[unit]);
    wait_until(|| last.alive() == 0);
    assert_eq!(dropped.load(Ordering::SeqCst), 51);
}

#[test]
fn ids_are_unique_across_300_runtimes() {
    let dropped = Arc::new(AtomicU64::new(0));
    let mut ids: HashSet<Id> = HashSet::new();
    for round in 0..300 {
        let receptor = small_runtime();
        let new: Vec<Id> = (0..3).map(|_| spawn_sleeper(&receptor, &dropped)).collect();
        let old: Vec<Id> = ids.iter().copied().take(100).collect();
        cancel_all(&receptor, &old);
        cancel_all(&receptor, &new[..1]);
        wait_until(|| receptor.alive() == 2);
        assert!(new.into_iter().all(|id| ids.insert(id)), "an id came again in round {round}");
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 3 * 300);
}

#[test]
fn ids_of_257_concurrent_runtimes_are_distinct() {
    let (dropped, got) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let all: Vec<Receptor> = (0..257).map(|_| small_runtime()).collect();
    let ids: Vec<Id> = all.iter().map(|receptor| spawn_sleeper(receptor, &dropped)).collect();
    let receivers: Vec<Address<u64>> =
        all.iter().map(|receptor| spawn_receiver(receptor, &got)).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 257);
    for at in [0, 1, 128, 255, 256] {
        let others: Vec<Id> = ids.iter().copied().filter(|&id| id != ids[at]).collect();
        cancel_all(&all[at], &others);
        let foreign = receivers[(at + 1) % 257];
        assert!(matches!(all[at].send(foreign, 1), Err(SendError::Ended(1))));
        assert!(matches!(all[at].try_send(foreign, 1), Err(SendError::Ended(1))));
        assert!(matches!(all[at].send_unbounded(foreign, 1), Err(SendError::Ended(1))));
        let sent = on_worker(&all[at], move |context| context.send(foreign, 1));
        assert!(matches!(sent, Err(SendError::Ended(1))));
    }
    for receptor in &all {
        wait_until(|| receptor.alive() == 2);
    }
    assert_eq!((dropped.load(Ordering::SeqCst), got.load(Ordering::SeqCst)), (0, 0));
    all[256].cancel(ids[256]);
    wait_until(|| all[256].alive() == 1);
    drop(all);
    assert_eq!(dropped.load(Ordering::SeqCst), 257);
}

/// Checks that the next runtime refuses the source, although it usually gets the same Worker
/// number.
#[test]
fn a_source_of_a_dropped_runtime_is_refused() {
    let (sender, sources) = mpsc::channel::<Source<UnixStream>>();
    let first = small_runtime();
    let (socket, _other) = UnixStream::pair().expect("sockets");
    on_worker(&first, move |context| sender.send(context.register(socket).expect("a socket")))
        .expect("somebody waits");
    drop(first);
    let source = sources.recv().expect("it was sent");
    let second = small_runtime();
    let answer = second.spawn_reply(move |context, reply| {
        context.when_ready(source, Interest::Write, move |context, _| {
            reply.send(());
            context.end()
        })
    });
    assert_eq!(answer.expect("room").wait(), Err(NoReply::Ended));
}

/// Returns the names in backticks in `page` that look like paths of tests.
fn named_tests(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|name| name.contains("tests::") || name.contains("models::")).collect()
}

/// Adds the names of all test functions in the files of a folder and its subfolders to `names`.
fn tests_in(folder: &Path, names: &mut HashSet<String>) {
    for entry in
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            tests_in(&entry, names);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry).expect("text");
            for test in text.split("#[test]").skip(1) {
                let name = test.split_once("fn ").expect("a function").1;
                let end = name.find('(').expect("its parameters");
                names.insert(name[..end].to_string());
            }
        }
    }
}

#[test]
fn every_test_named_in_soundness_md_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("SOUNDNESS.md")).expect("the page");
    let mut existing = HashSet::new();
    for folder in ["src", "tests"] {
        tests_in(&root.join(folder), &mut existing);
    }
    let named = named_tests(&page);
    assert!(named.len() >= 20, "the page names {} tests", named.len());
    for name in named {
        let function = name.rsplit("::").next().expect("a name");
        assert!(existing.contains(function), "SOUNDNESS.md names {name}, which does not exist");
    }
    for heading in page.lines().filter_map(|line| line.strip_prefix("## Invariant")) {
        let section = page.split(heading).nth(1).and_then(|rest| rest.split("\n## ").next());
        let tests = section.map_or(0, |section| named_tests(section).len());
        assert!(tests > 0, "the invariant{heading} has no test");
    }
}
