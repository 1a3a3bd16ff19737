//! Family `server`: many connections, served by processes, threads, callback threads or tasks.
//!
//! All models share what they say and understand (`http.rs`) and differ in who waits, and where
//! (`models/`). A server runs in processes of its own (`verb.rs`, `server_process.rs`), its clients in that of the case
//! (`clients.rs`); `oha.rs` asks another load generator.

mod clients;
mod connected;
mod http;
pub mod idle;
mod limit_reporter;
mod models;
mod oha;
pub mod requests;
mod server_process;
mod table;
#[cfg(test)]
mod tests;
mod unit;
mod verb;

use contend_record::parameters::{Parameters, names};
use rustix::process::{Resource, getrlimit};

use self::table::Model;
use self::unit::of_unit;
pub use self::verb::{VERB, serve};
use crate::engine::experiment::{Scope, SubjectError};
use crate::engine::setting::Setting;
use crate::experiments::units::parent;
use crate::support::limits;

/// How connections are served.
const MODEL: Setting =
    Setting::named(names::MODEL, "how connections are served; all by themselves", table::names);

/// How many connections.
const CONNECTIONS: Setting = Setting::number(
    names::CONNECTIONS,
    "open connections; 10, 100, 1,000 and 10,000 by themselves",
    1,
    1_000_000,
);

const SETTINGS: [&Setting; 2] = [&MODEL, &CONNECTIONS];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let counts = scope.choose(&[10, 100, 1000, 10_000_u64], &[10, 1000], &[5]);
    let of = |model: &Model, &n: &u64| {
        Parameters::new().with(MODEL.name, model.name).with(CONNECTIONS.name, n)
    };
    let cases =
        table::TABLE.iter().flat_map(|model| counts.iter().map(move |count| of(model, count)));
    scope.choices.applied(cases.collect(), &SETTINGS)
}

/// The model and the number of connections that the parameters name.
fn chosen(parameters: &Parameters) -> Result<(&'static Model, u64), SubjectError> {
    let name = parameters.text(MODEL.name).unwrap_or_default();
    let model = table::find(name)
        .ok_or_else(|| SubjectError::wrong(format!("there is no model {name}")))?;
    Ok((model, parameters.number(CONNECTIONS.name).unwrap_or(1)))
}

/// Descriptors that a process needs beside its connections.
const SPARE_DESCRIPTORS: u64 = 100;

/// Why there can be no so many connections here. A limit on processes or threads that is in the way is named
/// rather than reached: others of this user need some, too.
fn unavailable(parameters: &Parameters) -> Option<String> {
    let (model, n) = chosen(parameters).ok()?;
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if files < n + SPARE_DESCRIPTORS {
        return Some(format!(
            "RLIMIT_NOFILE = {files} allows no {n} connections of one process (ulimit -Hn)"
        ));
    }
    let too_many_units =
        || model.each.and_then(|kind| limits::not_so_many_of(kind, of_unit(kind), n));
    parent::memory_unreadable().or_else(|| too_few_ports(n)).or_else(too_many_units)
}

/// All connections are from one address to one port of another.
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
