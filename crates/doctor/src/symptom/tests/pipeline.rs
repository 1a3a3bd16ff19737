use contend_record::doctor::ThreadState;

use super::super::pipeline::find;
use super::{finds, is_silent};
use crate::facts::testing::{Program, Thread, waiting};
use crate::processes::PipeEnd;

/// Three stages, the second of which computes while its neighbours wait.
pub fn slow_stage() -> Program {
    stages(2.0, [(0.2, 0.8), (0.99, 0.0), (0.1, 0.9)])
}

/// Three stages of a pipeline, each with the shares of the time for which it runs, and waits for a
/// pipe. They have the PIDs from 1 to 3.
fn stages(cpus: f64, shares: [(f64, f64); 3]) -> Program {
    let program = Program::on(cpus).levels(&[0.8, 0.1]);
    shares.into_iter().zip(1..).fold(program, |program, ((running, in_pipes), id)| {
        let thread = Thread::new(id).of(id).runs(running, 500.0);
        let reads = PipeEnd { pipe: u64::from(id.unsigned_abs()), is_writer: false };
        let writes = PipeEnd { pipe: u64::from(id.unsigned_abs()) + 1, is_writer: true };
        program
            .thread(thread.waits(waiting(ThreadState::Pipe), in_pipes))
            .process(id, |process| process.pipes = [reads, writes].into())
    })
}

#[test]
fn a_slow_stage_is_found() {
    let found = finds(find, slow_stage(), 0.3..=0.4);
    assert!(found.message.starts_with("program-2 (process 2) runs for 99 %"), "{}", found.message);
    assert!(found.message.contains("2 of its neighbours"), "{}", found.message);
    assert_eq!(found.command.as_deref(), Some("contend pipe --pid 2"));
}

#[test]
fn processes_without_a_common_pipe_are_no_pipeline() {
    let apart = slow_stage().with(|facts| {
        for process in &mut facts.processes {
            process.pipes.clear();
        }
    });
    is_silent(find, apart, "no pipe connects them");
}

#[test]
fn a_stage_that_waits_itself_is_not_the_bottleneck() {
    let idle = stages(2.0, [(0.1, 0.9), (0.3, 0.0), (0.1, 0.9)]);
    is_silent(find, idle, "it runs for 30 % of the time");
    let alternating = stages(2.0, [(0.2, 0.8), (0.6, 0.4), (0.1, 0.9)]);
    is_silent(find, alternating, "it waits for pipes for 40 % of the time");
}

#[test]
fn stages_that_compute_equally_long_are_balanced() {
    is_silent(find, stages(4.0, [(0.9, 0.1), (0.95, 0.05), (0.85, 0.15)]), "none waits for long");
}

#[test]
fn a_program_whose_output_is_piped_is_no_stage() {
    let piped = |work: f64| {
        stages(2.0, [(0.0, 0.0), (0.99, 0.0), (work, 1.0 - work)]).process(2, |process| {
            process.pipes.retain(|end| end.is_writer);
        })
    };
    finds(find, piped(0.1), 0.4..=0.5);
    is_silent(find, piped(0.001), "it writes to cat");
}
