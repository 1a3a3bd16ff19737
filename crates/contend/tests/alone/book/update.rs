//! Replaces the output on a page by the current output of its commands.

use std::path::Path;

use super::output::{is_gap, is_line};
use super::page::{Item, Page, Step};
use super::sandbox::{Lab, Sandbox};
use super::skip_if_missing;
use crate::support::report;

/// Runs the commands of a page as printed, and replaces their output on the page. Gaps (`...`)
/// remain, unless `replaces_gaps` is true.
pub fn page(path: &Path, name: &str, page: &Page, replaces_gaps: bool) {
    let sandbox = Sandbox::new(Lab::AsTyped);
    let text = std::fs::read_to_string(path).expect("it was read before");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut replaced = Vec::new();
    for item in &page.items {
        match item {
            Item::Setup { command, .. } => drop(sandbox.run(command)),
            Item::Block(block) if skip_if_missing(name, block) => {}
            Item::Block(block) => {
                for step in &block.steps {
                    let output = updated(name, step, &sandbox, replaces_gaps);
                    let indent = " ".repeat(block.indent);
                    let output = output.iter().map(|line| format!("{indent}{line}"));
                    let output: Vec<_> = output.map(|line| line.trim_end().to_owned()).collect();
                    replaced.push((step.output_lines.clone(), output));
                }
            }
        }
    }
    // Replace from the end, so that the numbers of earlier lines stay valid.
    for (range, output) in replaced.into_iter().rev() {
        lines.splice(range, output);
    }
    std::fs::write(path, lines.join("\n") + "\n").expect("it can be written");
}

/// Returns the new output of a command. If its exit code is not that of the page, or a line of the
/// page matches no new line, returns the old output, and reports why.
fn updated(name: &str, step: &Step, sandbox: &Sandbox, replaces_gaps: bool) -> Vec<String> {
    let ran = sandbox.run(&step.command);
    let lines: Vec<_> = ran.output.trim_matches('\n').lines().map(str::to_owned).collect();
    if ran.exit_code != step.exit_code {
        report(&format!("{name}:{}: exit code {}: left as it is", step.line, ran.exit_code));
        return step.output.clone();
    }
    let page = if replaces_gaps { &[] } else { step.output.as_slice() };
    refreshed(page, &lines).unwrap_or_else(|missing| {
        report(&format!("{name}:{}: left as it is, no line is like: {missing}", step.line));
        step.output.clone()
    })
}

/// Replaces the lines in `page`, the old output of a command, by the lines in `output` that they
/// match. Returns the whole output if `page` is empty.
///
/// The first and the last of the lines between two gaps determine where these lines are in the
/// output.
///
/// # Errors
/// Returns the line of the page that matches no line of the output.
fn refreshed(page: &[String], output: &[String]) -> Result<Vec<String>, String> {
    if page.is_empty() {
        return Ok(output.to_vec());
    }
    let mut result = Vec::new();
    let mut rest = output;
    let mut runs = page.split(|line| is_gap(line)).peekable();
    let mut is_first = true;
    while let Some(run) = runs.next() {
        let is_last = runs.peek().is_none();
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            let start = if is_first { 0 } else { position(first, rest)? };
            let found = &rest[start..];
            let length = if is_last { found.len() } else { last_position(last, run, found)? + 1 };
            result.extend(with_wildcards(run, &found[..length]));
            rest = &found[length..];
        }
        if !is_last {
            result.push("...".to_owned());
        }
        is_first = false;
    }
    Ok(result)
}

fn position(line: &str, output: &[String]) -> Result<usize, String> {
    let alike = output.iter().position(|found| is_line(line, found));
    let alike = alike.or_else(|| output.iter().position(|found| starts_alike(line, found)));
    alike.ok_or_else(|| line.to_owned())
}

/// Returns the index in `found` of the line that matches `last`, the last line of `run`. As rows of
/// a table are alike, the search starts where the line is if `run` has kept its length. If nothing
/// matches from there on, the last match before that place counts.
///
/// # Errors
/// Returns `last` if it matches no line.
fn last_position(last: &str, run: &[String], found: &[String]) -> Result<usize, String> {
    let expected = (run.len() - 1).min(found.len());
    if let Ok(index) = position(last, &found[expected..]) {
        return Ok(expected + index);
    }
    let before = found[..expected].iter().rposition(|line| is_line(last, line));
    before.map_or_else(|| position(last, found), Ok)
}

/// Returns whether two lines begin with the same three words, apart from numbers, as when a
/// sentence is wrapped at another word. `false` for an empty `line`.
fn starts_alike(line: &str, found: &str) -> bool {
    let start = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    !line.trim().is_empty() && is_line(&start(line), &start(found))
}

/// Returns the output. Lines of the page with a wildcard, `[..]`, replace the lines that they
/// match.
fn with_wildcards(page: &[String], output: &[String]) -> Vec<String> {
    let mut wildcards = page.iter().filter(|line| line.contains("[..]"));
    let kept = |line: &String| {
        let kept = wildcards.clone().position(|wildcard| is_line(wildcard, line));
        kept.and_then(|index| wildcards.nth(index)).unwrap_or(line).clone()
    };
    output.iter().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refresh(page: &str, output: &str) -> Result<String, String> {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        refreshed(&lines(page), &lines(output)).map(|lines| lines.join("\n"))
    }

    #[test]
    fn figures_are_replaced_and_gaps_are_kept() {
        let output = "real 2s\nx\nStage 1 ran for 1 s of 2 s,\nthen ended\ny\nlast 5\n";
        let page = "real 1s\n...\nStage 1 ran for 0.5 s\nof 1 s, then ended\n...";
        let error = refresh(page, output).unwrap_err();
        assert_eq!(error, "of 1 s, then ended", "it is wrapped elsewhere");
        assert_eq!(
            refresh("real 1s\n...\nStage 1 ran for 0.5 s\n...\nlast 4", output).as_deref(),
            Ok("real 2s\n...\nStage 1 ran for 1 s of 2 s,\n...\nlast 5")
        );
        assert_eq!(refresh("", "a\nb\n").as_deref(), Ok("a\nb"));
        assert_eq!(refresh("...", "a\nb\n").as_deref(), Ok("..."));
    }

    #[test]
    fn rows_of_a_table_are_not_lost() {
        let page = "...\nkind n\nfork 1\nfork 10\nfork 100\n...";
        let output = "head\nkind n\nfork 2\nfork 20\nfork 200\nnote\n";
        let expected = "...\nkind n\nfork 2\nfork 20\nfork 200\n...";
        assert_eq!(refresh(page, output).as_deref(), Ok(expected));
        let shorter = "head\nkind n\nfork 2\nfork 20\nnote\n";
        assert_eq!(refresh(page, shorter).as_deref(), Ok("...\nkind n\nfork 2\nfork 20\n..."));
    }

    #[test]
    fn wildcards_in_a_line_are_kept() {
        let page = "on [..], 2 CPUs\ntook 3 s";
        let output = "on an AMD EPYC, 4 CPUs\ntook 1 s";
        assert_eq!(refresh(page, output).as_deref(), Ok("on [..], 2 CPUs\ntook 1 s"));
    }
}
