//! Builds command lines of shells.

use std::process::Command;

use super::settings::Settings;

/// Returns a command that runs `text` with the shell.
pub(super) fn with_text(shell: &str, settings: &Settings, text: &str) -> Command {
    let mut command = with_options(shell, settings);
    command.arg("-c");
    if text.starts_with(['-', '+']) {
        command.arg("--"); // the text would be taken for an option
    }
    command.arg(text);
    command
}

/// Returns a command that starts the shell with the options that the settings require.
pub(super) fn with_options(shell: &str, settings: &Settings) -> Command {
    let mut command = without_text(shell);
    if settings.pipefail {
        command.args(["-o", "pipefail"]);
    }
    command
}

/// Returns a command that starts the shell without options; for busybox, its applet `sh`.
pub(super) fn without_text(shell: &str) -> Command {
    let mut command = Command::new(shell);
    if shell.rsplit('/').next() == Some("busybox") {
        command.arg("sh");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<&str> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_str().expect("text")).collect()
    }

    #[test]
    fn a_shell_gets_its_options_before_its_text() {
        let plain = Settings::default();
        let pipefail = Settings { pipefail: true, ..Settings::default() };
        assert_eq!(words(&with_text("bash", &plain, "a | b")), ["bash", "-c", "a | b"]);
        let all = ["/bin/bash", "-o", "pipefail", "-c", "a | b"];
        assert_eq!(words(&with_text("/bin/bash", &pipefail, "a | b")), all);
        assert_eq!(words(&with_text("/x/busybox", &plain, "a")), ["/x/busybox", "sh", "-c", "a"]);
        assert_eq!(words(&with_text("sh", &plain, "-r | sort")), ["sh", "-c", "--", "-r | sort"]);
    }
}
