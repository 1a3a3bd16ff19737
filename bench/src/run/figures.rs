//! Statistics of a case, computed from its runs, and a summary of all cases.

use anyhow::{Context as _, Result};
use contend_record::pipe::{PipeRecord, Stage};
use contend_record::stats::{Estimate, median};

use super::cases::Case;
use super::measure::Runs;

/// Minimum share of a case's CPU time that a heavy stage uses, or that can be data-parallel in a
/// mostly parallelisable case.
pub const HEAVY_SHARE: f64 = 0.8;
/// contend's speed, relative to bash, below which a case is a loss.
pub const LOSS_SPEED: f64 = 0.97;
/// contend's speed, relative to bash, that pipelines with a heavy stage should reach.
pub const HEAVY_TARGET_SPEED: f64 = 1.6;

/// Statistics of a case at one size of its input.
#[derive(Debug)]
pub struct Figures {
    /// Name of the case.
    pub name: String,
    /// Theme of the case ([`Case::theme`]).
    pub theme: &'static str,
    /// Size of the input, in millions of bytes.
    pub size: u64,
    /// Median CPU time of bash, in seconds.
    pub cpu: f64,
    /// Share of CPU time that can be data-parallel, from 0 to 1.
    pub part: f64,
    /// Number, from 1, of the stage with the most CPU time, and its share; `None` for scripts, and
    /// if the stages used no CPU time.
    pub heaviest: Option<(usize, f64)>,
    /// CPU time of bash divided by the number of CPUs, relative to contend's wall time; may exceed
    /// 1. `None` if contend was not measured or its output is wrong.
    pub limit: Option<f64>,
    /// Statistics of each tool, bash first.
    pub tools: Vec<ToolFigures>,
}

/// Statistics of one tool for a case.
#[derive(Debug)]
pub struct ToolFigures {
    /// Name of the tool.
    pub tool: &'static str,
    /// Median wall time, in seconds.
    pub wall: f64,
    /// Median CPU time, in seconds.
    pub cpu: f64,
    /// Largest `Run::peak` of all runs, in bytes.
    pub peak: u64,
    /// bash's wall time divided by the tool's in the same round; above 1, the tool is faster.
    pub ratio: Estimate,
    /// How the output or status differs from bash's; `None` if it does not.
    pub wrong: Option<String>,
    /// A note for readers of the statistics, if there is one.
    pub remark: Option<String>,
}

/// Computes the statistics of a case on an input of `size` million bytes from `runs`, of which
/// those of bash come first. `record` is a profile of the case's stages, if there is one. `cpus` is
/// the number of CPUs, which may be fractional, and `seed` is the seed of the intervals.
///
/// # Errors
/// Returns an error if bash or another tool in `runs` has no runs.
pub fn of_case(
    case: &Case,
    size: u64,
    record: Option<&PipeRecord>,
    runs: Vec<Runs>,
    cpus: f64,
    seed: u64,
) -> Result<Figures> {
    let bash: Vec<f64> = walls(runs.first().context("bash has no runs")?);
    let of = |runs: Runs| of_tool(runs, &bash, seed);
    let tools: Vec<ToolFigures> =
        runs.into_iter().map(of).collect::<Option<_>>().context("no runs")?;
    let cpu = tools[0].cpu;
    let right = tools.iter().find(|of| of.tool == "contend" && of.wrong.is_none());
    let (part, heaviest) = record.map_or((case.part.unwrap_or(0.0), None), |record| {
        let cpus: Vec<f64> = record.stages.iter().map(Stage::cpu_seconds).collect();
        let part = parallel_part(&cpus, &case.serial);
        (case.part.unwrap_or(part), heaviest(&cpus))
    });
    Ok(Figures {
        name: case.name.clone(),
        theme: case.theme,
        size,
        cpu,
        part,
        heaviest,
        limit: right.map(|of| cpu / cpus / of.wall),
        tools,
    })
}

fn walls(runs: &Runs) -> Vec<f64> {
    runs.runs.iter().map(|run| run.timed.wall.as_secs_f64()).collect()
}

