//! `contend generate`: prints files for packages, for other programs, and for the documentation.

mod completions;
mod reference;

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory};
use contend_lab::engine::experiment::{Cpus, Sampling, Scope, Size};
use contend_lab::engine::setting::Setting;
use contend_lab::experiments::REGISTRY;
use contend_lab::experiments::pipeline::awk;
use contend_lab::support::inputs::json_array;
use contend_record::lab::{RunRecord, View};
use contend_record::parameters::{Parameters, Value};
use contend_report::{render, schema};

use crate::cli::Args;
use crate::cli::generate::{GenerateArgs, Program, Record, What};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::records::of_lab;

/// Prints the requested document, or writes the man pages to a directory.
///
/// # Errors
/// Returns an error if a record cannot be read or has no case for the page, a schema cannot be
/// made, or the output cannot be written.
pub fn run(args: &GenerateArgs) -> Result<Exit> {
    let mut text = Vec::new();
    match &args.what {
        What::Completions { shell } => {
            text = completions::script(*shell);
        }
        What::Man { dir: None } => text = page(&Args::command())?,
        What::Man { dir: Some(dir) } => pages(dir)?,
        What::Schema { record: Record::Pipe } => text = schema::pipe()?.into_bytes(),
        What::Schema { record: Record::Lab } => text = schema::lab()?.into_bytes(),
        What::Schema { record: Record::Run } => text = schema::run()?.into_bytes(),
        What::Schema { record: Record::Compare } => text = schema::compare()?.into_bytes(),
        What::Schema { record: Record::Versus } => text = schema::versus()?.into_bytes(),
        What::Schema { record: Record::Doctor } => text = schema::doctor()?.into_bytes(),
        What::Awk { program } => text = awk_program(*program).as_bytes().to_vec(),
        What::JsonArray { count } => return json_array_to_stdout(*count),
        What::Experiments => text = experiments().into_bytes(),
        What::Reference { page } => text = reference::page(*page)?.into_bytes(),
        What::Mechanisms { record } => text = mechanisms(record)?.into_bytes(),
        What::UnitCosts { record } => text = unit_costs(record)?.into_bytes(),
    }
    output::stdout(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}

fn awk_program(program: Program) -> &'static str {
    match program {
        Program::Tokenizer => awk::TOKENIZER,
        Program::Join => awk::JOIN,
        Program::Parser => awk::PARSER,
        Program::Callbacks => awk::CALLBACKS,
    }
}

/// Streams the JSON array to standard output, since it may be larger than memory. A reader that
/// closes the pipe early is not an error.
fn json_array_to_stdout(count: u64) -> Result<Exit> {
    let stdout = output::Stdout::open().context("cannot open standard output")?;
    match json_array(stdout, count) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context(output::STDOUT_FAILED)
        }
        _ => Ok(Exit::Success),
    }
}

/// Returns the page about communication mechanisms, from the record of a lab run.
fn mechanisms(path: &Path) -> Result<String> {
    page_of(path, render::mechanisms::page, &[View::OneWay, View::RoundTrip])
}

/// Returns the page about the cost of units in every runtime, from the record of a lab run.
fn unit_costs(path: &Path) -> Result<String> {
    page_of(path, render::unit_costs::page, &[View::RuntimeMemory])
}

/// Generates a page from the record of a lab run with the function `page`. `shown` are the views
/// that the page shows; if the record has nothing to show, the error names the experiments with
/// these views.
fn page_of(path: &Path, page: fn(&RunRecord) -> Option<String>, shown: &[View]) -> Result<String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let record =
        of_lab(&text, "contend lab").map_err(|why| UsageError(format!("{name}: {why}")))?;
    Ok(page(&record).ok_or_else(|| UsageError(format!("{name}: {}", without(shown))))?)
}

/// Returns the error message for a record without cases of the given views.
fn without(views: &[View]) -> String {
    let experiments = REGISTRY.experiments.iter();
    let names: Vec<_> =
        experiments.filter(|found| views.contains(&found.view)).map(|found| found.name).collect();
    match names.as_slice() {
        [one] => format!("no case of {one}"),
        several => format!("no case of {}", several.join(" or ")),
    }
}

