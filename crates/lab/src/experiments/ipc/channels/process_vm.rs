//! Channels on which the kernel writes messages into the memory of the other process
//! (`process_vm_writev(2)`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::mapping::{Backing, Mapping};
use contend_sys::remote::{OtherProcess, RemoteBuffer, allow};
use contend_sys::ring::{Receiver, Sender, Shape, ring};
use contend_sys::shared::{Line, Shared};

use super::ring::{SPIN_THEN_SLEEP, ring_calls, small_ring_slots};
use super::{ChannelConfig, Endpoint, Mechanism, UNLIMITED_BYTES, WaitStrategy};
use crate::support::syscalls::{Call, Tally};

/// Messages that the kernel copies once, from the sender's memory to the receiver's, and a ring
/// that announces them.
pub const MECHANISM: Mechanism = Mechanism {
    name: "process-vm-writev",
    summary: "written into the other process by the kernel (process_vm_writev); ring",
    waiting: WaitStrategy::SpinThenSleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: false,
    unavailable: |_| {
        let checked = RemoteBuffer::check_permission();
        checked.err().map(|error| format!("process_vm_writev is refused: {error}"))
    },
    make: |config| {
        let shape = Shape { slots: small_ring_slots(config.bytes), bytes: 0 };
        let announcements = || {
            let memory = Mapping::new(Backing::Shared, shape.length())?;
            ring(memory, shape, SPIN_THEN_SLEEP)
        };
        let buffer = || RemoteBuffer::new(shape.slots as usize, config.bytes).map(Arc::new);
        let (to_sub, to_main) = (announcements()?, announcements()?);
        let (in_sub, in_main) = (buffer()?, buffer()?);
        let processes = Arc::new(Shared::new([const { Line(AtomicU32::new(0)) }; 2])?);
        let endpoint = |who,
                        inbound,
                        outbound,
                        buffer: &Arc<RemoteBuffer>,
                        partner_buffer: &Arc<RemoteBuffer>| {
            Box::new(ProcessVmEndpoint {
                config: config.clone(),
                who,
                processes: Arc::clone(&processes),
                partner: None,
                slots: shape.slots as usize,
                inbound,
                outbound,
                buffer: Arc::clone(buffer),
                partner_buffer: Arc::clone(partner_buffer),
                sent: 0,
                received: 0,
                draft: vec![0; config.bytes],
                tally: Tally::default(),
            }) as Box<dyn Endpoint>
        };
        Ok([
            endpoint(0, to_main.1, to_sub.0, &in_main, &in_sub),
            endpoint(1, to_sub.1, to_main.0, &in_sub, &in_main),
        ])
    },
};

struct ProcessVmEndpoint {
    config: ChannelConfig,
    /// 0 for main, 1 for sub.
    who: usize,
    /// Process ids of main and of sub; each is 0 until its endpoint is bound.
    processes: Arc<Shared<[Line<AtomicU32>; 2]>>,
    /// The other process; `None` until this side sends its first message.
    partner: Option<OtherProcess>,
    /// Number of messages that each ring and each buffer can hold.
    slots: usize,
    /// Receiving end of the ring that announces messages to this side.
    inbound: Receiver,
    /// Sending end of the ring that announces messages to the partner.
    outbound: Sender,
    /// Memory of this process, into which the partner writes messages.
    buffer: Arc<RemoteBuffer>,
    /// The partner's memory, into which this side writes messages.
    partner_buffer: Arc<RemoteBuffer>,
    /// Slot of the next message to send.
    sent: usize,
    /// Slot of the next message to receive.
    received: usize,
    draft: Vec<u8>,
    tally: Tally,
}

impl Endpoint for ProcessVmEndpoint {
    fn bind_to_thread(&mut self) -> io::Result<()> {
        self.partner = None;
        self.processes[self.who].store(std::process::id(), Ordering::Release);
        if self.who == 0 {
            allow(self.processes[1].load(Ordering::Acquire));
        }
        Ok(())
    }

    fn draft(&mut self) -> io::Result<&mut [u8]> {
        self.outbound.draft(&|| self.config.link.is_broken())?; // blocks until a slot is free
        Ok(&mut self.draft)
    }

    fn send(&mut self) -> io::Result<()> {
        if self.partner.is_none() {
            self.partner = OtherProcess::new(self.processes[1 - self.who].load(Ordering::Acquire));
        }
        let partner = self.partner.ok_or(io::ErrorKind::NotFound)?;
        let write = || self.partner_buffer.write(partner, self.sent, &self.draft);
        self.config.retry_interrupted(&mut self.tally, Call::ProcessVmWritev, write)?;
        self.sent = (self.sent + 1) % self.slots;
        self.outbound.send();
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        self.inbound.receive(&|| self.config.link.is_broken())?;
        let slot = self.received;
        self.received = (slot + 1) % self.slots;
        Ok(self.buffer.piece(slot))
    }

    fn calls(&self) -> Tally {
        let mut tally = self.tally;
        tally += ring_calls(&self.outbound, &self.inbound);
        tally
    }
}
