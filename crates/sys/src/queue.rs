//! POSIX and System V message queues between processes.
//!
//! A queue does not outlive its users, however they end. The exception is a System V queue whose
//! keeper process is killed as well.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::getpid;

use crate::sysv_guard::SysvGuard;

/// A POSIX message queue (`mq_open(3)`), shared with all processes forked after its creation. It
/// needs no mounted file system.
#[derive(Debug)]
pub struct PosixQueue(OwnedFd);

impl PosixQueue {
    /// Creates a queue with room for `messages` messages of up to `bytes` bytes. The name is
    /// unlinked at once: the queue vanishes with the last process that has it open.
    ///
    /// # Errors
    /// `EINVAL` or `EMFILE` if the size exceeds `fs.mqueue.msg_max`, `fs.mqueue.msgsize_max` or
    /// `RLIMIT_MSGQUEUE`; `ENOSPC` if there are `fs.mqueue.queues_max` queues already; `ENOSYS` if
    /// the kernel has no POSIX queues.
    pub fn new(messages: usize, bytes: usize) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("/contend-{}-{number}", getpid().as_raw_nonzero());
        let name = CString::new(name).map_err(io::Error::other)?;
        // SAFETY: all zeros are a valid value.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = messages.try_into().unwrap_or(libc::c_long::MAX);
        attributes.mq_msgsize = bytes.try_into().unwrap_or(libc::c_long::MAX);
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        let mode = 0o600_u32;
        // SAFETY: the name ends with a NUL; these flags require a mode and attributes.
        let queue = unsafe { libc::mq_open(name.as_ptr(), flags, mode, &raw const attributes) };
        if queue < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the name ends with a NUL.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        // SAFETY: on Linux a queue is a descriptor, and this one is new.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(queue) }))
    }

    /// Sends a message; blocks while the queue is full.
    ///
    /// # Errors
    /// `EMSGSIZE` if the message is longer than the queue's maximum message size; `EINTR`.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let (start, length) = (message.as_ptr().cast(), message.len());
        // SAFETY: the message is readable for its length.
        let sent = unsafe { libc::mq_send(self.0.as_raw_fd(), start, length, 0) };
        if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Receives the oldest message; blocks while the queue is empty. Returns the message's length
    /// in bytes.
    ///
    /// # Errors
    /// `EMSGSIZE` if `into` is shorter than the queue's maximum message size; `EINTR`.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let (start, length) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: the buffer is writable for its length; a null pointer discards the priority.
        let received =
            unsafe { libc::mq_receive(self.0.as_raw_fd(), start, length, ptr::null_mut()) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }
}

/// A message with the header that a System V queue needs.
#[derive(Debug)]
pub struct Envelope {
    /// The message type, followed by the message.
    words: Box<[libc::c_long]>,
    length: usize,
}

impl Envelope {
    /// Creates an envelope for messages of up to `length` bytes, filled with zeros.
    pub fn new(length: usize) -> Self {
        let mut words = vec![0; 1 + length.div_ceil(size_of::<libc::c_long>())];
        words[0] = 1; // the type has to be positive
        Self { words: words.into(), length }
    }

    /// Returns the whole buffer for messages; a received message may be shorter.
    pub fn message(&mut self) -> &mut [u8] {
        let start = self.words[1..].as_mut_ptr().cast();
        // SAFETY: the words after the first have at least this many bytes, all of them initialised.
        unsafe { std::slice::from_raw_parts_mut(start, self.length) }
    }
}

/// A System V message queue (`msgget(2)`), shared with all processes forked after its creation.
#[derive(Debug)]
pub struct SysvQueue(SysvGuard);

impl SysvQueue {
    /// Creates a queue, and a keeper process that removes it once all its users have ended.
    ///
    /// # Errors
    /// `ENOSPC` if the system's limit on queues is reached; `ENOSYS` if the kernel has no System V
    /// queues; errors of pipe(2) and fork(2).
    pub fn new() -> io::Result<Self> {
        // SAFETY: a call without pointers.
        let make = || unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) };
        SysvGuard::new(make, remove).map(Self)
    }

    /// Sends the whole buffer of `envelope` as a message; blocks while the queue is full.
    ///
    /// # Errors
    /// `EINVAL` if the message is longer than `kernel.msgmax` or the queue has been removed;
    /// `EIDRM` if it is removed during the call; `EINTR`.
    pub fn send(&self, envelope: &Envelope) -> io::Result<()> {
        let start = envelope.words.as_ptr().cast();
        // SAFETY: the type and `length` bytes are readable there.
        let sent = unsafe { libc::msgsnd(self.0.id(), start, envelope.length, 0) };
        if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Receives the oldest message; blocks while the queue is empty. Returns the message's length
    /// in bytes.
    ///
    /// # Errors
    /// `E2BIG` if the message is longer than the envelope; `EINVAL` if the queue has been removed;
    /// `EIDRM` if it is removed during the call; `EINTR`.
    pub fn receive(&self, into: &mut Envelope) -> io::Result<usize> {
        let start = into.words.as_mut_ptr().cast();
        // SAFETY: the type and `length` bytes are writable there.
        let received = unsafe { libc::msgrcv(self.0.id(), start, into.length, 0, 0) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }
}

fn remove(id: i32) {
    // SAFETY: the kernel writes nothing for this command; the call fails if the queue has been
    // removed.
    unsafe { libc::msgctl(id, libc::IPC_RMID, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ExitStatus, reap};
    use crate::process::fork;

    #[test]
    fn messages_come_out_as_they_went_in() {
        let posix = PosixQueue::new(2, 100).expect("a queue");
        let sysv = SysvQueue::new().expect("a queue");
        let child = fork(|| {
            let mut envelope = Envelope::new(100);
            envelope.message().fill(7);
            let posted = (0..5).all(|n| posix.send(&[n; 100]).is_ok());
            i32::from(!(posted && sysv.send(&envelope).is_ok()))
        });
        let mut message = [0; 100];
        for n in 0..5 {
            assert_eq!(posix.receive(&mut message).expect("one"), 100);
            assert_eq!(message, [n; 100]);
        }
        assert_eq!(posix.receive(&mut [0; 99]).expect_err("no room").raw_os_error(), Some(90));
        let mut envelope = Envelope::new(100);
        assert_eq!(sysv.receive(&mut envelope).expect("one"), 100);
        assert_eq!(envelope.message(), [7; 100]);
        assert_eq!(reap(child.expect("a child")).expect("it ends").status, ExitStatus::Exited(0));
        assert!(PosixQueue::new(2, usize::MAX / 2).is_err());
        let id = sysv.0.id().to_string();
        let exists = || {
            let table = std::fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
            table.lines().any(|line| line.split_whitespace().nth(1) == Some(&id))
        };
        assert!(exists());
        drop(sysv);
        assert!(!exists());
    }
}
