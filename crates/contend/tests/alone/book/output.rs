//! Compares the output of a command with the output on a page.
//!
//! The module normalises both, converts the page's version into a regular expression, and requires
//! it to match the whole output.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

/// Placeholder for numbers, intervals, and rows of numbers.
const FIGURE: &str = "#";

/// Permitted differences between the page and the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Only text that `[..]` and `...` match, and spaces at the ends of lines.
    Exact,
    /// Also numbers, bars, spaces, line breaks, empty lines, and warnings about the machine.
    Figures,
    /// Also lines with numbers that the output lacks, and additional lines of the output.
    Lab,
}

impl Rules {
    pub fn of(command: &str, is_exact: bool) -> Self {
        let is_lab = ["contend lab run", "contend lab suite"];
        match () {
            () if is_exact => Self::Exact,
            () if is_lab.iter().any(|words| command.contains(words)) => Self::Lab,
            () => Self::Figures,
        }
    }
}

/// Returns how the output differs from the page, or `None` if it does not.
pub fn difference(page: &[String], output: &str, rules: Rules) -> Option<String> {
    let lines = compared_lines(output.lines().map(str::to_owned).collect(), rules);
    let page = compared_lines(page.to_vec(), rules);
    let normalised: Vec<_> = lines.iter().map(|line| normalise(line, rules)).collect();
    let text = normalised.concat_lines();
    if matches(&page, &text, rules) {
        return None;
    }
    let agreed = (0..page.len()).rev().find(|&count| starts(&page[..count], &text, rules));
    let mut problem = String::new();
    let _ = match page.get(agreed.unwrap_or_default()) {
        Some(line) => writeln!(problem, "not found, or not in this place: {line}"),
        None => writeln!(problem, "there is more than the page shows"),
    };
    let _ = write!(problem, "the output:\n{output}");
    Some(problem)
}

/// Returns whether a line of the page is the gap `...`, which matches any number of lines.
pub fn is_gap(line: &str) -> bool {
    line.trim() == "..."
}

/// Returns whether a line of the page matches a line of the output under [`Rules::Figures`].
pub fn is_line(page: &str, output: &str) -> bool {
    let page = [page.to_owned()];
    matches(&page, &(normalise(output, Rules::Figures) + "\n"), Rules::Figures)
}

fn matches(page: &[String], text: &str, rules: Rules) -> bool {
    expression(page, rules, r"\z").is_match(text)
}

fn starts(page: &[String], text: &str, rules: Rules) -> bool {
    expression(page, rules, "").is_match(text)
}

fn expression(page: &[String], rules: Rules, end: &str) -> Regex {
    let mut pattern = String::from(r"\A");
    for line in page {
        let normalised = normalise(line, rules);
        if is_gap(line) {
            pattern.push_str("(?s:.*?)");
        } else if rules != Rules::Lab {
            pattern.push_str(&line_pattern(&normalised, rules));
        } else if !normalised.contains(FIGURE) {
            pattern.push_str("(?s:.*?)");
            pattern.push_str(&line_pattern(&normalised, rules));
        }
    }
    if rules == Rules::Lab && end == r"\z" {
        pattern.push_str("(?s:.*)");
    }
    pattern.push_str(end);
    Regex::new(&pattern).expect("all else is escaped")
}

/// Returns a pattern for a line and its line break. Unless the rules are exact, the line may be
/// wrapped differently.
fn line_pattern(line: &str, rules: Rules) -> String {
    let pieces: Vec<_> = line.split("[..]").map(regex::escape).collect();
    let pattern = pieces.join("[^\n]*?");
    match rules {
        Rules::Exact => pattern + "\n",
        Rules::Figures | Rules::Lab => {
            let words: Vec<_> = pattern.split(' ').collect();
            words.join(r"\s+") + r"\s+"
        }
    }
}

