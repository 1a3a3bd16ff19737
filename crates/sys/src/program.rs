//! Distinguishes binaries from scripts.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Returns whether the file at `path` is an ELF binary, which the kernel loads itself, rather than
/// a script; `false` if it cannot be read.
pub fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && magic == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_directories_are_not_elf() {
        assert!(is_elf(Path::new("/proc/self/exe")));
        assert!(!is_elf(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))));
        assert!(!is_elf(Path::new("/")));
        assert!(!is_elf(Path::new("/no/such/file")));
    }
}
