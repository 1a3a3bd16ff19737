//! Counts lines and bytes as `wc` does. These counts do not depend on the locale.

use std::io::Write as _;

use contend_commands::Simple;
use contend_commands::options::Options;
use contend_commands::wc::TABLE;
use contend_shell::environment::Environment;
use memchr::memchr_iter;
use serde::{Deserialize, Serialize};

use super::{Definition, Operation};

/// Width of columns in characters, if there are several and the input is a pipe.
const WIDTH: usize = 7;

/// The counts that `wc` writes: lines, bytes, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Whether to count newlines.
    lines: bool,
    /// Whether to count bytes.
    bytes: bool,
}

/// A running `wc`, with the counts so far.
struct Counting {
    wanted: Count,
    lines: u64,
    bytes: u64,
}

impl Definition for Count {
    #[cfg(test)]
    const EXAMPLES: &'static [&'static str] =
        &["wc -l", "wc -c", "wc -lc", "wc -c -l", "wc --lines", "wc --bytes --lines", "wc -ll"];

    fn read(simple: &Simple, _: &Environment) -> Option<Self> {
        if simple.name() != "wc" {
            return None;
        }
        let options = Options::read(&simple.arguments, &TABLE)?;
        let [lines, bytes] = ['l', 'c'].map(|letter| options.has(letter));
        let is_known = (lines || bytes) && options.has_only("lc") && options.operands.is_empty();
        is_known.then_some(Self { lines, bytes })
    }

    fn start(&self) -> Box<dyn Operation> {
        Box::new(Counting { wanted: *self, lines: 0, bytes: 0 })
    }
}

impl Operation for Counting {
    fn push(&mut self, input: &[u8], _: &mut Vec<u8>) {
        if self.wanted.lines {
            self.lines += memchr_iter(b'\n', input).count() as u64;
        }
        self.bytes += input.len() as u64;
    }

    fn finish(&mut self, output: &mut Vec<u8>) -> i32 {
        let written = match self.wanted {
            Count { lines: true, bytes: true } => {
                writeln!(output, "{:WIDTH$} {:WIDTH$}", self.lines, self.bytes)
            }
            Count { lines: true, .. } => writeln!(output, "{}", self.lines),
            Count { .. } => writeln!(output, "{}", self.bytes),
        };
        i32::from(written.is_err()) // writing to memory does not fail
    }
}
