//! Changes to this process's environment.

use std::ffi::OsString;
use std::io;

/// Sets the given variables of this process, and removes those without a value.
///
/// # Errors
/// Fails, and changes nothing, if this process has other threads, which may read the environment at
/// any time, or if the number of threads cannot be read.
///
/// # Panics
/// Panics if a name is empty or contains `=` or NUL, or if a value contains NUL.
pub fn change(changes: &[(OsString, Option<OsString>)]) -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("there are other threads"));
    }
    for (name, value) in changes {
        match value {
            // SAFETY: this is the only thread, so nothing reads the environment at the same time.
            Some(value) => unsafe { std::env::set_var(name, value) },
            // SAFETY: as above.
            None => unsafe { std::env::remove_var(name) },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_other_threads_keeps_its_environment() {
        // Tests run in threads of their own.
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || receiver.recv());
        let name = OsString::from("CONTEND_TEST_ENVIRONMENT");
        assert!(change(&[(name.clone(), Some("x".into()))]).is_err());
        assert_eq!(std::env::var_os(&name), None);
        drop(sender);
        assert!(other.join().expect("no panic").is_err());
    }
}
