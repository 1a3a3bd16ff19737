//! `copy/file`: a file copied by every way there is.

mod place;
mod prices;
mod ways;

use std::path::Path;
use std::time::{Duration, Instant};

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::child::{Usage, children_usage, own_usage};
use contend_sys::procfs::{Io, ProcFile, SchedStat};

use place::{Bench, Place, Storage, file_system, storage};
use prices::Prices;
use ways::{Advice, Job, Ready, Way};

use crate::engine::experiment::{
    Attempt, Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Size, Subject, SubjectError,
    never_hands_over,
};
use crate::engine::setting::Setting;
use crate::support::calls::Tally;

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "copy/file",
    summary: "a file of 104,857,600 bytes copied: read and write, mmap, the kernel alone, cp and dd",
    about: "A file is copied from opening it to closing its copy, which was empty; nobody waits for a disk \
            to have written it. Each copy is compared with the original afterwards. Copied a byte at a \
            time by system calls it is 1 MiB long instead. `cache`: `warm`, the source is in memory; \
            `cold`, it was taken out (posix_fadvise), as far as `still_cached_percent` says. System calls \
            are counted where they are made; those of the C library and of programs as far as the kernel \
            counts reading and writing: one that does both in the kernel is counted twice. `limit` names what most of the time goes into, by prices measured \
            before the first copy: a system call for one byte, a page touched for the first time in a \
            mapping, a page that the copy gets and one that is read, without the copying itself, a byte \
            copied from memory to memory; `at_calls`, \
            `at_faults`, `at_pages`, `at_memory` are their parts of the time, `at_queue` is what was spent \
            waiting for a CPU that others used, `at_waiting` other waiting: for the disk where the file system \
            (`file_system`) has one, `at_program` what the program itself computes, and `at_kernel` the rest.",
    view: View::FileCopy,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(5),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable,
    hands_over: never_hands_over,
    demands: Demands::NONE.lasting(100, 100).and_ns_per(&[("bytes", 15)]),
    subject: |parameters| Ok(Box::new(Copying::new(parameters)?)),
};

/// How it is copied.
const WAY: Setting = Setting::named(names::WAY, "how the file is copied", ways::names);
/// How much at a time.
const BLOCK: Setting = Setting::number(
    names::BLOCK,
    "how many bytes `read-write` moves at a time; 1, 512, 4,096, 65,536, 1,048,576 and 4,194,304 by \
     itself",
    1,
    64 << 20,
);
/// What the kernel is told of mappings.
const ADVICE: Setting = Setting::named(
    names::ADVICE,
    "what the kernel is told of mappings: `none`, `sequential` (MADV_SEQUENTIAL), `populate` \
     (MAP_POPULATE) or `huge-pages` (MADV_HUGEPAGE)",
    || Advice::NAMED.iter().map(|(name, _)| *name).collect(),
);
/// How long the file is.
const BYTES: Setting = Setting::number(
    names::BYTES,
    "how long the file is; 104,857,600 by itself, and 1,048,576 copied a byte at a time",
    1,
    1 << 32,
);
/// Where it is.
const PLACE: Setting = Setting::named(
    names::PLACE,
    "where both files are: on a `disk` or in memory, `tmpfs`",
    Place::names,
);
/// Whether it is in memory.
const CACHE: Setting = Setting::named(
    names::CACHE,
    "whether the source is in memory before: `warm`, or `cold`",
    || vec!["warm", "cold"],
);

const SETTINGS: [&Setting; 6] = [&WAY, &BLOCK, &ADVICE, &BYTES, &PLACE, &CACHE];

/// As long as the document's.
const DOCUMENTS_BYTES: u64 = 104_857_600;
/// Larger than most caches, and done sooner.
const LARGE_BYTES: u64 = 32 << 20;
/// For a byte at a time.
const FEW_BYTES: u64 = 1 << 20;

fn cases(scope: &Scope) -> Vec<Parameters> {
    let bytes = scope.choose(&[DOCUMENTS_BYTES], &[LARGE_BYTES], &[FEW_BYTES])[0];
    let mut cases = Vec::new();
    for (place, cache) in [("tmpfs", "warm"), ("disk", "warm"), ("disk", "cold")] {
        for way in ways::TABLE {
            let mut forms = vec![Parameters::new().with(WAY.name, way.name)];
            if !way.blocks.is_empty() {
                let with = |&block: &u64| forms[0].clone().with(BLOCK.name, block);
                forms = way.blocks.iter().map(with).collect();
            } else if let Some((first, others)) = way.advices.split_first() {
                let others = if scope.size == Size::Quick { &[] } else { others };
                let all = std::iter::once(first).chain(others);
                forms = all.map(|&advice| forms[0].clone().with(ADVICE.name, advice)).collect();
            }
            cases.extend(forms.into_iter().map(|form| {
                let bytes = if form.number(BLOCK.name) == Some(1) { FEW_BYTES } else { bytes };
                form.with(BYTES.name, bytes).with(PLACE.name, place).with(CACHE.name, cache)
            }));
        }
    }
    scope.choices.applied(cases, &SETTINGS)
}

