//! `contend serve`: shows saved and running measurements in a browser.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use contend_record::compare::Origin;
use contend_report::store::Entry;
use contend_serve::{Content, Pages, Server};
use contend_sys::interrupt::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use tempfile::NamedTempFile;

use crate::exit::Exit;
use crate::settings::{self, Serve, Text};
use crate::{browser, host, output};

/// Serves until a signal arrives.
///
/// # Errors
/// Returns an error if the address cannot be used, the URL cannot be printed, or the server fails.
pub fn run(settings: Serve) -> Result<Exit> {
    let Serve { address, store, live, opens } = settings;
    let signals = Signals::block().context("cannot block signals")?;
    let server = Server::bind(address, &host::name())
        .with_context(|| format!("cannot listen at {address}"))?;
    if !server.address().ip().is_loopback() {
        output::stderr(&warning(server.address()))?;
    }
    output::stdout(&format!("{}\n", server.url()))?;
    // Removed when the server ends.
    let _page = if opens { open(&server, live.as_deref()) } else { None };
    let content = Content { store, live, pages: Box::new(Renderer) };
    server.run(content, || wait(&signals)).context("the server has failed")?;
    Ok(signals.interrupted().map_or(Exit::Success, Exit::Signal))
}

/// Opens the server's first page in the user's browser, through a page in a private file: the URL must not be an
/// argument of a process. Returns that file. If that fails, prints an error.
fn open(server: &Server, live: Option<&Path>) -> Option<NamedTempFile> {
    let instead = "open the URL above";
    match private_file(live, &server.opening_page()) {
        Ok(file) => {
            browser::open(file.path().as_os_str(), instead);
            Some(file)
        }
        Err(error) => {
            output::error(&format!("cannot write a page for the browser: {error}; {instead}"));
            None
        }
    }
}

/// Writes a page to a new file that only this user can read: beside the directory `live`, or in the directory for
/// temporary files if `live` is `None`.
fn private_file(live: Option<&Path>, page: &str) -> io::Result<NamedTempFile> {
    let folder = live.and_then(Path::parent).map_or_else(std::env::temp_dir, Path::to_owned);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let mut file = tempfile::Builder::new().prefix("open-").suffix(".html").tempfile_in(folder)?;
    file.write_all(page.as_bytes())?;
    Ok(file)
}

/// Returns the warning for a server that other machines can reach.
fn warning(address: SocketAddr) -> String {
    let text = format!(
        "warning: everyone who can reach {address} and has the URL sees the command lines, file names and \
         host names of all saved runs, and can change labels. The connection is not encrypted: others on \
         the network can read the URL. `ssh -L` reaches a server on 127.0.0.1 safely."
    );
    textwrap::fill(&text, output::width().min(100)) + "\n"
}

/// Waits for a signal that asks contend to end.
fn wait(signals: &Signals) {
    while signals.interrupted().is_none() {
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], None); // a failure only tries again
    }
}

/// Makes the pages of `contend report` and `contend compare`.
struct Renderer;

impl Pages for Renderer {
    fn run(&self, entry: &Entry, record: &str) -> Result<String, String> {
        // The lab adds a run to the store before it measures anything.
        if record == "{}" {
            return Err("the run ended before it measured anything".to_owned());
        }
        super::report::page_of(record).map_err(|what| format!("run {}: {what}", entry.id))
    }

    fn comparison(&self, runs: Vec<(Entry, String)>) -> Result<String, String> {
        let origin = |entry: &Entry| Origin::Kept { number: entry.id, label: entry.label.clone() };
        let (origins, texts): (Vec<_>, Vec<_>) = runs
            .into_iter()
            .map(|(entry, record)| (origin(&entry), Text::of_run(&entry, record)))
            .unzip();
        let runs = settings::compared_runs(origins, &texts);
        runs.and_then(super::compare::page).map_err(|error| format!("{error:#}"))
    }
}
