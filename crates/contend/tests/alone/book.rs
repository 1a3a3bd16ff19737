//! Tests that the commands on the pages of the book and of README.md have the output that the pages
//! show.
//!
//! docs/STYLE.md, "Pages with commands", has the rules for authors. [`page`] finds the sessions of
//! a page, [`sandbox`] runs their commands, [`output`] compares their output with the page, and
//! [`update`] writes new output to the page. trycmd, which also runs sessions in Markdown, does not
//! use a shell, so it lacks pipelines and redirections, and it does not recognise numbers with
//! units.

mod output;
mod page;
mod sandbox;
mod translation;
mod update;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::output::Rules;
use self::page::{Block, Item, Page, Step};
use self::sandbox::{Ran, Sandbox};
use crate::run_exclusively;
use crate::support::{has, skip};

/// Maximum number of runs of a command until its output matches the page.
const MAX_ATTEMPTS: u64 = 5;

/// Environment variable that makes the tests replace the output on the pages; with the value
/// `full`, gaps as well.
const UPDATE_VARIABLE: &str = "CONTEND_UPDATE_BOOK";
/// Environment variable that selects the pages whose path contains its value.
const PAGE_VARIABLE: &str = "CONTEND_BOOK_PAGE";

#[test]
fn readme_sessions_match_actual_output() {
    check(&["README.md"]);
}

#[test]
fn first_page_sessions_match_actual_output() {
    let pages = ["README", "limits", "GLOSSARY", "STYLE"].map(|name| format!("docs/{name}.md"));
    check(&pages.each_ref().map(String::as_str));
}

#[test]
fn tutorial_sessions_match_actual_output() {
    check_folder("docs/tutorials");
}

#[test]
fn guide_sessions_match_actual_output() {
    check_folder("docs/guides");
}

#[test]
fn reference_sessions_match_actual_output() {
    check_folder("docs/reference");
}

#[test]
fn measurement_sessions_match_actual_output() {
    check_folder("docs/measurements");
}

#[test]
fn translated_sessions_equal_the_original() {
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        return; // `check` copies the sessions
    }
    let originals = pages_below("docs").into_iter().chain(["README.md".into()]);
    let pairs = originals.filter_map(|page| Some((translation::of(&page)?, page)));
    let mut compared = 0;
    for (translation, original) in pairs {
        let sessions = |page: &Path| {
            let text = std::fs::read_to_string(root().join(page)).expect("a page");
            translation::sessions(&text)
        };
        let (expected, found) = (sessions(&original), sessions(&translation));
        assert_eq!(found.len(), expected.len(), "sessions of {}", translation.display());
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(found, expected, "{}", translation.display());
            compared += 1;
        }
    }
    assert!(compared > 50, "only {compared} sessions");
}

#[test]
fn every_page_with_commands_is_checked() {
    let checked = ["tutorials", "guides", "reference", "measurements", "ja"];
    for path in pages_below("docs") {
        let folder = path.components().nth(1).map(|folder| folder.as_os_str().to_owned());
        let is_first = path.components().count() == 2;
        let is_checked = folder.is_some_and(|folder| checked.iter().any(|name| folder == *name));
        let page = Page::read(&root().join(&path));
        assert!(is_first || is_checked || page.items.is_empty(), "no test has {}", path.display());
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check_folder(folder: &str) {
    let pages = pages_below(folder);
    let pages: Vec<_> = pages.iter().filter_map(|path| path.to_str()).collect();
    check(&pages);
}

/// Returns the paths of the Markdown pages below a folder, sorted; none if the folder does not
/// exist. All paths are relative to the repository's root.
fn pages_below(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // A folder that does not exist has no pages.
    let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten();
    for entry in entries {
        let path = Path::new(folder).join(entry.file_name());
        if entry.path().is_dir() {
            found.extend(pages_below(path.to_str().expect("UTF-8")));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn check(pages: &[&str]) {
    let only = std::env::var(PAGE_VARIABLE).unwrap_or_default();
    let mut problems = Vec::new();
    for path in pages.iter().filter(|path| path.contains(&only)) {
        let page = Page::read(&root().join(path));
        if page.items.is_empty() {
            continue;
        }
        run_exclusively(|| {
            if let Some(mode) = std::env::var_os(UPDATE_VARIABLE) {
                update::page(&root().join(path), path, &page, mode == "full");
                if let Some(translation) = translation::of(Path::new(path)) {
                    let text = |page: &Path| std::fs::read_to_string(page).expect("a page");
                    let sessions = translation::sessions(&text(&root().join(path)));
                    let translation = root().join(translation);
                    let new = translation::with_sessions(&text(&translation), &sessions);
                    std::fs::write(translation, new).expect("room");
                }
            } else {
                problems.extend(problems_of(path, &page));
            }
        });
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// Runs all sessions of a page, and returns descriptions of the differences from the page.
fn problems_of(path: &str, page: &Page) -> Vec<String> {
    let sandbox = Sandbox::new(sandbox::Lab::Quick);
    let mut problems = Vec::new();
    for item in &page.items {
        match item {
            Item::Setup { line, command } => {
                let ran = sandbox.run(command);
                if ran.exit_code != 0 {
                    problems.push(format!("{path}:{line}: the set-up failed: {}", ran.output));
                }
            }
            Item::Block(block) if skip_if_missing(path, block) => {}
            Item::Block(block) => {
                let steps = block.steps.iter();
                problems.extend(steps.filter_map(|step| problem(path, &sandbox, block, step)));
            }
        }
    }
    problems
}

/// Returns whether a program that a block needs is missing. If so, reports that the block is
/// skipped.
fn skip_if_missing(path: &str, block: &Block) -> bool {
    let missing = block.needs.iter().find(|program| !has(program));
    if let Some(program) = missing {
        skip("book", &format!("{path}:{} needs {program}", block.line));
    }
    missing.is_some()
}

/// Runs a command until its output matches the page, at most `MAX_ATTEMPTS` times. Returns the last
/// difference, or `None` after a match.
fn problem(path: &str, sandbox: &Sandbox, block: &Block, step: &Step) -> Option<String> {
    let rules = Rules::of(&step.command, block.is_exact);
    let mut problem = None;
    for attempt in 1..=MAX_ATTEMPTS {
        let ran = sandbox.run(&step.command);
        problem = Some(difference(step, rules, &ran)?);
        if attempt < MAX_ATTEMPTS {
            std::thread::sleep(Duration::from_secs(attempt));
        }
    }
    problem.map(|problem| format!("{path}:{}: $ {}\n{problem}", step.line, step.command))
}

fn difference(step: &Step, rules: Rules, ran: &Ran) -> Option<String> {
    if ran.exit_code != step.exit_code {
        let (expected, found) = (step.exit_code, ran.exit_code);
        return Some(format!("exit code {found} instead of {expected}:\n{}", ran.output));
    }
    output::difference(&step.output, &ran.output, rules)
}