/// What the parameters say.
struct Chosen {
    way: &'static Way,
    block: usize,
    advice: Advice,
    bytes: u64,
    place: Place,
    is_cold: bool,
}

impl Chosen {
    fn of(parameters: &Parameters) -> Option<Self> {
        let text = |setting: &Setting| parameters.text(setting.name);
        Some(Self {
            way: ways::find(text(&WAY)?)?,
            block: parameters
                .number(BLOCK.name)
                .and_then(|block| block.try_into().ok())
                .unwrap_or(0),
            advice: text(&ADVICE).and_then(Advice::find).unwrap_or(Advice::None),
            bytes: parameters.number(BYTES.name).unwrap_or(DOCUMENTS_BYTES),
            place: Place::find(text(&PLACE)?)?,
            is_cold: text(&CACHE) == Some("cold"),
        })
    }
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    let chosen = Chosen::of(parameters)?;
    if chosen.way.blocks.is_empty() == (chosen.block > 0) {
        return Some("a block is what `read-write` moves at a time, and nothing else".to_owned());
    }
    if chosen.way.advices.is_empty() && parameters.get(ADVICE.name).is_some() {
        return Some("nothing is mapped that the kernel could be told of".to_owned());
    }
    if chosen.is_cold && chosen.place == Place::Tmpfs {
        return Some("what is in memory alone cannot be taken out of it".to_owned());
    }
    let refused = (chosen.way.unavailable)(chosen.place, chosen.advice);
    refused.or_else(|| chosen.place.unavailable(chosen.bytes))
}

/// A file that is copied again and again.
struct Copying {
    chosen: Chosen,
    bench: Bench,
    ready: Ready,
}

impl Copying {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let chosen = Chosen::of(parameters)
            .ok_or_else(|| SubjectError::Wrong("a parameter is missing".to_owned()))?;
        let bench = Bench::new(chosen.place, chosen.bytes).attempt("make a file to copy")?;
        let ready = match chosen.way.prepare {
            Some(prepare) => prepare(chosen.block).attempt("make ready to copy")?,
            None => Ready::default(),
        };
        Ok(Self { chosen, bench, ready })
    }

    fn copy(&mut self) -> Result<Copied, SubjectError> {
        let (from, to) = (self.bench.source(), self.bench.target());
        let mut job = Job {
            from: &from,
            to: &to,
            bytes: usize::try_from(self.chosen.bytes).unwrap_or(usize::MAX),
            advice: self.chosen.advice,
            ready: &mut self.ready,
            tally: Tally::default(),
            queued: Duration::ZERO,
        };
        let queued = queued_so_far();
        let before = (used_so_far(), io_so_far());
        let begun = Instant::now();
        (self.chosen.way.copy)(&mut job).attempt("copy the file")?;
        let elapsed = begun.elapsed();
        let used = used_so_far().since(before.0);
        let queued = job.queued + queued_so_far().saturating_sub(queued);
        let io = io_so_far()
            .zip(before.1)
            .map(|(after, before)| [after.reads - before.reads, after.writes - before.writes]);
        Ok(Copied { elapsed, used, queued, tally: job.tally, io })
    }
}

/// What a copy has taken.
struct Copied {
    elapsed: Duration,
    used: Usage,
    /// How long it waited for a CPU.
    queued: Duration,
    tally: Tally,
    /// Reads and writes by the kernel's own count, those of looking at it included.
    io: Option<[u64; 2]>,
}

/// What this process and the programs that it has started have used so far.
fn used_so_far() -> Usage {
    let mut usage = own_usage();
    usage += children_usage();
    usage
}

/// How long this thread has waited for a CPU so far; nothing where the kernel does not tell.
fn queued_so_far() -> Duration {
    queued(Path::new("/proc/thread-self/schedstat"))
}

/// How long a task has waited for a CPU, by its `schedstat`.
fn queued(schedstat: &Path) -> Duration {
    let text = std::fs::read(schedstat).unwrap_or_default();
    SchedStat::parse(&text).map_or(Duration::ZERO, |known| Duration::from_nanos(known.run_queue))
}

/// The kernel's own count of reads and writes, of ended children, too.
fn io_so_far() -> Option<Io> {
    let mut buffer = [0; 512];
    Io::parse(ProcFile::open("/proc/self/io").ok()?.read(&mut buffer).ok()?)
}

