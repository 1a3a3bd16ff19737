//! A server with its connections: the number of answered ones, and the limit that stops it.

use std::time::Duration;

use super::client::Reuse;
use super::clients::Clients;
use super::http::Handler;
use super::server_process::ServerProcess;
use super::setup::Setup;
use super::verb::raise_descriptors;
use crate::engine::experiment::{ErrorContext, Facts, SubjectError};
use crate::support::limits::UnitKind;

/// Time limit for responses. Requests in flight count as unanswered if no response to any of them
/// has arrived for this long. After a load at a fixed rate, the last responses have this long in
/// total.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A server and its clients. Each client has got one response, unless `stopped_by` says why not.
#[derive(Debug)]
pub struct ConnectedServer {
    /// The running server, which ends when this is dropped.
    pub server: ServerProcess,
    /// The clients of the server, including those that got no response.
    pub clients: Clients,
    /// Number of clients whose first request was answered.
    pub answered: u64,
    /// Reason why not all clients were answered, such as the limit that stopped the server, or
    /// `None` if all were.
    pub stopped_by: Option<String>,
}

impl ConnectedServer {
    /// Raises this process's limit on open files and starts a server, which has no connections yet.
    ///
    /// # Errors
    /// Returns an error if the limit cannot be raised, or the server cannot be started.
    pub fn start(setup: &Setup, handler: Handler) -> Result<ServerProcess, SubjectError> {
        raise_descriptors().context("raise RLIMIT_NOFILE")?;
        ServerProcess::start(setup, handler)
    }

    /// Opens the connections of a case, sends a request on each, and waits for the responses. Fewer
    /// connections or responses than wanted are not an error.
    ///
    /// # Errors
    /// Returns an error if the load generator cannot be set up, events cannot be fetched, or
    /// processes of the server are not visible.
    pub fn with(mut server: ServerProcess, setup: &Setup) -> Result<Self, SubjectError> {
        let before = queue_overflows();
        let wanted = setup.connections;
        let mut clients = Clients::open(server.port, wanted, setup.reuse)?;
        let answered = clients.ask_all(ANSWER_TIMEOUT).context("wait for answers")?;
        let overflows = queue_overflows().saturating_sub(before);
        check_processes(setup, &server, answered)?;
        let stopped_by = (answered < wanted)
            .then(|| stopped_by(setup, &mut server, &clients, answered, overflows));
        Ok(Self { server, clients, answered, stopped_by })
    }

    /// Returns facts for the record: those of the server, and the numbers of opened and answered
    /// connections. If known, also the program's version and why connections were not answered.
    pub fn facts(&self, setup: &Setup) -> Facts {
        let mut facts = setup.server.facts();
        facts.insert("opened".to_owned(), self.clients.opened().into());
        facts.insert("answered".to_owned(), self.answered.into());
        facts.extend(self.server.version().map(|of| ("version".to_owned(), of.into())));
        facts.extend(self.stopped_by.clone().map(|by| ("stopped_by".to_owned(), by.into())));
        facts
    }
}

/// Returns an error unless all processes of the server become visible within five seconds. A kernel
/// without `CONFIG_PROC_CHILDREN` lists no children, so their memory and CPU time would be missing.
fn check_processes(
    setup: &Setup,
    server: &ServerProcess,
    answered: u64,
) -> Result<(), SubjectError> {
    let has_process_per_connection = setup.reuse == Reuse::Persistent
        && setup.server.task_per_connection() == Some(UnitKind::Process);
    let of_connections = if has_process_per_connection { answered } else { 0 };
    let all = 1 + setup.server.other_processes() + of_connections;
    if server.await_processes(|seen| seen >= all) {
        return Ok(());
    }
    let seen = server.processes();
    Err(SubjectError::unexpected(format!(
        "of {all} processes {seen} can be seen in /proc/*/task/*/children"
    )))
}

/// Returns why not all clients were answered: the limits that were reached and the connections that
/// failed. If neither is known, says that there was no response.
fn stopped_by(
    setup: &Setup,
    server: &mut ServerProcess,
    clients: &Clients,
    answered: u64,
    overflows: u64,
) -> String {
    let mut reasons = Vec::new();
    reasons.extend(server.stopped());
    if let Some(pool_size) = setup.server.pool_size().filter(|&pool_size| pool_size == answered) {
        reasons.push(format!(
            "the pool has {pool_size} members, each with one connection until that is closed"
        ));
    }
    if overflows > 0 {
        let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
        reasons.push(format!(
            "the accept queue is full, net.core.somaxconn = {}: {overflows} ListenOverflows",
            limit.trim()
        ));
    }
    if let Some(error) = &clients.refused {
        let opened = clients.opened();
        reasons.push(format!("connection {} could not be opened: {error}", opened + 1));
    }
    if clients.failed > 0 {
        reasons.push(format!(
            "{} connections were closed by the server or got a wrong response",
            clients.failed
        ));
    }
    if reasons.is_empty() {
        reasons.push(format!("no response for {} s", ANSWER_TIMEOUT.as_secs()));
    }
    reasons.join("; ")
}

/// Returns how many connections have found an accept queue full so far in this network namespace,
/// or 0 if the kernel does not say.
fn queue_overflows() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").unwrap_or_default();
    overflows_in(&text).unwrap_or(0)
}

/// Returns `ListenOverflows` from the text of `/proc/net/netstat`, where a line of names precedes
/// each line of numbers, or `None` if it is missing.
fn overflows_in(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
    pairs.find(|(name, _)| *name == "ListenOverflows")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflows_are_found_by_their_name() {
        let text = "IpExt: ListenOverflows\nIpExt: 9\nTcpExt: A ListenOverflows B\nTcpExt: 1 2 3\n";
        assert_eq!(overflows_in(text), Some(2));
        assert_eq!(overflows_in("TcpExt: A\nTcpExt: 1\n"), None);
    }
}
