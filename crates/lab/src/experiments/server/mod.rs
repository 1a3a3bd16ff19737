//! Family `server`: many connections, served by processes, threads, callback threads, tasks or
//! event loops.
//!
//! ```text
//!  process of the case                          the server's processes
//!  +----------------------------+   loopback   +-------------------------------------------+
//!  | clients.rs: load generator |<------------>| a model (models/): contend itself, or     |
//!  |   n connections, 1 thread  |   HTTP/1.1   | a program (programs/): puma, nginx, … ,   |
//!  | /proc: CPU time, memory    |--- reads --->|   started and ended by supervisor.rs      |
//!  +----------------------------+              +-------------------------------------------+
//! ```
//!
//! Every sample starts a server, opens the connections and sends one request on each
//! (`connected.rs`). `requests.rs` then times two loads: the first without pauses, the second at a
//! fixed rate. `idle.rs` reads memory while all connections are idle. `oha.rs` runs another load
//! generator, if that is installed.
//!
//! All models share one implementation of HTTP (`http.rs`) and differ in the kind of unit that
//! waits for a request. Programs answer with the same body.
//!
//! - `setup`: the server and the connections of a case
//! - `table`: the models
//! - `unit`: the resources of a process or thread that serves one connection
//! - `cost`: the expected durations of cases
//! - `server_process`, `verb`: both ends of the process in which a server runs
//! - `client`, `response`: one client of the load generator, and the responses that it expects
//! - `footprint`: the memory, processes and threads of a server
//! - `limit_reporter`: the limit that keeps a model from serving more connections

mod client;
mod clients;
mod connected;
mod cost;
mod footprint;
mod http;
pub mod idle;
mod limit_reporter;
mod models;
mod oha;
mod programs;
pub mod requests;
mod response;
mod server_process;
mod setup;
mod supervisor;
mod table;
#[cfg(test)]
mod tests;
mod unit;
mod verb;

use contend_record::parameters::{Parameters, names};
use rustix::process::{Resource, getrlimit};

use self::client::Reuse;
use self::http::Handler;
use self::setup::{Server, Setup};
use self::unit::of_unit;
pub use self::verb::{Concurrency, SERVER_VERB, serve};
use crate::engine::experiment::{Demands, Scope, Size};
use crate::engine::setting::Setting;
use crate::experiments::units::parent;
use crate::support::limits;

/// Parameter for the concurrency model of contend's own servers.
const MODEL: Setting = Setting::named(
    names::MODEL,
    "concurrency model of our own servers [default: all]",
    table::names,
);

/// Parameter for the web server of another project.
const PROGRAM: Setting = Setting::named(
    names::PROGRAM,
    "web server of another project [default: all that are installed]",
    programs::names,
);

/// Parameter for the number of connections.
const CONNECTIONS: Setting = Setting::number(
    names::CONNECTIONS,
    "open connections [default: 10, 100, 1000 and 10000]",
    1,
    1_000_000,
);

/// Parameter for whether connections stay open between requests.
const KEEP_ALIVE: Setting = Setting::named(
    names::KEEP_ALIVE,
    "whether connections stay open between requests [default: on if the server can]",
    || vec![ON, OFF],
);
const ON: &str = "on";
const OFF: &str = "off";

/// Parameter for the number of a program's processes that serve requests.
const PROCESSES: Setting = Setting::number(
    names::PROCESSES,
    "processes of a program that serve requests [default: 2 per CPU and one more for unicorn and \
     gunicorn, one per CPU for nginx, 1 for puma and node]",
    1,
    1024,
);

/// Parameter for the number of threads in each of a program's processes.
const THREADS: Setting = Setting::number(
    names::THREADS,
    "threads in each process of a program, for puma [default: 5]",
    1,
    1024,
);

/// Demands of all cases: the scratch directory, in which each started program gets a folder.
const DEMANDS: Demands = Demands { scratch: || true, ..Demands::NONE };

