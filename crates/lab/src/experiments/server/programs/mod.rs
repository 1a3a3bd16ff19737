//! Web servers of other projects, each a file and a row of the table.
//!
//! contend writes a configuration and, if the program needs one, an application into a scratch
//! folder, starts the program there on a free loopback port, and ends it with all of its processes
//! ([`supervisor`](super::supervisor)). The program answers as contend's own models do: `hello\n`,
//! immediately or, if it can, after a pause.

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

/// A web server of another project: one row of the table.
#[derive(Debug)]
pub struct Program {
    /// Name of the server, which is also its value for the `program` parameter and the command that
    /// starts it.
    pub name: &'static str,
    /// Debian package that contains the server.
    pub package: &'static str,
    /// Description of the server's concurrency, in one line.
    pub summary: &'static str,
    /// Kind of unit that serves a request.
    pub unit: &'static str,
    /// Whether the server keeps connections open between requests.
    pub reuse: Reuse,
    /// Argument with which the command prints its version.
    pub version: &'static str,
    /// Returns the default numbers of processes and threads.
    pub default: fn() -> Concurrency,
    /// Returns why the server cannot run with the given numbers of processes and threads, or `None`
    /// if it can.
    pub unsupported_concurrency: fn(Concurrency) -> Option<&'static str>,
    /// Returns why the server cannot answer as the given handler does, or `None` if it can.
    pub unsupported_handler: fn(Handler) -> Option<&'static str>,
    /// Returns the number of processes in addition to the server's first one.
    pub other_processes: fn(Concurrency) -> u64,
    /// Returns the part of the configuration that determines concurrency, for reports.
    pub configured: fn(Concurrency) -> String,
    /// Returns the files with the server's configuration and application.
    pub files: fn(&Launch) -> Vec<File>,
    /// Arguments of the command, which runs in the folder of the files.
    pub arguments: &'static [&'static str],
}

/// Name and contents of a file in the scratch folder.
pub type File = (&'static str, String);

/// Number of processes and threads with which a program serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Number of processes that serve requests.
    pub processes: u64,
    /// Number of threads that serve requests in each of these processes.
    pub threads: u64,
}

/// Parameters with which a program is started.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    /// Port on loopback where the program listens.
    pub port: u16,
    /// Handler that the application implements.
    pub handler: Handler,
    /// Numbers of processes, and of threads in each, that serve requests.
    pub concurrency: Concurrency,
    /// Number of connections that the program has to keep open.
    pub connections: u64,
}

/// Timeout in seconds for connections without a request, longer than any case takes.
const IDLE_TIMEOUT_S: u64 = 86_400;
/// Name of the file into which an application writes the name and version of its language.
pub const INTERPRETER_FILE: &str = "interpreter";

/// All programs, in display order.
pub const TABLE: &[Program] = &[puma::ROW, unicorn::ROW, gunicorn::ROW, nginx::ROW, node::ROW];

impl Program {
    /// Returns the path of the executable, or `None` if it is not installed. Looks in `/usr/sbin`
    /// as well, which ordinary users often lack in their search path.
    pub fn path(&self) -> Option<PathBuf> {
        let installed = || Path::new("/usr/sbin").join(self.name);
        programs::find(self.name).or_else(|| Some(installed()).filter(|path| path.is_file()))
    }

    /// Returns why the program cannot be started here, or `None` if it is installed.
    pub fn missing(&self) -> Option<String> {
        let Self { name, package, .. } = self;
        match self.path() {
            Some(_) => None,
            None => Some(format!("{name} is not installed (Debian package {package})")),
        }
    }
}

/// Returns the program with the given name, or `None` if there is none.
pub fn find(name: &str) -> Option<&'static Program> {
    TABLE.iter().find(|program| program.name == name)
}

/// Returns the names of all programs.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|program| program.name).collect()
}

/// Returns the default number of processes that each serve one request at a time: two for each CPU
/// and one more, as Gunicorn's documentation advises.
fn worker_processes() -> u64 {
    2 * cpu::allowed() as u64 + 1
}

/// Returns `None`, for programs that can answer as any handler does.
fn supports_any_handler(_: Handler) -> Option<&'static str> {
    None
}

/// Returns `None`, for programs that run with any numbers of processes and threads.
fn supports_any_concurrency(_: Concurrency) -> Option<&'static str> {
    None
}

/// Returns the application for Ruby servers, which run it through the Rack interface.
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
