//! `ipc/one-byte`: a million bytes from a parent to its child, one at a time.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::shared::{Line, Shared};

use super::channels;
use super::exchange::{Done, Exchange, MORE};
use crate::engine::experiment::{
    Attempt, Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::setting::Setting;
use crate::engine::timing::now;
use crate::support::calls::Tally;
use crate::support::pair::settings::{PARTNERS, PLACEMENT, pair, placement};
use crate::support::pair::{Link, Pair, Placement, Release, Used};

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "ipc/one-byte",
    summary: "1,000,000 one-byte messages from parent to child: through a pipe, and through shared memory",
    about: "The document's program: a parent sends a million bytes, one by one, and its child reads them, \
            one by one. `pipe`: a write and a read for each. `ring`: a ring in shared memory, one \
            message at a time. `ring-batches`: the same, a page full of messages at a time. `cell`: one \
            byte in shared memory; the parent waits until it was taken. `cell-unguarded`: the same \
            without waiting, which does not work: `lost` is how many bytes the child never saw, and \
            would be 0 elsewhere, where every byte is checked and one that is missing is an error. The \
            value is the time from the first byte sent to the last one read; the unguarded cell's ends when \
            the parent has written all. For both sides: CPU time (`user_` and `system_` as the kernel \
            samples it), the largest resident set, page faults, switches, and system calls by name, \
            counted where they are made. Both are this very program, so that their resident sets have \
            more in them than the document's.",
    view: View::OneByte,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(3),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable: |parameters| placement(parameters, Placement::Free).unavailable(),
    hands_over: |parameters| placement(parameters, Placement::Free).crosses(),
    demands: Demands::NONE.lasting(100, 200).and_ns_per(&[("messages", 1_000)]),
    subject: |parameters| Ok(Box::new(OneByte::new(parameters)?)),
};

/// What the bytes go through: by which mechanism, if it is one that works.
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
    "what the bytes go through: `pipe`, `ring`, `ring-batches`, `cell` or `cell-unguarded`",
    || FORMS.iter().map(|(name, _)| *name).collect(),
);

const MESSAGES: Setting =
    Setting::number(names::MESSAGES, "how many; 1,000,000 by itself", 1, 100_000_000);

const SETTINGS: [&Setting; 4] = [&FORM, &MESSAGES, &PARTNERS, &PLACEMENT];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let messages = scope.choose(&[1_000_000_u64], &[1_000_000], &[10_000])[0];
    let case = |(form, _): &(&str, _)| {
        let case = Parameters::new().with(FORM.name, *form).with(MESSAGES.name, messages);
        case.with(PLACEMENT.name, Placement::Free.name())
    };
    scope.choices.applied(FORMS.iter().map(case).collect(), &SETTINGS)
}

/// Bytes from a parent to its child.
struct OneByte {
    pair: Pair,
    /// By what, if it works.
    mechanism: Option<&'static channels::Mechanism>,
    messages: u64,
}

impl OneByte {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let form = parameters.text(FORM.name).unwrap_or("");
        let (_, mechanism) = FORMS
            .iter()
            .find(|(name, _)| *name == form)
            .ok_or_else(|| SubjectError::Wrong(format!("there is no form {form}")))?;
        Ok(Self {
            pair: pair(parameters, Placement::Free),
            mechanism: mechanism.and_then(channels::find),
            messages: parameters.number(MESSAGES.name).unwrap_or(1_000_000),
        })
    }
}

/// What came of it.
struct Outcome {
    elapsed: Duration,
    done: [Done; 2],
    /// Bytes that the child has seen.
    received: u64,
}

impl OneByte {
    fn exchange(&self, mechanism: &'static channels::Mechanism) -> Result<Outcome, SubjectError> {
        let exchange = Exchange { pair: self.pair, mechanism, bytes: 1, warm_up: 0 };
        let taken = exchange.run(
            self.messages,
            &mut |end, numbers| end.send_all(numbers),
            &mut |end, numbers| {
                let received = numbers.end - numbers.start;
                end.receive_all(numbers)?;
                let mut told = [0; MORE];
                told[0] = received;
                Ok(told)
            },
            &|_| (),
        )?;
        Ok(Outcome { elapsed: taken.elapsed, done: taken.done, received: taken.told[0] })
    }

    /// Without any guard: the parent overwrites what the child may not have seen.
    fn unguarded(&self) -> Result<Outcome, SubjectError> {
        let link = Link::new().attempt("map shared memory")?;
        let cell = Shared::new(Line(AtomicU32::new(0))).attempt("map shared memory")?;
        let flags = Shared::new([const { Line(AtomicBool::new(false)) }; 2]);
        let flags = flags.attempt("map shared memory")?;
        let [begun, over] = [&flags[0], &flags[1]];
        let (done, from) = self.pair.run(
            &link,
            || {
                while !begun.load(Ordering::Acquire) && !link.is_broken() {
                    rustix::thread::sched_yield();
                }
                let before = Used::so_far();
                let from = now();
                for number in 1..=self.messages {
                    cell.store(u32::from(number.to_le_bytes()[0]), Ordering::Release);
                }
                let done = Done::now(before, Tally::default());
                over.store(true, Ordering::Release);
                Ok((done, from))
            },
            || {
                let before = Used::so_far();
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
                let figures = Done::now(before, Tally::default()).to_figures();
                link.finish(&[figures.as_slice(), &[received]].concat());
                Ok(())
            },
            // Neither waits for the other, but for sub's beginning, which main looks at by itself.
            Release { main: &|_| (), sub: &|_| over.store(true, Ordering::Release) },
            &|_| (),
        )?;
        let figures = link.figures()?;
        let (of_sub, [received, ..]) = Done::split(&figures);
        Ok(Outcome {
            elapsed: Duration::from_nanos(done.at.saturating_sub(from)),
            done: [done, of_sub],
            received,
        })
    }
}

impl Subject for OneByte {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let outcome = match self.mechanism {
            Some(mechanism) => self.exchange(mechanism)?,
            None => self.unguarded()?,
        };
        let mut sample = Sample::of(outcome.elapsed.as_nanos() as f64)
            .with("received", Unit::Count, outcome.received as f64)
            .with("lost", Unit::Count, self.messages.saturating_sub(outcome.received) as f64);
        for (who, done) in ["main", "sub"].into_iter().zip(outcome.done) {
            let Used { cpu, system, .. } = done.used;
            let time = |time: Duration| (Unit::Nanoseconds, time.as_nanos() as f64);
            let events = |count: u64| (Unit::Count, count as f64);
            for (name, (unit, value)) in [
                ("user", time(cpu.saturating_sub(system))),
                ("system", time(system.min(cpu))),
                ("peak_rss", (Unit::Bytes, done.peak_rss as f64)),
                ("minor_faults", events(done.used.faults)),
                ("voluntary_switches", events(done.used.voluntary_switches)),
                ("involuntary_switches", events(done.used.involuntary_switches)),
                ("calls", events(done.calls.total())),
            ] {
                sample = sample.with(&format!("{name}_{who}"), unit, value);
            }
            for (name, calls) in done.calls.named() {
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
    fn every_byte_arrives_but_where_nobody_waits() {
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
