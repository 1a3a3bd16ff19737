//! RingEndpoint in shared memory.

use std::io;
use std::os::fd::AsFd;

use contend_sys::mapping::{Backing, Mapping};
use contend_sys::ring::{Patience, Receiver, Sender, Shape, pair};

use rustix::fs::{FallocateFlags, fallocate};

use super::{
    ChannelConfig, Endpoint, Endpoints, Mechanism, UNLIMITED_BYTES, WaitStrategy, always_available,
};
use crate::support::calls::{Call, Tally};
use crate::support::files::unnamed_in;

/// The ring, in a file's pages.
pub const MAPPED_FILE: Mechanism = Mechanism {
    name: "mapped-file",
    summary: "a ring in a file that both map (mmap), looked at a thousand times, then slept on",
    waiting: WaitStrategy::SpinThenSleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| {
        ends(&config, SPIN_THEN_SLEEP, |shape| {
            let file = unnamed_in(&std::env::temp_dir())?;
            // All of it: a page that there is no room for would be a signal later.
            let length = shape.length_of_pair() as u64;
            fallocate(&file, FallocateFlags::empty(), 0, length)?;
            Mapping::new(Backing::File(file.as_fd()), shape.length_of_pair())
        })
    },
};

/// The ring, slept on at once.
pub const FUTEX: Mechanism = Mechanism {
    name: "ring-futex",
    summary: "a ring in shared memory, slept on where there is nothing (futex)",
    waiting: WaitStrategy::Sleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| ends(&config, Patience::Sleep(1), anonymous),
};

/// The ring, slept on after a while.
pub const SPIN_FUTEX: Mechanism = Mechanism {
    name: "ring-spin-futex",
    summary: "a ring in shared memory, looked at a thousand times, then slept on",
    waiting: WaitStrategy::SpinThenSleep,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| ends(&config, SPIN_THEN_SLEEP, anonymous),
};

/// The ring, looked at again and again.
pub const SPIN: Mechanism = Mechanism {
    name: "ring-spin",
    summary: "a ring in shared memory, looked at again and again",
    waiting: WaitStrategy::Spin,
    max_message_bytes: UNLIMITED_BYTES,
    between_threads: true,
    unavailable: always_available,
    make: |config| ends(&config, Patience::Spin, anonymous),
};

/// Looks for some 25 µs: about what it takes to wake a sleeper on another CPU.
pub const SPIN_THEN_SLEEP: Patience = Patience::Sleep(1000);

fn anonymous(shape: Shape) -> io::Result<Mapping> {
    Mapping::new(Backing::Shared, shape.length_of_pair())
}

/// A ring that stays in the CPUs' nearest caches where messages are short. Where they are long, it is
/// larger than the caches that each CPU has for itself: lines that the sender's has already given up are
/// read from the one that both share, which takes a fraction of fetching them from the sender's.
pub fn shape(bytes: usize) -> Shape {
    const LARGE_RING_BYTES: usize = 8 << 20;
    let slots = if bytes <= SMALL_RING_BYTES {
        small_ring_slots(bytes)
    } else {
        slots(LARGE_RING_BYTES, bytes, 128)
    };
    Shape { slots, bytes }
}

/// Slots of which all are in the nearest cache, if they are short.
pub fn small_ring_slots(bytes: usize) -> u32 {
    slots(SMALL_RING_BYTES, bytes, 64)
}

/// Of the CPUs' nearest caches, what a ring may take.
const SMALL_RING_BYTES: usize = 8 << 10;

/// As many as there is room for, 4 at least.
const MIN_SLOTS: u32 = 4;

fn slots(ring_bytes: usize, message_bytes: usize, max: u32) -> u32 {
    u32::try_from(ring_bytes / message_bytes.max(1)).map_or(max, |fit| fit.clamp(MIN_SLOTS, max))
}

fn ends(
    config: &ChannelConfig,
    patience: Patience,
    memory: impl Fn(Shape) -> io::Result<Mapping>,
) -> io::Result<Endpoints> {
    let shape = shape(config.bytes);
    let ends = pair(memory(shape)?, shape, patience)?;
    let end = |(to, from)| {
        Box::new(RingEndpoint { config: config.clone(), to, from }) as Box<dyn Endpoint>
    };
    Ok(ends.map(end))
}

/// The system calls of both ends of two rings.
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
