//! `copy/file`: the time to copy a file, by method, and what limits it.
//!
//! A sample makes one copy. Only the middle column is timed:
//!
//! ```text
//! before                      timed                    after
//! ─────────────────────────   ──────────────────────   ──────────────────────────
//! unit costs (first sample)   open source and target   read usage counters
//! cache or evict the source   copy                     compare target with source
//! read usage counters         close both               start with an empty target
//! ```
//!
//! The target is empty at the start, and the copy does not wait for it to reach the disk. The time
//! is then attributed to causes ([`TimeBreakdown`]): counts of calls, faults, pages and bytes times
//! the unit costs measured on the same file system ([`UnitCosts`]), then the time off the CPU, in
//! user space, and in the rest of the kernel. The largest share is reported as the limit.
//!
//! - [`methods`]: the copy methods and their table
//! - [`location`]: disk or tmpfs, and the storage medium of a file system
//! - [`file_pair`]: the source and target of a copy
//! - [`unit_costs`]: the time of a call, a fault, a page and a byte on the file system

mod file_pair;
mod location;
mod methods;
mod unit_costs;

use std::path::Path;
use std::time::{Duration, Instant};

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::child::{Usage, children_usage, own_usage};
use contend_sys::procfs::{Io, ProcFile, SchedStat};

use file_pair::FilePair;
use location::{Location, Storage, file_system_name, storage_of};
use methods::{CopyJob, CopyMethod, MappingAdvice, Resources};
use unit_costs::UnitCosts;

use crate::engine::experiment::{
    Demands, ErrorContext, Experiment, Facts, Fit, Sample, Sampling, Scope, Size, Subject,
    SubjectError, never_alternates_cpus,
};
use crate::engine::setting::Setting;
use crate::support::syscalls::Tally;

/// The definition of `copy/file`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "copy/file",
    summary: "time to copy a 100 MiB file: read/write, mmap, in-kernel, io_uring, cp, dd",
    about: "Times a copy from opening the source to closing the target, which is empty at the \
        start; the copy does not wait for the disk to write it. Each copy is compared with the \
        source afterwards. With a block of one byte, the file has 1 MiB instead of 100 MiB. \
        `cache`: with `warm`, the source is in the page cache; with `cold`, it was evicted \
        (posix_fadvise), except for the share in `still_cached_percent`. System calls are counted \
        where this program makes them. Those of the C library, cp and dd come from the kernel's \
        counters of reads and writes, which count a call that does both twice. `limit` names the \
        largest share of the time. The shares are computed from unit costs that are measured \
        before the first copy: `at_calls` from the cost of a system call for one byte, `at_faults` \
        from that of the first access to a page of a mapping, `at_pages` from those of a page \
        cache page that is written or read (without the copying), `at_memory` from that of a byte \
        copied from memory to memory. `at_queue` is the time spent queued for a CPU, `at_waiting` \
        other time off the CPU (waiting for the disk, where the file system in `file_system` has \
        one), `at_program` computation in user space, and `at_kernel` the remainder.",
    view: View::FileCopy,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(5),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE.with_cost_ms(100, 100).with_ns_per(&[("bytes", 15)]),
    subject: |parameters| Ok(Box::new(FileCopy::new(parameters)?)),
};

/// Name of the copy method.
const METHOD: Setting = Setting::named(names::METHOD, "how to copy the file", methods::names);
/// Block size of `read-write` in bytes.
const BLOCK: Setting = Setting::number(
    names::BLOCK,
    "bytes that `read-write` moves with each call [default: 1, 512, 4096, 65536, 1048576, 4194304]",
    1,
    64 << 20,
);
/// Advice to the kernel about mappings.
const ADVICE: Setting = Setting::named(
    names::ADVICE,
    "advice to the kernel about mappings: `none`, `sequential` (MADV_SEQUENTIAL), `populate` \
     (MAP_POPULATE) or `huge-pages` (MADV_HUGEPAGE)",
    || MappingAdvice::NAMED.iter().map(|(name, _)| *name).collect(),
);
/// Length of the file in bytes.
const BYTES: Setting = Setting::number(
    names::BYTES,
    "size of the file in bytes [default: 104857600; 1048576 with a block of 1 byte]",
    1,
    1 << 32,
);
/// Location of both files: a disk or a tmpfs.
const LOCATION: Setting = Setting::named(
    names::FILE_SYSTEM,
    "where both files are: on a disk (`disk`) or in memory (`tmpfs`)",
    Location::names,
);
/// State of the page cache before the copy: `warm` if it contains the source, and otherwise `cold`.
const CACHE: Setting = Setting::named(
    names::CACHE,
    "whether the source is in the page cache before the copy (`warm`) or not (`cold`)",
    || vec!["warm", "cold"],
);

