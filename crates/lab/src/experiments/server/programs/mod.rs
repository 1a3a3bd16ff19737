//! Web servers that other projects make, one file and one row of the table each.
//!
//! contend writes a configuration and an application into a scratch folder, starts the program
//! there on a loopback port of its own, and ends it with all of its processes
//! ([`supervisor`](super::supervisor)). The application answers as our models do: `hello\n`, at
//! once or after a pause.

mod gunicorn;
mod nginx;
mod node;
mod puma;
mod unicorn;

use std::path::{Path, PathBuf};

use contend_sys::cpu;

use super::client::Reuse;
use super::http::Handler;
use super::models::BACKLOG;
use crate::support::programs;

/// A web server.
#[derive(Debug)]
pub struct Program {
    /// The value of the parameter, and the command that starts it.
    pub name: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
    /// What serves a request, in one line.
    pub summary: &'static str,
    /// What serves a request.
    pub unit: &'static str,
    /// Whether it keeps connections open between requests.
    pub reuse: Reuse,
    /// The argument with which it prints its version.
    pub version: &'static str,
    /// The numbers of processes and threads, unless others are chosen.
    pub default: fn() -> Concurrency,
    /// The reason why it cannot run with these numbers, if so.
    pub refuses: fn(Concurrency) -> Option<&'static str>,
    /// The reason why it cannot answer like this, if so.
    pub cannot_answer: fn(Handler) -> Option<&'static str>,
    /// Processes in addition to its first one.
    pub other_processes: fn(Concurrency) -> u64,
    /// The directives that set the numbers, for reports.
    pub configured: fn(Concurrency) -> String,
    /// Its configuration and application.
    pub files: fn(&Launch) -> Vec<File>,
    /// Its arguments. It runs in the folder of the files.
    pub arguments: &'static [&'static str],
}

/// A file in the scratch folder: name and text.
pub type File = (&'static str, String);

/// The number of requests that a program serves at the same time, and the units that serve them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Processes that serve requests.
    pub processes: u64,
    /// Threads that serve requests, in each of these processes.
    pub threads: u64,
}

/// What a program is started for.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    /// The port on loopback.
    pub port: u16,
    /// How it answers a request.
    pub handler: Handler,
    /// Number of processes, and of threads in each, with which the program serves requests.
    pub concurrency: Concurrency,
    /// Connections that it has to keep open.
    pub connections: u64,
}

/// Timeout of connections without a request, in seconds: longer than any case.
const IDLE_TIMEOUT_S: u64 = 86_400;
/// The file into which an application writes the language that it runs in, and its version.
pub const INTERPRETER_FILE: &str = "interpreter";

/// Every program.
pub const TABLE: &[Program] = &[puma::ROW, unicorn::ROW, gunicorn::ROW, nginx::ROW, node::ROW];

impl Program {
    /// Returns the path of the executable. Ordinary users often lack `/usr/sbin` in their search
    /// path.
    pub fn path(&self) -> Option<PathBuf> {
        let installed = || Path::new("/usr/sbin").join(self.name);
        programs::find(self.name).or_else(|| Some(installed()).filter(|path| path.is_file()))
    }

    /// Returns the reason why it cannot be started here, if so.
    pub fn missing(&self) -> Option<String> {
        let Self { name, package, .. } = self;
        match self.path() {
            Some(_) => None,
            None => Some(format!("{name} is not installed (Debian package {package})")),
        }
    }
}

/// Returns the program of this name.
pub fn find(name: &str) -> Option<&'static Program> {
    TABLE.iter().find(|program| program.name == name)
}

/// Returns the names of all.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|program| program.name).collect()
}

/// Returns the default number of processes with one request at a time each: two for each CPU and
/// one more, as Gunicorn's documentation advises.
fn worker_processes() -> u64 {
    2 * cpu::allowed() as u64 + 1
}

/// For programs that answer in every way.
fn can_answer(_: Handler) -> Option<&'static str> {
    None
}

/// For programs that run with any numbers.
fn accepts_all(_: Concurrency) -> Option<&'static str> {
    None
}

/// The application for servers that speak Rack.
fn rack_application(handler: Handler) -> File {
    let pause = match handler {
        Handler::Hello => String::new(),
        Handler::Wait => format!("sleep {}; ", super::http::HANDLER_DELAY.as_secs_f64()),
    };
    let text = format!(
        "# frozen_string_literal: true\n\
         File.write({INTERPRETER_FILE:?}, \"ruby #{{RUBY_VERSION}}\")\n\
         run ->(_) {{ {pause}[200, {{ \"Content-Type\" => \"text/plain\", \"Content-Length\" => \"6\" }}, \
         [\"hello\\n\"]] }}\n"
    );
    ("config.ru", text)
}
