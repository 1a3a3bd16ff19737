//! `ipc/one-byte`: one-byte messages from a parent to its child, by default a million.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::shared::{Line, Shared};

use super::channels;
use super::exchange::{EXTRA_VALUES, Exchange, PartnerStats};
use crate::engine::experiment::{
    Demands, ErrorContext, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::setting::Setting;
use crate::engine::timing::now;
use crate::support::partners::settings::{PARTNERS, PLACEMENT, pair, placement};
use crate::support::partners::{Link, Pair, Placement, Release, ResourceUsage};
use crate::support::syscalls::Tally;

/// The experiment `ipc/one-byte`, after the program of an article on mmap and shared memory.
pub const EXPERIMENT: Experiment = Experiment {
    name: "ipc/one-byte",
    summary: "time of a million one-byte messages through a pipe or shared memory",
    about: "The program of the article on mmap and shared memory: a parent sends a million bytes \
        one by one, and its child reads them one by one. `pipe`: a write and a read for each byte. \
        `ring`: a ring in shared memory, one message at a time. `ring-batches`: the same, with a \
        page of messages at a time. `cell`: one byte in shared memory; the parent waits until the \
        child has consumed it. `cell-unguarded`: the same without waiting, which loses data: \
        `lost` counts the bytes that the child never saw. All other forms check every byte, and a \
        missing one is an error, so `lost` is 0. The value is the time from the first byte sent to \
        the last one read; for `cell-unguarded`, until the parent has written all. For both sides, \
        the record has CPU time (user and system time as the kernel samples them), peak resident \
        set, page faults, context switches, and system calls by name, counted where they are made. \
        Both sides run in contend itself, so their resident sets are larger than those of the \
        article's program.",
    view: View::OneByte,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(3),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable: |parameters| placement(parameters, Placement::Free).unavailable(),
    alternates_cpus: |parameters| placement(parameters, Placement::Free).uses_two_cpus(),
    demands: Demands::NONE.with_cost_ms(100, 200).with_ns_per(&[("messages", 1_000)]),
    subject: |parameters| Ok(Box::new(OneByte::new(parameters)?)),
};

/// Name and mechanism of each form of the channel. The unguarded cell, which loses data, is not a
/// mechanism.
const FORMS: [(&str, Option<&str>); 5] = [
    ("pipe", Some("pipe")),
    ("ring", Some("ring-spin-futex")),
    ("ring-batches", Some("ring-batches")),
    ("cell", Some("cell")),
    (UNGUARDED, None),
];
const UNGUARDED: &str = "cell-unguarded";

const FORM: Setting = Setting::named(
    names::FORM,
    "channel for the bytes: `pipe`, `ring`, `ring-batches`, `cell` or `cell-unguarded`",
    || FORMS.iter().map(|(name, _)| *name).collect(),
);

const MESSAGES: Setting =
    Setting::number(names::MESSAGES, "number of bytes to send [default: 1000000]", 1, 100_000_000);

const SETTINGS: [&Setting; 4] = [&FORM, &MESSAGES, &PARTNERS, &PLACEMENT];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let messages = scope.choose(&[1_000_000_u64], &[1_000_000], &[10_000])[0];
    let case = |(form, _): &(&str, _)| {
        let case = Parameters::new().with(FORM.name, *form).with(MESSAGES.name, messages);
        case.with(PLACEMENT.name, Placement::Free.name())
    };
    scope.choices.applied(FORMS.iter().map(case).collect(), &SETTINGS)
}

/// Subject that sends bytes one by one from a parent to its child.
struct OneByte {
    pair: Pair,
    /// Mechanism that carries the bytes; `None` for the unguarded cell.
    mechanism: Option<&'static channels::Mechanism>,
    messages: u64,
}

impl OneByte {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let form = parameters.text(FORM.name).unwrap_or("");
        let (_, mechanism) = FORMS
            .iter()
            .find(|(name, _)| *name == form)
            .ok_or_else(|| SubjectError::Unexpected(format!("no form '{form}'")))?;
        Ok(Self {
            pair: pair(parameters, Placement::Free),
            mechanism: mechanism.and_then(channels::find),
            messages: parameters.number(MESSAGES.name).unwrap_or(1_000_000),
        })
    }
}

/// The measurements of a transfer.
struct TransferResult {
    elapsed: Duration,
    stats: [PartnerStats; 2],
    /// Number of bytes that the child has read. For the unguarded cell: number of changes that the
    /// child has seen.
    received: u64,
}

impl OneByte {
    fn transfer(
        &self,
        mechanism: &'static channels::Mechanism,
    ) -> Result<TransferResult, SubjectError> {
        let exchange = Exchange { pair: self.pair, mechanism, bytes: 1, warm_up: 0 };
        let result = exchange.run(
            self.messages,
            &mut |end, numbers| end.send_all(numbers),
            &mut |end, numbers| {
                let received = numbers.end - numbers.start;
                end.receive_all(numbers)?;
                let mut extra = [0; EXTRA_VALUES];
                extra[0] = received;
                Ok(extra)
            },
            &|_| (),
        )?;
        Ok(TransferResult {
            elapsed: result.elapsed,
            stats: result.stats,
            received: result.extra[0],
        })
    }

