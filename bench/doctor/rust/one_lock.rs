//! Fault: several threads add to one table behind one mutex, and each holds the mutex while it
//! computes the value that it adds. So about one thread runs, and the others wait for the mutex.
//! `fixed` gives each thread a table of its own and adds the tables up at the end.
//! `twin` is a pool of workers that wait on a condition variable for work that comes rarely.
//! It is healthy: there is nothing to do while they wait, and no worker waits for another one.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What `sick` takes in total, about.
const TOTAL_US: u64 = 4_200_000;
/// The computing for one item while the thread holds the mutex.
const LOCKED_US: u64 = 50;
/// The computing for one item outside of the mutex.
const OUTSIDE_US: u64 = 3;
/// Entries of the table.
const SLOTS: usize = 256;
/// Workers of the pool in `twin`.
const POOL: usize = 4;
/// The mean time between two jobs in `twin`.
const ARRIVAL_US: u64 = 15_000;
/// The computing for one job in `twin`.
const JOB_US: u64 = 800;
const ROUNDS_PER_US: u64 = 500;
const LIMIT_S: u32 = 30;

type Table = [u64; SLOTS];

struct Plan {
    seed: u64,
    threads: u64,
    /// Items per thread.
    items: u64,
    locked_rounds: u64,
}

fn plan(seed: u64) -> Plan {
    let mut state = seed;
    let locked_us = vary(&mut state, LOCKED_US);
    // 3 to 5 threads.
    let threads = 3 + seed % 3;
    Plan {
        seed,
        threads,
        items: TOTAL_US / (locked_us * threads),
        locked_rounds: locked_us * ROUNDS_PER_US,
    }
}

/// The part of the work that comes before the table.
fn key(plan: &Plan, thread: u64, item: u64) -> u64 {
    mix(plan.seed ^ (thread << 32) ^ item, OUTSIDE_US * ROUNDS_PER_US)
}

/// Computes the value of `key` and adds it to the table.
fn add(plan: &Plan, table: &mut Table, key: u64) {
    let value = mix(key, plan.locked_rounds);
    let slot = &mut table[key as usize % SLOTS];
    *slot = slot.wrapping_add(value);
}

fn digest(table: &Table) -> u64 {
    table.iter().fold(0, |digest, &value| mix(digest ^ value, 2))
}

fn run_sick(plan: &Plan) -> u64 {
    let table = Mutex::new([0; SLOTS]);
    thread::scope(|scope| {
        for thread in 0..plan.threads {
            let table = &table;
            scope.spawn(move || {
                for item in 0..plan.items {
                    let key = key(plan, thread, item);
                    add(plan, &mut table.lock().expect("no thread panics"), key);
                }
            });
        }
    });
    digest(&table.into_inner().expect("no thread panics"))
}

fn run_fixed(plan: &Plan) -> u64 {
    let mut total = [0u64; SLOTS];
    thread::scope(|scope| {
        let fill = |thread| {
            let mut table = [0; SLOTS];
            for item in 0..plan.items {
                add(plan, &mut table, key(plan, thread, item));
            }
            table
        };
        let threads: Vec<_> =
            (0..plan.threads).map(|thread| scope.spawn(move || fill(thread))).collect();
        for thread in threads {
            let table = thread.join().expect("no thread panics");
            for (sum, value) in total.iter_mut().zip(table) {
                *sum = sum.wrapping_add(value);
            }
        }
    });
    digest(&total)
}

/// A queue of jobs; `None` ends one worker.
#[derive(Default)]
struct Pool {
    jobs: Mutex<VecDeque<Option<u64>>>,
    arrival: Condvar,
}

impl Pool {
    fn submit(&self, job: Option<u64>) {
        self.jobs.lock().expect("no thread panics").push_back(job);
        self.arrival.notify_one();
    }

    fn take(&self) -> Option<u64> {
        let mut jobs = self.jobs.lock().expect("no thread panics");
        loop {
            if let Some(job) = jobs.pop_front() {
                return job;
            }
            jobs = self.arrival.wait(jobs).expect("no thread panics");
        }
    }

    /// Works until the pool ends; returns the sum of the results.
    fn work(&self) -> u64 {
        let mut sum = 0u64;
        while let Some(job) = self.take() {
            sum = sum.wrapping_add(mix(job, JOB_US * ROUNDS_PER_US));
        }
        sum
    }
}

fn run_twin(plan: &Plan) -> u64 {
    let pool = Pool::default();
    let mut state = plan.seed;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..POOL).map(|_| scope.spawn(|| pool.work())).collect();
        for job in 0..TOTAL_US / ARRIVAL_US {
            thread::sleep(Duration::from_micros(vary(&mut state, ARRIVAL_US)));
            pool.submit(Some(plan.seed ^ job));
        }
        for _ in 0..POOL {
            pool.submit(None);
        }
        let results = workers.into_iter().map(|worker| worker.join().expect("no thread panics"));
        results.fold(0, u64::wrapping_add)
    })
}

fn main() {
    let (variant, seed) = arguments();
    let plan = plan(seed);
    let result = match variant.as_str() {
        "sick" => run_sick(&plan),
        "fixed" => run_fixed(&plan),
        _ => run_twin(&plan),
    };
    println!("{result:016x}");
}

/// Returns 60 % to 140 % of `base`; `state` decides.
fn vary(state: &mut u64, base: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    base * (60 + (*state >> 33) % 81) / 100
}

/// Does `rounds` steps of integer mixing, each of which needs the one before it.
fn mix(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    }
    x
}

unsafe extern "C" {
    fn alarm(seconds: u32) -> u32;
}

/// Reads the variant and the seed, and sets the alarm that ends a run that hangs.
fn arguments() -> (String, u64) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [variant, seed] = args.as_slice()
        && ["sick", "fixed", "twin"].contains(&variant.as_str())
        && let Ok(seed) = seed.parse()
    {
        // SAFETY: `alarm` takes a number and touches no memory of ours.
        unsafe { alarm(LIMIT_S) };
        return (variant.clone(), seed);
    }
    eprintln!("usage: one_lock sick|fixed|twin SEED");
    std::process::exit(2);
}