/// Returns the cases of the chosen models and programs, with the chosen values of `settings`. If
/// only models are chosen, there are no cases with programs, and vice versa. If neither models nor
/// programs are chosen, there are cases of all.
fn cases(scope: &Scope, settings: &[&Setting]) -> Vec<Parameters> {
    let chosen = |setting: &Setting| scope.choices.of(setting.name);
    let named = |setting: &Setting, other: &Setting| {
        let all = || setting.names().into_iter().map(Into::into).collect();
        match (chosen(setting), chosen(other)) {
            ([], []) => all(),
            (values, _) => values.to_vec(),
        }
    };
    let with = |setting: &'static Setting, values: Vec<_>| {
        values.into_iter().map(|value| Parameters::new().with(setting.name, value))
    };
    let servers = with(&MODEL, named(&MODEL, &PROGRAM)).chain(
        with(&PROGRAM, named(&PROGRAM, &MODEL)).map(|case| with_fewer_processes(case, scope.size)),
    );
    let counts = scope.choose(&[10, 100, 1000, 10_000_u64], &[10, 1000], &[5]);
    let cases = servers
        .flat_map(|server| counts.iter().map(move |&n| server.clone().with(CONNECTIONS.name, n)));
    scope.choices.applied(cases.collect(), settings)
}

/// Returns the parameters `program`. At the smallest size, the result has two processes if the
/// program would otherwise start more than two besides its first one.
fn with_fewer_processes(program: Parameters, size: Size) -> Parameters {
    const SMALLEST_CASE_PROCESSES: u64 = 2;
    let starts_many = matches!(Setup::of(&program), Ok(setup) if setup.server.other_processes() > SMALLEST_CASE_PROCESSES);
    if size == Size::Smallest && starts_many {
        program.with(PROCESSES.name, SMALLEST_CASE_PROCESSES)
    } else {
        program
    }
}

/// Number of descriptors that a process may need in addition to its connections.
const SPARE_DESCRIPTORS: u64 = 100;

/// Returns why a case cannot be measured here, or `None` if it can. A case that would reach a limit
/// on processes or threads is not tried, because other programs share the limit.
fn unavailable(parameters: &Parameters, handler: Handler) -> Option<String> {
    let setup = match Setup::of(parameters) {
        Ok(setup) => setup,
        Err(error) => return Some(error.to_string()),
    };
    let n = setup.connections;
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if files < n + SPARE_DESCRIPTORS {
        return Some(format!(
            "RLIMIT_NOFILE = {files} does not allow {n} connections of one process (ulimit -Hn)"
        ));
    }
    let persistent = setup.reuse == Reuse::Persistent;
    let task_per_connection = setup.server.task_per_connection().filter(|_| persistent);
    parent::memory_unreadable()
        .or_else(|| too_few_ports(n))
        .or_else(|| limits::shortage_for(task_per_connection?, of_unit(task_per_connection?), n))
        .or_else(|| program_unavailable(setup.server, handler))
}

fn program_unavailable(server: Server, handler: Handler) -> Option<String> {
    let Server::Program(program, concurrency) = server else { return None };
    let refused = || (program.unsupported_handler)(handler).map(str::to_owned);
    let kind = limits::UnitKind::Process;
    let processes = (program.other_processes)(concurrency);
    program.missing().or_else(refused).or_else(|| limits::shortage(kind, processes))
}

/// Returns why there are too few local ports for `n` connections from one address to one port, or
/// `None` if there are enough or their range cannot be read.
fn too_few_ports(n: u64) -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let ports =
        text.split_whitespace().map(str::parse::<u64>).collect::<Result<Vec<_>, _>>().ok()?;
    let &[first, last] = ports.as_slice() else { return None };
    let all = (last + 1).saturating_sub(first);
    (all < n).then(|| {
        format!(
            "net.ipv4.ip_local_port_range = {first} {last} allows {all} connections to one port"
        )
    })
}
