//! Arguments of `contend json`.

use std::ffi::OsString;

use clap::{Args, ValueEnum, ValueHint};
use contend_json::format::Format;

/// Extract values from JSON of any size, in one pass.
///
/// contend reads the input once and checks all of it. It holds at most one key or number in memory,
/// however large the input, a line, a string or an array is. The input is one JSON text (RFC 8259)
/// or several in sequence, as in JSON lines; the paths apply to each of them. Values are printed in
/// input order, each once, even if several paths match it or a value around it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{DETAILS}"))]
pub struct JsonArgs {
    /// Paths of the values to print, and files to read.
    ///
    /// Without a file, or with `-`, contend reads standard input.
    #[arg(value_name = "PATH|FILE", required = true, value_hint = ValueHint::FilePath)]
    pub arguments: Vec<OsString>,

    /// Output format: tsv, gron or jsonl.
    #[arg(long, short, value_name = "FORMAT", default_value = "tsv", hide_possible_values = true)]
    pub format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  contend json .menu.id example.json
  contend json '.[].menu.popup.menuitem[].value' <big.json | cut -f2 | sort -u
  contend json --format gron . a.json b.json | grep onclick
  contend json --format jsonl ..menuitem .[0].menu.id big.json";

const DETAILS: &str = "\
Paths and files:
  An argument that begins with `.`, but not with `./` or `../`, is a path. Any other argument is
  a file; `-` is standard input. Write `./.hidden` for a file whose name begins with a dot.

Paths:
  .                      The whole value.
  .key                   A member of an object. Keys of letters, digits, `_`, `-`, `$` and `@`
                         need no quotes; others do: .\"odd key\" or .[\"odd key\"], with JSON
                         escapes.
  [3]                    An element of an array, counted from 0.
  []                     All elements of an array or members of an object.
  .*                     All members of an object.
  ..key ..[3] ..[] ..*   The same at any depth.

Formats:
  tsv                    One line per scalar: path, tab, text. Tab, newline, carriage return and
                         backslash in strings become \\t, \\n, \\r and \\\\; other characters are
                         unchanged. Empty containers are {} and [].
  gron                   Assignments, as `gron --no-sort` prints them: json.menu.id = \"file\";
  jsonl                  One line per matching value, complete, without white space.

Validation:
  The whole input is checked, including values that no path matches: grammar, escapes and UTF-8.
  Numbers keep all digits. Duplicate keys are both printed. An unpaired surrogate (\\ud83d) is an
  error. A byte order mark at the beginning is ignored. Arrays and objects can be nested 100000
  deep; a printed path can have 1 MiB. Strings are streamed; a key that is compared and a number
  that is printed are held in memory.

Exit status:
  0, even if no value matches or standard output is closed. 1 if the input is not JSON: the
  message gives the position, and all lines printed before it are valid. 2 if the command line is
  wrong or a file cannot be opened; 125 if reading or writing fails.";

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// One line per scalar: path, tab, text.
    Tsv,
    /// Assignments, as `gron --no-sort` prints them.
    Gron,
    /// One line per matching value.
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
