//! Counters of system calls. Experiments increment them for each call that they make themselves.

macro_rules! calls {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A system call that a `Tally` counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call {
            $(#[doc = concat!("`", $name, "(2)`.")] $variant),*
        }

        /// Names of the system calls as `strace(1)` prints them, in the order of `Call`.
        const CALL_NAMES: [&str; CALL_COUNT] = [$($name),*];

        /// Number of variants of `Call`.
        pub const CALL_COUNT: usize = [$($name),*].len();
    };
}

calls! {
    Read = "read",
    Write = "write",
    Pread = "pread64",
    Pwrite = "pwrite64",
    Futex = "futex",
    SchedYield = "sched_yield",
    MqSend = "mq_timedsend",
    MqReceive = "mq_timedreceive",
    Msgsnd = "msgsnd",
    Msgrcv = "msgrcv",
    Sigqueue = "rt_tgsigqueueinfo",
    Sigwait = "rt_sigtimedwait",
    Vmsplice = "vmsplice",
    ProcessVmWritev = "process_vm_writev",
    IoUringEnter = "io_uring_enter",
    Openat = "openat",
    Close = "close",
    Ftruncate = "ftruncate",
    Mmap = "mmap",
    Munmap = "munmap",
    Madvise = "madvise",
    CopyFileRange = "copy_file_range",
    Sendfile = "sendfile",
    Splice = "splice",
    Pipe = "pipe2",
    Fcntl = "fcntl",
}

/// A count of calls for each system call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally([u64; CALL_COUNT]);

impl Tally {
    /// Counts one call of `call`.
    #[inline]
    pub fn add(&mut self, call: Call) {
        self.0[call as usize] += 1;
    }

    /// Counts `count` calls of `call`.
    pub fn add_many(&mut self, call: Call, count: u64) {
        self.0[call as usize] += count;
    }

    /// Returns the calls counted since `before`, which has to be an earlier copy of this tally.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind] - before.0[kind]))
    }

    /// Returns the counts, in the order of `Call`.
    pub fn counts(&self) -> [u64; CALL_COUNT] {
        self.0
    }

    /// Creates a tally from counts in the order of `Call`.
    pub fn from_counts(counts: [u64; CALL_COUNT]) -> Self {
        Self(counts)
    }

    /// Returns the name and count of each system call that was counted at least once, in the order
    /// of `Call`.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CALL_NAMES.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// Returns the total number of calls of all system calls.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_kind() {
        let mut tally = Tally::default();
        tally.add(Call::Read);
        let before = tally;
        tally.add(Call::Read);
        tally.add_many(Call::IoUringEnter, 3);
        let since = Tally::from_counts(tally.since(&before).counts());
        let named: Vec<_> = since.named().collect();
        assert_eq!(named, [("read", 1), ("io_uring_enter", 3)]);
        assert_eq!((since.total(), tally.total()), (4, 5));
    }
}
