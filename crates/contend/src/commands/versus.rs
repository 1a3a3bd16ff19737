//! `contend pipe --vs`: runs several pipelines in turn, and compares their times and outputs.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use contend_advise::sample::{difference, has_room, temporary};
use contend_profile::pipeline::launch::{LaunchError, LaunchSpec, Output};
use contend_profile::pipeline::profile;
use contend_record::Host;
use contend_record::pipe::{PipeRecord, Stage};
use contend_record::stats::Estimate;
use contend_record::versus::{Condition, Ratios, SCHEMA, Variant as VariantRecord, VersusRecord};
use contend_report::render;
use contend_shell::runner::{RunError, Runner};
use contend_sys::interrupt::Signals;

use crate::exit::Exit;
use crate::publish::PublishedRounds;
use crate::records::save::Redaction;
use crate::settings::{Variant, Versus};
use crate::terminal::{StatusLine, bar};
use crate::{host, output, version};

/// Expected size of an output in bytes, before the first one is known.
const OUTPUT_BYTES: u64 = 64 << 20;

/// Runs the variants in turn and writes the report. The exit status is 1 if a condition of
/// `--fail-if` holds.
///
/// # Errors
/// Returns an error if a pipeline cannot be started, `--prepare` fails, there is no space for the
/// outputs, no round was completed, or the report cannot be written.
pub fn run(settings: Versus) -> Result<Exit> {
    let signals = Signals::block().context("cannot block signals")?;
    let host = host::describe();
    let started_at = super::now();
    let line = StatusLine { draws: settings.pipeline.live };
    let mut published = publish(&settings)?;
    let mut comparison = Comparison::new(&settings, &host, &signals)?;
    let ended = comparison.run_rounds(line, published.as_mut());
    line.clear();
    let is_interruption = |error: &anyhow::Error| {
        signals.interrupted().is_some()
            || matches!(error.downcast_ref(), Some(LaunchError::Interrupted(_)))
            || matches!(error.downcast_ref(), Some(RunError::Interrupted(_)))
    };
    if let Err(error) = ended
        && !is_interruption(&error)
    {
        return Err(error);
    }
    let interrupted = signals.interrupted();
    let Some(variants) = comparison.variants() else {
        return match interrupted {
            Some(signal) => Ok(Exit::Signal(signal)),
            None => bail!("no round was completed"),
        };
    };
    let record = VersusRecord {
        schema: SCHEMA.to_owned(),
        contend: Some(version::writer()),
        shell: settings.pipeline.shell.clone(),
        started_at,
        in_turn: true,
        rounds: comparison.rounds(),
        warmup_rounds: settings.warmup as usize,
        prepare: settings.variants.first().and_then(|variant| variant.prepare.clone()),
        seed: settings.seed,
        interrupted: interrupted.is_some(),
        conditions: settings.conditions.iter().map(|one: &Condition| one.test(&variants)).collect(),
        warnings: comparison.warnings(),
        host: host.clone(),
        variants,
    };
    let report = render::versus::report(&record, settings.reports.detail, output::width());
    super::reports::write(&record, &report, settings.reports)?;
    let ending = ending(&record);
    let saving = settings.saving.as_ref();
    let number = saving.and_then(|saving| {
        super::pipe::save(saving, SCHEMA, &title(commands(&settings.variants)), &ending, &record)
    });
    if let Some(published) = published {
        published.end(&ending, number);
    }
    Ok(match interrupted {
        Some(signal) => Exit::Signal(signal),
        None if has_failed(&record) => Exit::Condition,
        None => Exit::Success,
    })
}

/// Begins to publish the comparison for `contend serve`, if that is requested.
fn publish(settings: &Versus) -> Result<Option<PublishedRounds>> {
    let Some(folder) = &settings.publish else { return Ok(None) };
    let built_in = Redaction::new([])?;
    let redaction = settings.saving.as_ref().map_or(&built_in, |saving| &saving.redaction);
    let named =
        |(place, variant): (usize, &Variant)| format!("{} {}", name(place), variant.parsed.text);
    let names = settings.variants.iter().enumerate().map(named).collect();
    PublishedRounds::begin(folder, redaction, &title(commands(&settings.variants)), names).map(Some)
}

/// Returns the title of a comparison of commands, for lists of runs.
pub(super) fn title<'a>(commands: impl Iterator<Item = &'a str>) -> String {
    commands.collect::<Vec<_>>().join(" vs ")
}

fn commands(variants: &[Variant]) -> impl Iterator<Item = &str> {
    variants.iter().map(|one| one.parsed.text.as_str())
}

