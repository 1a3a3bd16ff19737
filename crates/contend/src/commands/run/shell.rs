//! What only a shell can run.

use std::process::Command;

use anyhow::{Context as _, Result};
use contend_sys::spawn;

use crate::exit::Exit;
use crate::settings::{Run, RunHow};

/// Becomes the shell that runs this text.
pub(super) fn become_shell(how: &RunHow, text: &str) -> Result<Exit> {
    let shell = how.shell()?;
    let mut command = Command::new(&shell);
    if shell.rsplit('/').next() == Some("busybox") {
        command.arg("sh");
    }
    if how.pipefail {
        command.args(["-o", "pipefail"]);
    }
    command.arg("-c").arg(text);
    let error = spawn::become_command(&mut command);
    Err(error).with_context(|| format!("cannot start the shell {shell}"))
}

/// Runs a script.
pub(super) fn script(_settings: Run) -> Result<Exit> {
    anyhow::bail!("not yet")
}
