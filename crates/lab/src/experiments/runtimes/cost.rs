//! Expected times of cases in every runtime.
//!
//! Each sample of memory starts a new probe, so the start of its runtime counts every time. The
//! first case that uses a probe compiles it, unless an earlier run has.

use std::time::Duration;

use contend_record::parameters::Parameters;

use super::program::{Program, caches};
use super::table::{DOCUMENT, Row, Source};
use super::{N, row};
use crate::engine::cost::{Cost, SharedCost};

/// Expected times of a runtime, as measured on one machine.
struct RuntimeCost {
    runtime: &'static str,
    /// Time from the start of the probe to its first answer, in milliseconds.
    start_ms: u64,
    /// Time to compile the probe, in milliseconds; 0 for scripts.
    compile_ms: u64,
    /// Time to create and to end a unit that is not a kernel task, in microseconds.
    unit_us: u64,
}

/// Costs of the runtimes whose probes are separate programs. Compiling a probe in Go takes long
/// because it compiles the standard library.
const RUNTIMES: [RuntimeCost; 7] = [
    RuntimeCost { runtime: "Go", start_ms: 20, compile_ms: 18_000, unit_us: 10 },
    RuntimeCost { runtime: "Java", start_ms: 500, compile_ms: 3000, unit_us: 5 },
    RuntimeCost { runtime: "C++", start_ms: 10, compile_ms: 3000, unit_us: 1 },
    RuntimeCost { runtime: "Node", start_ms: 200, compile_ms: 0, unit_us: 5 },
    RuntimeCost { runtime: "Python", start_ms: 200, compile_ms: 0, unit_us: 60 },
    RuntimeCost { runtime: "BEAM", start_ms: 900, compile_ms: 1000, unit_us: 8 },
    RuntimeCost { runtime: "Elixir", start_ms: 2500, compile_ms: 4000, unit_us: 30 },
];

/// Cost of every other runtime, whose probe is this program.
const BUILT_IN: RuntimeCost = RuntimeCost { runtime: "", start_ms: 20, compile_ms: 0, unit_us: 1 };

/// Time to create and to end a unit that is a kernel task.
const TASK_TIME: Duration = Duration::from_micros(400);

/// Total time to read memory until it is stable, before the units of a sample are created and after
/// they have ended, in milliseconds.
const READ_MS: u64 = 250;
/// Time to exchange messages until a runtime is warm, in milliseconds.
const WARM_UP_MS: u64 = 200;
/// Time of a round-trip sample, in milliseconds.
const ROUND_TRIPS_MS: u64 = 100;
/// Time of one run of the program that `runtime/document` starts, in milliseconds. The program
/// sleeps and then reads memory again.
const EVALUATION_MS: u64 = 6500;

fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn of_runtime(row: &Row) -> &'static RuntimeCost {
    RUNTIMES.iter().find(|known| known.runtime == row.runtime).unwrap_or(&BUILT_IN)
}

fn start(row: &Row) -> Duration {
    millis(of_runtime(row).start_ms)
}

/// Returns the cost of compiling a row's probe, which cases share. Returns `None` if nothing has to
/// be compiled: the probe is built in or a script, or an earlier run has compiled it.
fn compilation(row: &Row) -> Option<SharedCost> {
    let Source::Program { program, .. } = row.source else { return None };
    let known = of_runtime(row);
    let is_needed = known.compile_ms > 0 && !was_compiled(program);
    is_needed.then_some(SharedCost { name: known.runtime, time: millis(known.compile_ms) })
}

/// Returns whether the cache has a compiled probe with the program's name. Does not check which
/// toolchain compiled it, because that takes as long as starting the toolchain.
fn was_compiled(program: &Program) -> bool {
    let prefix = format!("{}-", program.files[0].0);
    let entries = caches().and_then(|folder| std::fs::read_dir(folder).ok());
    entries
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)))
}

/// Returns the cost of a case of `runtime/memory`.
pub fn memory(parameters: &Parameters) -> Cost {
    let Ok(row) = row(parameters) else { return Cost::DEFAULT };
    let n = parameters.number(N.name).unwrap_or(1);
    let each =
        if row.task.is_some() { TASK_TIME } else { Duration::from_micros(of_runtime(row).unit_us) };
    let waiting = row.max_create_time.map_or(Duration::ZERO, |_| row.hold(n));
    let sample = start(row) + millis(READ_MS) + each.mul_f64(n as f64) + waiting;
    Cost { setup: millis(20), sample, shared: compilation(row) }
}

/// Returns the cost of a case of `runtime/round-trip`.
pub fn round_trip(parameters: &Parameters) -> Cost {
    let Ok(row) = row(parameters) else { return Cost::DEFAULT };
    let setup = millis(WARM_UP_MS) + start(row);
    Cost { setup, sample: millis(ROUND_TRIPS_MS), shared: compilation(row) }
}

/// Returns the cost of a case of `runtime/document`.
pub fn document(_: &Parameters) -> Cost {
    let sample = start(&DOCUMENT) + millis(EVALUATION_MS);
    Cost { setup: millis(20), sample, shared: compilation(&DOCUMENT) }
}