const SETTINGS: [&Setting; 6] = [&METHOD, &BLOCK, &ADVICE, &BYTES, &LOCATION, &CACHE];

/// Length of the file in the article on mmap and shared memory.
const ARTICLE_FILE_BYTES: u64 = 104_857_600;
/// Length of the file in quick runs: larger than most CPU caches, and faster to copy than the full
/// size.
const QUICK_FILE_BYTES: u64 = 32 << 20;
/// Length of the file in the smallest runs, and with blocks of one byte, which take two system
/// calls each.
const SMALL_FILE_BYTES: u64 = 1 << 20;

fn cases(scope: &Scope) -> Vec<Parameters> {
    let bytes = scope.choose(&[ARTICLE_FILE_BYTES], &[QUICK_FILE_BYTES], &[SMALL_FILE_BYTES])[0];
    let mut cases = Vec::new();
    for (location, cache) in [("tmpfs", "warm"), ("disk", "warm"), ("disk", "cold")] {
        for method in methods::TABLE {
            let mut forms = vec![Parameters::new().with(METHOD.name, method.name)];
            if !method.blocks.is_empty() {
                let with = |&block: &u64| forms[0].clone().with(BLOCK.name, block);
                forms = method.blocks.iter().map(with).collect();
            } else if let Some((first, others)) = method.advices.split_first() {
                let others = if scope.size == Size::Quick { &[] } else { others };
                let all = std::iter::once(first).chain(others);
                forms = all.map(|&advice| forms[0].clone().with(ADVICE.name, advice)).collect();
            }
            cases.extend(forms.into_iter().map(|form| {
                let bytes =
                    if form.number(BLOCK.name) == Some(1) { SMALL_FILE_BYTES } else { bytes };
                form.with(BYTES.name, bytes).with(LOCATION.name, location).with(CACHE.name, cache)
            }));
        }
    }
    scope.choices.applied(cases, &SETTINGS)
}

/// The parsed parameters of a case.
struct CopyCase {
    method: &'static CopyMethod,
    block: usize,
    advice: MappingAdvice,
    bytes: u64,
    location: Location,
    is_cold: bool,
}

impl CopyCase {
    fn parse(parameters: &Parameters) -> Option<Self> {
        let text = |setting: &Setting| parameters.text(setting.name);
        Some(Self {
            method: methods::find(text(&METHOD)?)?,
            block: parameters
                .number(BLOCK.name)
                .and_then(|block| block.try_into().ok())
                .unwrap_or(0),
            advice: text(&ADVICE).and_then(MappingAdvice::find).unwrap_or(MappingAdvice::None),
            bytes: parameters.number(BYTES.name).unwrap_or(ARTICLE_FILE_BYTES),
            location: Location::find(text(&LOCATION)?)?,
            is_cold: text(&CACHE) == Some("cold"),
        })
    }
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    let case = CopyCase::parse(parameters)?;
    if case.method.blocks.is_empty() == (case.block > 0) {
        return Some("`block` applies to `read-write` only".to_owned());
    }
    if case.method.advices.is_empty() && parameters.get(ADVICE.name).is_some() {
        return Some("`advice` applies to methods that map a file only".to_owned());
    }
    if case.is_cold && case.location == Location::Tmpfs {
        return Some("a file in tmpfs cannot be evicted from memory".to_owned());
    }
    let refused = (case.method.unavailable)(case.location, case.advice);
    refused.or_else(|| case.location.unavailable(case.bytes))
}

/// The subject of a case, which copies its source file once in each sample.
struct FileCopy {
    case: CopyCase,
    files: FilePair,
    resources: Resources,
}