/// Returns how a comparison ended, for the list of saved runs.
pub(super) fn ending(record: &VersusRecord) -> String {
    if record.interrupted {
        "interrupted".to_owned()
    } else {
        format!("exit {}", i32::from(has_failed(record)))
    }
}

/// Returns whether a condition of `--fail-if` holds.
fn has_failed(record: &VersusRecord) -> bool {
    record.conditions.iter().any(|tested| !tested.holds_for.is_empty())
}

/// The runs so far.
struct Comparison<'a> {
    settings: &'a Versus,
    host: &'a Host,
    signals: &'a Signals,
    random: fastrand::Rng,
    /// Output of the baseline's first run; empty before that run.
    reference: File,
    /// Exit status of the baseline's first run.
    reference_status: Option<i32>,
    output: File,
    /// Whether the outputs may be kept in memory.
    is_in_memory: bool,
    runs: Vec<Runs>,
}

/// The runs of a variant.
#[derive(Default)]
struct Runs {
    records: Vec<PipeRecord>,
    difference: Option<String>,
}

impl<'a> Comparison<'a> {
    fn new(settings: &'a Versus, host: &'a Host, signals: &'a Signals) -> Result<Self> {
        let file = || temporary(OUTPUT_BYTES).context("cannot create a temporary file");
        Ok(Self {
            settings,
            host,
            signals,
            random: fastrand::Rng::with_seed(settings.seed),
            reference: file()?,
            reference_status: None,
            output: file()?,
            is_in_memory: true,
            runs: settings.variants.iter().map(|_| Runs::default()).collect(),
        })
    }