fn of_tool(runs: Runs, bash: &[f64], seed: u64) -> Option<ToolFigures> {
    let walls = walls(&runs);
    let cpus: Vec<f64> = runs.runs.iter().map(|run| run.timed.cpu().as_secs_f64()).collect();
    let ratios = bash.iter().zip(&walls).map(|(bash, own)| bash / own).collect();
    Some(ToolFigures {
        tool: runs.tool,
        wall: median(&walls)?,
        cpu: median(&cpus)?,
        peak: runs.runs.iter().map(|run| run.peak).max()?,
        ratio: Estimate::from_samples(ratios, seed)?,
        wrong: runs.wrong,
        remark: runs.remark,
    })
}

/// Returns the share of CPU time of the stages that are not in `serial`; 0 if no stage used CPU
/// time. `cpus` has the CPU times of all stages, and `serial` numbers of stages, from 1.
fn parallel_part(cpus: &[f64], serial: &[usize]) -> f64 {
    let total: f64 = cpus.iter().sum();
    let of_serial = |stage: &usize| cpus.get(stage - 1).copied().unwrap_or(0.0);
    if total <= 0.0 { 0.0 } else { 1.0 - serial.iter().map(of_serial).sum::<f64>() / total }
}

fn heaviest(cpus: &[f64]) -> Option<(usize, f64)> {
    let total: f64 = cpus.iter().sum();
    let most = (1..).zip(cpus).max_by(|one, other| one.1.total_cmp(other.1))?;
    (total > 0.0).then_some((most.0, most.1 / total))
}

impl Figures {
    /// Returns the statistics of `tool`, or `None` if it was not measured.
    pub fn of(&self, tool: &str) -> Option<&ToolFigures> {
        self.tools.iter().find(|of| of.tool == tool)
    }

    /// Returns contend's speed relative to bash, or `None` if contend was not measured or its
    /// output is wrong.
    pub fn gain(&self) -> Option<f64> {
        self.of("contend").filter(|of| of.wrong.is_none()).map(|of| of.ratio.median)
    }

    /// Returns whether one stage uses at least [`HEAVY_SHARE`] of the CPU time; `false` for
    /// scripts, whose stages are not known.
    pub fn is_heavy(&self) -> bool {
        self.heaviest.is_some_and(|(_, part)| part >= HEAVY_SHARE)
    }

    /// Returns contend's speed relative to `tool`: infinite if only contend's output is right, and
    /// 0 if contend's is wrong. `None` if either was not measured.
    pub fn against(&self, tool: &str) -> Option<f64> {
        let (own, other) = (self.of("contend")?, self.of(tool)?);
        match (&own.wrong, &other.wrong) {
            (None, None) => Some(other.wall / own.wall),
            (None, Some(_)) => Some(f64::INFINITY),
            (Some(_), _) => Some(0.0),
        }
    }
}

/// Statistics over all cases.
#[derive(Debug)]
pub struct Summary {
    /// Geometric mean of contend's speed relative to bash, over all cases in which contend's output
    /// is right; `None` if there are none.
    pub gain: Option<f64>,
    /// Geometric mean of contend's speed relative to bash for each size, in millions of bytes.
    pub by_size: Vec<(u64, f64)>,
    /// Geometric mean of [`Figures::limit`] over the mostly parallelisable cases that have one, and
    /// the number of these cases.
    pub limit: (Option<f64>, usize),
    /// Cases in which contend's speed is below [`LOSS_SPEED`], with size and speed.
    pub losses: Vec<String>,
    /// Cases with a heavy stage in which contend's output is right: how many reach
    /// [`HEAVY_TARGET_SPEED`], how many there are in total, and those that fall short, with size
    /// and speed.
    pub heavy: (usize, usize, Vec<String>),
    /// Cases in which contend's output or status differs from bash's, with size, and 0 as speed.
    pub wrong: Vec<String>,
    /// Comparison of contend with each other tool that was measured.
    pub comparisons: Vec<ToolComparison>,
}

/// A comparison of contend with another tool.
#[derive(Debug)]
pub struct ToolComparison {
    /// Name of the tool.
    pub tool: &'static str,
    /// Number of cases in which both ran.
    pub cases: usize,
    /// Number of cases in which contend's output was right, and it took less time or the tool's
    /// output was wrong.
    pub wins: usize,
    /// The other cases, with size and contend's speed relative to the tool (0 if contend's output
    /// was wrong).
    pub losses: Vec<String>,
    /// Number of cases in which the tool's output was wrong.
    pub wrong: usize,
}

