//! Pairs of Unix sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

use super::stream::Stream;
use super::{ANY, End, Ends, Mechanism, Terms, Waiting, always_available};

/// Bytes, as through TCP.
pub const STREAM: Mechanism = Mechanism {
    name: "unix-stream",
    summary: "a pair of Unix sockets for bytes (SOCK_STREAM)",
    waiting: Waiting::Asleep,
    most: ANY,
    between_threads: true,
    unavailable: always_available,
    make: |terms| ends(&terms, SocketType::STREAM),
};

/// Messages, without an end.
pub const DATAGRAM: Mechanism = Mechanism {
    name: "unix-datagram",
    summary: "a pair of Unix sockets for messages (SOCK_DGRAM)",
    waiting: Waiting::Asleep,
    most: ANY,
    between_threads: true,
    unavailable: |bytes| too_long(bytes, SocketType::DGRAM),
    make: |terms| ends(&terms, SocketType::DGRAM),
};

/// Messages, and an end.
pub const SEQPACKET: Mechanism = Mechanism {
    name: "unix-seqpacket",
    summary: "a pair of Unix sockets for messages, with an end (SOCK_SEQPACKET)",
    waiting: Waiting::Asleep,
    most: ANY,
    between_threads: true,
    unavailable: |bytes| too_long(bytes, SocketType::SEQPACKET),
    make: |terms| ends(&terms, SocketType::SEQPACKET),
};

fn ends(terms: &Terms, kind: SocketType) -> io::Result<Ends> {
    let (main, sub) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    let end = |socket: OwnedFd| -> Box<dyn End> {
        let both = Arc::new(socket);
        Box::new(Stream::new(terms, Arc::clone(&both), both))
    };
    Ok([end(main), end(sub)])
}

/// A message has to fit into the room for those that are on their way.
fn too_long(bytes: usize, kind: SocketType) -> Option<String> {
    /// What the kernel notes about each message takes of the room, too.
    const NOTES: usize = 1024;
    let (socket, _) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).ok()?;
    let room = sockopt::socket_send_buffer_size(&socket).ok()?;
    let fits = bytes + NOTES <= room;
    (!fits).then(|| format!("a message has to fit into net.core.wmem_default, {room} bytes"))
}