fn normalise(line: &str, rules: Rules) -> String {
    if rules == Rules::Exact {
        return line.trim_end().to_owned();
    }
    let line = STAGES.replace_all(line, |found: &regex::Captures<'_>| letters(&found[0]));
    let line = BARS.replace_all(&line, "");
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = NUMBER.replace_all(&line, FIGURE);
    let line = INTERVAL.replace_all(&line, FIGURE);
    ROW.replace_all(&line, FIGURE).into_owned()
}

/// Replaces digits by letters, so that they do not count as numbers.
fn letters(text: &str) -> String {
    let letter = |digit: char| match digit.to_digit(10) {
        Some(value) => char::from_u32(u32::from('A') + value).unwrap_or(digit),
        None => digit,
    };
    text.chars().map(letter).collect()
}

/// Removes empty lines and warnings about the machine (`! …`, `warning: …`), with the lines on
/// which they continue. Keeps all lines if the rules are exact.
fn compared_lines(lines: Vec<String>, rules: Rules) -> Vec<String> {
    if rules == Rules::Exact {
        return lines;
    }
    let mut is_warning = false;
    let mut kept = lines;
    kept.retain(|line| {
        let begins = ["! ", "warning: "].iter().any(|start| line.starts_with(start));
        is_warning = begins || (is_warning && line.starts_with("  "));
        !is_warning && !line.trim().is_empty()
    });
    kept
}

trait ConcatLines {
    fn concat_lines(&self) -> String;
}

impl ConcatLines for [String] {
    fn concat_lines(&self) -> String {
        self.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

static STAGES: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b[Ss]tages? \d+(?:(?:, | and |-|–)\d+)*"));
/// Bars of block characters, and bars of the states of a stage (`##==::..`). Neither occurs as a
/// word.
static BARS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"[\u{2580}-\u{259f}\u{2800}-\u{28ff}]+|[#=:.o?]{3,}"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"[~≈<>+−]?\d[\d,]*(?:\.\d+)?",
        r"(?:\s?(?:(?:ns|µs|us|ms|s|min|h|d|[kMGT]?i?B|KiB|bytes?|Hz|[kMG]Hz|[kMGT])\b|[%×])(?:/s\b)?)?",
    ))
});
/// Intervals and ranges of normalised numbers.
static INTERVAL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\[# ?,? ?#\]|\(# ?(?:to|–|-) ?#\)|# ?(?:to|–|±) ?#"));
/// Several normalised numbers in succession, such as cells of a table row. Their number varies,
/// because cells with zero may be empty.
static ROW: LazyLock<Regex> = LazyLock::new(|| regex(r"#(?: #)+"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid expression")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(page: &str, output: &str, rules: Rules) -> bool {
        let page: Vec<_> = page.lines().map(str::to_owned).collect();
        difference(&page, output, rules).is_some()
    }

    #[test]
    fn figures_and_line_breaks_may_differ() {
        let page = "real 1.97s, CPU 2.71s (137 %)\n\n1  sort   95%  ███▌  0.5%\nStage 4 was blocked\n\
                    for 1.89 s of 2 s";
        let output = "real 97ms, CPU 1.2s (7 %)\n\n1  sort  5%  ▌\nStage 4 was\nblocked for 3 ms of \
                      2.5 s\n";
        assert!(!differs(page, output, Rules::Figures));
        assert!(differs(page, output, Rules::Exact));
    }

    #[test]
    fn bars_and_warnings_of_a_report_may_differ() {
        let page =
            "1 s wall\n  1 cat  38ms  ##==::::  blocked 60%\n  2 sort  1s  ######.o  running 95%";
        let output = "2 s wall\n! other programs used 75 %\n  on a busy machine\n\n  1 cat  3ms  ==:::::::  \
                      blocked 7%\n  2 sort  2s  ######  running 9%\n";
        assert!(!differs(page, output, Rules::Figures));
        assert!(differs(page, &output.replace("blocked", "starved"), Rules::Figures));
    }

    #[test]
    fn words_and_stage_numbers_must_match() {
        assert!(differs("Stage 4 was blocked", "Stage 3 was blocked\n", Rules::Figures));
        assert!(differs("(stages 1, 2)", "(stages 1, 3)\n", Rules::Figures));
        assert!(differs("12 ms of CPU", "13 ms at CPU\n", Rules::Figures));
        assert!(differs("one", "one\ntwo\n", Rules::Figures));
        assert!(differs("one\ntwo", "one\n", Rules::Figures));
        assert!(differs("", "one\n", Rules::Figures));
    }

    #[test]
    fn gaps_stand_for_lines_and_for_parts_of_a_line() {
        for rules in [Rules::Exact, Rules::Figures] {
            assert!(!differs("a\n...\nz", "a\nb\nc\nz\n", rules));
            assert!(!differs("a\n...", "a\n", rules));
            assert!(!differs("on [..] CPUs", "on two or three CPUs\n", rules));
            assert!(differs("on [..] CPUs", "on two\nor three CPUs\n", rules));
            assert!(differs("a\n...\nz", "a\nb\nc\n", rules));
        }
    }

    #[test]
    fn exact_output_must_match_numbers_and_spaces() {
        assert!(!differs("a  1\n  b", "a  1\n  b\n", Rules::Exact));
        assert!(differs("a  1", "a 1\n", Rules::Exact));
        assert!(differs("a 1", "a 2\n", Rules::Exact));
    }

    #[test]
    fn lab_output_may_have_other_cases_and_warnings() {
        let page =
            "units/create\nkind  median\nfork 100µs\nthread 10µs\n\nIn [brackets] the interval";
        let output = "lab: 2 cases\n\nunits/create\nkind   median\nfork 3ms\nwarning: fork: others used\n  \
                      the CPUs\n\nIn [brackets] the interval\n";
        assert!(!differs(page, output, Rules::Lab));
        assert!(differs(page, &output.replace("median", "mean"), Rules::Lab));
        assert_eq!(Rules::of("contend lab run x", false), Rules::Lab);
    }

    #[test]
    fn the_first_line_that_differs_is_named() {
        let page = ["one".to_owned(), "two".to_owned(), "three".to_owned()];
        let problem = difference(&page, "one\n2\nthree\n", Rules::Figures).expect("it differs");
        assert!(problem.starts_with("not found, or not in this place: two\n"), "{problem}");
    }
}
