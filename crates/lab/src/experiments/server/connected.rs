//! How far a model goes: how many connections are answered, and which limit stops it.

use std::time::Duration;

use super::client::Reuse;
use super::clients::Clients;
use super::http::Handler;
use super::server_process::ServerProcess;
use super::setup::Setup;
use super::verb::raise_descriptors;
use crate::engine::experiment::{Attempt, Facts, SubjectError};
use crate::support::limits::Kind;

/// How long nobody is answered before it is said that nobody else will be.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A server with its clients, each of which has been answered once, as far as the model goes.
#[derive(Debug)]
pub struct ConnectedServer {
    /// The server.
    pub server: ServerProcess,
    /// The connections, those that were not answered included.
    pub clients: Clients,
    /// How many were answered.
    pub answered: u64,
    /// What stopped it, if that was fewer than wanted.
    pub stopped_by: Option<String>,
}

impl ConnectedServer {
    /// Starts a server.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(setup: &Setup, handler: Handler) -> Result<ServerProcess, SubjectError> {
        raise_descriptors().attempt("raise RLIMIT_NOFILE")?;
        ServerProcess::start(setup, handler)
    }

    /// Opens so many connections to a server, and asks on each.
    ///
    /// # Errors
    /// When not even one can be made ready.
    pub fn with(mut server: ServerProcess, setup: &Setup) -> Result<Self, SubjectError> {
        let before = queue_overflows();
        let wanted = setup.connections;
        let mut clients = Clients::open(server.port, wanted, setup.reuse)?;
        let answered = clients.ask_all(ANSWER_TIMEOUT).attempt("wait for answers")?;
        let overflows = queue_overflows().saturating_sub(before);
        sees_processes(setup, &server, answered)?;
        let stopped_by = (answered < wanted)
            .then(|| stopped_by(setup, &mut server, &clients, answered, overflows));
        Ok(Self { server, clients, answered, stopped_by })
    }

    /// What is worth knowing about it.
    pub fn facts(&self, setup: &Setup) -> Facts {
        let mut facts = setup.server.facts();
        facts.insert("opened".to_owned(), self.clients.opened().into());
        facts.insert("answered".to_owned(), self.answered.into());
        facts.extend(self.server.version().map(|of| ("version".to_owned(), of.into())));
        facts.extend(self.stopped_by.clone().map(|by| ("stopped_by".to_owned(), by.into())));
        facts
    }
}

/// A kernel without `CONFIG_PROC_CHILDREN` names no children: their memory and CPU time would be missing.
fn sees_processes(
    setup: &Setup,
    server: &ServerProcess,
    answered: u64,
) -> Result<(), SubjectError> {
    let keeps_them = setup.reuse == Reuse::Persistent && setup.server.each() == Some(Kind::Process);
    let of_connections = if keeps_them { answered } else { 0 };
    let all = 1 + setup.server.other_processes() + of_connections;
    if server.comes_to(|seen| seen >= all) {
        return Ok(());
    }
    let seen = server.processes();
    Err(SubjectError::wrong(format!(
        "of {all} processes {seen} can be seen in /proc/*/task/*/children"
    )))
}

/// Which limits stood in the way, as far as they can be told.
fn stopped_by(
    setup: &Setup,
    server: &mut ServerProcess,
    clients: &Clients,
    answered: u64,
    overflows: u64,
) -> String {
    let mut reasons = Vec::new();
    reasons.extend(server.stopped());
    if let Some(members) = setup.server.members().filter(|&members| members == answered) {
        reasons.push(format!(
            "the pool has {members} members, each with one connection until that is closed"
        ));
    }
    if overflows > 0 {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
        reasons.push(format!(
            "the queue of connections to be accepted is full, net.core.somaxconn = {}: {overflows} \
             ListenOverflows",
            most.trim()
        ));
    }
    if let Some(error) = &clients.refused {
        let opened = clients.opened();
        reasons.push(format!("connection {} could not be opened: {error}", opened + 1));
    }
    if clients.failed > 0 {
        reasons.push(format!(
            "{} connections were closed by the server, or answered wrongly",
            clients.failed
        ));
    }
    if reasons.is_empty() {
        reasons.push(format!("nobody was answered for {} s", ANSWER_TIMEOUT.as_secs()));
    }
    reasons.join("; ")
}

/// How often a queue of connections to be accepted was full, in this network namespace.
fn queue_overflows() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").unwrap_or_default();
    overflows_in(&text).unwrap_or(0)
}

/// The file has a line of names for every line of numbers.
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
