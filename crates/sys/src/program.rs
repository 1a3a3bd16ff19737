//! Files that programs are in.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Whether the kernel itself loads this program: a script is run by another one.
pub fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && magic == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_folders_are_no_programs_of_the_kernel() {
        assert!(is_elf(Path::new("/proc/self/exe")));
        assert!(!is_elf(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))));
        assert!(!is_elf(Path::new("/")));
        assert!(!is_elf(Path::new("/no/such/file")));
    }
}
