//! Channels of two rings in shared memory, one for each direction.

use std::io;
use std::os::fd::AsFd;

use contend_sys::mapping::{Backing, Mapping};
use contend_sys::ring::{Receiver, Sender, Shape, WaitPolicy, pair};

use rustix::fs::{FallocateFlags, fallocate};

use super::{
    ChannelConfig, Endpoint, Endpoints, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available,
};
use crate::support::syscalls::{Call, Tally};
use crate::support::unnamed_file::unnamed_in;

/// A ring in the pages of a file that both sides map. Partners spin, and then wait with a futex,
/// when the ring is empty or full.
pub const MAPPED_FILE: Mechanism = Mechanism {
    name: "mapped-file",
    summary: "ring in a file that both sides map (mmap); spin, then futex",
    waiting: WaitStrategy::SpinThenSleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        endpoints(&config, SPIN_THEN_SLEEP, |shape| {
            let file = unnamed_in(&std::env::temp_dir())?;
            // Reserve the space now; a write to a page without space would raise SIGBUS later.
            let length = shape.length_of_pair() as u64;
            fallocate(&file, FallocateFlags::empty(), 0, length)?;
            Mapping::new(Backing::File(file.as_fd()), shape.length_of_pair())
        })
    },
};

/// A ring on which partners wait with a futex, without spinning, when it is empty or full.
pub const FUTEX: Mechanism = Mechanism {
    name: "ring-futex",
    summary: "ring in shared memory; futex when empty or full",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| endpoints(&config, WaitPolicy::Sleep(1), anonymous),
};

/// A ring on which partners spin, and then wait with a futex, when it is empty or full.
pub const SPIN_FUTEX: Mechanism = Mechanism {
    name: "ring-spin-futex",
    summary: "ring in shared memory; spin, then futex",
    waiting: WaitStrategy::SpinThenSleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| endpoints(&config, SPIN_THEN_SLEEP, anonymous),
};

/// A ring on which partners spin when it is empty or full.
pub const SPIN: Mechanism = Mechanism {
    name: "ring-spin",
    summary: "ring in shared memory; spin",
    waiting: WaitStrategy::Spin,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| endpoints(&config, WaitPolicy::Spin, anonymous),
};

/// Policy of polling 1000 times before sleeping. This takes about 25 µs, as does waking a sleeper
/// on another CPU.
pub const SPIN_THEN_SLEEP: WaitPolicy = WaitPolicy::Sleep(1000);

fn anonymous(shape: Shape) -> io::Result<Mapping> {
    Mapping::new(Backing::Shared, shape.length_of_pair())
}

/// Returns the shape of a ring for messages of `bytes` bytes.
///
/// - A ring for messages of up to 8 KiB is small, so that it fits into an L1 cache if they are
///   short.
/// - A ring for longer messages holds 1 to 8 MiB, or four messages if these are larger. It exceeds
///   the private caches of a CPU on purpose: the receiver then gets most lines from the shared
///   cache, which is several times faster than fetching them from the sender's private caches.
pub fn shape(bytes: usize) -> Shape {
    const LARGE_RING_BYTES: usize = 8 << 20;
    let slots = if bytes <= SMALL_RING_BYTES {
        small_ring_slots(bytes)
    } else {
        slots(LARGE_RING_BYTES, bytes, 128)
    };
    Shape { slots, bytes }
}

/// Returns the number of slots of a small ring for messages of `bytes` bytes: as many as fit into
/// 8 KiB, but at least 4 and at most 64.
pub fn small_ring_slots(bytes: usize) -> u32 {
    slots(SMALL_RING_BYTES, bytes, 64)
}

/// Maximum total size of the messages in a small ring, in bytes, so that the ring fits into an L1
/// cache. Only a ring with [`MIN_SLOTS`] slots may be larger.
const SMALL_RING_BYTES: usize = 8 << 10;

/// Minimum number of slots of a ring.
const MIN_SLOTS: u32 = 4;

/// Returns how many messages of `message_bytes` bytes fit into `ring_bytes` bytes, but at least
/// [`MIN_SLOTS`] and at most `max`.
fn slots(ring_bytes: usize, message_bytes: usize, max: u32) -> u32 {
    u32::try_from(ring_bytes / message_bytes.max(1)).map_or(max, |fit| fit.clamp(MIN_SLOTS, max))
}

fn endpoints(
    config: &ChannelConfig,
    policy: WaitPolicy,
    memory: impl Fn(Shape) -> io::Result<Mapping>,
) -> io::Result<Endpoints> {
    let shape = shape(config.bytes);
    let endpoints = pair(memory(shape)?, shape, policy)?;
    let endpoint = |(to, from)| {
        Box::new(RingEndpoint { config: config.clone(), to, from }) as Box<dyn Endpoint>
    };
    Ok(endpoints.map(endpoint))
}

/// Returns the number of futex calls made by the given sender and receiver, as a tally.
pub fn ring_calls(to: &Sender, from: &Receiver) -> Tally {
    let mut tally = Tally::default();
    for calls in [to.calls(), from.calls()] {
        tally.add_many(Call::Futex, calls.iter().sum());
    }
    tally
}

struct RingEndpoint {
    config: ChannelConfig,
    to: Sender,
    from: Receiver,
}

impl Endpoint for RingEndpoint {
    fn draft(&mut self) -> io::Result<&mut [u8]> {
        self.to.draft(&|| self.config.link.is_broken())
    }

    fn send(&mut self) -> io::Result<()> {
        self.to.send();
        Ok(())
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        self.from.receive(&|| self.config.link.is_broken())
    }

    fn calls(&self) -> Tally {
        ring_calls(&self.to, &self.from)
    }
}