impl FileCopy {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let case = CopyCase::parse(parameters)
            .ok_or_else(|| SubjectError::Unexpected("a parameter is missing".to_owned()))?;
        let files = FilePair::new(case.location, case.bytes).context("make a file to copy")?;
        let resources = match case.method.prepare {
            Some(prepare) => prepare(case.block).context("prepare the copy")?,
            None => Resources::default(),
        };
        Ok(Self { case, files, resources })
    }

    fn copy(&mut self) -> Result<CopyMeasurement, SubjectError> {
        let (from, to) = (self.files.source(), self.files.target());
        let mut job = CopyJob {
            from: &from,
            to: &to,
            bytes: usize::try_from(self.case.bytes).unwrap_or(usize::MAX),
            advice: self.case.advice,
            resources: &mut self.resources,
            tally: Tally::default(),
            queued: Duration::ZERO,
        };
        let queued = run_queue_time();
        let before = (resource_usage(), io_counters());
        let begun = Instant::now();
        (self.case.method.copy)(&mut job).context("copy the file")?;
        let elapsed = begun.elapsed();
        let used = resource_usage().since(before.0);
        let queued = job.queued + run_queue_time().saturating_sub(queued);
        let io = io_counters()
            .zip(before.1)
            .map(|(after, before)| [after.reads - before.reads, after.writes - before.writes]);
        Ok(CopyMeasurement { elapsed, used, queued, tally: job.tally, io })
    }
}

/// The measurements of one copy.
struct CopyMeasurement {
    elapsed: Duration,
    used: Usage,
    /// Time spent queued for a CPU.
    queued: Duration,
    tally: Tally,
    /// Numbers of read and of write calls counted by the kernel, including this process's own reads
    /// of `/proc`; `None` if the kernel does not report them.
    io: Option<[u64; 2]>,
}

/// Returns the resources used so far by this process and its reaped children.
fn resource_usage() -> Usage {
    let mut usage = own_usage();
    usage += children_usage();
    usage
}

/// Returns the time that this thread has spent queued for a CPU; zero if the kernel does not report
/// it.
fn run_queue_time() -> Duration {
    run_queue_time_of(Path::new("/proc/thread-self/schedstat"))
}

/// Returns the time that a task has spent queued for a CPU, from its `schedstat` file; zero if the
/// file cannot be read or parsed.
fn run_queue_time_of(schedstat: &Path) -> Duration {
    let text = std::fs::read(schedstat).unwrap_or_default();
    SchedStat::parse(&text).map_or(Duration::ZERO, |known| Duration::from_nanos(known.run_queue))
}

/// Returns the kernel's I/O counters of this process and its reaped children, or `None` if they
/// cannot be read.
fn io_counters() -> Option<Io> {
    let mut buffer = [0; 512];
    Io::parse(ProcFile::open("/proc/self/io").ok()?.read(&mut buffer).ok()?)
}

impl Subject for FileCopy {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let unit_costs = UnitCosts::in_folder(self.files.folder()).context("measure unit costs")?;
        let mut facts = self.facts();
        if self.case.is_cold {
            let rest = self.files.evict_source().context("evict a file from memory")?;
            facts.insert("still_cached_percent".to_owned(), format!("{:.1}", 100.0 * rest).into());
        } else {
            self.files.cache_source().context("read a file")?;
        }
        let copied = self.copy()?;
        self.files.verify_copy().context("compare the copy")?;
        let CopyMeasurement { elapsed, used, queued, tally, io } = copied;
        let time = elapsed.as_nanos() as f64;
        let nanoseconds = |time: Duration| time.as_nanos() as f64;
        let mut sample = Sample::of(time)
            .with("user", Unit::Nanoseconds, nanoseconds(used.user))
            .with("system", Unit::Nanoseconds, nanoseconds(used.system))
            .with("minor_faults", Unit::Count, used.minor_faults as f64)
            .with("major_faults", Unit::Count, used.major_faults as f64)
            .with("voluntary_switches", Unit::Count, used.voluntary_switches as f64);
        let calls = if self.case.method.counts_calls {
            for (name, count) in tally.named() {
                sample = sample.with(&format!("calls.{name}"), Unit::Count, count as f64);
            }
            tally.total()
        } else {
            // Do not count the read of /proc/self/io itself. Reads of schedstat files still count.
            let [reads, writes] =
                io.map_or([0; 2], |[reads, writes]| [reads.saturating_sub(1), writes]);
            sample = sample.with("calls.read", Unit::Count, reads as f64);
            sample = sample.with("calls.write", Unit::Count, writes as f64);
            reads + writes
        };
        sample = sample.with("calls", Unit::Count, calls as f64);
        let reads = self.case.method.advices.is_empty(); // mapped sources are read by page faults
        let taken =
            CopyTotals { wall_ns: time, queued_ns: nanoseconds(queued), used: &used, calls };
        let storage = storage_of(self.files.folder());
        let parts = TimeBreakdown::attribute(&unit_costs, self.case.bytes, reads, &taken, storage);
        for (name, _, part) in parts.0 {
            sample = sample.with(name, Unit::Nanoseconds, part);
        }
        facts.insert("limit".to_owned(), parts.limit().into());
        sample.facts = facts;
        Ok(sample)
    }

    fn facts(&self) -> Facts {
        Facts::from([
            ("way_is".to_owned(), self.case.method.summary.into()),
            ("file_system".to_owned(), file_system_name(self.files.folder()).into()),
        ])
    }
}

