//! Tests supervisors on a manual clock.

use super::*;
use crate::supervisor::{Restart, Strategy as RestartStrategy, Supervisor};

const NS_PER_MS: u64 = 1_000_000;
/// Accepted lateness of a timer: two ticks, in nanoseconds. A timer fires at the first tick at or
/// after its due time, so it is never early and less than one tick late; the rest is slack.
const TOLERANCE_NS: u64 = 2 << 14;

type Starts = Arc<Mutex<Vec<(usize, u64)>>>;

/// Adds a child that fails `lives(n)` nanoseconds after its nth start, counted from 1. `starts`
/// logs the child's number and the time of each start.
fn failing(
    supervisor: Supervisor,
    child: usize,
    restart: Restart,
    lives: impl Fn(usize) -> u64 + Send + 'static,
    starts: &Starts,
) -> Supervisor {
    let (starts, mut times) = (Arc::clone(starts), 0);
    supervisor.child(restart, move |context| {
        crate::sync::lock(&starts).push((child, context.now()));
        times += 1;
        context.spawn_after(Duration::from_nanos(lives(times)), |context| context.fail("as asked"))
    })
}

/// Runs the supervisor for `time` nanoseconds. Returns the reason for its end, or `None` if it has
/// not ended by then.
fn run(supervisor: Supervisor, time: u64) -> Option<Reason> {
    let mut machine = Machine::new();
    let mut context = Context::<Never>::new(&mut machine.core);
    let id = supervisor.spawn(&mut context).expect("room");
    machine.add(id.0);
    machine.turn();
    while let Some(next) = machine.core.next_due()
        && machine.now.load(Ordering::Relaxed) + next < time
    {
        machine.now.fetch_add(next.max(1), Ordering::Relaxed);
        machine.turn();
    }
    let seen = crate::sync::lock(&machine.log).clone();
    seen.into_iter().find_map(|seen| match seen {
        Event::Ended(0, reason) => Some(reason),
        _ => None,
    })
}

