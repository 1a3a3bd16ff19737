//! Channels over a pair of Unix sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

use super::stream::StreamEndpoint;
use super::{
    ChannelConfig, Endpoint, Endpoints, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available,
};

/// A socket pair that carries a byte stream, as a TCP connection does.
pub const STREAM: Mechanism = Mechanism {
    name: "unix-stream",
    summary: "Unix socket pair, byte stream (SOCK_STREAM)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| endpoints(&config, SocketType::STREAM),
};

/// A socket pair for datagrams, on which the receiver sees no end of file when the sender closes
/// its socket.
pub const DATAGRAM: Mechanism = Mechanism {
    name: "unix-datagram",
    summary: "Unix socket pair, datagrams (SOCK_DGRAM)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: |bytes| exceeds_send_buffer(bytes, SocketType::DGRAM),
    make: |config| endpoints(&config, SocketType::DGRAM),
};

/// A socket pair for messages, on which the receiver sees the end of file when the sender closes
/// its socket.
pub const SEQPACKET: Mechanism = Mechanism {
    name: "unix-seqpacket",
    summary: "Unix socket pair, messages with end of file (SOCK_SEQPACKET)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: |bytes| exceeds_send_buffer(bytes, SocketType::SEQPACKET),
    make: |config| endpoints(&config, SocketType::SEQPACKET),
};

fn endpoints(config: &ChannelConfig, kind: SocketType) -> io::Result<Endpoints> {
    let (main, sub) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    let endpoint = |socket: OwnedFd| -> Box<dyn Endpoint> {
        let both = Arc::new(socket);
        Box::new(StreamEndpoint::new(config, Arc::clone(&both), both))
    };
    Ok([endpoint(main), endpoint(sub)])
}

/// Returns why a message of `bytes` bytes does not fit into the send buffer of a socket of the
/// given type, or `None` if it fits or the size of the buffer is unknown.
fn exceeds_send_buffer(bytes: usize, kind: SocketType) -> Option<String> {
    /// Upper bound, in bytes, on the kernel's overhead for each message, which also takes space in
    /// the buffer.
    const KERNEL_BYTES_PER_MESSAGE: usize = 1024;
    let (socket, _) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).ok()?;
    let buffer_bytes = sockopt::socket_send_buffer_size(&socket).ok()?;
    let fits = bytes + KERNEL_BYTES_PER_MESSAGE <= buffer_bytes;
    (!fits).then(|| format!("a message must fit into net.core.wmem_default, {buffer_bytes} bytes"))
}
