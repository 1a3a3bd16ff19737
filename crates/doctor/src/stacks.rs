//! Where busy threads execute: for each, the stacks of callers are sampled for a while.
//!
//! The stacks show whether a thread spins (`spin`), in which function it spends its time, and,
//! for Go, whether it takes locks or uses channels, which Go implements in user space.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use contend_record::doctor::Runtime;
use contend_record::stacks::Stack;
use contend_sys::{Pid, memory};

use crate::runtime;
use crate::spin::{self, REACH_BYTES};
use crate::symbols::Symbols;

/// Number of stacks that are sampled for a thread.
const MAX_SAMPLES: usize = 400;
/// The same for a thread of Go. One that runs a goroutine which does next to nothing, but polls, must have
/// enough of them for some to be of that goroutine.
const MAX_GO_SAMPLES: usize = 4000;
/// Number of stacks from which shares are computed.
const MIN_SAMPLES: usize = 10;
/// The same for threads with brief runs. Each of their runs starts a timer for the samples and stops it,
/// which takes longer than the rest of a context switch.
const MAX_BRIEF_SAMPLES: usize = 40;
/// Largest number of threads that are examined.
const MAX_THREADS: usize = 64;
/// Largest number of threads with brief runs that are examined at the same time, and the same while this
/// takes only a small part of the time.
const MAX_BRIEF_THREADS: usize = 2;
const MAX_BRIEF_THREADS_IN_BURSTS: usize = 16;

/// What a thread runs, which decides on the number of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// For less than half a millisecond on average.
    Brief,
    /// For longer.
    Long,
    /// The goroutines of a program in Go.
    Goroutines,
}

impl Runs {
    /// Returns for how long the thread runs between two samples.
    pub fn period(self) -> Duration {
        match self {
            Self::Brief | Self::Long => Duration::from_millis(2),
            Self::Goroutines => Duration::from_millis(1),
        }
    }

    fn max_samples(self) -> usize {
        match self {
            Self::Brief => MAX_BRIEF_SAMPLES,
            Self::Long => MAX_SAMPLES,
            Self::Goroutines => MAX_GO_SAMPLES,
        }
    }
}

/// The stacks of the busy threads.
#[derive(Debug, Default)]
pub struct Stacks {
    threads: BTreeMap<i32, Examined>,
    /// The code of each process, by PID.
    symbols: BTreeMap<i32, Symbols>,
    /// What [`Stacks::codes`] has returned for a thread; with more samples, it is determined again.
    known: BTreeMap<i32, Code>,
}

impl Code {
    /// Returns the mean shares of spin loops and locks, without functions, in place of those of a thread that
    /// was not examined.
    pub fn mean(codes: &[&Self]) -> Self {
        let of = |share: fn(&Self) -> f64| {
            codes.iter().map(|code| share(code)).sum::<f64>() / codes.len().max(1) as f64
        };
        Self {
            spinning: of(|code| code.spinning),
            locking: of(|code| code.locking),
            ..Self::default()
        }
    }
}

/// A thread that has been or is being examined.
#[derive(Debug)]
struct Examined {
    process: Pid,
    runs: Runs,
    /// How often each stack was found.
    stacks: HashMap<Box<[u64]>, usize>,
    /// Number of stacks.
    samples: usize,
    /// Number of stacks in a spin loop, which is determined while the process exists.
    spinning: usize,
}

/// Number of frames, counted from the innermost one, among which code of a monitor of Java must be.
const JAVA_LOCK_FRAMES: usize = 3;

/// Where a thread executes. Shares are of the samples in user mode.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Code {
    /// Number of samples.
    pub samples: usize,
    /// Share in spin loops.
    pub spinning: f64,
    /// The functions of the program that execute, by share; largest first. The runtime's own are left
    /// out where a caller is known.
    pub functions: Vec<(String, f64)>,
    /// The outermost functions, by share; largest first. For Go, the function of the goroutine.
    pub entries: Vec<(String, f64)>,
    /// Share in code of contended locks of Go, and of monitors of Java.
    pub locking: f64,
    /// Share in code of Go's channels.
    pub channels: f64,
    /// The functions of the goroutines that call `time.Sleep`, by share.
    pub sleepers: Vec<(String, f64)>,
}