/// Returns the times between successive starts of a child, in nanoseconds.
fn gaps(starts: &Starts, child: usize) -> Vec<u64> {
    let starts = crate::sync::lock(starts);
    let own: Vec<u64> =
        starts.iter().filter(|start| start.0 == child).map(|start| start.1).collect();
    own.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Asserts that each gap is at least the wanted one, and at most four ticks longer. If there are
/// more gaps than wanted ones or vice versa, ignores the rest. Times are in nanoseconds.
fn assert_gaps(gaps: &[u64], wanted: impl IntoIterator<Item = u64>) {
    for (n, (gap, wanted)) in gaps.iter().zip(wanted).enumerate() {
        assert!(
            (wanted..=wanted + 2 * TOLERANCE_NS).contains(gap),
            "gap {n} of {gaps:?} is not {wanted}"
        );
    }
}

#[test]
fn restart_delays_double_up_to_the_maximum() {
    let starts = Starts::default();
    let hour = Duration::from_hours(1);
    let supervisor = Supervisor::new(RestartStrategy::OneForOne).limit(1_000_000, hour);
    let supervisor = failing(supervisor, 0, Restart::Permanent, |_| 0, &starts);
    assert_eq!(run(supervisor, 1_000 * NS_PER_MS), None);
    let gaps = gaps(&starts, 0);
    assert_gaps(&gaps, [0, 1, 2, 4, 8, 16, 32, 64, 100, 100, 100].map(|ms| ms * NS_PER_MS));
    // The child is restarted 8 times in the first 127 ms, then once every 100 ms.
    assert_eq!(gaps.len(), 8 + 8, "{gaps:?}");
}

#[test]
fn restart_delays_follow_the_configured_backoff() {
    let wanted =
        [(3, 20, [0, 3, 6, 12, 20, 20]), (0, 0, [0; 6]), (50, 10, [0, 10, 10, 10, 10, 10])];
    for (first, longest, wanted) in wanted {
        let starts = Starts::default();
        let [first, longest] = [first, longest].map(Duration::from_millis);
        let supervisor = Supervisor::new(RestartStrategy::OneForOne)
            .limit(20, Duration::from_hours(1))
            .backoff(first, longest);
        let supervisor = failing(supervisor, 0, Restart::Transient, |_| 0, &starts);
        let reason = run(supervisor, 10_000 * NS_PER_MS).expect("it gives up");
        assert!(reason.to_string().contains("too many restarts"), "{reason}");
        let gaps = gaps(&starts, 0);
        assert_gaps(&gaps, wanted.map(|ms| ms * NS_PER_MS));
        assert_eq!(gaps.len(), 20);
    }
}

#[test]
fn a_child_that_outlives_the_maximum_delay_resets_the_backoff() {
    let starts = Starts::default();
    let supervisor =
        Supervisor::new(RestartStrategy::OneForOne).limit(1_000, Duration::from_hours(1));
    // After its fifth start, the child lives for longer than the maximum delay, which resets the
    // back-off.
    let lives = |times| if times == 5 { 101 * NS_PER_MS } else { 0 };
    let supervisor = failing(supervisor, 0, Restart::Permanent, lives, &starts);
    assert_eq!(run(supervisor, 200 * NS_PER_MS), None);
    assert_gaps(&gaps(&starts, 0), [0, 1, 2, 4, 101, 1, 2, 4].map(|ms| ms * NS_PER_MS));
}

#[test]
fn other_children_are_supervised_during_a_restart_delay() {
    let starts = Starts::default();
    let second = Duration::from_secs(1);
    let supervisor = Supervisor::new(RestartStrategy::OneForOne)
        .limit(1_000, Duration::from_hours(1))
        .backoff(second, second);
    let supervisor = failing(supervisor, 0, Restart::Permanent, |_| 0, &starts);
    // A child that fails every 2 s has lived for longer than the delay, and is restarted at once.
    let supervisor = failing(supervisor, 1, Restart::Permanent, |_| 2_000 * NS_PER_MS, &starts);
    assert_eq!(run(supervisor, 9_000 * NS_PER_MS), None);
    assert_gaps(&gaps(&starts, 0), [0, 1_000, 1_000, 1_000].map(|ms| ms * NS_PER_MS));
    assert_gaps(&gaps(&starts, 1), [2_000, 2_000, 2_000].map(|ms| ms * NS_PER_MS));
    assert_eq!(gaps(&starts, 1).len(), 4);
}

#[test]
fn children_restarted_together_start_in_order_after_the_delay() {
    for (whom, wanted) in [
        (RestartStrategy::OneForAll, [0, 1, 2, 0, 1, 2, 0, 1, 2]),
        (RestartStrategy::RestForOne, [0, 1, 2, 1, 2, 1, 2, 1, 2]),
    ] {
        let starts = Starts::default();
        let mut supervisor = Supervisor::new(whom)
            .limit(1_000, Duration::from_hours(1))
            .backoff(Duration::from_millis(10), Duration::from_millis(10));
        for child in 0..3 {
            let lives = move |_| if child == 1 { 0 } else { 1 << 50 };
            supervisor = failing(supervisor, child, Restart::Permanent, lives, &starts);
        }
        assert_eq!(run(supervisor, 25 * NS_PER_MS), None);
        let starts = crate::sync::lock(&starts).clone();
        let order: Vec<usize> = starts.iter().map(|start| start.0).collect();
        assert_eq!(order[..wanted.len()], wanted, "{whom:?}");
        let third = starts.iter().filter(|start| start.0 == 1).nth(2).expect("three starts").1;
        let with_it = starts.iter().filter(|start| start.1 == third).count();
        assert_eq!(
            (with_it, third >= 10 * NS_PER_MS),
            (if whom == RestartStrategy::OneForAll { 3 } else { 2 }, true)
        );
    }
}

#[test]
fn the_restart_limit_uses_the_runtime_s_clock() {
    for (lives, gives_up) in [(999 * NS_PER_MS, true), (1_100 * NS_PER_MS, false)] {
        let starts = Starts::default();
        let supervisor =
            Supervisor::new(RestartStrategy::OneForOne).limit(5, Duration::from_secs(5));
        let supervisor = failing(supervisor, 0, Restart::Permanent, move |_| lives, &starts);
        assert_eq!(run(supervisor, 60_000 * NS_PER_MS).is_some(), gives_up, "one each {lives} ns");
    }
}
