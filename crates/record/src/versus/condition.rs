//! Conditions on the figures or the output of a pipeline, such as `wall > 1.05x`.

use std::str::FromStr;

use super::{Tested, Variant};
use crate::stats::{Estimate, MIN_CI95_SAMPLES};

/// A condition that the figures or the output of a pipeline may meet.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    test: Test,
}

/// The reason why a text is not a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The text has none of the forms `FIGURE > LIMIT`, `FIGURE < LIMIT` and `output differs`.
    #[error(
        "expected FIGURE > LIMIT or FIGURE < LIMIT, such as 'wall > 1.05x', or 'output differs'"
    )]
    Form,
    /// The figure is unknown.
    #[error("unknown figure '{0}'; expected wall, cpu, memory or output")]
    Figure(String),
    /// The limit is invalid: it must be a ratio or an amount with a unit of the figure, and not
    /// negative.
    #[error("'{limit}' is not a limit for {figure}: expected {expected}")]
    Limit {
        /// The limit as given.
        limit: String,
        /// The figure.
        figure: &'static str,
        /// The accepted forms.
        expected: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Test {
    OutputDiffers,
    Figure { figure: Figure, is_above: bool, limit: Limit },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Wall,
    Cpu,
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// Multiple of the baseline's figure.
    Ratio(f64),
    /// Seconds or bytes.
    Absolute(f64),
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    /// For the median, but not for the whole interval.
    Maybe,
    No,
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let spaced = text.replace('>', " > ").replace('<', " < ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let test = match *words.as_slice() {
            ["output", "differs"] => Test::OutputDiffers,
            [figure, operator @ (">" | "<"), limit] => {
                let figure = match figure {
                    "wall" => Figure::Wall,
                    "cpu" => Figure::Cpu,
                    "memory" => Figure::Memory,
                    other => return Err(ConditionError::Figure(other.to_owned())),
                };
                Test::Figure { figure, is_above: operator == ">", limit: figure.limit(limit)? }
            }
            _ => return Err(ConditionError::Form),
        };
        Ok(Self { text: text.to_owned(), test })
    }
}

impl Figure {
    fn limit(self, text: &str) -> Result<Limit, ConditionError> {
        let (figure, units, expected): (_, &[(&str, f64)], _) = match self {
            Self::Wall => ("wall", &TIMES, "a ratio such as 1.05x, or a time such as 2s or 300ms"),
            Self::Cpu => ("cpu", &TIMES, "a ratio such as 1.05x, or a time such as 2s or 300ms"),
            Self::Memory => {
                ("memory", &SIZES, "a ratio such as 1.05x, or a size such as 500M or 2G")
            }
        };
        let error = || ConditionError::Limit { limit: text.to_owned(), figure, expected };
        let number = |text: &str| {
            text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
        };
        if let Some(ratio) = text.strip_suffix('x') {
            return number(ratio).map(Limit::Ratio).ok_or_else(error);
        }
        let (suffix, unit) =
            units.iter().find(|(suffix, _)| text.ends_with(suffix)).ok_or_else(error)?;
        let value = number(&text[..text.len() - suffix.len()]).ok_or_else(error)?;
        Ok(Limit::Absolute(value * unit))
    }
}

/// Suffixes of times, and their units in seconds. `s` comes after `ms`, which also ends with `s`.
const TIMES: [(&str, f64); 3] = [("ms", 1e-3), ("min", 60.0), ("s", 1.0)];
/// Suffixes of sizes, and their units in bytes.
const SIZES: [(&str, f64); 3] = [("k", 1024.0), ("M", 1_048_576.0), ("G", 1_073_741_824.0)];

impl Condition {
    /// Returns whether the limit is a ratio to the baseline, so that the condition needs another
    /// pipeline.
    pub fn is_relative(&self) -> bool {
        matches!(self.test, Test::Figure { limit: Limit::Ratio(_), .. })
    }

    /// Tests the condition for every pipeline, or for every one but the baseline if it is relative
    /// to the baseline.
    pub fn test(&self, variants: &[Variant]) -> Tested {
        let tested =
            if self.is_relative() { variants.get(1..).unwrap_or_default() } else { variants };
        let names = |wanted: Answer| {
            let held = tested.iter().filter(|variant| self.of(variant) == wanted);
            held.map(|variant| variant.name.clone()).collect()
        };
        Tested {
            condition: self.text.clone(),
            holds_for: names(Answer::Yes),
            may_hold_for: names(Answer::Maybe),
        }
    }