impl Code {
    /// Returns the function of the program in which most samples are, if one has a fifth of them.
    pub fn main_function(&self) -> Option<&str> {
        const MIN_SHARE: f64 = 0.2;
        let (name, share) = self.functions.first()?;
        (*share >= MIN_SHARE).then_some(name)
    }
}

impl Stacks {
    /// Returns whether stacks of this busy thread should be sampled from now on, and notes it. `in_bursts`
    /// means in a small part of the time only.
    pub fn begin(&mut self, process: Pid, thread: i32, runs: Runs, in_bursts: bool) -> bool {
        let most = if in_bursts { MAX_BRIEF_THREADS_IN_BURSTS } else { MAX_BRIEF_THREADS };
        let is_brief =
            |examined: &&Examined| examined.runs == Runs::Brief && !examined.has_enough();
        if self.threads.len() >= MAX_THREADS
            || self.threads.contains_key(&thread)
            || runs == Runs::Brief && self.threads.values().filter(is_brief).count() >= most
        {
            return false;
        }
        let examined = Examined { process, runs, stacks: HashMap::new(), samples: 0, spinning: 0 };
        self.threads.insert(thread, examined);
        self.symbols.entry(process.as_raw_nonzero().get()).or_default().update(process);
        true
    }

    /// Returns the threads of which more stacks are wanted.
    pub fn unfinished(&self) -> Vec<(Pid, Runs)> {
        let unfinished = self.threads.iter().filter(|(_, examined)| !examined.has_enough());
        unfinished.filter_map(|(id, examined)| Some((Pid::from_raw(*id)?, examined.runs))).collect()
    }

    /// Notes a stack of the thread. Returns whether there are enough of them.
    pub fn note(&mut self, thread: i32, stack: &[u64]) -> bool {
        let Some(examined) = self.threads.get_mut(&thread) else { return false };
        let Some(address) = stack.first() else { return false };
        if !examined.has_enough() {
            examined.spinning += usize::from(is_in_spin_loop(examined.process, *address));
            *examined.stacks.entry(stack.into()).or_default() += 1;
            examined.samples += 1;
        }
        examined.has_enough()
    }

    /// Returns where the threads execute. Threads with too few samples are left out. `runtime_of`
    /// returns the runtime of a process.
    pub fn codes(&mut self, runtime_of: impl Fn(i32) -> Option<Runtime>) -> BTreeMap<i32, Code> {
        for (id, examined) in &self.threads {
            let samples = examined.samples;
            let is_known = self.known.get(id).is_some_and(|code| code.samples == samples);
            if samples < MIN_SAMPLES || is_known {
                continue;
            }
            let process = examined.process.as_raw_nonzero().get();
            let Some(symbols) = self.symbols.get_mut(&process) else { continue };
            self.known.insert(*id, examined.code(runtime_of(process), symbols));
        }
        self.known.clone()
    }

    /// Returns all stacks with the names of their functions, by thread.
    pub fn named(&mut self) -> Vec<Stack> {
        let mut named = Vec::new();
        for (id, examined) in &self.threads {
            let process = examined.process.as_raw_nonzero().get();
            let Some(symbols) = self.symbols.get_mut(&process) else { continue };
            for (stack, count) in &examined.stacks {
                let frames = stack.iter().rev().map(|address| symbols.place_at(*address)).collect();
                let share = *count as f64 / examined.samples as f64;
                named.push(Stack { tid: *id, frames, share });
            }
        }
        named
    }
}

impl Examined {
    fn has_enough(&self) -> bool {
        self.samples >= self.runs.max_samples()
    }