/// Computes the statistics over all cases.
pub fn summary(all: &[Figures]) -> Summary {
    let gains = |chosen: &dyn Fn(&Figures) -> bool| {
        geometric(all.iter().filter(|one| chosen(one)).filter_map(Figures::gain))
    };
    let named = |chosen: &dyn Fn(&Figures) -> bool| {
        let chosen = all.iter().filter(|one| chosen(one));
        chosen.map(|one| labelled(one, one.gain().unwrap_or(0.0))).collect::<Vec<_>>()
    };
    let limits: Vec<f64> =
        all.iter().filter(|one| one.part >= HEAVY_SHARE).filter_map(|one| one.limit).collect();
    let heavy: Vec<f64> =
        all.iter().filter(|one| one.is_heavy()).filter_map(Figures::gain).collect();
    let mut sizes: Vec<u64> = all.iter().map(|one| one.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let below = |one: &Figures, least: f64| one.gain().is_some_and(|gain| gain < least);
    Summary {
        gain: gains(&|_| true),
        by_size: sizes
            .into_iter()
            .filter_map(|size| Some((size, gains(&|one| one.size == size)?)))
            .collect(),
        limit: (geometric(limits.iter().copied()), limits.len()),
        losses: named(&|one| below(one, LOSS_SPEED)),
        heavy: (
            heavy.iter().filter(|&&gain| gain >= HEAVY_TARGET_SPEED).count(),
            heavy.len(),
            named(&|one| one.is_heavy() && below(one, HEAVY_TARGET_SPEED)),
        ),
        wrong: named(&|one| one.of("contend").is_some_and(|of| of.wrong.is_some())),
        comparisons: ["pash", "parallel", "xargs", "forkrun"]
            .into_iter()
            .filter_map(|tool| comparison(all, tool))
            .collect(),
    }
}

fn comparison(all: &[Figures], tool: &'static str) -> Option<ToolComparison> {
    let both: Vec<(&Figures, f64)> =
        all.iter().filter_map(|one| Some((one, one.against(tool)?))).collect();
    let lost = both.iter().filter(|(_, speed)| *speed <= 1.0);
    let losses: Vec<String> = lost.map(|(one, speed)| labelled(one, *speed)).collect();
    let wrong = |one: &Figures| one.of(tool).is_some_and(|of| of.wrong.is_some());
    (!both.is_empty()).then(|| ToolComparison {
        tool,
        cases: both.len(),
        wins: both.len() - losses.len(),
        losses,
        wrong: both.iter().filter(|(one, _)| wrong(one)).count(),
    })
}

fn labelled(one: &Figures, value: f64) -> String {
    format!("{} {}MB {value:.2}", one.name, one.size)
}

/// Returns the geometric mean of positive numbers, or `None` if there are none.
fn geometric(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    let count = logarithms.len() as f64;
    (count > 0.0).then(|| (logarithms.iter().sum::<f64>() / count).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_part_is_the_share_of_the_named_stages() {
        assert!((parallel_part(&[1.0, 2.0, 1.0], &[1, 3]) - 0.5).abs() < 1e-9);
        assert!((parallel_part(&[1.0, 3.0], &[]) - 1.0).abs() < 1e-9);
        assert!((parallel_part(&[1.0], &[7]) - 1.0).abs() < 1e-9);
        assert!(parallel_part(&[], &[1]).abs() < 1e-9);
    }

    #[test]
    fn the_heaviest_stage_is_found_with_its_part() {
        assert_eq!(heaviest(&[1.0, 3.0]), Some((2, 0.75)));
        assert_eq!(heaviest(&[0.0]), None);
    }

    #[test]
    fn the_mean_of_a_gain_and_its_inverse_is_one() {
        assert!(geometric([4.0, 0.25].into_iter()).is_some_and(|mean| (mean - 1.0).abs() < 1e-9));
        assert_eq!(geometric(std::iter::empty()), None);
    }
}
