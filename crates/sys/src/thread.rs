//! Bare POSIX threads, for measurements: the standard library adds a signal stack and a handle to
//! each thread, which would be measured, too.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// A function for threads to run. It is never freed, since no thread knows when the last of several
/// threads has ended.
pub struct Job(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

impl Job {
    /// Creates a job that calls `run`, and leaks it.
    pub fn leaked(run: impl Fn() + Send + Sync + 'static) -> &'static Self {
        Box::leak(Box::new(Self(Box::new(run))))
    }
}

/// The attributes with which threads are created.
pub struct Attributes {
    raw: libc::pthread_attr_t,
    joinable: bool,
}

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attributes").field("stack_bytes", &self.stack_bytes()).finish()
    }
}

impl Attributes {
    /// Creates the C library's default attributes, with a stack of `stack_bytes` bytes if that is
    /// given.
    ///
    /// # Errors
    /// `EINVAL` for a stack that is too small.
    pub fn new(stack_bytes: Option<usize>) -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: `attributes` is valid for writes, and this call initialises it.
        check(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialised above.
        let raw = unsafe { attributes.assume_init() };
        let mut attributes = Self { raw, joinable: true };
        if let Some(bytes) = stack_bytes {
            // SAFETY: the attributes are initialised.
            check(unsafe { libc::pthread_attr_setstacksize(&raw mut attributes.raw, bytes) })?;
        }
        Ok(attributes)
    }

    /// Changes the attributes to those of detached threads, which are not joined.
    ///
    /// # Errors
    /// None is known.
    pub fn detached(mut self) -> io::Result<Self> {
        let state = libc::PTHREAD_CREATE_DETACHED;
        // SAFETY: the attributes are initialised.
        check(unsafe { libc::pthread_attr_setdetachstate(&raw mut self.raw, state) })?;
        self.joinable = false;
        Ok(self)
    }

    /// Returns the stack size attribute in bytes; a guard page may come on top of that.
    pub fn stack_bytes(&self) -> usize {
        let mut bytes = 0;
        // SAFETY: the attributes are initialised, and `bytes` is valid for writes.
        unsafe { libc::pthread_attr_getstacksize(&raw const self.raw, &raw mut bytes) };
        bytes
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised, and not used again.
        unsafe { libc::pthread_attr_destroy(&raw mut self.raw) };
    }
}

/// A thread, which has to be joined unless it was created detached.
#[derive(Debug)]
pub struct Thread(Option<libc::pthread_t>);

/// Creates a thread that runs the job.
///
/// # Errors
/// `EAGAIN` if memory is short or any limit on threads is reached.
pub fn start(attributes: &Attributes, job: &'static Job) -> io::Result<Thread> {
    extern "C" fn run(job: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the pointer is that of a `&'static Job`, see below.
        let job: &'static Job = unsafe { &*job.cast_const().cast() };
        (job.0)();
        ptr::null_mut()
    }
    let mut thread = MaybeUninit::uninit();
    let argument = ptr::from_ref(job).cast_mut().cast();
    // SAFETY: the attributes are initialised, `thread` is valid for writes, and the argument
    // outlives every thread.
    check(unsafe {
        libc::pthread_create(thread.as_mut_ptr(), &raw const attributes.raw, run, argument)
    })?;
    // SAFETY: pthread_create has succeeded and so initialised it.
    let thread = unsafe { thread.assume_init() };
    Ok(Thread(attributes.joinable.then_some(thread)))
}

impl Thread {
    /// Blocks until the thread has ended.
    ///
    /// # Errors
    /// `EINVAL` for a detached thread.
    pub fn join(self) -> io::Result<()> {
        let Some(thread) = self.0 else { return check(libc::EINVAL) };
        // SAFETY: the thread was created joinable and, as `join` consumes it, is joined once.
        check(unsafe { libc::pthread_join(thread, ptr::null_mut()) })
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn threads_do_their_job_and_are_joined() {
        static DONE: AtomicU32 = AtomicU32::new(0);
        let job = Job::leaked(|| {
            DONE.fetch_add(1, Ordering::SeqCst);
        });
        let small = Attributes::new(Some(64 * 1024)).expect("large enough");
        assert_eq!(small.stack_bytes(), 64 * 1024);
        for attributes in [&small, &Attributes::new(None).expect("defaults")] {
            let threads: Vec<_> = (0..3).map(|_| start(attributes, job)).collect();
            for thread in threads {
                thread.expect("a thread").join().expect("joinable");
            }
        }
        assert_eq!(DONE.load(Ordering::SeqCst), 6);
        assert!(Attributes::new(Some(16)).is_err());
    }
}
