//! Generated inputs for pipelines, identical on every machine.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;

use rustix::fs::MemfdFlags;

/// The JSON document that [`json_array`] repeats.
pub const EXAMPLE: &str = include_str!("menu.json");

/// Length of a line of [`base64_lines`] in bytes, without its newline, as with `base64 -w 76`.
pub const BASE64_LINE_BYTES: usize = 76;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SEED: u64 = 20_211_216;

/// Writes a JSON array of `count` copies of [`EXAMPLE`] to `to`. Each copy takes 243 bytes,
/// including its separator.
///
/// # Errors
/// Returns an error if a write fails.
pub fn json_array(to: impl Write, count: u64) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, to);
    to.write_all(b"[")?;
    for index in 0..count {
        to.write_all(if index == 0 { b"" } else { b",\n" })?;
        to.write_all(EXAMPLE.trim_end().as_bytes())?;
    }
    to.write_all(b"]\n")?;
    to.flush()
}

/// Writes `count` lines to `to`, each with `BASE64_LINE_BYTES` pseudo-random characters of the
/// base64 alphabet. The characters are the same in every call.
///
/// # Errors
/// Returns an error if a write fails.
pub fn base64_lines(to: impl Write, count: u64) -> io::Result<()> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut to = BufWriter::with_capacity(1 << 16, to);
    let mut line = [b'\n'; BASE64_LINE_BYTES + 1];
    for _ in 0..count {
        for ten in line[..BASE64_LINE_BYTES].chunks_mut(10) {
            let mut bits = random.u64(..);
            for character in ten {
                *character = ALPHABET[usize::try_from(bits & 63).unwrap_or(0)];
                bits >>= 6;
            }
        }
        to.write_all(&line)?;
    }
    to.flush()
}

/// An in-memory file that any number of readers can read, each from its start.
#[derive(Debug)]
pub struct Input {
    file: File,
    len_bytes: u64,
}

impl Input {
    /// Creates an input from the bytes that `write` writes to its file.
    ///
    /// # Errors
    /// Returns an error if `memfd_create(2)` or `write` fails, or the length of the file cannot be
    /// read.
    pub fn new(write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<Self> {
        let file = File::from(rustix::fs::memfd_create("contend-input", MemfdFlags::CLOEXEC)?);
        write(&file)?;
        let len_bytes = file.metadata()?.len();
        Ok(Self { file, len_bytes })
    }

    /// Returns the length of the input in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Opens a reader at the start of the input.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn open(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn lines_are_base64_and_the_same_every_time() {
        let [first, second] = [(), ()].map(|()| {
            let mut text = Vec::new();
            base64_lines(&mut text, 1000).expect("memory");
            text
        });
        assert!(first == second);
        let lines: Vec<_> = first.split(|&byte| byte == b'\n').collect();
        assert_eq!(lines.len(), 1001);
        assert!(
            lines[..1000]
                .iter()
                .all(|l| l.len() == BASE64_LINE_BYTES && l.iter().all(|b| ALPHABET.contains(b)))
        );
    }

    #[test]
    fn the_array_holds_copies_of_the_example() {
        let example: serde_json::Value = serde_json::from_str(EXAMPLE).expect("JSON");
        for count in [0, 1, 3] {
            let mut text = Vec::new();
            json_array(&mut text, count).expect("memory");
            let array: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("JSON");
            assert_eq!(array.len() as u64, count);
            assert!(array.iter().all(|one| *one == example));
        }
    }

    #[test]
    fn every_reader_of_an_input_reads_all_of_it() {
        let input = Input::new(|mut file| file.write_all(b"abc")).expect("memory");
        assert_eq!(input.len_bytes(), 3);
        for _ in 0..2 {
            let mut text = String::new();
            input.open().expect("an open input").read_to_string(&mut text).expect("text");
            assert_eq!(text, "abc");
        }
    }
}
