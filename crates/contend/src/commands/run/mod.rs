//! `contend run`: a pipeline over parts of its input.

mod engine;
mod progress;

use anyhow::Result;
use contend_parallel::plan::text::{self, Reading};
use contend_record::run::{RunRecord, SCHEMA};
use contend_report::render;

use crate::exit::Exit;
use crate::settings::{Run, RunHow, What};
use crate::{host, output, version};

use engine::{direct, shell};

pub use engine::stage_of_shell_text;

/// Does what is asked.
///
/// # Errors
/// When the pipeline cannot be started or a report not be written.
pub fn run(settings: Run) -> Result<Exit> {
    match settings.what.clone() {
        What::Pipeline(text) => match text::read(&text) {
            Reading::Commands { stages, inverted } => {
                match locale().and_then(|()| direct::Direct::new(&stages)) {
                    Ok(direct) => direct.run(&text, inverted, settings),
                    Err(why) => shell::pipeline(&text, &why, settings),
                }
            }
            Reading::Shell(why) => shell::pipeline(&text, &why, settings),
        },
        What::Script(..) => shell::script(settings),
    }
}

/// Checks that bash has nothing to say of the locale.
///
/// # Errors
/// The reason why a shell is needed.
fn locale() -> Result<(), String> {
    match std::env::var_os("LC_ALL") {
        Some(name) if !contend_sys::locale::exists(&name) => {
            Err("`LC_ALL` names a locale that is not installed, of which the shell warns"
                .to_owned())
        }
        _ => Ok(()),
    }
}

fn empty(text: &str, how: &RunHow) -> RunRecord {
    RunRecord {
        schema: SCHEMA.to_owned(),
        contend: Some(version::writer()),
        command: text.to_owned(),
        started_at: super::now(),
        jobs: how.jobs(),
        memory_bytes: how.memory(),
        ..RunRecord::default()
    }
}

/// Prints the plan.
fn explain(record: &RunRecord, settings: Run) -> Result<Exit> {
    match settings.json {
        Some(file) => {
            let record = RunRecord { host: host::describe(), ..record.clone() };
            file.write(&render::json::run(&record)?)?;
        }
        None => output::stdout(&render::run::explanation(record, output::stdout_width()))?,
    }
    Ok(Exit::Success)
}
