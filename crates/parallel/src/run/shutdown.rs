//! Ends the commands of a run after a signal has asked contend to end.

use std::time::{Duration, Instant};

use contend_sys::signal::ReceivedSignal;

use crate::execute::Launcher;
use crate::objects;

/// Time that the commands get to end before the next step.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// A step to end the commands of a run. Each step goes further than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shutdown {
    /// Start no more commands. The terminal has sent the signal to the running ones as well.
    StopSpawning,
    /// Send SIGTERM to all commands, and start no more.
    Terminate,
    /// Send SIGKILL to all commands.
    Kill,
    /// Stop waiting for the commands.
    Abandon,
}

impl Shutdown {
    fn next(self) -> Self {
        match self {
            Self::StopSpawning => Self::Terminate,
            Self::Terminate => Self::Kill,
            Self::Kill | Self::Abandon => Self::Abandon,
        }
    }

    /// Applies the step to the commands that `launcher` has started. Nothing waits for a store of objects any more.
    pub(super) fn apply(self, launcher: &Launcher) {
        objects::interrupt();
        match self {
            Self::StopSpawning => launcher.forbid_starts(),
            Self::Terminate => launcher.end_all(),
            Self::Kill => launcher.kill_all(),
            Self::Abandon => {}
        }
    }
}

/// The progress of a shutdown, which determines when the next step is due. Reads no clock and sends
/// no signal itself.
#[derive(Debug)]
pub(super) struct Escalation {
    /// Whether signals from the keyboard are left to the commands, which receive them as well.
    ignores_keyboard: bool,
    last: Option<(Shutdown, Instant)>,
}

impl Escalation {
    /// Creates the escalation of a run that no signal has interrupted yet.
    pub(super) fn new(ignores_keyboard: bool) -> Self {
        Self { ignores_keyboard, last: None }
    }

    /// Returns whether any step has been taken.
    pub(super) fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Returns the step that is due at the given time, or `None`. `signal` is a signal that has
    /// just arrived.
    ///
    /// The first signal starts the shutdown. Every further signal, and a grace period without one,
    /// leads to the next step. Signals from the keyboard count only if they are not left to the
    /// commands.
    pub(super) fn advance(
        &mut self,
        signal: Option<ReceivedSignal>,
        now: Instant,
    ) -> Option<Shutdown> {
        let is_typed = signal.is_some_and(ReceivedSignal::is_from_keyboard);
        if is_typed && self.ignores_keyboard {
            return None;
        }
        let step = match (self.last, signal) {
            (None, Some(_)) if is_typed => Shutdown::StopSpawning,
            (None, Some(_)) => Shutdown::Terminate,
            (Some((last, _)), Some(_)) => last.next(),
            (Some((last, since)), None) if now.duration_since(since) > GRACE_PERIOD => last.next(),
            (_, None) => return None,
        };
        self.last = Some((step, now));
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use contend_shell::environment::Paths;
    use contend_sys::Signal;
    use contend_sys::interrupt::Signals;

    use super::Shutdown::{Abandon, Kill, StopSpawning, Terminate};
    use super::*;
    use crate::execute::{Plain, Tally};
    use crate::run::testing::command;

    const TYPED: Option<ReceivedSignal> =
        Some(ReceivedSignal { signal: Signal::INT.as_raw(), from_process: false });
    const SENT: Option<ReceivedSignal> =
        Some(ReceivedSignal { signal: Signal::TERM.as_raw(), from_process: true });

    #[test]
    fn every_signal_leads_one_step_further() {
        let now = Instant::now();
        let steps = |signals: &[Option<ReceivedSignal>]| {
            let mut escalation = Escalation::new(false);
            signals.iter().map(|&signal| escalation.advance(signal, now)).collect::<Vec<_>>()
        };
        let all = [StopSpawning, Terminate, Kill, Abandon, Abandon].map(Some);
        assert_eq!(steps(&[TYPED, TYPED, SENT, TYPED, SENT]), all);
        assert_eq!(steps(&[SENT, TYPED, TYPED, TYPED]), all[1..]);
        assert_eq!(steps(&[None, None]), [None, None]);
        assert!(StopSpawning < Terminate && Terminate < Kill && Kill < Abandon);
    }

    #[test]
    fn a_grace_period_leads_one_step_further() {
        let begin = Instant::now();
        let mut escalation = Escalation::new(false);
        assert_eq!(escalation.advance(None, begin + 10 * GRACE_PERIOD), None);
        assert!(!escalation.has_begun());
        assert_eq!(escalation.advance(TYPED, begin), Some(StopSpawning));
        assert!(escalation.has_begun());
        let mut time = begin;
        for step in [Terminate, Kill, Abandon] {
            assert_eq!(
                escalation.advance(None, time + GRACE_PERIOD),
                None,
                "{step:?} comes too early"
            );
            time += GRACE_PERIOD + Duration::from_millis(1);
            assert_eq!(escalation.advance(None, time), Some(step));
        }
    }

    #[test]
    fn typed_signals_can_be_left_to_the_commands() {
        let now = Instant::now();
        let mut escalation = Escalation::new(true);
        assert_eq!(escalation.advance(TYPED, now), None);
        assert!(!escalation.has_begun());
        assert_eq!(escalation.advance(SENT, now), Some(Terminate));
        assert_eq!(escalation.advance(TYPED, now), None);
        assert_eq!(escalation.advance(SENT, now), Some(Kill));
    }

    /// Takes a step while the given script runs, and returns the exit code that a shell would
    /// report.
    fn exit_code_after(step: Shutdown, script: &str) -> i32 {
        let signals = Signals::block().expect("a descriptor");
        let launcher = Launcher::new(signals.mask_before(), Paths::new(), Vec::new());
        let tally = Tally::default();
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let commands = [command(0, &["sh", "-c", script])];
        let writer = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        let plain = Plain::start(&launcher, &tally, &commands, None, Some(writer)).expect("sh");
        let mut ready = [0];
        std::io::Read::read_exact(&mut { reader }, &mut ready).expect("it has started");
        step.apply(&launcher);
        plain.wait().expect("a child");
        tally.stages()[&0].status
    }

    #[test]
    fn commands_are_asked_to_end_before_they_are_killed() {
        let exits = "trap 'exit 7' TERM; echo; while :; do sleep 0.01; done";
        let ignores = "trap '' TERM; echo; while :; do sleep 0.01; done";
        assert_eq!(exit_code_after(Terminate, exits), 7);
        assert_eq!(exit_code_after(Kill, exits), 128 + Signal::KILL.as_raw());
        assert_eq!(exit_code_after(Kill, ignores), 128 + Signal::KILL.as_raw());
        assert_eq!(exit_code_after(Abandon, "echo; exit 3"), 3);
    }

    #[test]
    fn without_new_commands_those_that_run_still_end_as_they_would() {
        let signals = Signals::block().expect("a descriptor");
        let launcher = Launcher::new(signals.mask_before(), Paths::new(), Vec::new());
        let tally = Tally::default();
        let commands = [command(0, &["sh", "-c", "read line; exit 5"])];
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let reader = std::fs::File::from(std::os::fd::OwnedFd::from(reader));
        let plain = Plain::start(&launcher, &tally, &commands, Some(reader), None).expect("sh");
        StopSpawning.apply(&launcher);
        assert!(Plain::start(&launcher, &tally, &commands, None, None).is_err());
        assert_eq!(launcher.pids().len(), 1);
        drop(writer);
        plain.wait().expect("a child");
        assert_eq!(tally.stages()[&0].status, 5);
    }
}
