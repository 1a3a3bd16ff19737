//! Opens pages in the user's browser.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::output;

/// Program that opens a URL or a file in the user's browser.
const OPENER: &str = "xdg-open";

/// Opens a URL or a file. If that fails, prints an error which ends with `instead`: what the user can do.
pub fn open(page: &OsStr, instead: &str) {
    let mut command = Command::new(OPENER);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C ends contend, not a browser that xdg-open has started.
    match command.process_group(0).spawn() {
        Ok(mut child) => {
            std::thread::spawn(move || child.wait());
        }
        Err(error) => output::error(&format!("cannot start {OPENER}: {error}; {instead}")),
    }
}