impl Subject for Copying {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let prices = Prices::at(self.bench.folder()).attempt("measure prices")?;
        let mut facts = self.facts();
        if self.chosen.is_cold {
            let rest = self.bench.chill().attempt("take a file out of memory")?;
            facts.insert("still_cached_percent".to_owned(), format!("{:.1}", 100.0 * rest).into());
        } else {
            self.bench.warm().attempt("read a file")?;
        }
        let copied = self.copy()?;
        self.bench.check().attempt("compare the copy")?;
        let Copied { elapsed, used, queued, tally, io } = copied;
        let time = elapsed.as_nanos() as f64;
        let nanoseconds = |time: Duration| time.as_nanos() as f64;
        let mut sample = Sample::of(time)
            .with("user", Unit::Nanoseconds, nanoseconds(used.user))
            .with("system", Unit::Nanoseconds, nanoseconds(used.system))
            .with("minor_faults", Unit::Count, used.minor_faults as f64)
            .with("major_faults", Unit::Count, used.major_faults as f64)
            .with("voluntary_switches", Unit::Count, used.voluntary_switches as f64);
        let calls = if self.chosen.way.counts {
            for (name, count) in tally.named() {
                sample = sample.with(&format!("calls.{name}"), Unit::Count, count as f64);
            }
            tally.total()
        } else {
            // One read of the count itself is among them.
            let [reads, writes] =
                io.map_or([0; 2], |[reads, writes]| [reads.saturating_sub(1), writes]);
            sample = sample.with("calls.read", Unit::Count, reads as f64);
            sample = sample.with("calls.write", Unit::Count, writes as f64);
            reads + writes
        };
        sample = sample.with("calls", Unit::Count, calls as f64);
        let reads = self.chosen.way.advices.is_empty(); // others look at pages by themselves
        let taken = Taken { time, queued: nanoseconds(queued), used: &used, calls };
        let storage = storage(self.bench.folder());
        let parts = Parts::of(&prices, self.chosen.bytes, reads, &taken, storage);
        for (name, _, part) in parts.0 {
            sample = sample.with(name, Unit::Nanoseconds, part);
        }
        facts.insert("limit".to_owned(), parts.limit().into());
        sample.facts = facts;
        Ok(sample)
    }

    fn facts(&self) -> Facts {
        Facts::from([
            ("way_is".to_owned(), self.chosen.way.summary.into()),
            ("file_system".to_owned(), file_system(self.bench.folder()).into()),
        ])
    }
}

/// What a copy has taken, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Taken<'a> {
    /// From its beginning to its end.
    time: f64,
    /// Of that, waiting for a CPU.
    queued: f64,
    /// What the kernel says that was used.
    used: &'a Usage,
    /// System calls.
    calls: u64,
}

/// What the time of a copy goes into, in nanoseconds, by prices of single things.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Parts([(&'static str, &'static str, f64); 8]);

impl Parts {
    /// Those of a copy that is written by the kernel, and read by it, too, or not.
    fn of(prices: &Prices, bytes: u64, reads: bool, taken: &Taken<'_>, storage: Storage) -> Self {
        let Taken { time, used, .. } = *taken;
        let calls = taken.calls as f64 * prices.call;
        let faults = used.minor_faults as f64 * prices.fault;
        let page = prices.new_page + if reads { prices.read_page } else { 0.0 };
        let pages = bytes.div_ceil(4096) as f64 * page;
        let memory = bytes as f64 * prices.byte;
        let off_cpu = (time - used.cpu().as_nanos() as f64).max(0.0);
        let queue = taken.queued.min(off_cpu);
        let waiting = off_cpu - queue;
        // Where the program copies by itself, that is memory, too.
        let program = (used.user.as_nanos() as f64 - memory).max(0.0);
        // What is priced alone may take less together.
        let kernel = (time - off_cpu - calls - faults - pages - memory - program).max(0.0);
        Self([
            ("at_calls", "system calls", calls),
            ("at_faults", "page faults", faults),
            ("at_pages", "the kernel's pages", pages),
            ("at_memory", "memory bandwidth", memory),
            ("at_queue", "waiting for a CPU", queue),
            ("at_waiting", storage.waiting(), waiting),
            ("at_program", "its own instructions", program),
            ("at_kernel", "other work of the kernel", kernel),
        ])
    }

