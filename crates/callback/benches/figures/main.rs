//! Measures the costs of callback threads on this machine: memory, time, lateness of timers, and
//! memory left afterwards.
//!
//! ```text
//! cargo bench -p contend-callback [-- TEXT]
//! ```
//!
//! Most results are the median, minimum and maximum over several rounds. `cycles` runs only one
//! round, and reports the median, minimum and maximum over its cycles, and the growth between two of
//! them. Results that are meant to be compared are measured in the same rounds. TEXT selects the
//! measurements whose names contain it.

#![allow(clippy::print_stdout, reason = "it prints its measurements")]
#![allow(clippy::unwrap_used, reason = "a benchmark that fails ends")]
#![allow(missing_docs, reason = "a program")]

mod between;
mod late;
mod memory;
mod one;

use std::sync::mpsc;
use std::time::Duration;

use contend_callback::{Context, Next, Receptor};

/// A measurement that can be selected by name; it may print several rows.
struct Figure {
    name: &'static str,
    rounds: usize,
    /// Runs `rounds` rounds and prints the result rows.
    measure: fn(rounds: usize),
}

const TABLE: &[Figure] = &[
    Figure { name: "bytes", rounds: 3, measure: memory::waiting },
    Figure { name: "left", rounds: 3, measure: memory::remaining },
    Figure { name: "cycles", rounds: 1, measure: memory::cycles },
    Figure { name: "spawn", rounds: 9, measure: one::spawn },
    Figure { name: "round-trip", rounds: 9, measure: one::round_trip },
    Figure { name: "one-way", rounds: 9, measure: one::one_way },
    Figure { name: "between-spinning", rounds: 9, measure: between::spinning },
    Figure { name: "between-parked", rounds: 9, measure: between::parked },
    Figure { name: "late", rounds: 3, measure: late::timers },
];

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    println!("{:<44} {:>10} {:>22}", "", "median", "least … most");
    for figure in TABLE {
        if wanted.is_empty() || wanted.iter().any(|text| figure.name.contains(text.as_str())) {
            (figure.measure)(figure.rounds);
        }
    }
}

/// Prints the median, minimum and maximum of the samples, and returns the median. Sorts `samples`,
/// which must not be empty.
fn print_row(name: &str, unit: &str, samples: &mut [f64]) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let median = samples[samples.len() / 2];
    let (least, most) = (samples[0], samples[samples.len() - 1]);
    println!("{name:<44} {median:>10.2} {least:>10.2} …{most:>10.2} {unit}");
    median
}

/// Starts a runtime with `workers` Workers that spin for `spin` before they sleep.
fn runtime(workers: usize, spin: Duration) -> Receptor {
    Receptor::builder().workers(workers).spin(spin).start().unwrap()
}

/// Runs `body` in a callback on the given Worker and returns the value that `body` sends.
fn on_worker<T: Send + 'static>(
    receptor: &Receptor,
    worker: usize,
    body: impl FnOnce(&mut Context<'_>, mpsc::Sender<T>) -> Next + Send + 'static,
) -> T {
    let (sender, receiver) = mpsc::channel();
    receptor.spawn_on(worker, |context: &mut Context<'_>| body(context, sender)).unwrap();
    receiver.recv().unwrap()
}

/// Returns the nanoseconds per operation if `count` operations took `time`.
fn ns_per_operation(time: Duration, count: u64) -> f64 {
    time.as_secs_f64() * 1e9 / count as f64
}
