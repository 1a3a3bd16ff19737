//! Neighbouring stages of a script, with their words as the shell has expanded them.

use std::ffi::OsString;

use anyhow::{Context as _, Result, bail};
use contend_profile::commands::{Simple, Word};

use super::direct::Direct;
use super::shell::become_shell;
use crate::exit::Exit;
use crate::output::ReportFile;
use crate::settings::{Run, RunHow, Stages, What};

/// The word that says that the next one is the file of a stage's standard input, behind the mark.
const INPUT: &str = "<";

/// Runs them.
pub fn run(settings: Stages) -> Result<Exit> {
    let (mark, words) = settings.words.split_first().context("no mark is given")?;
    let stages = split(words, mark);
    let simples: Option<Vec<Simple>> = stages.iter().map(simple).collect();
    let Some(simples) = simples.filter(|simples| !simples.is_empty()) else {
        return by_shell(&settings.how, &stages);
    };
    let json = settings.records_to.as_deref().and_then(|path| ReportFile::append_to(path).ok());
    let texts: Vec<String> = simples.iter().map(Simple::text).collect();
    let text = texts.join(" | ");
    let Ok(direct) = Direct::new(&simples) else {
        return by_shell(&settings.how, &stages);
    };
    let run = Run {
        what: What::Pipeline(text.clone()),
        how: settings.how,
        explain: false,
        check: false,
        stats: settings.stats,
        json,
    };
    direct.run(&text, false, run)
}

/// The words of one stage.
#[derive(Debug, Default)]
struct Stage {
    assignments: usize,
    words: Vec<OsString>,
    input: Option<OsString>,
}

fn split(words: &[OsString], mark: &OsString) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word != mark {
            if let Some(stage) = stages.last_mut() {
                stage.words.push(word.clone());
            }
            continue;
        }
        match words.next().and_then(|word| word.to_str()) {
            Some(INPUT) => {
                if let Some(stage) = stages.last_mut() {
                    stage.input = words.next().cloned();
                }
            }
            number => stages.push(Stage {
                assignments: number.and_then(|number| number.parse().ok()).unwrap_or(0),
                ..Stage::default()
            }),
        }
    }
    stages
}

/// A stage as a plain command; `None` if not all of it is text.
fn simple(stage: &Stage) -> Option<Simple> {
    let text = |word: &OsString| word.to_str().map(Word::new);
    let (assignments, rest) = stage.words.split_at_checked(stage.assignments)?;
    let (program, arguments) = rest.split_first()?;
    let variables = assignments.iter().map(|word| {
        let (name, value) = word.to_str()?.split_once('=')?;
        Some((name.to_owned(), Word::new(value)))
    });
    let input = match &stage.input {
        None => None,
        Some(file) => Some(text(file)?),
    };
    Some(Simple {
        variables: variables.collect::<Option<_>>()?,
        program: text(program)?,
        arguments: arguments.iter().map(text).collect::<Option<_>>()?,
        input,
    })
}

/// Has a shell run the words as they are.
fn by_shell(how: &RunHow, stages: &[Stage]) -> Result<Exit> {
    if stages.is_empty() {
        bail!("no stage is given");
    }
    let mut script = Vec::new();
    let mut arguments: Vec<&OsString> = Vec::new();
    for stage in stages {
        let mut texts = Vec::new();
        // Assignments are such only if their names stand there.
        for word in &stage.words[..stage.assignments.min(stage.words.len())] {
            let (name, _) = word.to_str().and_then(|text| text.split_once('=')).unzip();
            arguments.push(word);
            let place = arguments.len();
            texts.push(format!("{}=\"${{{place}#*=}}\"", name.unwrap_or("_")));
        }
        for word in stage.words.iter().skip(stage.assignments) {
            arguments.push(word);
            texts.push(format!("\"${{{}}}\"", arguments.len()));
        }
        if let Some(file) = &stage.input {
            arguments.push(file);
            texts.push(format!("<\"${{{}}}\"", arguments.len()));
        }
        script.push(texts.join(" "));
    }
    let shell = how.shell()?;
    let words: Vec<OsString> =
        std::iter::once(OsString::from(&shell)).chain(arguments.into_iter().cloned()).collect();
    become_shell(&shell, how, &script.join(" | "), &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_put_back_into_stages() {
        let words: Vec<OsString> =
            ["@", "1", "LC_ALL=C", "sort", "a b", "@", "<", "f", "@", "0", "uniq", "-c"]
                .iter()
                .map(OsString::from)
                .collect();
        let stages = split(&words, &"@".into());
        let texts: Option<Vec<_>> =
            stages.iter().map(|stage| simple(stage).map(|simple| simple.text())).collect();
        assert_eq!(texts.expect("text"), ["LC_ALL=C sort 'a b' <f", "uniq -c"]);
    }
}
