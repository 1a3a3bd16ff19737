//! `contend json`.

use std::ffi::OsString;

use clap::{Args, ValueEnum, ValueHint};
use contend_json::format::Format;

/// Prints the values at some paths out of JSON of any size, in one pass.
///
/// The input is read once, from front to back; what is not asked for is checked and passed over,
/// and nothing is kept, so that memory stays small however large the input, a line, a string or
/// an array is (only a single key or number is held whole). Input is one JSON text (RFC 8259) or
/// several after one another, as JSON lines are; the paths hold for each of them. Values are
/// printed in the order of the input, each once, even if several paths lead to it or to something
/// that it is in.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  contend json .menu.id example.json
  contend json '.[].menu.popup.menuitem[].value' <big.json | cut -f2 | sort | uniq -c
  contend json --format gron . a.json b.json | grep onclick
  contend json --format jsonl ..menuitem .[0].menu.id big.json")]
#[command(after_long_help = "Examples:
  contend json .menu.id example.json
  contend json '.[].menu.popup.menuitem[].value' <big.json | cut -f2 | sort | uniq -c
  contend json --format gron . a.json b.json | grep onclick
  contend json --format jsonl ..menuitem .[0].menu.id big.json

Paths and files:
  An argument that begins with `.`, but not with `./` or `../`, is a path; every other is a
  file, and `-` is standard input. Write `./.hidden` for a file whose name begins with a dot.

Paths:
  .                      The whole value.
  .key                   The member of an object. Letters, digits, `_`, `-`, `$` and `@` need
                         no quotes; others do: .\"odd key\" or .[\"odd key\"], with the escapes
                         of JSON.
  [3]                    The element of an array, from 0.
  []                     Every element of an array or member of an object.
  .*                     Every member of an object.
  ..key ..[3] ..[] ..*   The same at any depth.

Formats:
  tsv                    A line for each scalar: its path, a tab, its text. Tab, newline, return
                         and backslash in strings are written \\t, \\n, \\r, \\\\; all else is as it
                         is. Empty containers are {} and [].
  gron                   Assignments, as `gron --no-sort` prints them: json.menu.id = \"file\";
  jsonl                  One line for each value that was found, whole, without white space.

What is JSON:
  All input is checked, what is passed over too: grammar, escapes and UTF-8. Numbers are text:
  no digit is lost. Keys that are given twice are both printed. A surrogate without its other
  half (\\ud83d) is refused. A byte order mark at the beginning is ignored. Arrays and objects
  can be nested 100000 deep; a path that is printed can have 1 MiB. Strings go through in
  pieces; a key that is compared and a number that is printed are held whole in memory.

Exit status:
  0, even if nothing was found or standard output was closed. 1 when the input is not JSON:
  the message says where, and the lines printed before it are right. 2 when the command line
  is wrong or a file cannot be opened; 125 when reading or writing fails.")]
pub struct JsonArgs {
    /// What to print, and files to read instead of standard input.
    #[arg(value_name = "PATH|FILE", required = true, value_hint = ValueHint::FilePath)]
    pub arguments: Vec<OsString>,

    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "tsv")]
    pub format: FormatArg,
}

/// How values are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Lines of path, tab and text.
    Tsv,
    /// Assignments, as gron prints them.
    Gron,
    /// Whole values, one a line.
    Jsonl,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Tsv => Self::PathValue,
            FormatArg::Gron => Self::Assignments,
            FormatArg::Jsonl => Self::JsonLines,
        }
    }
}
