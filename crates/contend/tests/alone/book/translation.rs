//! Compares the sessions of translated pages with those of the originals, and copies them.
//!
//! Only the commands of the originals run. A translation with other sessions is out of date.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// Returns the translation of a page, or `None` for an untranslated page. Paths are relative to the
/// repository's root.
pub fn of(page: &Path) -> Option<PathBuf> {
    let name = page.file_name()?.to_str()?;
    let translation = match page.strip_prefix("docs") {
        Ok(rest) => Path::new("docs/ja").join(rest),
        Err(_) => page.with_file_name(name.replace(".md", ".ja.md")),
    };
    super::root().join(&translation).is_file().then_some(translation)
}

/// Returns the sessions of a page, including their fences.
pub fn sessions(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    blocks(&lines).into_iter().map(|block| lines[block].join("\n")).collect()
}

/// Returns a page with its sessions replaced by the given ones.
///
/// # Panics
/// Panics if the numbers of sessions differ.
pub fn with_sessions(text: &str, sessions: &[String]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let blocks = blocks(&lines);
    assert_eq!(blocks.len(), sessions.len(), "sessions of the translation");
    let mut out = String::new();
    let mut copied = 0;
    for (block, session) in blocks.into_iter().zip(sessions) {
        for line in lines[copied..block.start].iter().copied().chain([session.as_str()]) {
            out.push_str(line);
            out.push('\n');
        }
        copied = block.end;
    }
    lines[copied..].iter().for_each(|line| {
        out.push_str(line);
        out.push('\n');
    });
    out
}

/// Returns the line ranges of blocks of the language `console`, including their fences.
fn blocks(lines: &[&str]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut opened: Option<(usize, &str)> = None;
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim();
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match opened {
            None if ticks.len() >= 3 => opened = Some((index, line)),
            Some((start, fence))
                if !ticks.is_empty() && line == ticks && fence.starts_with(line) =>
            {
                if fence[ticks.len()..].trim() == "console" {
                    blocks.push(start..index + 1);
                }
                opened = None;
            }
            _ => {}
        }
    }
    blocks
}

#[test]
fn only_sessions_are_replaced() {
    let original =
        "One.\n\n```console\n$ a\n2\n```\n\n```text\n$ no\n```\n\n```console\n$ b\n```\n";
    let translation =
        "Eins.\n\n```console\n$ a\n1\n```\n\n```text\n$ nein\n```\n\n```console\n```\nEnde.\n";
    let sessions = sessions(original);
    assert_eq!(sessions, ["```console\n$ a\n2\n```", "```console\n$ b\n```"]);
    assert_eq!(
        with_sessions(translation, &sessions),
        "Eins.\n\n```console\n$ a\n2\n```\n\n```text\n$ nein\n```\n\n```console\n$ b\n```\nEnde.\n"
    );
}
