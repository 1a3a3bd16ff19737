//! TCP within this machine.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

use super::stream::StreamEndpoint;
use super::{Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available};

/// As a local service is reached.
pub const MECHANISM: Mechanism = Mechanism {
    name: "tcp",
    summary: "a TCP connection within this machine, every message sent at once (TCP_NODELAY)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let main = TcpStream::connect(listener.local_addr()?)?;
        // Somebody else may have found the port.
        let sub = loop {
            let (sub, peer) = listener.accept()?;
            if peer == main.local_addr()? {
                break sub;
            }
        };
        let end = |socket: TcpStream| -> std::io::Result<Box<dyn Endpoint>> {
            socket.set_nodelay(true)?;
            let both = Arc::new(socket);
            Ok(Box::new(StreamEndpoint::new(&config, Arc::clone(&both), both)))
        };
        Ok([end(main)?, end(sub)?])
    },
};
