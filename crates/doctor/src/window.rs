//! A window of an observation: the difference between two of its snapshots.

use std::collections::HashMap;

use contend_sys::Pid;

use crate::observe::Observation;
use crate::processes::Observed;
use crate::stacks::Stacks;
use crate::time_series::CauseLog;

impl Observation {
    /// Returns the observation of the time since `earlier`, a previous snapshot of the same
    /// observation. Intervals, where busy threads execute and who owned locks are those of this
    /// snapshot.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before: HashMap<Pid, &Observed> =
            earlier.processes.iter().map(|process| (process.pid, process)).collect();
        let file_locks = self.file_locks.since(&earlier.file_locks);
        let processes = self.processes.iter().map(|process| {
            before.get(&process.pid).map_or_else(|| process.snapshot(), |b| process.since(b))
        });
        Self {
            timeline: self.timeline.since(&earlier.timeline),
            cpus: self.cpus,
            processes: processes.collect(),
            names: self.names.clone(),
            length: self.length.saturating_sub(earlier.length),
            samples: self.samples.saturating_sub(earlier.samples),
            intervals: self.intervals.clone(),
            no_switches: self.no_switches.clone(),
            no_wakes: self.no_wakes.clone(),
            shows_calls: self.shows_calls,
            shows_names: self.shows_names,
            unsampled: self.unsampled,
            left_out: self.left_out,
            own_cpu: self.own_cpu.saturating_sub(earlier.own_cpu),
            load: self.load.since(earlier.load),
            throttling: self.throttling.since(earlier.throttling),
            codes: self.codes.clone(),
            lock_owners: self.lock_owners.clone(),
            lock_files: self.lock_files.clone(),
            file_lock_share: file_locks.share(),
            file_locks,
            causes: CauseLog::default(),
            trace: None,
            stacks: Stacks::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use contend_record::doctor::DoctorRecord;
    use contend_sys::Pid;
    use contend_sys::interrupt::Signals;

    use crate::diagnosis;
    use crate::observe::{Config, Observation, observe};

    /// Checks the two sums of a record, and returns it.
    fn checked_record(observation: &Observation) -> DoctorRecord {
        let record = diagnosis::record(observation, 2.0);
        let states: f64 = record.state_seconds.values().sum();
        assert!((states - record.thread_seconds).abs() < 1e-6, "{record:?}");
        let moments: f64 = record.moments.iter().map(|moments| moments.seconds).sum();
        assert!((moments / record.observed_seconds - 1.0).abs() < 0.05, "{record:?}");
        record
    }

    #[test]
    fn snapshots_are_records_and_so_is_the_time_between_them() {
        let script = "while :; do :; done";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("a shell");
        let signals = Signals::block().expect("a descriptor");
        let config = Config {
            targets: vec![Pid::from_child(&child)],
            limit: None,
            interval: Duration::from_millis(10),
            switches: true,
            wakes: true,
            trace: None,
        };
        let mut snapshots: Vec<Observation> = Vec::new();
        let all = observe(&config, &signals, &mut |observer| {
            let due =
                Duration::from_millis(300) * (1 + u32::try_from(snapshots.len()).unwrap_or(0));
            if observer.elapsed() >= due {
                snapshots.push(observer.snapshot());
            }
            if snapshots.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        child.kill().and_then(|()| child.wait()).expect("a child");
        let all = all.expect("observed");
        let [early, late] = &snapshots[..] else { panic!("{} snapshots", snapshots.len()) };
        let window = late.since(early);
        assert!(all.length >= late.length && late.length > early.length);
        assert_eq!(window.length, late.length.saturating_sub(early.length));
        let [all, early, late, window] = [&all, early, late, &window].map(checked_record);
        assert!(early.cpu_seconds > 0.0 && late.cpu_seconds > early.cpu_seconds);
        // What a busy thread did since its last sample, two intervals ago at most, is not known yet: it may have
        // been queued.
        let estimated = 0.02;
        assert!(
            all.cpu_seconds >= late.cpu_seconds - estimated,
            "{} {}",
            all.cpu_seconds,
            late.cpu_seconds
        );
        let between = late.cpu_seconds - early.cpu_seconds;
        assert!(
            (window.cpu_seconds - between).abs() < estimated,
            "{} {between}",
            window.cpu_seconds
        );
        assert!(window.thread_seconds < late.thread_seconds);
        assert_eq!(window.threads.len(), 1);
    }
}