/// Returns the page about experiments and suites as Markdown, from the lab's registry.
fn experiments() -> String {
    let cpus = Cpus::of_cores(2);
    let scope = Scope { step_milliseconds: 1000, cpus, ..Scope::of(Size::Full) };
    let mut out = String::from("# Experiments\n\n");
    out.push_str(&reference::paragraph(
        "Everything that `contend lab run` can measure, with all parameters and their values. [The \
         lab](../measurements/lab.md) says how it measures. Numbers of units and CPUs are those of a machine with two \
         CPUs. This page is generated by `contend generate experiments`.",
    ));
    for experiment in REGISTRY.experiments {
        let unit = serde_json::to_string(&experiment.unit).unwrap_or_default();
        out.push_str(&format!("\n## {}\n\n{}.\n\n", experiment.name, sentence(experiment.summary)));
        out.push_str(&textwrap::fill(experiment.about, 98));
        out.push_str(&format!("\n\n- unit: {}\n", unit.trim_matches('"')));
        let samples = match experiment.sampling {
            Sampling::Adaptive => {
                "until the 95 % interval of the median is narrower than 2 %".to_owned()
            }
            Sampling::Fixed(count) => count.to_string(),
        };
        out.push_str(&format!("- samples: {samples}\n"));
        for (name, values) in parameters(&(experiment.cases)(&scope)) {
            out.push_str(&item(&format!("`{name}`: {}", values.join(", "))));
        }
        let names = experiment.settings.iter().map(|setting| format!("`{}`", setting.name));
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            out.push_str(&item(&format!("for `--set`: {}", names.join(", "))));
        }
    }
    out.push_str(&settings());
    out.push_str("\n## Suites\n\n");
    for suite in REGISTRY.suites {
        let names = suite.patterns.join("`, `");
        out.push_str(&item(&format!("`{}`: {} (`{names}`)", suite.name, suite.summary)));
    }
    out
}

/// Returns a Markdown list item, wrapped at spaces only, so that hyphenated values stay on one
/// line.
fn item(text: &str) -> String {
    let options = textwrap::Options::new(98).initial_indent("- ").subsequent_indent("  ");
    textwrap::fill(text, options.word_splitter(textwrap::WordSplitter::NoHyphenation)) + "\n"
}

/// Returns the section about the parameters for `--set`, with each description once. If a parameter
/// has several descriptions, each names its experiments.
fn settings() -> String {
    let mut out = String::from(
        "\n## Parameters for --set\n\n`--set NAME=VALUE` sets a parameter; several values are separated by commas.\n\n",
    );
    let descriptions = descriptions();
    for (setting, experiments) in &descriptions {
        let same_name = descriptions.iter().filter(|(other, _)| other.name == setting.name);
        let of = if same_name.count() > 1 {
            format!(" (`{}`)", experiments.join("`, `"))
        } else {
            String::new()
        };
        out.push_str(&item(&format!("`{}`{of}: {}", setting.name, setting.summary)));
    }
    out
}

/// Returns one parameter for each distinct name and description, with the names of its experiments.
/// Parameters with the same name are adjacent.
fn descriptions() -> Vec<(&'static Setting, Vec<&'static str>)> {
    let mut all: Vec<(&Setting, Vec<&str>)> = Vec::new();
    for experiment in REGISTRY.experiments {
        for &setting in experiment.settings {
            let is_same =
                |other: &Setting| (other.name, other.summary) == (setting.name, setting.summary);
            if let Some((_, experiments)) = all.iter_mut().find(|(other, _)| is_same(other)) {
                experiments.push(experiment.name);
                continue;
            }
            let after_namesake = all.iter().rposition(|(other, _)| other.name == setting.name);
            let place = after_namesake.map_or(all.len(), |place| place + 1);
            all.insert(place, (setting, vec![experiment.name]));
        }
    }
    all
}

fn sentence(summary: &str) -> String {
    let mut characters = summary.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Returns every parameter with its distinct values: numbers in ascending order, and names in order
/// of occurrence.
fn parameters(cases: &[Parameters]) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<&Value>)> = Vec::new();
    for (name, value) in cases.iter().flat_map(Parameters::iter) {
        match all.iter_mut().find(|(other, _)| other == name) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => all.push((name.to_owned(), vec![value])),
        }
    }
    let shown = |(name, mut values): (String, Vec<&Value>)| {
        values.sort_by_key(|value| match value {
            Value::Number(number) => *number,
            _ => 0,
        });
        (name, values.into_iter().map(ToString::to_string).collect())
    };
    all.into_iter().map(shown).collect()
}

