//! Round trips between two Workers, compared with the same exchange between bare threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contend_callback::{Address, Context, Receptor};
use rustix::thread::futex;

use super::{ns_per_operation, on_worker, print_row, runtime};

type Ping = (Address<u64>, u64);

/// Returns the mean time of a message round trip between Workers 0 and 1, in nanoseconds.
fn round_trip(receptor: &Receptor, trips: u64) -> f64 {
    let pong = on_worker(receptor, 1, |context, sender| {
        let callback = |context: &mut Context<'_, Ping>, (from, left): Ping| {
            context.send(from, left).unwrap();
            if left == 0 { context.end() } else { context.keep_receiving() }
        };
        sender.send(context.spawn_handler(callback).unwrap()).unwrap();
        context.end()
    });
    let took = on_worker(receptor, 0, move |context, sender| {
        let begun = Instant::now();
        let callback = move |context: &mut Context<'_, u64>, left| {
            if left == 0 {
                sender.send(begun.elapsed()).unwrap();
                return context.end();
            }
            let back = context.address();
            context.send(pong, (back, left - 1)).unwrap();
            context.keep_receiving()
        };
        let ping = context.spawn_handler(callback).unwrap();
        context.send(ping, trips).unwrap();
        context.end()
    });
    ns_per_operation(took, trips)
}

#[repr(align(128))]
struct Line(AtomicU64);

/// Returns the mean time in nanoseconds for two spinning threads to pass a cache line to each other
/// and back.
fn cache_line(trips: u64) -> f64 {
    let line = Line(AtomicU64::new(0));
    let play = |own: u64| {
        for trip in 0..trips {
            while line.0.load(Ordering::Acquire) != 2 * trip + own {
                std::hint::spin_loop();
            }
            line.0.store(2 * trip + own + 1, Ordering::Release);
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| play(1));
        play(0);
    });
    ns_per_operation(begun.elapsed(), trips)
}

/// Returns the mean round-trip time, in nanoseconds, of two threads on the given CPUs that wake
/// each other through futexes.
fn futexes(trips: u64, cpus: [usize; 2]) -> f64 {
    let words = [AtomicU32::new(0), AtomicU32::new(0)];
    let wake = |word: &AtomicU32| {
        word.store(1, Ordering::Release);
        let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
    };
    let wait = |word: &AtomicU32| {
        while word.swap(0, Ordering::Acquire) == 0 {
            let _ = futex::wait(word, futex::Flags::PRIVATE, 0, None);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            contend_sys::cpu::pin(cpus[1]).unwrap();
            for _ in 0..trips {
                wait(&words[1]);
                wake(&words[0]);
            }
        });
        let first = scope.spawn(|| {
            contend_sys::cpu::pin(cpus[0]).unwrap();
            let begun = Instant::now();
            for _ in 0..trips {
                wake(&words[1]);
                wait(&words[0]);
            }
            ns_per_operation(begun.elapsed(), trips)
        });
        first.join().unwrap()
    })
}

/// Runs `bare` and `ours`, which return nanoseconds, one after the other in each round. Prints
/// their times, in rows called `names`, and the ratio `ours / bare`.
fn compare(
    rounds: usize,
    names: [&str; 2],
    mut bare: impl FnMut() -> f64,
    mut ours: impl FnMut() -> f64,
) {
    let (mut all_bare, mut all_ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (bare, ours) = (bare(), ours());
        all_bare.push(bare);
        all_ours.push(ours);
        ratios.push(ours / bare);
    }
    print_row(names[0], "ns", &mut all_bare);
    print_row(names[1], "ns", &mut all_ours);
    print_row("  times that", "×", &mut ratios);
}

pub fn spinning(rounds: usize) {
    let receptor = runtime(2, Duration::from_millis(10));
    compare(
        rounds,
        ["cache line to another CPU and back", "round trip between Workers that spin"],
        || cache_line(200_000),
        || round_trip(&receptor, 200_000),
    );
}

/// The CPUs to which two threads or Workers are pinned, which may be the same.
struct Placement {
    words: &'static str,
    cpus: [usize; 2],
}

/// Returns the placements to measure: both threads on one CPU and, if this process may use two,
/// each on its own CPU.
fn placements() -> Vec<Placement> {
    let cpus = contend_sys::cpu::allowed_list();
    let same = Placement { words: "on one CPU", cpus: [cpus[0]; 2] };
    let two = cpus.get(1).map(|&other| Placement { words: "on two", cpus: [cpus[0], other] });
    [same].into_iter().chain(two).collect()
}

/// Runs `body` while threads that use only otherwise idle time keep the given CPUs awake: an idle
/// CPU takes many times the measured time to wake up, and that time varies.
fn with_busy_cpus<T>(cpus: [usize; 2], body: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for cpu in cpus.into_iter().take(if cpus[0] == cpus[1] { 1 } else { 2 }) {
            let done = &done;
            scope.spawn(move || {
                contend_sys::cpu::pin(cpu).unwrap();
                contend_sys::cpu::set_idle_policy().unwrap();
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = body();
        done.store(true, Ordering::Relaxed);
        result
    })
}

pub fn parked(rounds: usize) {
    for Placement { words, cpus } in placements() {
        let receptor = runtime(2, Duration::ZERO);
        for (worker, cpu) in cpus.into_iter().enumerate() {
            let pinned = on_worker(&receptor, worker, move |context, sender| {
                sender.send(contend_sys::cpu::pin(cpu)).unwrap();
                context.end()
            });
            pinned.unwrap();
        }
        compare(
            rounds,
            [
                &format!("futex wake-up and back, {words}"),
                &format!("round trip of Workers that sleep, {words}"),
            ],
            || with_busy_cpus(cpus, || futexes(10_000, cpus)),
            || with_busy_cpus(cpus, || round_trip(&receptor, 10_000)),
        );
    }
}
