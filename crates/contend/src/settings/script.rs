//! Finds scripts that are given as pipelines.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use contend_parallel::run::is_shell_script;
use contend_record::shell::quote;
use contend_shell::environment::in_path;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::exit::UsageError;

/// Characters with a meaning in the shell; a pipeline with one of them is not only a command and
/// its arguments.
const SYNTAX: &str = "|&;<>()$`\\\"'*?[]{}#~=%!\n";

/// Refuses a pipeline that is only the name of a script in the current directory, unless a command
/// in `PATH` has that name. The shell would not find the script, because it searches `PATH` only.
///
/// # Errors
/// Returns an error that names the commands for a script.
pub(super) fn check_is_command(text: &str) -> Result<(), UsageError> {
    let name = text.trim();
    let path = Path::new(name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !name.chars().all(is_name) || in_path(name).is_some() || !path.is_file() {
        return Ok(());
    }
    let profile = format!("`contend pipe ./{name}` profiles it as one stage");
    let uses = if is_shell_script(path) {
        format!("`contend run --file {name}` runs a shell script in parallel, and {profile}")
    } else if begins_with_shebang(path) {
        profile
    } else {
        return Ok(());
    };
    Err(UsageError(format!("'{name}' is a file, not a command: {uses}")))
}

/// Returns a tip if the pipeline is only the path of a shell script, with its arguments, and the
/// script is not executable, so that the shell cannot start it.
pub(super) fn tip_on_permission(text: &str) -> Option<String> {
    let path = text.split_whitespace().next().filter(|word| word.contains('/'))?;
    if access(path, Access::EXEC_OK) != Err(Errno::ACCESS) {
        return None;
    }
    let arguments = script_arguments(text)?;
    Some(format!(
        "'{path}' is not executable: `contend run {arguments}` runs it as a script, in parallel"
    ))
}

fn begins_with_shebang(path: &Path) -> bool {
    let mut start = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

/// Returns the arguments of `contend run` that run the script's pipelines in parallel, if the
/// pipeline is a single command that starts a shell script, such as `./build.sh -v` or `bash
/// build.sh`. Returns `None` for other pipelines, and for shells with options.
pub(super) fn script_arguments(text: &str) -> Option<String> {
    if text.contains(|c| SYNTAX.contains(c)) {
        return None;
    }
    let mut words = text.split_whitespace().peekable();
    let is_shell = |word: &&str| ["sh", "bash", "dash"].contains(word);
    words.next_if(is_shell);
    let script = words.next().filter(|word| is_shell_script(Path::new(word)))?;
    let arguments: Vec<_> = words.map(|word| format!(" {}", quote(word))).collect();
    let separator = if arguments.is_empty() { "" } else { " --" };
    Some(format!("--file {}{separator}{}", quote(script), arguments.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_is_not_executable_gets_a_tip() {
        let folder = tempfile::tempdir().expect("a directory");
        let script = folder.path().join("a.sh").to_str().expect("UTF-8").to_owned();
        std::fs::write(&script, "ls\n").expect("a file");
        let message = |arguments: &str| {
            format!(
                "'{script}' is not executable: `contend run --file {script}{arguments}` runs it as \
                 a script, in parallel"
            )
        };
        assert_eq!(tip_on_permission(&script), Some(message("")));
        assert_eq!(tip_on_permission(&format!("{script} log x")), Some(message(" -- log x")));
        assert_eq!(tip_on_permission(&format!("{script} | sort")), None);
        assert_eq!(tip_on_permission("/bin/sh -c ls"), None);
        assert_eq!(tip_on_permission("./missing.sh"), None);
    }

    #[test]
    fn scripts_given_as_pipelines_are_found() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        let (script, other) = (path("a.sh"), path("b.py"));
        std::fs::write(&script, "ls\n").expect("a file");
        std::fs::write(&other, "#!/usr/bin/python3\n").expect("a file");
        let plain = Some(format!("--file {script}"));
        assert_eq!(script_arguments(&script), plain);
        assert_eq!(script_arguments(&format!("bash {script}")), plain);
        let given = Some(format!("--file {script} -- -v x"));
        assert_eq!(script_arguments(&format!("{script} -v x")), given);
        for text in [
            other.clone(),
            format!("bash -x {script}"),
            format!("{script} | sort"),
            format!("{script} <x"),
            "bash".to_owned(),
            String::new(),
        ] {
            assert_eq!(script_arguments(&text), None, "{text}");
        }
    }
}