/// Measured totals of a copy; times in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct CopyTotals<'a> {
    /// Wall time of the copy.
    wall_ns: f64,
    /// Time spent queued for a CPU, by this thread and child processes.
    queued_ns: f64,
    /// CPU time, page faults and context switches of this process and its children, as the kernel
    /// counts them.
    used: &'a Usage,
    /// Number of system calls, as far as they are counted.
    calls: u64,
}

/// The wall time of a copy, attributed to causes. Each entry has the name of the metric, the value
/// of the `limit` fact, and the time in nanoseconds. The first four times are products of counts
/// and unit costs, so the sum may exceed the wall time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TimeBreakdown([(&'static str, &'static str, f64); 8]);

impl TimeBreakdown {
    /// Attributes the time of a copy of `bytes` bytes on `storage` to causes. `reads` is true if
    /// the method reads the source with system calls, and false if it reads a mapping by page
    /// faults.
    fn attribute(
        unit_costs: &UnitCosts,
        bytes: u64,
        reads: bool,
        taken: &CopyTotals<'_>,
        storage: Storage,
    ) -> Self {
        let CopyTotals { wall_ns, used, .. } = *taken;
        let calls = taken.calls as f64 * unit_costs.call;
        let faults = used.minor_faults as f64 * unit_costs.fault;
        let page = unit_costs.new_page + if reads { unit_costs.read_page } else { 0.0 };
        let pages = bytes.div_ceil(4096) as f64 * page;
        let memory = bytes as f64 * unit_costs.byte;
        let off_cpu = (wall_ns - used.cpu().as_nanos() as f64).max(0.0);
        let queue = taken.queued_ns.min(off_cpu);
        let waiting = off_cpu - queue;
        // A copy in user space is counted as memory bandwidth.
        let program = (used.user.as_nanos() as f64 - memory).max(0.0);
        // Operations may overlap and take less than the sum of their unit costs.
        let kernel = (wall_ns - off_cpu - calls - faults - pages - memory - program).max(0.0);
        Self([
            ("at_calls", "system calls", calls),
            ("at_faults", "page faults", faults),
            ("at_pages", "page cache", pages),
            ("at_memory", "memory bandwidth", memory),
            ("at_queue", "waiting for a CPU", queue),
            ("at_waiting", storage.waiting_limit(), waiting),
            ("at_program", "user-space code", program),
            ("at_kernel", "other kernel work", kernel),
        ])
    }

