//! Folded stacks: a line for each stack, with its frames from the outermost to the innermost and a weight.
//! flamegraph.pl, inferno and speedscope read this format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use contend_record::doctor::{DoctorRecord, ThreadState};
use contend_record::stacks::Stack;

/// Returns the stacks of busy threads as folded stacks. The first frame is the thread's name, so that
/// threads of the same name are combined. The weight is an estimate of the CPU time in microseconds: the
/// thread's CPU time, times the share of its samples with this stack.
pub fn folded(record: &DoctorRecord, stacks: &[Stack]) -> String {
    let mut weights: BTreeMap<String, f64> = BTreeMap::new();
    for thread in &record.threads {
        let running = thread.state_seconds.get(&ThreadState::Running).copied().unwrap_or(0.0);
        for stack in stacks.iter().filter(|stack| stack.tid == thread.name.tid) {
            let frames = stack.frames.iter().map(|frame| escaped(frame));
            let line: Vec<String> =
                [escaped(&thread.name.name)].into_iter().chain(frames).collect();
            *weights.entry(line.join(";")).or_default() += running * stack.share;
        }
    }
    let mut out = String::new();
    for (line, seconds) in weights {
        let micros = (seconds * 1e6).round();
        if micros > 0.0 {
            let _ = writeln!(out, "{line} {micros}");
        }
    }
    out
}

/// Returns a name without characters that separate frames or lines.
fn escaped(name: &str) -> String {
    name.chars().map(|c| if c == ';' || c.is_control() { ':' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use contend_record::doctor::{Thread, ThreadName};

    use super::*;

    #[test]
    fn threads_of_one_name_are_combined_by_their_cpu_time() {
        let thread = |tid, name: &str, seconds| Thread {
            name: ThreadName { pid: 1, tid, name: name.to_owned(), function: None },
            observed_seconds: 9.0,
            state_seconds: BTreeMap::from([(ThreadState::Running, seconds)]),
            slices: 1,
            waits: Vec::new(),
        };
        let record = DoctorRecord {
            threads: vec![thread(1, "main", 1.0), thread(2, "w;k\n", 2.0), thread(3, "w;k\n", 1.0)],
            ..DoctorRecord::default()
        };
        let stack = |tid, frames: &[&str], share| Stack {
            tid,
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
            share,
        };
        let stacks = [
            stack(2, &["run", "work"], 0.75),
            stack(2, &["run"], 0.25),
            stack(3, &["run", "work"], 1.0),
            stack(1, &["main", "[libc.so.6]"], 1e-9),
            stack(9, &["unknown"], 1.0),
        ];
        assert_eq!(folded(&record, &stacks), "w:k:;run 500000\nw:k:;run;work 2500000\n");
    }
}