    fn code(&self, runtime: Option<Runtime>, symbols: &mut Symbols) -> Code {
        let share = |count: usize| count as f64 / self.samples as f64;
        let (mut functions, mut entries) = (BTreeMap::new(), BTreeMap::new());
        let mut sleepers = BTreeMap::new();
        let (mut locking, mut channels) = (0, 0);
        for (stack, count) in &self.stacks {
            let when = |is_so: bool| if is_so { *count } else { 0 };
            let names: Vec<String> =
                stack.iter().filter_map(|address| symbols.function_at(*address)).collect();
            let is_own = |name: &&String| !runtime::is_internal(runtime, name);
            if let Some(function) = names.iter().find(is_own) {
                *functions.entry(function.clone()).or_insert(0) += count;
            }
            // Only Go guarantees that all callers are found.
            if runtime == Some(Runtime::Go) {
                if let Some(entry) = names.iter().rev().find(is_own) {
                    *entries.entry(entry.clone()).or_insert(0) += count;
                    if names.iter().any(|name| runtime::is_go_sleep(name)) {
                        *sleepers.entry(entry.clone()).or_insert(0) += count;
                    }
                }
                locking += when(names.iter().any(|name| runtime::is_go_lock(name)));
                channels += when(names.iter().any(|name| runtime::is_go_channel(name)));
            }
            if runtime == Some(Runtime::Java) {
                let mut innermost = names.iter().take(JAVA_LOCK_FRAMES);
                locking += when(innermost.any(|name| runtime::is_java_lock(name)));
            }
        }
        let sorted = |counts: BTreeMap<String, usize>| {
            let mut shares: Vec<(String, f64)> =
                counts.into_iter().map(|(name, count)| (name, share(count))).collect();
            shares.sort_by(|a, b| b.1.total_cmp(&a.1));
            shares
        };
        Code {
            samples: self.samples,
            spinning: share(self.spinning),
            functions: sorted(functions),
            entries: sorted(entries),
            sleepers: sorted(sleepers),
            locking: share(locking),
            channels: share(channels),
        }
    }
}

/// Returns whether the code around the address waits for a change of memory.
fn is_in_spin_loop(process: Pid, address: u64) -> bool {
    let mut code = [0; 2 * REACH_BYTES];
    let start = address.saturating_sub(REACH_BYTES as u64);
    let read = memory::read(process, start, &mut code).unwrap_or(0);
    let at = usize::try_from(address - start).unwrap_or(0);
    spin::is_spin_loop(&code[..read], at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Pid {
        Pid::from_raw(std::process::id().cast_signed()).expect("a process id")
    }

    #[test]
    fn each_thread_is_examined_once_and_for_a_while() {
        let mut stacks = Stacks::default();
        assert!(stacks.begin(own(), 7, Runs::Long, false));
        assert!(!stacks.begin(own(), 7, Runs::Long, false));
        assert!(!stacks.note(8, &[0x1000]), "not examined");
        assert!(!stacks.note(7, &[]), "nothing is known");
        assert!(stacks.codes(|_| None).is_empty(), "too few samples");
        let enough = (0..MAX_SAMPLES).filter(|_| stacks.note(7, &[0x10])).count();
        assert_eq!(enough, 1);
        let codes = stacks.codes(|_| None);
        assert_eq!(codes[&7], Code { samples: MAX_SAMPLES, ..Code::default() }, "no code there");
    }

    #[test]
    fn threads_with_brief_runs_are_examined_in_turn() {
        let mut stacks = Stacks::default();
        let threads = 0..10;
        let begun_in = |stacks: &mut Stacks, runs: Runs, in_bursts: bool| {
            threads.clone().filter(|thread| stacks.begin(own(), *thread, runs, in_bursts)).count()
        };
        let begun = |stacks: &mut Stacks, runs: Runs| begun_in(stacks, runs, false);
        assert_eq!(begun_in(&mut Stacks::default(), Runs::Brief, true), 10, "bursts are short");
        assert_eq!(begun(&mut stacks, Runs::Brief), MAX_BRIEF_THREADS);
        assert_eq!(begun(&mut stacks, Runs::Brief), 0, "the others wait");
        let enough = (0..MAX_SAMPLES).filter(|_| stacks.note(1, &[0x10])).count();
        assert!(enough > 0 && stacks.codes(|_| None)[&1].samples == MAX_BRIEF_SAMPLES);
        assert_eq!(begun(&mut stacks, Runs::Brief), 1);
        assert_eq!(begun(&mut stacks, Runs::Long), 10 - MAX_BRIEF_THREADS - 1);
    }

    #[inline(never)]
    fn known_function() {}

    #[test]
    fn functions_have_shares() {
        let mut stacks = Stacks::default();
        stacks.begin(own(), 7, Runs::Long, false);
        let address = known_function as fn() as usize as u64;
        for turn in 0..20 {
            stacks.note(7, &[if turn % 4 == 0 { 0x10 } else { address }]);
        }
        let codes = stacks.codes(|_| None);
        let (name, share) = &codes[&7].functions[0];
        assert!(name.ends_with("known_function") && (share - 0.75).abs() < 1e-9, "{codes:?}");
    }
}
