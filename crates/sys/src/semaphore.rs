//! POSIX semaphores, with and without a name, and System V semaphores between processes.
//!
//! A semaphore does not outlive its users, however they end. The exception is a System V semaphore
//! whose keeper process is killed as well.

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::getpid;

use crate::shared::Shared;
use crate::sysv_guard::SysvGuard;

/// A POSIX semaphore, shared with all processes forked after its creation.
#[derive(Debug)]
pub struct Semaphore {
    at: NonNull<libc::sem_t>,
    /// Memory of an unnamed semaphore; `None` for a named one.
    mapping: Option<Shared<UnsafeCell<libc::sem_t>>>,
}

// SAFETY: semaphores are made for use by several threads; their address does not change.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// Creates a semaphore in shared memory (`sem_init`), with value 0.
    ///
    /// # Errors
    /// `ENOMEM`; `ENOSYS` if semaphores cannot be shared between processes.
    pub fn unnamed() -> io::Result<Self> {
        let at = Shared::<UnsafeCell<libc::sem_t>>::map()?;
        // SAFETY: the mapping is new, and all zeros are a valid initial content.
        let mapping = unsafe { Shared::from_mapping(at) };
        let at: NonNull<libc::sem_t> = mapping.address().cast();
        // SAFETY: there is room for a semaphore, which is not in use yet.
        if unsafe { libc::sem_init(at.as_ptr(), 1, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { at, mapping: Some(mapping) })
    }

    /// Creates a named semaphore (`sem_open`), with value 0. The name is unlinked at once: the
    /// semaphore vanishes with the last process that has it open.
    ///
    /// # Errors
    /// `EACCES` or `ENOENT` if `/dev/shm` is not writable or missing.
    pub fn named() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("/contend-{}-{number}", getpid().as_raw_nonzero());
        let name = CString::new(name).map_err(io::Error::other)?;
        let flags = libc::O_CREAT | libc::O_EXCL;
        let (mode, value) = (0o600_u32, 0_u32);
        // SAFETY: the name ends with a NUL; these flags require a mode and a value.
        let at = unsafe { libc::sem_open(name.as_ptr(), flags, mode, value) };
        if at == libc::SEM_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the name ends with a NUL.
        unsafe { libc::sem_unlink(name.as_ptr()) };
        let at = NonNull::new(at).ok_or(io::ErrorKind::Other)?;
        Ok(Self { at, mapping: None })
    }

    /// Increments the semaphore.
    ///
    /// # Errors
    /// `EOVERFLOW` if the value is already at its maximum.
    pub fn post(&self) -> io::Result<()> {
        // SAFETY: the semaphore is initialised and lives as long as this value.
        check(unsafe { libc::sem_post(self.at.as_ptr()) })
    }

    /// Blocks until the semaphore is positive, and decrements it.
    ///
    /// # Errors
    /// `EINTR` if a signal handler ran.
    pub fn wait(&self) -> io::Result<()> {
        // SAFETY: as above.
        check(unsafe { libc::sem_wait(self.at.as_ptr()) })
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        if self.mapping.is_none() {
            // SAFETY: the semaphore was opened by name, and this value no longer uses it.
            unsafe { libc::sem_close(self.at.as_ptr()) };
        }
    }
}

fn check(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A System V semaphore, shared with all processes forked after its creation.
#[derive(Debug)]
pub struct SysvSemaphore(SysvGuard);

impl SysvSemaphore {
    /// Creates a semaphore with value 0, and a keeper process that removes it once all its users
    /// have ended.
    ///
    /// # Errors
    /// `ENOSPC` if the system's limit on semaphores is reached; `ENOSYS` if the kernel has no
    /// System V semaphores; errors of pipe(2) and fork(2).
    pub fn new() -> io::Result<Self> {
        // SAFETY: a call without pointers.
        let make = || unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
        SysvGuard::new(make, remove).map(Self)
    }

    /// Increments the semaphore.
    ///
    /// # Errors
    /// `EINVAL` if the semaphore has been removed; `EIDRM` if it is removed during the call;
    /// `ERANGE` if the value is already at its maximum.
    pub fn post(&self) -> io::Result<()> {
        self.operate(1)
    }

    /// Blocks until the semaphore is positive, and decrements it.
    ///
    /// # Errors
    /// `EINVAL` if the semaphore has been removed; `EIDRM` if it is removed during the call.
    pub fn wait(&self) -> io::Result<()> {
        self.operate(-1)
    }

    fn operate(&self, by: i16) -> io::Result<()> {
        let mut operation = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
        loop {
            // SAFETY: one operation, which the kernel only reads.
            let done = check(unsafe { libc::semop(self.0.id(), &raw mut operation, 1) });
            match done {
                // A stopped and continued process gets EINTR; nothing was done, so retry.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

fn remove(id: i32) {
    // SAFETY: a call without pointers, which fails if the semaphore has been removed.
    unsafe { libc::semctl(id, 0, libc::IPC_RMID) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ExitStatus, reap};
    use crate::process::fork;

    fn exists(id: i32) -> bool {
        let table = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
        table.lines().any(|line| line.split_whitespace().nth(1) == Some(&id.to_string()))
    }

    #[test]
    fn a_child_waits_until_it_is_posted() {
        let posix = [Semaphore::unnamed(), Semaphore::named()].map(|one| one.expect("one"));
        let sysv = SysvSemaphore::new().expect("one");
        let child = fork(|| {
            let waited = posix.iter().all(|one| one.wait().is_ok()) && sysv.wait().is_ok();
            i32::from(!waited)
        });
        for one in &posix {
            one.post().expect("posted");
        }
        sysv.post().expect("posted");
        assert_eq!(reap(child.expect("a child")).expect("it ends").status, ExitStatus::Exited(0));
        let id = sysv.0.id();
        assert!(exists(id));
        drop(sysv);
        assert!(!exists(id));
    }

    #[test]
    fn the_object_is_removed_when_the_creator_is_killed() {
        let (told, tell) = rustix::pipe::pipe().expect("a pipe");
        let creator = fork(|| {
            let semaphore = SysvSemaphore::new();
            let id = semaphore.as_ref().map_or(-1, |semaphore| semaphore.0.id());
            let _ = rustix::io::write(&tell, &id.to_ne_bytes());
            std::thread::sleep(std::time::Duration::from_mins(1));
            0
        });
        let creator = creator.expect("a child");
        let mut bytes = [0; 4];
        rustix::io::read(&told, &mut bytes).expect("it tells");
        let id = i32::from_ne_bytes(bytes);
        assert!(exists(id));
        rustix::process::kill_process(creator, crate::Signal::KILL).expect("it lives");
        reap(creator).expect("it ends");
        while exists(id) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
