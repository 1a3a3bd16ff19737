//! Identifies the primitive that a thread waits for in `futex(2)`, for each runtime, by the operation,
//! the expected value of the word and the time limit.
//!
//! | runtime | primitive | operation | expected value |
//! |---|---|---|---|
//! | glibc, musl | mutex | `FUTEX_WAIT` | 2 (glibc), bit 31 set (musl) |
//! | glibc | condition variable, semaphore | `FUTEX_WAIT_BITSET` | 0 or a sequence number |
//! | glibc | read-write lock | `FUTEX_WAIT_BITSET` | 1 to 3 |
//! | glibc | barrier | `FUTEX_WAIT` | number of the round |
//! | Rust's std | mutex | `FUTEX_WAIT_BITSET`, private, without time limit | 2 |
//! | Rust's std | thread parking | `FUTEX_WAIT_BITSET` | `u32::MAX` |
//! | Go | lock of the runtime | `FUTEX_WAIT` | 2 |
//! | Go | idle thread | `FUTEX_WAIT` | 0 |
//! | `CPython` | lock of the interpreter | `FUTEX_WAIT_BITSET` with a time limit | 0 or a sequence number |
//! | Java | monitor, `LockSupport.park` | as condition variables of glibc | |
//!
//! A mutex of Java and a `sync.Mutex` of Go put the thread aside in user space, so their waits look
//! like idle threads. Only the order of events distinguishes them.

use contend_record::doctor::{Runtime, ThreadState};
use contend_sys::{Pid, memory};

/// A word that a thread waits on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Futex {
    /// Address of the word in the process.
    pub address: u64,
    /// What the word belongs to.
    pub primitive: Primitive,
    /// Whether the wait has a time limit.
    pub is_timed: bool,
}

/// What a futex belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// A mutex or read-write lock.
    Lock,
    /// A condition variable, a semaphore, a barrier, the end of a thread, or an idle thread.
    Condition,
    /// The lock of an interpreter.
    InterpreterLock,
}

/// Offset of the owner's thread ID from the word, in a mutex of glibc (`__owner` in
/// `struct __pthread_mutex_s`), in bytes.
const OWNER_OFFSET: u64 = 8;
/// `FUTEX_CMD_MASK`: without the flags for private words and the realtime clock.
const COMMAND_MASK: u64 = 0x7f;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_LOCK_PI: u64 = 6;
const FUTEX_LOCK_PI2: u64 = 13;
/// `FUTEX_CLOCK_REALTIME`.
const REALTIME: u64 = 0x100;

impl Futex {
    /// Classifies a call by its arguments: address, operation, value, time limit.
    pub fn of(arguments: &[u64; 6], runtime: Option<Runtime>) -> Self {
        let [address, operation, value, limit, ..] = *arguments;
        let is_timed = limit != 0;
        let value = value & 0xffff_ffff;
        let primitive = match operation & COMMAND_MASK {
            FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => Primitive::Lock,
            FUTEX_WAIT if value == 2 || value & 0x8000_0000 != 0 => Primitive::Lock,
            FUTEX_WAIT_BITSET if is_timed && runtime == Some(Runtime::Python) => {
                Primitive::InterpreterLock
            }
            // glibc waits by the realtime clock for everything, but its mutexes do not.
            FUTEX_WAIT_BITSET if value == 2 && operation & REALTIME == 0 && !is_timed => {
                Primitive::Lock
            }
            FUTEX_WAIT_BITSET if (1..=3).contains(&value) && operation & REALTIME != 0 => {
                Primitive::Lock
            }
            _ => Primitive::Condition,
        };
        Self { address, primitive, is_timed }
    }

    /// Returns the ID of the thread that owns the lock of glibc at this address; `None` if it is another
    /// primitive, no thread owns it, or the memory cannot be read.
    pub fn owner(&self, process: Pid) -> Option<i32> {
        if self.primitive != Primitive::Lock {
            return None;
        }
        let mut word = [0; 4];
        let length = memory::read(process, self.address + OWNER_OFFSET, &mut word).ok()?;
        let owner = i32::from_ne_bytes(word);
        (length == word.len() && owner > 0).then_some(owner)
    }

    /// Returns the state of a thread that waits on the word.
    pub fn state(&self) -> ThreadState {
        match self.primitive {
            Primitive::Lock | Primitive::InterpreterLock => ThreadState::Lock,
            Primitive::Condition => ThreadState::Condition,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primitive(operation: u64, value: u64, limit: u64, runtime: Option<Runtime>) -> Primitive {
        Futex::of(&[0x1000, operation, value, limit, 0, 0], runtime).primitive
    }

    /// One call for each primitive in the table of the module.
    #[test]
    fn primitives_are_told_apart() {
        assert_eq!(primitive(0x80, 2, 0, None), Primitive::Lock, "mutex of glibc");
        assert_eq!(primitive(0x00, 2, 0, None), Primitive::Lock, "shared by processes");
        assert_eq!(primitive(0x189, 0, 0, None), Primitive::Condition, "condition variable");
        assert_eq!(primitive(0x189, 3, 0, None), Primitive::Lock, "read-write lock");
        assert_eq!(primitive(0x89, 2, 0, None), Primitive::Lock, "mutex of Rust");
        assert_eq!(primitive(0x89, 0xffff_ffff, 0, None), Primitive::Condition, "parked");
        assert_eq!(primitive(0x80, 0, 0, Some(Runtime::Go)), Primitive::Condition, "idle");
        let python = Some(Runtime::Python);
        assert_eq!(primitive(0x189, 0, 0x7ff0, python), Primitive::InterpreterLock);
        assert_eq!(primitive(0x189, 0, 0, python), Primitive::Condition);
    }
}
