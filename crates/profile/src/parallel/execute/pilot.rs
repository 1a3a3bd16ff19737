//! Trying a group's commands on a sample of their input: what each needs, and how much is left for
//! the next.

use std::io;

use contend_record::run::Group;

use super::Context;
use super::input::Parts;
use super::instance::{Instance, Life};
use crate::parallel::estimate::{self, Flow};

/// The size of a sample in bytes.
const SAMPLE: usize = 256 << 10;
/// What is measured counts if it is so much more than what is usual.
const CLEARLY: f64 = 2.0;

/// Whether working on parts is worth it for this group, by what its commands do with a sample.
///
/// # Errors
/// When the sample cannot be read or a command not be started.
pub(super) fn is_worth_it(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
) -> io::Result<bool> {
    let mut sample = parts.sample(SAMPLE)?;
    let whole = sample.len() as f64;
    let mut flows = Vec::new();
    for command in &group.serial {
        let usual = estimate::rate(&command.program, &command.arguments);
        let volume = sample.len() as f64 / whole.max(1.0);
        let mut rate = usual;
        // What comes last, and what little is left, need not be tried.
        if flows.len() + 1 < group.serial.len() && !command.sorts && sample.len() > SAMPLE / 64 {
            let mut output = Vec::new();
            let mut take = |bytes: &[u8]| {
                output.extend_from_slice(bytes);
                Ok(true)
            };
            let one = std::slice::from_ref(command);
            let mut instance = Instance::start(context.launcher, one, Life::Part)?;
            instance.feed(&sample, &mut take)?;
            instance.drain(&mut take)?;
            let ended = instance.end()?;
            if !ended.well {
                break;
            }
            let cpu: f64 = ended.cpu.iter().map(std::time::Duration::as_secs_f64).sum();
            let start = estimate::start_of(&command.program);
            let measured = (cpu - start).max(0.0) * 1e9 / sample.len() as f64;
            if measured > CLEARLY * usual {
                rate = measured;
            }
            sample = output;
        }
        flows.push(Flow { rate, volume, sorts: command.program.ends_with("sort") });
    }
    let sorts_here = super::sorted::task(group).is_some() && group.any_order;
    Ok(estimate::is_faster(&flows, context.jobs, sorts_here))
}
