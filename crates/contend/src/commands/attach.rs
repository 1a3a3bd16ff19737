//! `contend pipe --pid`: observes a running pipeline, and reports on it.

use std::io::ErrorKind;

use anyhow::{Context as _, Result};
use contend_profile::pipeline::attach::{self, FoundStage};
use contend_profile::pipeline::progress::Progress;
use contend_record::pipe::{PipeRecord, SCHEMA};
use contend_report::render;
use contend_sys::Signal;
use contend_sys::interrupt::Signals;

use super::pipe;
use crate::exit::Exit;
use crate::live::Live;
use crate::settings::Attach;
use crate::{host, output, version};

/// Observes the pipeline until it ends, a signal arrives or the time is over, and writes the report.
/// Ctrl-C is the usual end of an observation, not a failure.
///
/// # Errors
/// Returns an error if the stages have ended already, or the report cannot be written.
pub fn run(settings: Attach) -> Result<Exit> {
    let Attach { found, limit, live, reports, trace, saving, publish } = settings;
    let signals = Signals::block().context("cannot block signals")?;
    let commands = || found.stages.iter().map(|stage| stage.text.clone()).collect::<Vec<_>>();
    let shares_terminal = found.stages.last().is_some_and(writes_to_own_terminal);
    let mut live = live.then(|| Live::new(commands(), !shares_terminal, 1));
    if let Some(folder) = publish {
        let commands = commands();
        let subject = commands.join(" | ");
        let published = pipe::publish(&folder, saving.as_ref(), &subject, &commands, 1)?;
        let view = live.take().unwrap_or_else(|| Live::hidden(commands));
        live = Some(view.with_published(published));
    }
    let host = host::describe();
    let mut show = |progress: &Progress<'_>| {
        if let Some(live) = &mut live {
            live.show(progress);
        }
    };
    let traced = trace.is_some();
    let observed = attach::observe(&found, limit, traced, &host, super::now(), &signals, &mut show);
    let published = live.and_then(Live::into_published);
    let (record, states) = observed.map_err(|error| {
        let has_ended = matches!(error.kind(), ErrorKind::NotFound)
            || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
        let why = if has_ended { ": a stage has ended" } else { "" };
        anyhow::Error::new(error).context(format!("cannot observe the pipeline{why}"))
    })?;
    let record = PipeRecord { contend: Some(version::writer()), ..record };
    let report = render::pipe::report(&record, reports.detail, output::width());
    let written = super::reports::write(&record, &report, reports);
    written.and(super::trace::write_if(states.as_ref(), &record, trace))?;
    let ending = format!("{}, attached", pipe::ending(record.wall_seconds, 0));
    let number = saving
        .as_ref()
        .and_then(|saving| pipe::save(saving, SCHEMA, &record.command, &ending, &record));
    if let Some(published) = published {
        published.end(&ending, number);
    }
    Ok(match signals.interrupted() {
        Some(signal) if signal != Signal::INT.as_raw() => Exit::Signal(signal),
        _ => Exit::Success,
    })
}

/// Returns whether the stage's standard output is the terminal on which the live view is drawn.
fn writes_to_own_terminal(stage: &FoundStage) -> bool {
    let own = rustix::termios::ttyname(std::io::stderr(), Vec::new());
    let output = std::fs::read_link(format!("/proc/{}/fd/1", stage.pid.as_raw_nonzero()));
    own.is_ok_and(|own| {
        output.is_ok_and(|output| output.as_os_str().as_encoded_bytes() == own.to_bytes())
    })
}
