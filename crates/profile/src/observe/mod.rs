//! Observes processes from outside, through `/proc`: the activity and the wait of each task.
//!
//! An ordinary user may read all of these files. A sample of a task reads, in this order:
//!
//! | file and content | state |
//! |---|---|
//! | `schedstat`: a waiting task has had no time slice since | the wait of the last sample |
//! | `syscall`: running | [`State::Active`] |
//! | `syscall`: a call with its arguments | the wait in that call at that descriptor |
//! | `syscall`: outside of calls | by `stat`: `R` active, `T` stopped, `D` waits for a page |
//! | `syscall` may not be read | by `stat`, and a guess from the fill of the stage's pipes |
//!
//! Waits are classified by system call and descriptor, never by names of kernel functions. A wait
//! that cannot be classified is [`Wait::Unknown`].

#[cfg(test)]
mod conformance;
pub(crate) mod kind;
pub mod target;
pub mod task;
pub mod tree;

pub use target::{End, Ends};
pub use tree::Tree;

/// The activity of a task, or of a whole stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On a CPU or ready for one.
    Active,
    /// Waiting.
    Waiting(Wait),
}

/// The event that a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Its stage's input.
    Starved,
    /// Room in its stage's output.
    Blocked,
    /// Time to pass.
    Sleep,
    /// A lock or another thread.
    Lock,
    /// A disk or a page.
    Disk,
    /// A child.
    Child,
    /// One of several descriptors.
    Poll,
    /// A socket.
    Network,
    /// A pipe that is neither the stage's input nor its output.
    Pipe,
    /// A terminal.
    Terminal,
    /// Job control to continue the process.
    Stopped,
    /// Something else.
    Other,
    /// Something unknown: its call cannot be read.
    Unknown,
}

impl Wait {
    /// Number of variants.
    pub const COUNT: usize = Self::Unknown as usize + 1;

    /// Ranks waits among the threads of one process; the lowest rank describes the process. A
    /// thread that waits for data or room is more informative than idle helper threads.
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

    /// Ranks waits among the processes of one stage; the lowest rank describes the stage. A child
    /// that sleeps on its parent's behalf is more informative than a sibling that waits for data.
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

    /// Ranks waits that only mean that another task has to act first.
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
    /// Returns one state for several tasks: active if any is, else the wait of the lowest rank.
    /// `None` without tasks.
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
    fn one_active_task_makes_the_whole_active() {
        let states = [State::Waiting(Wait::Starved), State::Active];
        assert_eq!(State::combine(states.into_iter(), Wait::rank_in_process), Some(State::Active));
        assert_eq!(State::combine([].into_iter(), Wait::rank_in_process), None);
    }

    #[test]
    fn the_more_telling_wait_wins() {
        let of =
            |waits: &[Wait], rank| State::combine(waits.iter().copied().map(State::Waiting), rank);
        // A shell that waits for its `sleep`, and a program whose helper thread sleeps.
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
