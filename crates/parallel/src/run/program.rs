//! Files of programs.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

/// What files of scripts begin with that the kernel can start.
const SCRIPT: &[u8] = b"#!";
/// The bytes at the beginning of an ELF file that say for what kind of machine it is.
const KIND: [Range<usize>; 2] = [0..6, 18..20];

/// Whether the kernel can certainly start this file, as it has started this program. What else may be
/// executed the shell may run itself.
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
}
