//! Observes processes from outside, through `/proc`: whether each task is active and, if not, what
//! it waits for.
//!
//! A sample of a task reads the following files, in this order. An ordinary user may read them for
//! their own processes.
//!
//! | file and content | state |
//! |---|---|
//! | `schedstat`: a waiting task has had no time slice since the last sample | the same wait |
//! | `syscall`: running | [`State::Active`] |
//! | `syscall`: a call with its arguments | the wait in that call at that descriptor |
//! | `syscall`: outside of calls | by `stat`: `R` active, `T` stopped, `D` waits for a page |
//! | `syscall` may not be read | by `stat`: `R` active, `T` stopped, `D` waits for a disk; otherwise a guess from the fill of the stage's pipes |
//!
//! Waits are classified by system call and descriptor, never by names of kernel functions. A wait
//! that cannot be classified is [`Wait::Unknown`].

#[cfg(test)]
mod conformance;
pub mod target;
pub mod task;
pub mod tree;

pub use target::{End, Ends};
pub use tree::Tree;

/// The state of a task, or of a whole stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Running on a CPU or queued for one.
    Active,
    /// Waiting for the given event.
    Waiting(Wait),
}

/// The event that a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Input of the task's stage.
    Starved,
    /// Room in the output of the task's stage.
    Blocked,
    /// The end of a sleep, or a timer.
    Sleep,
    /// A lock or another thread.
    Lock,
    /// A disk or a memory page.
    Disk,
    /// The end of a child process.
    Child,
    /// Any of several descriptors, whose kinds differ or are unknown.
    Poll,
    /// A peer on a socket other than the stage's input and output, or a connection.
    Network,
    /// A pipe other than the stage's input and output, or the other end of a FIFO.
    Pipe,
    /// Input from a terminal, or output to one, unless it is the stage's own input or output.
    Terminal,
    /// Continuation of the stopped process by job control.
    Stopped,
    /// An event that none of the other variants covers.
    Other,
    /// An unknown event, because the task's call cannot be read or classified.
    Unknown,
}

impl Wait {
    /// Number of variants of this enum.
    pub const COUNT: usize = Self::Unknown as usize + 1;

    /// Ranks a wait of a thread among the waits of the same process; the wait with the lowest rank
    /// becomes that of the process. A thread that waits for data or room is more informative than
    /// idle helper threads.
    fn rank_in_process(self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Disk => 1,
            Self::Blocked => 2,
            Self::Starved => 3,
            Self::Network => 4,
            Self::Sleep => 5,
            other => other.rank_of_indirect_waits(),
        }
    }

    /// Ranks a wait of a process among the waits of the same stage; the wait with the lowest rank
    /// becomes that of the stage. A child that sleeps on its parent's behalf is more informative
    /// than a sibling that waits for data.
    fn rank_in_stage(self) -> u8 {
        match self {
            Self::Disk => 0,
            Self::Sleep => 1,
            Self::Network => 2,
            Self::Blocked => 3,
            Self::Starved => 4,
            Self::Stopped => 5,
            other => other.rank_of_indirect_waits(),
        }
    }

    /// Returns the rank of a wait that has the same rank in a process and in a stage. These waits
    /// are the least informative ones: most only mean that another task has to act first.
    fn rank_of_indirect_waits(self) -> u8 {
        match self {
            Self::Terminal => 6,
            Self::Poll => 7,
            Self::Pipe => 8,
            Self::Lock => 9,
            Self::Other => 10,
            Self::Child => 11,
            _ => 12,
        }
    }
}

impl State {
    /// Combines the states of several tasks into one: active if any task is, otherwise the wait
    /// with the lowest rank. Returns `None` if there are no tasks.
    fn combine(states: impl Iterator<Item = Self>, rank: fn(Wait) -> u8) -> Option<Self> {
        states.min_by_key(|state| match state {
            Self::Active => 0,
            Self::Waiting(wait) => 1 + rank(*wait),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_active_task_makes_the_stage_active() {
        let states = [State::Waiting(Wait::Starved), State::Active];
        assert_eq!(State::combine(states.into_iter(), Wait::rank_in_process), Some(State::Active));
        assert_eq!(State::combine([].into_iter(), Wait::rank_in_process), None);
    }

    #[test]
    fn the_wait_with_the_lowest_rank_wins() {
        let of =
            |waits: &[Wait], rank| State::combine(waits.iter().copied().map(State::Waiting), rank);
        // Cases: a shell that waits for its `sleep`, and a program whose helper thread sleeps.
        assert_eq!(
            of(&[Wait::Child, Wait::Sleep], Wait::rank_in_stage),
            Some(State::Waiting(Wait::Sleep))
        );
        assert_eq!(
            of(&[Wait::Starved, Wait::Sleep, Wait::Lock], Wait::rank_in_process),
            Some(State::Waiting(Wait::Starved))
        );
    }
}
