//! Checks whether the kernel can start a program, and whether the environment may redefine the
//! names of programs.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

/// The first bytes of scripts that the kernel can start.
const SCRIPT: &[u8] = b"#!";
/// Ranges of bytes in an ELF header that identify the class, the byte order and the machine.
const KIND: [Range<usize>; 2] = [0..6, 18..20];

/// Returns whether the kernel can certainly start the executable file at the given path: a script
/// with a `#!` line, or a program for the same kind of machine as this one. A shell may interpret
/// other executable files itself.
pub(super) fn can_start(path: &Path) -> bool {
    let beginning = |path: &Path| {
        let mut bytes = [0; 20];
        File::open(path).and_then(|mut file| file.read(&mut bytes)).map(|_| bytes)
    };
    let Ok(bytes) = beginning(path) else { return false };
    bytes.starts_with(SCRIPT)
        || beginning(Path::new("/proc/self/exe"))
            .is_ok_and(|own| KIND.into_iter().all(|kind| own[kind.clone()] == bytes[kind]))
}

/// Returns why names may be functions of the shell instead of programs, or `None` if the
/// environment cannot define functions.
pub(super) fn shadowed_by_environment() -> Option<String> {
    let mut names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let name = names.find(|name| defines_functions(name))?;
    Some(format!("`{name}` is set, so that names may be functions of the shell"))
}

/// Returns whether a shell reads functions from the variable of the given name, or from the file
/// that the variable names.
fn defines_functions(name: &str) -> bool {
    name == "BASH_ENV" || name == "ENV" || name.starts_with("BASH_FUNC_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_starts_scripts_and_programs_for_this_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("room");
            path
        };
        let own = std::fs::read("/proc/self/exe").expect("this program");
        let mut other_machine = own[..64].to_vec();
        other_machine[18] ^= 0xff;
        assert!(can_start(Path::new("/proc/self/exe")));
        assert!(can_start(&file("script", b"#!/bin/sh\n")));
        assert!(!can_start(&file("text", b"echo a command without a first line\n")));
        assert!(!can_start(&file("other", &other_machine)));
        assert!(!can_start(&folder.path().join("absent")));
    }

    #[test]
    fn variables_that_define_functions_are_known() {
        for name in ["BASH_ENV", "ENV", "BASH_FUNC_sort%%"] {
            assert!(defines_functions(name), "{name}");
        }
        assert!(!["PATH", "BASH", "ENVIRONMENT"].into_iter().any(defines_functions));
    }
}
