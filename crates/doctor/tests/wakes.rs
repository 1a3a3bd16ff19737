//! Wake-ups between two processes that exchange messages: recorded, and inferred.

use std::collections::BTreeMap;
use std::io::Write as _;
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
    [[ $3 == busy ]] && while :; do :; done & busy=$!
    answer "$2" &
    for ((i = 0; i < $2; i++)); do
        await_sleep $!
        echo >&3
        read -r -u 4
    done
    kill $busy
"#;

/// Starts the script, which waits for a line of input, and observes it.
fn observed(wakes: bool, is_busy: bool) -> (i32, Observation) {
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
        quota: None,
    };
    let signals = Signals::block().expect("signals");
    let mut start = |_| begin(&mut shell);
    let observation = observe(&config, &signals, &mut start).expect("its own child");
    shell.wait().expect("a child");
    (pid.as_raw_nonzero().get(), observation)
}

/// Writes the line for which the script waits, once.
fn begin(shell: &mut Child) {
    if let Some(mut input) = shell.stdin.take() {
        input.write_all(b"\n").expect("it waits");
    }
}

/// Returns the number of wake-ups to and from the shell, by the other thread.
fn with_others(shell: i32, observation: &Observation) -> BTreeMap<i32, [u64; 2]> {
    let mut counts: BTreeMap<i32, [u64; 2]> = BTreeMap::new();
    for (&(waker, woken), wakes) in &observation.timeline.wakes {
        match (waker == shell, woken == shell) {
            (true, false) => counts.entry(woken).or_default()[0] += wakes.count,
            (false, true) => counts.entry(waker).or_default()[1] += wakes.count,
            _ => panic!("{waker} woke {woken} {} times", wakes.count),
        }
    }
    counts
}

#[test]
fn recorded_wake_ups_are_exact() {
    let (shell, observation) = observed(true, true);
    if let Some(reason) = &observation.no_wakes {
        eprintln!("skipped: {reason}");
        return;
    }
    assert_eq!(observation.timeline.lost, 0);
    let counts = with_others(shell, &observation);
    let counts: Vec<[u64; 2]> = counts.into_values().collect();
    assert_eq!(counts.len(), 1, "only one other process takes part: {counts:?}");
    for count in counts[0] {
        // A process may be asked just before it leaves the CPU, which is not the start of a run.
        assert!((TURNS - 5..=TURNS).contains(&count), "{counts:?}");
    }
}

#[test]
fn inferred_wake_ups_are_similar_without_a_busy_neighbour() {
    let (shell, observation) = observed(false, false);
    assert!(observation.no_wakes.is_some());
    if let Some(reason) = &observation.no_switches {
        eprintln!("skipped: {reason}");
        return;
    }
    eprintln!("{:?}", observation.timeline.wakes);
    let (_, busy) = observed(false, true);
    eprintln!("{:?}", busy.timeline.wakes);
    let (_, busy) = observed(true, true);
    eprintln!("{:?}", busy.timeline.wakes);
    let counts = with_others(shell, &observation);
    panic!("{counts:?}");
}
