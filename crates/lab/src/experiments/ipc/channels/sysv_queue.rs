//! Message queues of System V.

use std::io;
use std::sync::Arc;

use contend_sys::queue::{Envelope, SysvQueue};

use super::{ANY, End, Mechanism, Terms, Waiting, beyond, both_ways};
use crate::support::calls::{Call, Tally};

/// What `msgget(2)` makes.
pub const MECHANISM: Mechanism = Mechanism {
    name: "sysv-queue",
    summary: "a message queue of System V (msgget), with room for kernel.msgmnb bytes",
    waiting: Waiting::Asleep,
    most: ANY,
    between_threads: true,
    unavailable: |bytes| {
        beyond(bytes, "kernel/msgmax").or_else(|| beyond(bytes, "kernel/msgmnb")).or_else(|| {
            let error = SysvQueue::new().err()?;
            Some(format!("queues of System V are refused: {error}"))
        })
    },
    make: |terms| {
        let end = |from: &Arc<SysvQueue>, to: &Arc<SysvQueue>| -> Box<dyn End> {
            Box::new(Queues {
                terms: terms.clone(),
                from: Arc::clone(from),
                to: Arc::clone(to),
                draft: Envelope::new(terms.bytes),
                message: Envelope::new(terms.bytes),
                tally: Tally::default(),
            })
        };
        both_ways(SysvQueue::new, end)
    },
};

struct Queues {
    terms: Terms,
    from: Arc<SysvQueue>,
    to: Arc<SysvQueue>,
    draft: Envelope,
    message: Envelope,
    tally: Tally,
}

impl End for Queues {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        Ok(self.draft.message())
    }

    fn send(&mut self) -> io::Result<()> {
        let send = || self.to.send(&self.draft);
        self.terms.patiently(&mut self.tally, Call::Msgsnd, send)
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        let receive = || self.from.receive(&mut self.message);
        let bytes = self.terms.patiently(&mut self.tally, Call::Msgrcv, receive)?;
        Ok(&self.message.message()[..bytes])
    }

    fn calls(&self) -> Tally {
        self.tally
    }
}