    /// Returns the cause with the largest share of the time, as the value of the `limit` fact.
    fn limit(&self) -> &'static str {
        let largest = self.0.into_iter().max_by(|a, b| a.2.total_cmp(&b.2));
        largest.map_or("", |(_, limit, _)| limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_copies_every_byte_or_gives_a_reason() {
        for parameters in cases(&Scope::of(Size::Smallest)) {
            if let Some(why) = unavailable(&parameters) {
                assert!(!why.is_empty());
                continue;
            }
            let mut subject = FileCopy::new(&parameters).expect("a subject");
            let sample = subject.sample(1, &mut |_| ());
            let sample = sample.unwrap_or_else(|error| panic!("{parameters}: {error}"));
            let metric = |name: &str| sample.metrics.get(name).map_or(0.0, |metric| metric.0);
            let calls = metric("calls");
            assert!(calls >= 2.0, "{parameters}: {calls}");
            if let Some(block) = parameters.number(BLOCK.name) {
                // One more read finds the end of the file.
                let blocks = SMALL_FILE_BYTES.div_ceil(block) as f64;
                let (reads, writes) = (metric("calls.read"), metric("calls.write"));
                assert!((reads - blocks - 1.0).abs() < 0.5, "{parameters}: {reads}");
                assert!((writes - blocks).abs() < 0.5, "{parameters}: {writes}");
            }
        }
    }

    #[test]
    fn waiting_is_attributed_to_the_storage() {
        let unit_costs = UnitCosts { call: 1.0, ..UnitCosts::default() };
        let used = Usage { system: Duration::from_micros(100), ..Usage::default() };
        let parts = |queued_ns: f64, storage| {
            let taken = CopyTotals { wall_ns: 1e6, queued_ns, used: &used, calls: 1 };
            TimeBreakdown::attribute(&unit_costs, 4096, true, &taken, storage)
        };
        assert_eq!(parts(0.0, Storage::Disk).limit(), "waiting for the disk");
        assert_eq!(parts(0.0, Storage::Memory).limit(), "waiting, but not for a disk");
        assert_eq!(parts(0.0, Storage::Other).limit(), "waiting for the file system");
        // Time queued for a CPU is not attributed to the disk.
        for queued_ns in [800e3, 5e6] {
            assert_eq!(parts(queued_ns, Storage::Disk).limit(), "waiting for a CPU", "{queued_ns}");
        }
        for queued_ns in [0.0, 300e3, 5e6] {
            let part = |name: &str| {
                let all = parts(queued_ns, Storage::Disk).0;
                all.into_iter().find(|part| part.0 == name).map_or(0.0, |part| part.2)
            };
            assert!((part("at_queue") + part("at_waiting") - 900e3).abs() < 1e-6, "{queued_ns}");
        }
    }

    #[test]
    fn a_copy_in_memory_never_waits_for_a_disk() {
        if Location::Tmpfs.folder().is_none() {
            return; // the case is reported as unavailable
        }
        for way in ["read-write", "cp"] {
            let parameters = Parameters::new().with("way", way).with("bytes", 1_u64 << 20);
            let parameters = parameters.with("place", "tmpfs").with("cache", "warm");
            let parameters =
                if way == "read-write" { parameters.with("block", 4096) } else { parameters };
            if unavailable(&parameters).is_some() {
                continue;
            }
            let mut subject = FileCopy::new(&parameters).expect("a subject");
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
    fn the_largest_share_is_the_limit() {
        let unit_costs =
            UnitCosts { call: 200.0, fault: 500.0, new_page: 60.0, read_page: 40.0, byte: 0.1 };
        let used = |cpu: u64, minor_faults| Usage {
            system: Duration::from_micros(cpu),
            minor_faults,
            ..Usage::default()
        };
        let bytes = 4096 * 1000;
        let limit = |wall_ns: f64, used: &Usage, calls| {
            let taken = CopyTotals { wall_ns, queued_ns: 0.0, used, calls };
            TimeBreakdown::attribute(&unit_costs, bytes, true, &taken, Storage::Disk).limit()
        };
        assert_eq!(limit(600e3, &used(600, 0), 10), "memory bandwidth");
        assert_eq!(limit(3e6, &used(3000, 0), 10_000), "system calls");
        assert_eq!(limit(1e6, &used(1000, 1000), 2), "page faults");
        assert_eq!(limit(9e6, &used(700, 0), 10), "waiting for the disk");
        assert_eq!(limit(9e6, &used(9000, 0), 10), "other kernel work");
        let computing = Usage { user: Duration::from_millis(9), ..Usage::default() };
        assert_eq!(limit(9e6, &computing, 10), "user-space code");
    }
}