/// Writes the man pages of contend and of every visible verb and subcommand to a directory, which
/// is created if necessary.
fn pages(folder: &Path) -> Result<()> {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut command = Args::command();
        command.build();
        write_pages(folder, &command)
    };
    write().with_context(|| format!("cannot write man pages to {}", folder.display()))
}

fn write_pages(folder: &Path, command: &Command) -> std::io::Result<()> {
    let is_public = |verb: &&Command| verb.get_name() != "help" && !verb.is_hide_set();
    for verb in command.get_subcommands().filter(is_public) {
        write_pages(folder, verb)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    std::fs::write(folder.join(format!("{name}.1")), page(command)?)
}

/// Returns the man page of a command. The part of the help after the options becomes sections that
/// keep their line breaks.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let command = command.clone().after_help(None::<&str>).after_long_help(None::<&str>);
    let source = format!("contend {}", crate::version::VERSION);
    let mut page = Vec::new();
    clap_mangen::Man::new(command).source(source).render(&mut page)?;
    for line in after.lines() {
        match line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            Some(heading) => page.extend(format!(".SH {}\n.nf\n", heading.to_uppercase()).bytes()),
            None => page.extend(format!("{}\n", roff(line)).bytes()),
        }
    }
    Ok(page)
}

/// Removes the indentation of two spaces, if any, from a line, and escapes the line for roff.
fn roff(line: &str) -> String {
    let line = line.strip_prefix("  ").unwrap_or(line);
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn every_verb_that_is_not_hidden_has_a_man_page() {
        use clap::CommandFactory as _;
        let folder = tempfile::tempdir().expect("a folder");
        super::pages(folder.path()).expect("room");
        let (mut pages, mut texts) = (Vec::new(), String::new());
        for file in std::fs::read_dir(folder.path()).expect("it was made").flatten() {
            pages.push(file.file_name().to_string_lossy().into_owned());
            texts.push_str(&std::fs::read_to_string(file.path()).expect("a page"));
        }
        let command = crate::cli::Args::command();
        let (hidden, shown): (Vec<_>, Vec<_>) =
            command.get_subcommands().partition(|verb| verb.is_hide_set());
        assert!(hidden.len() >= 4 && shown.len() >= 6);
        for verb in hidden.iter().map(|verb| verb.get_name()) {
            assert!(!pages.contains(&format!("contend-{verb}.1")), "{pages:?}");
            let verb = verb.replace('-', "\\-");
            let names =
                [format!("contend\\-{verb}"), format!("contend {verb}"), format!("fB{verb}\\")];
            assert!(names.iter().all(|name| !texts.contains(name)), "{verb}");
        }
        for verb in shown.iter().map(|verb| verb.get_name()) {
            assert!(pages.contains(&format!("contend-{verb}.1")), "{pages:?}");
        }
        assert!(pages.contains(&"contend-history-rm.1".to_owned()), "{pages:?}");
    }

    #[test]
    fn every_description_of_a_parameter_is_listed_with_its_experiments() {
        let text = super::settings();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for experiment in super::REGISTRY.experiments {
            for setting in experiment.settings {
                let summary = setting.summary.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words.contains(&format!(": {summary}")), "{}", setting.name);
            }
        }
        assert!(words.contains("- `bytes` (`copy/file`): size of the file"), "{text}");
        assert!(words.contains("- `to_sub`: mechanism by which main"), "one description: {text}");
    }

    type Make = fn(&Path) -> super::Result<String>;

    #[test]
    fn committed_pages_match_their_records() {
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        let pages: [(&str, Make, &str); 2] = [
            ("mechanisms", super::mechanisms, "data/messages.json"),
            ("unit-costs", super::unit_costs, "data/units.json"),
        ];
        for (page, make, record) in pages {
            let committed = std::fs::read_to_string(docs.join(format!("measurements/{page}.md")))
                .unwrap_or_default();
            let made = make(&docs.join(record)).expect("a record");
            assert!(
                committed == made,
                "docs/measurements/{page}.md is not made from its record: run `contend generate \
                 {page} docs/{record} >docs/measurements/{page}.md`"
            );
        }
    }

    #[test]
    fn the_committed_page_matches_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/experiments.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == super::experiments(),
            "the table of experiments and docs/reference/experiments.md differ: run `contend generate \
             experiments >docs/reference/experiments.md`"
        );
    }
}
