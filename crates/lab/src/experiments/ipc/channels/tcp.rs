//! Channels over a TCP connection on the loopback interface.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

use super::stream::StreamEndpoint;
use super::{Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available};

/// A TCP connection over loopback, as between a client and a local service.
pub const MECHANISM: Mechanism = Mechanism {
    name: "tcp",
    summary: "TCP over loopback, without Nagle's algorithm (TCP_NODELAY)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let main = TcpStream::connect(listener.local_addr()?)?;
        // Another program may have connected to the port first.
        let sub = loop {
            let (sub, peer) = listener.accept()?;
            if peer == main.local_addr()? {
                break sub;
            }
        };
        let endpoint = |socket: TcpStream| -> std::io::Result<Box<dyn Endpoint>> {
            socket.set_nodelay(true)?;
            let both = Arc::new(socket);
            Ok(Box::new(StreamEndpoint::new(&config, Arc::clone(&both), both)))
        };
        Ok([endpoint(main)?, endpoint(sub)?])
    },
};
