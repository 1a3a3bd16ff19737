//! Wake-ups between two processes that exchange messages: recorded, and inferred.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use contend_doctor::observe::{Config, Observation, observe};
use contend_sys::Pid;
use contend_sys::interrupt::Signals;

/// Number of messages in each direction.
const TURNS: u64 = 100;

/// A shell asks, and its child answers. Each sends only when the other waits for the message, so that
/// each message is a wake-up. If asked to, a third process computes all the time, and wakes none of them.
const SCRIPT: &str = r#"
    exec 3<>"$1/questions" 4<>"$1/answers"
    await_sleep() {
        until read -r stat <"/proc/$1/stat" && [[ $stat == *") S "* ]]; do :; done
    }
    answer() {
        for ((i = 0; i < $1; i++)); do
            read -r -u 3
            await_sleep $$
            echo >&4
        done
    }
    read -r
    if [[ $3 == busy ]]; then
        while :; do :; done &
        busy=$!
    fi
    answer "$2" &
    for ((i = 0; i < $2; i++)); do
        await_sleep $!
        echo >&3
        read -r -u 4
    done
    ${busy:+kill $busy}
"#;

/// Starts the script, which waits for a line of input, and observes it.
fn observed(wakes: bool, is_busy: bool) -> Observation {
    let folder = tempfile::tempdir().expect("a folder");
    let pipes = ["questions", "answers"].map(|name| folder.path().join(name));
    let made = Command::new("mkfifo").args(pipes).status().expect("mkfifo");
    assert!(made.success());
    let mut command = Command::new("bash");
    command.args(["-c", SCRIPT, "bash"]).arg(folder.path()).arg(TURNS.to_string());
    command.arg(if is_busy { "busy" } else { "idle" });
    let mut shell = command.stdin(Stdio::piped()).spawn().expect("a shell");
    let pid = Pid::from_child(&shell);
    let config = Config {
        targets: vec![pid],
        limit: None,
        interval: Duration::from_millis(10),
        switches: true,
        wakes,
        trace: None,
    };
    let signals = Signals::block().expect("signals");
    let observation = observe(&config, &signals, &mut |_| {
        begin(&mut shell);
        ControlFlow::Continue(())
    });
    shell.wait().expect("a child");
    observation.expect("its own child")
}

/// Writes the line for which the script waits, once.
fn begin(shell: &mut Child) {
    if let Some(mut input) = shell.stdin.take() {
        input.write_all(b"\n").expect("it waits");
    }
}

/// Returns the number of wake-ups by waker and woken process.
fn counts(observation: &Observation) -> BTreeMap<(i32, i32), u64> {
    observation.timeline.wakes.iter().map(|(pair, wakes)| (*pair, wakes.count)).collect()
}

/// Without a third process, inference may miss wake-ups, but cannot name a wrong waker. The observations
/// follow one another, because a process that has just been forked may hold pipes of another
/// observation, whose processes would then be observed, too.
#[test]
fn wake_ups_are_exact_if_recorded_and_similar_if_inferred() {
    let observation = observed(true, true);
    if let Some(reason) = observation.no_wakes.as_ref().or(observation.no_switches.as_ref()) {
        eprintln!("skipped: {reason}");
        return;
    }
    assert_eq!(observation.timeline.lost, 0);
    let recorded = counts(&observation);
    check_pairs(&recorded);
    // A process may be asked just before it leaves the CPU, which is not the start of a run.
    let is_exact = |count: &u64| (TURNS - 5..=TURNS).contains(count);
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    assert!(recorded.values().all(is_exact), "{recorded:?}");

    let observation = observed(false, false);
    let reason = observation.no_wakes.as_deref();
    assert_eq!(reason, Some("it was not requested"));
    let inferred = counts(&observation);
    check_pairs(&inferred);
    // The first runs of a new process seem to be wake-ups, too.
    assert!(inferred.values().all(|count| *count <= TURNS + 5), "{inferred:?}");
}

/// Checks that only two processes have woken each other.
fn check_pairs(counts: &BTreeMap<(i32, i32), u64>) {
    let both: BTreeSet<i32> = counts.keys().flat_map(|&(waker, woken)| [waker, woken]).collect();
    assert!(both.len() <= 2, "a third process takes part: {counts:?}");
}