    /// What most of it goes into.
    fn limit(&self) -> &'static str {
        let largest = self.0.into_iter().max_by(|a, b| a.2.total_cmp(&b.2));
        largest.map_or("", |(_, limit, _)| limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_copies_every_byte_or_says_why_not() {
        for parameters in cases(&Scope::of(Size::Smallest)) {
            if let Some(why) = unavailable(&parameters) {
                assert!(!why.is_empty());
                continue;
            }
            let mut subject = Copying::new(&parameters).expect("a subject");
            let sample = subject.sample(1, &mut |_| ());
            let sample = sample.unwrap_or_else(|error| panic!("{parameters}: {error}"));
            let metric = |name: &str| sample.metrics.get(name).map_or(0.0, |metric| metric.0);
            let calls = metric("calls");
            assert!(calls >= 2.0, "{parameters}: {calls}");
            if let Some(block) = parameters.number(BLOCK.name) {
                // One more read finds the end.
                let blocks = FEW_BYTES.div_ceil(block) as f64;
                let (reads, writes) = (metric("calls.read"), metric("calls.write"));
                assert!((reads - blocks - 1.0).abs() < 0.5, "{parameters}: {reads}");
                assert!((writes - blocks).abs() < 0.5, "{parameters}: {writes}");
            }
        }
    }

    #[test]
    fn waiting_is_for_what_is_there() {
        let prices = Prices { call: 1.0, ..Prices::default() };
        let used = Usage { system: Duration::from_micros(100), ..Usage::default() };
        let parts = |queued: f64, storage| {
            let taken = Taken { time: 1e6, queued, used: &used, calls: 1 };
            Parts::of(&prices, 4096, true, &taken, storage)
        };
        assert_eq!(parts(0.0, Storage::Disk).limit(), "waiting for the disk");
        assert_eq!(parts(0.0, Storage::Memory).limit(), "waiting, though not for a disk");
        assert_eq!(parts(0.0, Storage::Other).limit(), "waiting for the file system");
        // What others used of the CPUs is not the disk's time.
        for queued in [800e3, 5e6] {
            assert_eq!(parts(queued, Storage::Disk).limit(), "waiting for a CPU", "{queued}");
        }
        for queued in [0.0, 300e3, 5e6] {
            let part = |name: &str| {
                let all = parts(queued, Storage::Disk).0;
                all.into_iter().find(|part| part.0 == name).map_or(0.0, |part| part.2)
            };
            assert!((part("at_queue") + part("at_waiting") - 900e3).abs() < 1e-6, "{queued}");
        }
    }

    #[test]
    fn a_copy_in_memory_never_waits_for_a_disk() {
        if Place::Tmpfs.folder().is_none() {
            return; // the case says so itself
        }
        for way in ["read-write", "cp"] {
            let parameters = Parameters::new().with("way", way).with("bytes", 1_u64 << 20);
            let parameters = parameters.with("place", "tmpfs").with("cache", "warm");
            let parameters =
                if way == "read-write" { parameters.with("block", 4096) } else { parameters };
            if unavailable(&parameters).is_some() {
                continue;
            }
            let mut subject = Copying::new(&parameters).expect("a subject");
            let sample = subject.sample(1, &mut |_| ()).expect("a copy");
            assert_eq!(sample.facts["file_system"].to_string(), "tmpfs");
            assert!(!sample.facts["limit"].to_string().contains("the disk"), "{sample:?}");
            let [queue, waiting] = ["at_queue", "at_waiting"].map(|name| sample.metrics[name].0);
            assert!(
                queue >= 0.0 && waiting >= 0.0 && queue + waiting <= sample.value,
                "{sample:?}"
            );
        }
    }

    #[test]
    fn the_largest_part_is_the_limit() {
        let prices =
            Prices { call: 200.0, fault: 500.0, new_page: 60.0, read_page: 40.0, byte: 0.1 };
        let used = |cpu: u64, minor_faults| Usage {
            system: Duration::from_micros(cpu),
            minor_faults,
            ..Usage::default()
        };
        let bytes = 4096 * 1000;
        let limit = |time: f64, used: &Usage, calls| {
            let taken = Taken { time, queued: 0.0, used, calls };
            Parts::of(&prices, bytes, true, &taken, Storage::Disk).limit()
        };
        assert_eq!(limit(600e3, &used(600, 0), 10), "memory bandwidth");
        assert_eq!(limit(3e6, &used(3000, 0), 10_000), "system calls");
        assert_eq!(limit(1e6, &used(1000, 1000), 2), "page faults");
        assert_eq!(limit(9e6, &used(700, 0), 10), "waiting for the disk");
        assert_eq!(limit(9e6, &used(9000, 0), 10), "other work of the kernel");
        let computing = Usage { user: Duration::from_millis(9), ..Usage::default() };
        assert_eq!(limit(9e6, &computing, 10), "its own instructions");
    }
}
