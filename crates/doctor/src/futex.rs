//! Identifies the primitive that a thread waits for in `futex(2)`, for each runtime, by the
//! operation, the expected value of the word and the time limit.
//!
//! | runtime | primitive | operation | expected value |
//! |---|---|---|---|
//! | glibc, musl | mutex | `FUTEX_WAIT` | 2 (glibc), bit 31 set (musl, robust mutexes of glibc) |
//! | glibc | mutex that inherits priorities | `FUTEX_LOCK_PI` | |
//! | glibc | mutex with a time limit by the realtime clock | as read-write locks | 2 |
//! | glibc | condition variable, semaphore | `FUTEX_WAIT_BITSET` | 0 or a sequence number |
//! | glibc | read-write lock | `FUTEX_WAIT_BITSET`, private | 2 or 3 |
//! | glibc | end of a thread | `FUTEX_WAIT_BITSET`, not private | ID of the thread |
//! | glibc | barrier | `FUTEX_WAIT` | number of threads in earlier rounds |
//! | Rust's std | mutex | `FUTEX_WAIT_BITSET`, private, without time limit | 2 |
//! | Rust's std | read-write lock, reader | as mutexes | state of the lock, with bit 30 set |
//! | Rust's std | read-write lock, writer | as mutexes | number of wake-ups, after the state |
//! | Rust's std | condition variable | as mutexes | number of notifications |
//! | Rust's std | thread parking | `FUTEX_WAIT_BITSET` | `u32::MAX` |
//! | Go | lock of the runtime | `FUTEX_WAIT` | 2 |
//! | Go | idle thread | `FUTEX_WAIT` | 0 |
//! | `CPython` | lock of the interpreter | as condition variables, up to 5 ms | |
//! | `CPython` | `threading.Lock` | as semaphores of glibc | |
//! | Java | monitor, `LockSupport.park` | as condition variables of glibc | |
//! | Node.js, Ruby | `Atomics.wait`, `Mutex` | as condition variables of glibc | |
//!
//! A mutex of Java, Python or Ruby and a `sync.Mutex` of Go put the thread aside in user space, so
//! their waits look like idle threads. Only the order of events distinguishes them.
//!
//! `tests/runtimes.rs` observes a program of each runtime, and shows what cannot be told apart.

use std::time::Duration;

use contend_record::doctor::{Runtime, ThreadState};
use contend_sys::{Pid, memory, syscall};
use rustix::time::{ClockId, clock_gettime};

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
/// `FUTEX_WAITERS`, a bit of mutexes that contain the ID of their owner.
const WAITERS: u32 = 1 << 31;
/// `FUTEX_PRIVATE_FLAG`.
const PRIVATE: u64 = 0x80;
/// `FUTEX_CLOCK_REALTIME`.
const REALTIME: u64 = 0x100;
/// Bits of the state of a read-write lock of Rust's std: readers wait, writers wait.
const READERS_WAIT: u32 = 1 << 30;
const WRITERS_WAIT: u32 = 1 << 31;
/// Number of readers in the state; all bits are set if a writer holds the lock.
const READERS: u32 = READERS_WAIT - 1;
/// Largest number of readers that is plausible.
const MAX_READERS: u32 = 1 << 16;
/// Offset of the state from the word on which writers wait, in bytes.
const STATE_OFFSET: u64 = 4;
/// Expected value of a parked thread of Rust's std. It is also that of a reader which waits for a
/// writer while other writers wait.
const PARKED: u32 = u32::MAX;
/// Longest time for which a thread of `CPython` waits for the interpreter lock before it requests it,
/// unless the program changes that with `sys.setswitchinterval`.
const SWITCH_INTERVAL: Duration = Duration::from_millis(5);

impl Futex {
    /// Classifies a call of a thread of `process` by its arguments: address, operation, value, time
    /// limit. Reads the memory of the process if these are not enough.
    pub fn of(process: Pid, arguments: &[u64; 6], runtime: Option<Runtime>) -> Self {
        let [address, operation, value, limit, ..] = *arguments;
        let is_timed = limit != 0;
        #[expect(clippy::cast_possible_truncation, reason = "the kernel reads a word, too")]
        let value = value as u32;
        let is_realtime = operation & REALTIME != 0;
        let is_private = operation & PRIVATE != 0;
        let primitive = match operation & COMMAND_MASK {
            FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => Primitive::Lock,
            FUTEX_WAIT if value == 2 || value & WAITERS != 0 => Primitive::Lock,
            FUTEX_WAIT_BITSET if is_timed && runtime == Some(Runtime::Python) => {
                // Waits with a time limit of the program use the same operation.
                let rest = time_left(process, limit, is_realtime);
                if rest.is_none_or(|rest| rest <= SWITCH_INTERVAL) {
                    Primitive::InterpreterLock
                } else {
                    Primitive::Condition
                }
            }
            // glibc waits by the realtime clock for everything, but its mutexes do not. Where it
            // waits for the end of a thread, the value is the thread's ID. In a container, that may
            // be 2 or 3, but the wait is not private.
            FUTEX_WAIT_BITSET if is_realtime => match value {
                2 | 3 if is_private => Primitive::Lock,
                _ => Primitive::Condition,
            },
            FUTEX_WAIT_BITSET if is_private && !is_timed => {
                let is_reader = value & READERS_WAIT != 0 && value != PARKED;
                if value == 2 || is_reader || is_writer(process, address, value) {
                    Primitive::Lock
                } else {
                    Primitive::Condition
                }
            }
            _ => Primitive::Condition,
        };
        Self { address, primitive, is_timed }
    }

