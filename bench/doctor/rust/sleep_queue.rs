//! Fault: the consumer polls its queue and sleeps for about 1 ms whenever the queue is empty.
//! The producer needs each reply for its next job, so every job pays for one such sleep.
//! `fixed` sends the jobs through a channel, which wakes the consumer at once.
//! `twin` is a thread that computes and a sampler that looks at its progress once per period.
//! It is healthy: the clock decides when the sampler works, and nobody waits for the sampler.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// What `sick` takes in total, about.
const TOTAL_US: u64 = 4_200_000;
/// The computing for one job.
const JOB_US: u64 = 350;
/// The sleep of the consumer, and the period of the sampler.
const POLL_US: u64 = 1_000;
/// What the system adds to a sleep.
const SLACK_US: u64 = 70;
/// The computing of the sampler for one sample.
const SAMPLE_US: u64 = 40;
const ROUNDS_PER_US: u64 = 500;
const LIMIT_S: u32 = 30;

struct Plan {
    seed: u64,
    jobs: u64,
    rounds: u64,
    poll: Duration,
}

fn plan(seed: u64) -> Plan {
    let mut state = seed;
    let job_us = vary(&mut state, JOB_US);
    let poll_us = vary(&mut state, POLL_US);
    Plan {
        seed,
        jobs: TOTAL_US / (job_us + poll_us + SLACK_US),
        rounds: job_us * ROUNDS_PER_US,
        poll: Duration::from_micros(poll_us),
    }
}

/// Submits one job after the other. Each job starts from the reply to the one before it.
fn produce(plan: &Plan, mut submit: impl FnMut(u64), replies: &Receiver<u64>) -> u64 {
    let mut value = plan.seed;
    for job in 0..plan.jobs {
        submit(value ^ job);
        value = replies.recv().expect("the consumer replies");
    }
    value
}

/// Takes jobs from the queue until it finds the end mark, which is `None`.
fn poll_queue(plan: &Plan, queue: &Mutex<VecDeque<Option<u64>>>, reply: Sender<u64>) {
    loop {
        let entry = queue.lock().expect("no thread panics").pop_front();
        match entry {
            Some(Some(job)) => reply.send(mix(job, plan.rounds)).expect("the producer waits"),
            Some(None) => return,
            None => thread::sleep(plan.poll),
        }
    }
}

fn run_sick(plan: &Plan) -> u64 {
    let queue = Mutex::new(VecDeque::new());
    let (reply, replies) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| poll_queue(plan, &queue, reply));
        let push = |entry| queue.lock().expect("no thread panics").push_back(entry);
        let result = produce(plan, |job| push(Some(job)), &replies);
        push(None);
        result
    })
}

fn run_fixed(plan: &Plan) -> u64 {
    let (jobs_in, jobs_out) = mpsc::channel::<u64>();
    let (reply, replies) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for job in jobs_out {
                reply.send(mix(job, plan.rounds)).expect("the producer waits");
            }
        });
        // The closure owns the sender, so the channel closes when the last job is done.
        let submit = move |job| jobs_in.send(job).expect("the consumer lives");
        produce(plan, submit, &replies)
    })
}

/// Reads the progress once per period and keeps a digest of what it saw.
fn sample(plan: &Plan, progress: &AtomicU64, over: &AtomicBool) -> u64 {
    let mut digest = 0;
    while !over.load(Ordering::Acquire) {
        thread::sleep(plan.poll);
        digest = mix(digest ^ progress.load(Ordering::Relaxed), SAMPLE_US * ROUNDS_PER_US);
    }
    std::hint::black_box(digest)
}

fn run_twin(plan: &Plan) -> u64 {
    let progress = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let pieces = TOTAL_US * ROUNDS_PER_US / plan.rounds;
    thread::scope(|scope| {
        scope.spawn(|| sample(plan, &progress, &over));
        let mut value = plan.seed;
        for piece in 0..pieces {
            value = mix(value, plan.rounds);
            progress.store(piece, Ordering::Relaxed);
        }
        over.store(true, Ordering::Release);
        value
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
    eprintln!("usage: sleep_queue sick|fixed|twin SEED");
    std::process::exit(2);
}
