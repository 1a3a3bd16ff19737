//! Channels of two POSIX message queues, one for each direction.

use std::io;
use std::sync::Arc;

use contend_sys::queue::PosixQueue;
use rustix::process::{Resource, getrlimit};

use super::{
    ChannelConfig, Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy, duplex, exceeds_sysctl,
    sysctl,
};
use crate::support::syscalls::{Call, Tally};

/// POSIX message queues (`mq_open(3)`) with a capacity of 10 messages, the most that any user may
/// set by default. The capacity is smaller if the limits of the machine demand it, as for long
/// messages.
pub const MECHANISM: Mechanism = Mechanism {
    name: "posix-queue",
    summary: "POSIX message queue (mq_open) for up to 10 messages",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: |bytes| {
        exceeds_sysctl(bytes, "fs/mqueue/msgsize_max").or_else(|| {
            match PosixQueue::new(queue_capacity(bytes), bytes) {
                Ok(_) => None,
                Err(error) if queue_capacity(bytes) == 1 => Some(format!(
                    "a queue for messages of this length is refused ({error}); see RLIMIT_MSGQUEUE"
                )),
                Err(error) => Some(format!("POSIX message queues are refused: {error}")),
            }
        })
    },
    make: |config| {
        let queue = || PosixQueue::new(queue_capacity(config.bytes), config.bytes);
        let endpoint = |from: &Arc<PosixQueue>, to: &Arc<PosixQueue>| -> Box<dyn Endpoint> {
            Box::new(PosixQueueEndpoint {
                config: config.clone(),
                from: Arc::clone(from),
                to: Arc::clone(to),
                draft: vec![0; config.bytes],
                message: vec![0; config.bytes],
                tally: Tally::default(),
            })
        };
        duplex(queue, endpoint)
    },
};

/// Returns the capacity of each of a channel's two queues, in messages of `bytes` bytes: as many as
/// `fs.mqueue.msg_max` and `RLIMIT_MSGQUEUE` allow, but at least 1 and at most 10.
fn queue_capacity(bytes: usize) -> usize {
    /// Upper bound on the kernel's overhead for each message, in bytes.
    const KERNEL_BYTES_PER_MESSAGE: usize = 256;
    let default = sysctl("fs/mqueue/msg_max").unwrap_or(10).min(10);
    let allowed = getrlimit(Resource::Msgqueue).current;
    let allowed = allowed.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
    default.min(allowed / 2 / (bytes + KERNEL_BYTES_PER_MESSAGE)).max(1)
}

struct PosixQueueEndpoint {
    config: ChannelConfig,
    from: Arc<PosixQueue>,
    to: Arc<PosixQueue>,
    draft: Vec<u8>,
    message: Vec<u8>,
    tally: Tally,
}

impl Endpoint for PosixQueueEndpoint {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(&mut self.draft)
    }

    fn send(&mut self) -> io::Result<()> {
        let send = || self.to.send(&self.draft);
        self.config.retry_interrupted(&mut self.tally, Call::MqSend, send)
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        let receive = || self.from.receive(&mut self.message);
        let bytes = self.config.retry_interrupted(&mut self.tally, Call::MqReceive, receive)?;
        Ok(&self.message[..bytes])
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
