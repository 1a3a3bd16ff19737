//! `engine/handed-copy`: bytes copied into a buffer on one CPU and out of it on another.

use std::time::Instant;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::Parameters;
use contend_sys::mapping::{Backing, Mapping};
use contend_sys::ring::{Receiver, Sender, Shape, WaitPolicy, ring};
use contend_sys::{cpu, topology};

use super::ping_pong;
use crate::engine::experiment::{
    Demands, ErrorContext, Experiment, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};

/// The definition of `engine/handed-copy`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/handed-copy",
    summary: "time to pass 64 bytes between two CPUs by memcpy: the floor of a message",
    about: "A thread copies bytes into the slots of a small buffer with four slots; a second \
        thread, on another CPU, concurrently copies them out into memory of its own. Both use \
        memcpy at full speed. The buffer has the size of a ring for messages of 64 bytes. The \
        value is the time for 64 bytes: the lower bound for a message of 64 bytes in ipc/one-way.",
    view: View::HandedCopy,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases: |_: &Scope| vec![Parameters::new()],
    unavailable: |_| ping_pong::unavailable(),
    alternates_cpus: |_| true,
    demands: Demands::NONE,
    subject: |_| {
        let cpus = topology::nearest_cores(&topology::allowed());
        let cpus = cpus.ok_or_else(|| SubjectError::Unexpected("needs two CPUs".to_owned()))?;
        Ok(Box::new(HandedCopy(cpus)))
    },
};

/// Number of the buffer's slots, and the length of each in bytes.
const RING_SHAPE: Shape = Shape { slots: 4, bytes: 1152 };
/// Number of slots copied before the measured ones.
const WARM_UP_SLOTS: u64 = 100;
/// Length of a message in bytes. The value of a sample is the time for one message.
const MESSAGE_BYTES: usize = 64;

/// The subject of a case, with the CPUs of the sender and of the receiver.
struct HandedCopy([usize; 2]);

fn copy_in(sender: &mut Sender, slots: u64) -> std::io::Result<()> {
    let source = [7; RING_SHAPE.bytes];
    for _ in 0..slots {
        sender.draft(&|| false)?.copy_from_slice(std::hint::black_box(&source));
        sender.send();
    }
    Ok(())
}

fn copy_out(receiver: &mut Receiver, slots: u64) -> std::io::Result<()> {
    let mut target = [0; RING_SHAPE.bytes];
    for _ in 0..slots {
        target.copy_from_slice(receiver.receive(&|| false)?);
        std::hint::black_box(&target);
    }
    Ok(())
}

impl Subject for HandedCopy {
    fn sample(&mut self, iterations: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let [here, there] = self.0;
        let memory = Mapping::new(Backing::Shared, RING_SHAPE.length()).context("map memory")?;
        let (mut sender, mut receiver) =
            ring(memory, RING_SHAPE, WaitPolicy::Spin).context("make a ring")?;
        let messages_per_slot = (RING_SHAPE.bytes / MESSAGE_BYTES) as u64;
        let slots = iterations.div_ceil(messages_per_slot);
        cpu::pin(here).context("bind a thread to a CPU")?;
        let time = std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let _ = cpu::pin(there); // a failure only changes the distance
                copy_out(&mut receiver, WARM_UP_SLOTS + slots)
            });
            copy_in(&mut sender, WARM_UP_SLOTS)?;
            let begun = Instant::now();
            copy_in(&mut sender, slots)?;
            let received =
                other.join().map_err(|_| std::io::Error::other("a thread has panicked"))?;
            received.map(|()| begun.elapsed())
        });
        let time = time.context("copy bytes")?;
        Ok(Sample::of(time.as_nanos() as f64 / (slots * messages_per_slot) as f64))
    }
}
