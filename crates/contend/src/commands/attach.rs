//! `contend pipe --pid`: observes a running pipeline, and reports on it.

use std::io::ErrorKind;

use anyhow::{Context as _, Result};
use contend_profile::pipeline::attach;
use contend_record::pipe::{PipeRecord, SCHEMA};
use contend_report::render;
use contend_sys::Signal;
use contend_sys::interrupt::Signals;

use super::pipe;
use crate::exit::Exit;
use crate::live::Live;
use crate::settings::{Attach, Reports};
use crate::{host, output, version};

/// Observes the pipeline until it ends, a signal arrives or the time is over, and writes the report.
/// Ctrl-C is the usual end of an observation, not a failure.
///
/// # Errors
/// Returns an error if the stages have ended already, or the report cannot be written.
pub fn run(settings: Attach) -> Result<Exit> {
    let Attach { stages, limit, live, reports, saving } = settings;
    let signals = Signals::block().context("cannot block signals")?;
    let commands = || stages.iter().map(|stage| stage.text.clone()).collect();
    let mut live = live.then(|| Live::new(commands(), true, 1));
    let host = host::describe();
    let record = attach::observe(&stages, limit, &host, super::now(), &signals, &mut |progress| {
        if let Some(live) = &mut live {
            live.show(progress);
        }
    });
    drop(live);
    let record = record.map_err(|error| {
        let has_ended = matches!(error.kind(), ErrorKind::NotFound)
            || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
        let why = if has_ended { ": a stage has ended" } else { "" };
        anyhow::Error::new(error).context(format!("cannot observe the pipeline{why}"))
    })?;
    let record = PipeRecord { contend: Some(version::writer()), ..record };
    let Reports { detail, output: report_file, json } = reports;
    let report = render::pipe::report(&record, detail, output::width());
    pipe::write(&record, &report, report_file, json)?;
    if let Some(saving) = &saving {
        let ending = pipe::ending(record.wall_seconds, 0);
        pipe::save(saving, SCHEMA, &record.command, &format!("{ending}, attached"), &record);
    }
    Ok(match signals.interrupted() {
        Some(signal) if signal != Signal::INT.as_raw() => Exit::Signal(signal),
        _ => Exit::Success,
    })
}