    /// Transfers the bytes through a cell without waiting for the child: the parent may overwrite
    /// bytes that the child has not read.
    fn transfer_unguarded(&self) -> Result<TransferResult, SubjectError> {
        let link = Link::new().context("map shared memory")?;
        let cell = Shared::new(Line(AtomicU32::new(0))).context("map shared memory")?;
        let flags = Shared::new([const { Line(AtomicBool::new(false)) }; 2]);
        let flags = flags.context("map shared memory")?;
        let [begun, over] = [&flags[0], &flags[1]];
        let (stats, from) = self.pair.run(
            &link,
            || {
                while !begun.load(Ordering::Acquire) && !link.is_broken() {
                    rustix::thread::sched_yield();
                }
                let before = ResourceUsage::so_far();
                let from = now();
                for number in 1..=self.messages {
                    cell.store(u32::from(number.to_le_bytes()[0]), Ordering::Release);
                }
                let stats = PartnerStats::now(before, Tally::default());
                over.store(true, Ordering::Release);
                Ok((stats, from))
            },
            || {
                let before = ResourceUsage::so_far();
                begun.store(true, Ordering::Release);
                let (mut last, mut received) = (0, 0);
                loop {
                    let is_over = over.load(Ordering::Acquire);
                    let byte = cell.load(Ordering::Acquire);
                    received += u64::from(byte != last);
                    last = byte;
                    if is_over {
                        break;
                    }
                }
                let values = PartnerStats::now(before, Tally::default()).to_values();
                link.finish(&[values.as_slice(), &[received]].concat());
                Ok(())
            },
            // Main waits only in its loop at the start, which checks the link.
            Release { main: &|_| (), sub: &|_| over.store(true, Ordering::Release) },
            &|_| (),
        )?;
        let values = link.values()?;
        let (sub_stats, [received, ..]) = PartnerStats::decode(&values);
        Ok(TransferResult {
            elapsed: Duration::from_nanos(stats.end_ns.saturating_sub(from)),
            stats: [stats, sub_stats],
            received,
        })
    }
}

impl Subject for OneByte {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let transfer = match self.mechanism {
            Some(mechanism) => self.transfer(mechanism)?,
            None => self.transfer_unguarded()?,
        };
        let mut sample = Sample::of(transfer.elapsed.as_nanos() as f64)
            .with("received", Unit::Count, transfer.received as f64)
            .with("lost", Unit::Count, self.messages.saturating_sub(transfer.received) as f64);
        for (who, stats) in ["main", "sub"].into_iter().zip(transfer.stats) {
            let ResourceUsage { cpu, system, .. } = stats.used;
            let time = |time: Duration| (Unit::Nanoseconds, time.as_nanos() as f64);
            let events = |count: u64| (Unit::Count, count as f64);
            for (name, (unit, value)) in [
                ("user", time(cpu.saturating_sub(system))),
                ("system", time(system.min(cpu))),
                ("peak_rss", (Unit::Bytes, stats.peak_rss as f64)),
                ("minor_faults", events(stats.used.faults)),
                ("voluntary_switches", events(stats.used.voluntary_switches)),
                ("involuntary_switches", events(stats.used.involuntary_switches)),
                ("calls", events(stats.calls.total())),
            ] {
                sample = sample.with(&format!("{name}_{who}"), unit, value);
            }
            for (name, calls) in stats.calls.named() {
                sample = sample.with(&format!("{who}.{name}"), Unit::Count, calls as f64);
            }
        }
        sample.facts = self.facts();
        Ok(sample)
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        if let Some(mechanism) = self.mechanism {
            facts.insert("mechanism_is".to_owned(), mechanism.summary.into());
        }
        let cpus = self.pair.placement.describe();
        facts.extend(cpus.map(|cpus| ("cpus".to_owned(), cpus.into())));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_arrives_unless_the_cell_is_unguarded() {
        for (form, mechanism) in FORMS {
            let parameters =
                Parameters::new().with(FORM.name, form).with(MESSAGES.name, 20_000_u64);
            let mut subject = OneByte::new(&parameters).expect("a subject");
            let sample = subject.sample(1, &mut |_| ()).expect("a sample");
            let [received, lost] =
                ["received", "lost"].map(|name| sample.metrics.get(name).expect("measured").0);
            assert!((received + lost - 20_000.0).abs() < 0.5, "{form}");
            assert!(mechanism.is_none() || lost < 0.5, "{form}");
            assert!(sample.metrics["peak_rss_sub"].0 > 0.0, "{form}");
        }
        let pipe = Parameters::new().with(FORM.name, "pipe").with(MESSAGES.name, 5000_u64);
        let sample = OneByte::new(&pipe).expect("one").sample(1, &mut |_| ()).expect("a sample");
        let calls = ["main.write", "sub.read"].map(|name| sample.metrics[name].0);
        assert!(calls.iter().all(|calls| (calls - 5000.0).abs() < 0.5), "{calls:?}");
    }
}
