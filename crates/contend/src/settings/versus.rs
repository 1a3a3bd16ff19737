//! Settings of a comparison of pipelines: the variants to run, and the conditions to test.

use std::collections::BTreeMap;
use std::path::PathBuf;

use contend_record::versus::Condition;
use contend_shell::parse::{ParseError, Parsed, parse};

use super::Reports;
use super::pipe::{PipelineSettings, check_text};
use crate::cli::pipe::VersusArgs;
use crate::exit::UsageError;
use crate::records::save::Saving;

/// Maximum number of variants in a comparison.
const MAX_VARIANTS: usize = 200;

/// Pipelines to compare.
#[derive(Debug)]
pub struct Versus {
    /// The variants; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Settings of the execution. Each variant has a setup of its own.
    pub pipeline: PipelineSettings,
    /// Number of rounds to measure.
    pub rounds: u32,
    /// Number of rounds to run before those that are measured.
    pub warmup: u32,
    /// Conditions that make the comparison fail.
    pub conditions: Vec<Condition>,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Where the report goes.
    pub reports: Reports,
    /// How the comparison is saved; `None` if it is not.
    pub saving: Option<Saving>,
    /// Directory in which the comparison publishes its progress; `None` if it does not.
    pub publish: Option<PathBuf>,
}

/// A pipeline with the values of its parameters.
#[derive(Debug)]
pub struct Variant {
    /// The parsed pipeline.
    pub parsed: Parsed,
    /// Values of the parameters, by name.
    pub parameters: BTreeMap<String, String>,
    /// Shell text to run before the pipeline in the same shell, if any.
    pub setup: Option<String>,
    /// Shell text to run before every run, if any.
    pub prepare: Option<String>,
}

/// Returns the variants to compare: every pipeline with every combination of values.
///
/// # Errors
/// Returns an error if a text contains a NUL byte, if a pipeline cannot be parsed, if a parameter
/// is malformed, unused or given twice, or if there are too many variants.
pub fn variants(
    args: &VersusArgs,
    pipeline: &str,
    setup: Option<&str>,
) -> Result<Vec<Variant>, UsageError> {
    let parameters = args.scan.iter().map(|scan| parameter(scan)).collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<&str> =
        [pipeline].into_iter().chain(args.vs.iter().map(String::as_str)).collect();
    let prepare = args.prepare.as_deref();
    check_text("--prepare", prepare.unwrap_or(""))?;
    for (place, (name, _)) in parameters.iter().enumerate() {
        if parameters[..place].iter().any(|(other, _)| other == name) {
            return Err(UsageError(format!("--scan {name}: given twice")));
        }
        let mark = BTreeMap::from([(name.clone(), String::new())]);
        let is_used = |text: &str| fill(text, &mark) != text;
        let used = texts.iter().copied().chain(setup).chain(prepare).any(is_used);
        if !used {
            let message = format!("--scan {name}: no pipeline contains {{{name}}}");
            return Err(UsageError(message));
        }
    }
    let combinations = combinations(&parameters);
    if combinations.len().saturating_mul(texts.len()) > MAX_VARIANTS {
        let message = format!(
            "{} combinations of {} are more than {MAX_VARIANTS}",
            combinations.len(),
            if texts.len() == 1 {
                "values".to_owned()
            } else {
                format!("values for {} pipelines", texts.len())
            }
        );
        return Err(UsageError(message));
    }
    let mut variants = Vec::new();
    for (place, text) in texts.into_iter().enumerate() {
        for values in &combinations {
            let filled = |text: &str| fill(text, values);
            let text = filled(text);
            check_text("the pipeline", &text)?;
            variants.push(Variant {
                parsed: parse(&text).map_err(|error| of_pipeline(place, &error))?,
                parameters: values.clone(),
                setup: setup.map(filled),
                prepare: prepare.map(filled),
            });
        }
    }
    Ok(variants)
}

/// Returns the error for the pipeline with the index `place` among those on the command line.
fn of_pipeline(place: usize, error: &ParseError) -> UsageError {
    UsageError(if place == 0 { error.to_string() } else { format!("--vs: {error}") })
}