    /// Runs all rounds, and shows and publishes each run. If a run fails or is interrupted, the round is
    /// incomplete and does not count.
    fn run_rounds(
        &mut self,
        line: StatusLine,
        mut published: Option<&mut PublishedRounds>,
    ) -> Result<()> {
        let rounds = self.settings.warmup + self.settings.rounds;
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..self.settings.variants.len()).collect();
            self.random.shuffle(&mut order);
            if round == 0 {
                // The first output of the baseline is the reference.
                order.sort_by_key(|&place| place != 0);
            }
            let mut records: BTreeMap<usize, PipeRecord> = BTreeMap::new();
            for (done, place) in order.into_iter().enumerate() {
                let count = self.settings.variants.len() as f64;
                let share = |done| (f64::from(round) + done as f64 / count) / f64::from(rounds);
                let text = format!("round {} of {rounds}", round + 1);
                let bar = bar(share(done), output::width());
                line.show(&format!("{text}, {} {bar}", name(place)));
                let record = self.run_once(place)?;
                if let Some(published) = &mut published {
                    published.show(place, record.wall_seconds, share(done + 1), text);
                }
                records.insert(place, record);
            }
            if round >= self.settings.warmup {
                for (place, record) in records {
                    self.runs[place].records.push(record);
                }
            }
        }
        Ok(())
    }

    /// Runs a variant once, after `--prepare`. The output and exit status of the first run become
    /// the reference; those of later runs are compared with it.
    fn run_once(&mut self, place: usize) -> Result<PipeRecord> {
        let variant = &self.settings.variants[place];
        if let Some(prepare) = &variant.prepare {
            self.prepare(prepare, place)?;
        }
        let is_reference = self.reference_status.is_none();
        let file = if is_reference { &self.reference } else { &self.output };
        let record = self.profile(variant, file)?;
        if self.signals.interrupted().is_some() {
            bail!(LaunchError::Interrupted(self.signals.interrupted().unwrap_or_default()));
        }
        if !has_room(file, u64::from(is_reference)).context("cannot check a temporary file")? {
            if !self.is_in_memory {
                bail!("not enough space for the pipelines' outputs in TMPDIR");
            }
            self.leave_memory()?;
            return self.run_once(place);
        }
        let Some(status) = self.reference_status else {
            self.reference_status = Some(record.exit_code);
            return Ok(record);
        };
        let found = difference(&self.reference, &self.output).context("cannot compare outputs")?;
        let found = match found {
            Some(found) => Some(found.to_string()),
            None if status != record.exit_code => Some(format!(
                "status {} instead of {status}, with the same output",
                record.exit_code
            )),
            None => None,
        };
        let runs = &mut self.runs[place];
        runs.difference = runs.difference.take().or(found);
        Ok(record)
    }

    /// Replaces the files in memory, which are too small, by files in the directory for temporary
    /// files. The baseline's output stays where it is.
    fn leave_memory(&mut self) -> Result<()> {
        let file = || tempfile::tempfile().context("cannot create a temporary file");
        self.is_in_memory = false;
        self.output = file()?;
        if self.reference_status.is_none() {
            self.reference = file()?;
        }
        Ok(())
    }

    fn prepare(&self, text: &str, place: usize) -> Result<()> {
        let pipeline = &self.settings.pipeline;
        let runner =
            Runner { shell: &pipeline.shell, setup: None, pipefail: false, signals: self.signals };
        let nowhere = temporary(0).context("cannot create a temporary file")?;
        let run = runner.run(text, None, &nowhere, Duration::from_hours(24))?;
        let status = run.status.shell_code();
        if status != 0 {
            bail!("--prepare ended with status {status} before a run of {}", name(place));
        }
        Ok(())
    }

    fn profile(&self, variant: &Variant, output: &File) -> Result<PipeRecord> {
        let pipeline = &self.settings.pipeline;
        output.set_len(0).context("cannot empty a temporary file")?;
        let mut start = output;
        std::io::Seek::rewind(&mut start).context("cannot rewind a temporary file")?;
        let spec = LaunchSpec {
            shell: &pipeline.shell,
            setup: variant.setup.as_deref(),
            parsed: &variant.parsed,
            pipefail: pipeline.pipefail,
            stdin: pipeline.open_stdin()?,
            output: Output::File(output.try_clone().context("cannot duplicate a descriptor")?),
            trace: false,
        };
        let record = profile(spec, self.host, super::now(), self.signals, &mut |_| {})?;
        Ok(PipeRecord { contend: Some(version::writer()), ..record })
    }

    /// Returns the number of complete rounds.
    fn rounds(&self) -> usize {
        self.runs.iter().map(|runs| runs.records.len()).min().unwrap_or(0)
    }

    /// Returns the results of all variants, or `None` without a complete round.
    fn variants(&self) -> Option<Vec<VariantRecord>> {
        let baseline = self.runs.first()?;
        let variant = |(place, runs): (usize, &Runs)| {
            let given = &self.settings.variants[place];
            let over = |value: fn(&PipeRecord) -> f64| {
                let samples = runs.records.iter().map(value).collect();
                Estimate::from_samples(samples, self.settings.seed)
            };
            let ratio = |value: fn(&PipeRecord) -> f64| {
                let pairs = runs.records.iter().zip(&baseline.records);
                let ratios = pairs.map(|(own, base)| value(own) / value(base).max(1e-9)).collect();
                Estimate::from_samples(ratios, self.settings.seed)
            };
            let mut codes = runs.records.iter().rev().map(|record| record.exit_code);
            Some(VariantRecord {
                name: name(place),
                command: given.parsed.text.clone(),
                parameters: given.parameters.clone(),
                exit_code: codes.find(|&code| code != 0).unwrap_or(0),
                wall_seconds: over(wall)?,
                cpu_seconds: over(cpu)?,
                max_rss_bytes: over(memory)?,
                ratios: if place == 0 {
                    None
                } else {
                    Some(Ratios { wall: ratio(wall)?, cpu: ratio(cpu)?, memory: ratio(memory)? })
                },
                origin: None,
                output_equal: Some(runs.difference.is_none()),
                difference: runs.difference.clone(),
                profile: middle(&runs.records)?.clone(),
            })
        };
        self.runs.iter().enumerate().map(variant).collect()
    }

    /// Returns the warnings about disturbances of the runs, one of each kind.
    fn warnings(&self) -> Vec<contend_record::Warning> {
        let mut warnings: Vec<contend_record::Warning> = Vec::new();
        for warning in self.runs.iter().flat_map(|runs| &runs.records).flat_map(|r| &r.warnings) {
            if warning.is_disturbance() && warnings.iter().all(|known| known.id != warning.id) {
                warnings.push(warning.clone());
            }
        }
        warnings
    }
}

/// Returns the name of a variant: A, B, … Z, AA, AB, …
fn name(place: usize) -> String {
    contend_report::compare::name(place)
}

/// Returns the record with the median wall time, or the faster of the two middle ones.
fn middle(records: &[PipeRecord]) -> Option<&PipeRecord> {
    let mut sorted: Vec<_> = records.iter().collect();
    sorted.sort_by(|a, b| a.wall_seconds.total_cmp(&b.wall_seconds));
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

fn wall(record: &PipeRecord) -> f64 {
    record.wall_seconds
}

fn cpu(record: &PipeRecord) -> f64 {
    record.total.user_seconds + record.total.system_seconds
}

fn memory(record: &PipeRecord) -> f64 {
    let most = |stage: &Stage| stage.max_rss_bytes;
    record.stages.iter().map(most).max().unwrap_or(0) as f64
}