    /// Returns the ID of the thread that owns the lock of glibc at this address; `None` if it is
    /// another primitive, no thread owns it, or the memory cannot be read.
    pub fn owner(&self, process: Pid) -> Option<i32> {
        if self.primitive != Primitive::Lock {
            return None;
        }
        let owner = word(process, self.address + OWNER_OFFSET)?.cast_signed();
        (owner > 0).then_some(owner)
    }

    /// Returns the state of a thread that waits on the word.
    pub fn state(&self) -> ThreadState {
        match self.primitive {
            Primitive::Lock | Primitive::InterpreterLock => ThreadState::Lock,
            Primitive::Condition => ThreadState::Condition,
        }
    }
}

/// Returns the word at `address`; `None` if it cannot be read.
fn word(process: Pid, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    let length = memory::read(process, address, &mut bytes).ok()?;
    (length == bytes.len()).then_some(u32::from_ne_bytes(bytes))
}

/// Returns whether a thread that waits on the word at `address` is a writer in front of a read-write
/// lock of Rust's std, rather than one that waits for a condition variable. The state of the lock is
/// before the word, and says that a writer waits.
fn is_writer(process: Pid, address: u64, value: u32) -> bool {
    let is_held = |state: u32| {
        let readers = state & READERS;
        readers == READERS || (1..MAX_READERS).contains(&readers)
    };
    let state = || word(process, address.checked_sub(STATE_OFFSET)?);
    value != PARKED && state().is_some_and(|state| state & WRITERS_WAIT != 0 && is_held(state))
}

/// Returns the time left until the point in time at `address` in the memory of the process; `None` if
/// it cannot be read.
fn time_left(process: Pid, address: u64, is_realtime: bool) -> Option<Duration> {
    let until = syscall::time_at(process, address)?;
    let clock = if is_realtime { ClockId::Realtime } else { ClockId::Monotonic };
    let now = Duration::try_from(clock_gettime(clock)).ok()?;
    Some(until.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Pid {
        Pid::from_raw(std::process::id().cast_signed()).expect("a process id")
    }

    fn primitive(operation: u64, value: u64, limit: u64, runtime: Option<Runtime>) -> Primitive {
        Futex::of(own(), &[0x1000, operation, value, limit, 0, 0], runtime).primitive
    }

    /// Rows of the table of the module, and values next to them.
    #[test]
    fn primitives_are_told_apart() {
        assert_eq!(primitive(0x80, 2, 0, None), Primitive::Lock, "mutex of glibc");
        assert_eq!(primitive(0x00, 2, 0, None), Primitive::Lock, "shared by processes");
        assert_eq!(primitive(0x189, 0, 0, None), Primitive::Condition, "condition variable");
        assert_eq!(primitive(0x189, 1, 0, None), Primitive::Condition, "sequence number");
        assert_eq!(primitive(0x189, 3, 0, None), Primitive::Lock, "read-write lock");
        assert_eq!(primitive(0x109, 3, 0, None), Primitive::Condition, "end of thread 3");
        assert_eq!(primitive(0x89, 2, 0, None), Primitive::Lock, "mutex of Rust");
        assert_eq!(primitive(0x89, 0x7fff_ffff, 0, None), Primitive::Lock, "reader of Rust");
        assert_eq!(primitive(0x89, 0xffff_ffff, 0, None), Primitive::Condition, "parked");
        assert_eq!(primitive(0x80, 0, 0, Some(Runtime::Go)), Primitive::Condition, "idle");
        assert_eq!(primitive(0x189, 0, 0, Some(Runtime::Python)), Primitive::Condition);
    }

    #[test]
    fn writers_are_recognised_by_the_state_of_the_lock() {
        let of = |state: u32| {
            let lock = [state, 7];
            let address = lock.as_ptr().addr() as u64 + STATE_OFFSET;
            Futex::of(own(), &[address, 0x89, 7, 0, 0, 0], None).primitive
        };
        assert_eq!(of(WRITERS_WAIT | READERS), Primitive::Lock, "behind a writer");
        assert_eq!(of(WRITERS_WAIT | READERS_WAIT | 3), Primitive::Lock, "behind readers");
        assert_eq!(of(READERS), Primitive::Condition, "no writer waits");
        assert_eq!(of(WRITERS_WAIT), Primitive::Condition, "not held");
        assert_eq!(of((-1.5_f32).to_bits()), Primitive::Condition, "another value");
    }

    #[test]
    fn the_lock_of_an_interpreter_is_recognised_by_the_time_limit() {
        let of = |limit: Duration| {
            let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).expect("positive");
            let until = now + limit;
            let time = [until.as_secs(), u64::from(until.subsec_nanos())];
            primitive(0x89, 0, time.as_ptr().addr() as u64, Some(Runtime::Python))
        };
        assert_eq!(of(SWITCH_INTERVAL), Primitive::InterpreterLock);
        assert_eq!(of(Duration::from_hours(1)), Primitive::Condition);
        let unreadable = primitive(0x89, 0, 0x10, Some(Runtime::Python));
        assert_eq!(unreadable, Primitive::InterpreterLock);
    }
}
