//! Decides which stages may be traced to read exact counters at their exit.
//!
//! A traced process that executes a set-user-ID program does not get the program's privileges. So
//! only programs that are known never to execute another one in their own process are traced.
//! Programs that start others in a child (sed's `e`, awk's `system`, sort's compressor) are safe,
//! because tracing does not follow forks. All other programs stay untraced.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use contend_commands::SYSTEM_FOLDERS;
use contend_shell::parse::StageText;
use contend_sys::Pid;

/// File names of programs that never execute another one in their own process.
const PROGRAMS: &[&str] = &[
    "awk",
    "b2sum",
    "base32",
    "base64",
    "basenc",
    "bc",
    "brotli",
    "bzip2",
    "cat",
    "cksum",
    "cmp",
    "col",
    "colrm",
    "column",
    "comm",
    "csplit",
    "cut",
    "date",
    "dc",
    "dd",
    "df",
    "du",
    "expand",
    "expr",
    "factor",
    "fmt",
    "fold",
    "gawk",
    "grep",
    "gzip",
    "head",
    "hexdump",
    "iconv",
    "join",
    "jq",
    "lbzip2",
    "look",
    "ls",
    "lz4",
    "lzop",
    "mawk",
    "md5sum",
    "nawk",
    "nl",
    "numfmt",
    "od",
    "original-awk",
    "paste",
    "pigz",
    "pr",
    "ptx",
    "pv",
    "rev",
    "rg",
    "sed",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shuf",
    "sleep",
    "sort",
    "split",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "tee",
    "tr",
    "tsort",
    "ul",
    "unexpand",
    "uniq",
    "wc",
    "xxd",
    "xz",
    "yes",
    "zstd",
];

/// Builtins that all shells have, and that execute no program.
const BUILTINS: &[&str] = &[":", "echo", "false", "printf", "pwd", "test", "true"];

/// Returns whether a stage may be traced while it is still the shell: its command is a builtin or a
/// known program, and no setup, `BASH_ENV` or exported function can have redefined the command's
/// name.
pub fn is_safe_before_exec(stage: &StageText, setup: Option<&str>) -> bool {
    let Some(program) = stage.program.as_deref() else {
        return false;
    };
    let redefined = setup.is_some()
        || std::env::var_os("BASH_ENV").is_some()
        || std::env::var_os(format!("BASH_FUNC_{program}%%")).is_some();
    !redefined && (BUILTINS.contains(&program) || find(program).is_some_and(|path| is_safe(&path)))
}

/// Returns whether the program that the process executes may be traced. Returns `None` while the
/// process is still the shell that started it, or if its executable cannot be determined.
pub fn safe_after_exec(pid: Pid, shell: &Path) -> Option<bool> {
    let link = std::fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).ok()?;
    if link == shell {
        return None;
    }
    Some(is_known(&link) && is_system_file(&link))
}

/// Returns the path of a process's executable file, or `None` if it cannot be read.
pub fn executable(pid: Pid) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).ok()
}

fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| {
        candidate.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    })
}

fn is_known(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| PROGRAMS.contains(&name))
}

fn is_safe(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    let privileged = path.metadata().map_or(true, |m| m.permissions().mode() & 0o6000 != 0)
        || has_capabilities(&path);
    is_known(&path) && is_system_file(&path) && !privileged && contend_sys::program::is_elf(&path)
}

/// Returns whether the file is in one of [`SYSTEM_FOLDERS`], and only root can have put it there. A
/// name alone proves nothing.
fn is_system_file(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let only_root_writes =
        |path: &Path| path.metadata().is_ok_and(|data| data.uid() == 0 && data.mode() & 0o022 == 0);
    let folder = path.parent().unwrap_or(Path::new(""));
    SYSTEM_FOLDERS.iter().any(|known| folder == Path::new(known))
        && only_root_writes(folder)
        && only_root_writes(path)
}

fn has_capabilities(path: &Path) -> bool {
    let mut value = [0_u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(program: Option<&str>) -> StageText {
        StageText { span: 0..1, program: program.map(str::to_owned) }
    }

    #[test]
    fn filters_and_builtins_are_safe_and_wrappers_are_not() {
        assert!(is_safe_before_exec(&stage(Some("cat")), None));
        assert!(is_safe_before_exec(&stage(Some("echo")), None));
        for wrapper in ["sudo", "env", "nice", "xargs", "sh", "bash", "no-such-program"] {
            assert!(!is_safe_before_exec(&stage(Some(wrapper)), None), "{wrapper}");
        }
        assert!(!is_safe_before_exec(&stage(None), None));
        assert!(!is_safe_before_exec(&stage(Some("cat")), Some("cat() { sudo -n true; }")));
    }

    #[test]
    fn a_script_or_a_privileged_file_with_a_known_name_is_not_safe() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("cat");
        std::fs::write(&script, "#!/bin/sh\nexec sudo true\n").expect("room");
        assert!(!is_safe(&script));
        let cat = find("cat").expect("coreutils");
        std::fs::copy(&cat, &script).expect("room");
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("own file");
        assert!(!is_safe(&script), "anyone could have put it there");
        assert!(is_safe(&cat));
    }

    #[test]
    fn the_tables_are_sorted_and_have_no_duplicates() {
        for table in [PROGRAMS, BUILTINS] {
            assert!(table.is_sorted_by(|a, b| a < b));
        }
    }
}
