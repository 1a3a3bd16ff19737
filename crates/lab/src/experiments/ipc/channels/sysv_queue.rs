//! Channels of two System V message queues, one for each direction.

use std::io;
use std::sync::Arc;

use contend_sys::queue::{Envelope, SysvQueue};

use super::{
    ChannelConfig, Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy, duplex, exceeds_sysctl,
};
use crate::support::syscalls::{Call, Tally};

/// System V message queues (`msgget(2)`) with the default capacity.
pub const MECHANISM: Mechanism = Mechanism {
    name: "sysv-queue",
    summary: "System V message queue (msgget) for kernel.msgmnb bytes",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: |bytes| {
        exceeds_sysctl(bytes, "kernel/msgmax")
            .or_else(|| exceeds_sysctl(bytes, "kernel/msgmnb"))
            .or_else(|| {
                let error = SysvQueue::new().err()?;
                Some(format!("System V message queues are refused: {error}"))
            })
    },
    make: |config| {
        let endpoint = |from: &Arc<SysvQueue>, to: &Arc<SysvQueue>| -> Box<dyn Endpoint> {
            Box::new(SysvQueueEndpoint {
                config: config.clone(),
                from: Arc::clone(from),
                to: Arc::clone(to),
                draft: Envelope::new(config.bytes),
                message: Envelope::new(config.bytes),
                tally: Tally::default(),
            })
        };
        duplex(SysvQueue::new, endpoint)
    },
};

struct SysvQueueEndpoint {
    config: ChannelConfig,
    from: Arc<SysvQueue>,
    to: Arc<SysvQueue>,
    draft: Envelope,
    message: Envelope,
    tally: Tally,
}

impl Endpoint for SysvQueueEndpoint {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(self.draft.message())
    }

    fn send(&mut self) -> io::Result<()> {
        let send = || self.to.send(&self.draft);
        self.config.retry_interrupted(&mut self.tally, Call::Msgsnd, send)
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        let receive = || self.from.receive(&mut self.message);
        let bytes = self.config.retry_interrupted(&mut self.tally, Call::Msgrcv, receive)?;
        Ok(&self.message.message()[..bytes])
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