    fn of(&self, variant: &Variant) -> Answer {
        match self.test {
            Test::OutputDiffers if variant.output_equal == Some(false) => Answer::Yes,
            Test::OutputDiffers => Answer::No,
            Test::Figure { figure, is_above, limit } => {
                let ratios = variant.ratios.as_ref();
                let (estimate, limit) = match (limit, figure) {
                    (Limit::Absolute(limit), Figure::Wall) => (Some(&variant.wall_seconds), limit),
                    (Limit::Absolute(limit), Figure::Cpu) => (Some(&variant.cpu_seconds), limit),
                    (Limit::Absolute(limit), Figure::Memory) => {
                        (Some(&variant.max_rss_bytes), limit)
                    }
                    (Limit::Ratio(limit), Figure::Wall) => (ratios.map(|of| &of.wall), limit),
                    (Limit::Ratio(limit), Figure::Cpu) => (ratios.map(|of| &of.cpu), limit),
                    (Limit::Ratio(limit), Figure::Memory) => (ratios.map(|of| &of.memory), limit),
                };
                estimate.map_or(Answer::No, |estimate| compare(estimate, is_above, limit))
            }
        }
    }
}

/// Compares an estimate with a limit. With too few samples for an interval, the median decides.
fn compare(estimate: &Estimate, is_above: bool, limit: f64) -> Answer {
    let beyond = |value: f64| if is_above { value > limit } else { value < limit };
    let [low, high] = estimate.ci95;
    let has_interval = estimate.samples.len() >= MIN_CI95_SAMPLES;
    match beyond(estimate.median) {
        false => Answer::No,
        true if !has_interval || beyond(low) && beyond(high) => Answer::Yes,
        true => Answer::Maybe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(median: f64, spread: f64) -> Estimate {
        let samples = (-4..=4).map(|step| median + spread * f64::from(step)).collect();
        Estimate::from_samples(samples, 1).expect("there are samples")
    }

    fn variant(name: &str, wall: f64, ratio: Option<f64>) -> Variant {
        Variant {
            name: name.to_owned(),
            command: String::new(),
            parameters: std::collections::BTreeMap::new(),
            exit_code: 0,
            wall_seconds: estimate(wall, 0.01),
            cpu_seconds: estimate(2.0 * wall, 0.01),
            max_rss_bytes: estimate(3e6, 0.0),
            ratios: ratio.map(|ratio| super::super::Ratios {
                wall: estimate(ratio, 0.01),
                cpu: estimate(1.0, 0.01),
                memory: estimate(1.0, 0.0),
            }),
            output_equal: Some(ratio.is_none()),
            origin: None,
            difference: None,
            profile: crate::pipe::PipeRecord::default(),
        }
    }

    fn tested(text: &str) -> (String, String) {
        let variants = [variant("A", 1.0, None), variant("B", 1.2, Some(1.2))];
        let result = text.parse::<Condition>().expect("a condition").test(&variants);
        assert_eq!(result.condition, text);
        (result.holds_for.concat(), result.may_hold_for.concat())
    }

    #[test]
    fn a_condition_holds_if_the_whole_interval_is_beyond_the_limit() {
        let held = |text: &str| {
            let (certainly, maybe) = tested(text);
            if certainly.is_empty() { format!("{maybe}?") } else { certainly }
        };
        assert_eq!(held("wall > 1.05x"), "B");
        assert_eq!(held("wall>1.19x"), "B?");
        assert_eq!(held("wall > 1.3x"), "?");
        assert_eq!(held("wall < 2s"), "AB", "an absolute limit also applies to the baseline");
        assert_eq!(held("wall > 300ms"), "AB");
        assert_eq!(held("cpu > 2.3s"), "B");
        assert_eq!(held("cpu < 0.5x"), "?");
        assert_eq!(held("memory > 2M"), "AB");
        assert_eq!(held("output differs"), "B");
    }

    #[test]
    fn a_single_pipeline_has_no_ratio() {
        let variants = [variant("A", 1.0, None)];
        let holds = |text: &str| {
            let condition: Condition = text.parse().expect("a condition");
            (condition.is_relative(), condition.test(&variants).holds_for.len())
        };
        assert_eq!(holds("wall > 500ms"), (false, 1));
        assert_eq!(holds("wall > 0.1x"), (true, 0));
    }

    #[test]
    fn mistakes_are_explained() {
        let error = |text: &str| text.parse::<Condition>().expect_err("a mistake").to_string();
        assert!(error("wall").starts_with("expected FIGURE > LIMIT"));
        assert!(
            error("wall >= 1.05x").contains("'=' is not")
                || error("wall >= 1x").contains("expected")
        );
        assert_eq!(
            error("speed > 1x"),
            "unknown figure 'speed'; expected wall, cpu, memory or output"
        );
        assert!(error("wall > 2").contains("a ratio such as 1.05x, or a time such as 2s"));
        assert!(error("memory > 2s").contains("a size such as 500M"));
        assert!(error("wall > -1s").contains("is not a limit"));
    }
}
