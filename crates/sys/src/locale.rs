//! Checks which locales the C library can set.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;

/// Names that need no locale files: locales built into the C library, and the empty name, which
/// counts as an unset variable.
const BUILT_IN: [&str; 4] = ["", "C", "POSIX", "C.UTF-8"];

/// Returns whether a program can set the locale `name` for all categories, as `LC_ALL` does. The
/// empty name counts as a locale.
pub fn exists(name: &OsStr) -> bool {
    if BUILT_IN.iter().any(|known| name == *known) {
        return true;
    }
    let Ok(name) = CString::new(name.as_bytes()) else { return false };
    // SAFETY: the name ends with a NUL byte; a null base makes a new locale, or fails.
    let locale = unsafe { libc::newlocale(libc::LC_ALL_MASK, name.as_ptr(), std::ptr::null_mut()) };
    if locale.is_null() {
        return false;
    }
    // SAFETY: the locale was just created, and nothing uses it.
    unsafe { libc::freelocale(locale) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_locales_exist_and_wrong_names_do_not() {
        for name in ["", "C", "POSIX", "C.UTF-8", "C.utf8"] {
            assert!(exists(OsStr::new(name)), "{name}");
        }
        for name in ["xx_XX.UTF-8", "no-such-locale", "C\0"] {
            assert!(!exists(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn every_installed_locale_exists() {
        let Ok(output) = std::process::Command::new("locale").arg("-a").output() else { return };
        for name in output.stdout.split(|&byte| byte == b'\n') {
            assert!(exists(OsStr::from_bytes(name)), "{}", String::from_utf8_lossy(name));
        }
    }
}