/// Returns the conditions of `--fail-if` for a comparison of `variants` pipelines.
///
/// # Errors
/// Returns an error if a condition cannot be read, or compares a single pipeline with itself.
pub fn conditions(texts: &[String], variants: usize) -> Result<Vec<Condition>, UsageError> {
    let read = |text: &String| {
        let condition: Condition =
            text.parse().map_err(|error| UsageError(format!("--fail-if '{text}': {error}")))?;
        if variants == 1 && condition.is_relative() {
            let message = format!("--fail-if '{text}' compares two pipelines: add --vs or --scan");
            return Err(UsageError(message));
        }
        Ok(condition)
    };
    texts.iter().map(read).collect()
}

/// Parses a parameter such as `n=1,2,4`; returns its name and its values.
fn parameter(text: &str) -> Result<(String, Vec<String>), UsageError> {
    let (name, values) = text.split_once('=').unwrap_or((text, ""));
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if !is_name(name) || values.iter().any(String::is_empty) {
        let message = format!("--scan '{text}': expected a name and its values, such as n=1,2,4");
        return Err(UsageError(message));
    }
    Ok((name.to_owned(), values))
}

/// Returns the combinations of the parameters' values, but at most `MAX_VARIANTS + 1` of them. The
/// values of the last parameter change fastest. Without parameters, returns one empty combination.
fn combinations(parameters: &[(String, Vec<String>)]) -> Vec<BTreeMap<String, String>> {
    let mut all = vec![BTreeMap::new()];
    for (name, values) in parameters {
        all = all
            .iter()
            .flat_map(|known: &BTreeMap<String, String>| {
                values.iter().map(|value| {
                    let mut more = known.clone();
                    more.insert(name.clone(), value.clone());
                    more
                })
            })
            .take(MAX_VARIANTS + 1)
            .collect();
    }
    all
}

/// Returns the text with the values in place of `{NAME}`. `${NAME}` is a variable of the shell, and
/// stays.
fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        let place = format!("{{{name}}}");
        let mut filled = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(&place) {
            filled.push_str(before);
            filled.push_str(if before.ends_with('$') { &place } else { value });
            rest = after;
        }
        filled + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(vs: &[&str], scan: &[&str]) -> VersusArgs {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        VersusArgs {
            vs: owned(vs),
            scan: owned(scan),
            warmup: 0,
            prepare: Some("rm -f {k}".to_owned()),
            fail_if: Vec::new(),
        }
    }

    fn texts(vs: &[&str], scan: &[&str]) -> Result<Vec<String>, String> {
        let variants =
            variants(&args(vs, scan), "sort --parallel={n} x", None).map_err(|error| error.0)?;
        Ok(variants.into_iter().map(|variant| variant.parsed.text).collect())
    }

    #[test]
    fn parameters_are_combined() {
        let sorted = |n: u8| format!("sort --parallel={n} x");
        assert_eq!(texts(&[], &["n=1,2"]), Ok(vec![sorted(1), sorted(2)]));
        let both = texts(&["tac {k}"], &["n=1,2", "k=y, z"]).expect("four combinations each");
        assert_eq!(both.len(), 8);
        assert_eq!(both[1], sorted(1));
        assert_eq!(both[2], sorted(2));
        assert_eq!(both[4..6], ["tac y", "tac z"]);
    }

    #[test]
    fn variables_of_the_shell_are_not_parameters() {
        let values = BTreeMap::from([("n".to_owned(), "7".to_owned())]);
        assert_eq!(fill("echo ${n} {n}$ {n}x${n}", &values), "echo ${n} 7$ 7x${n}");
        assert!(texts(&["echo ${m}"], &["m=1"]).is_err(), "there is nothing to replace");
    }

    #[test]
    fn mistakes_are_refused() {
        let error = |scan: &[&str]| texts(&[], scan).expect_err("a mistake");
        assert!(error(&["n"]).contains("such as n=1,2,4"));
        assert!(error(&["n=1,,2"]).contains("such as n=1,2,4"));
        assert!(error(&["1n=2"]).contains("such as n=1,2,4"));
        assert_eq!(error(&["n=1", "n=2"]), "--scan n: given twice");
        assert_eq!(error(&["m=1"]), "--scan m: no pipeline contains {m}");
        let many = format!("n={}", vec!["1"; 201].join(","));
        assert!(error(&[&many]).contains("more than 200"));
        let relative =
            conditions(&["wall > 1.05x".to_owned()], 1).expect_err("nothing to compare").0;
        assert!(relative.contains("add --vs or --scan"), "{relative}");
    }
}
