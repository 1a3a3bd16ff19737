//! Output formats: how values and their paths are written.

use crate::path::is_bare;

/// The format in which matching values are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One line for each scalar and empty container in the value: its path, a tab, and the scalar
    /// or container itself.
    PathValue,
    /// One assignment in gron's syntax for the value, and one for each value inside it, in document
    /// order.
    Assignments,
    /// One line for the whole value, without white space between its tokens.
    JsonLines,
}

impl Format {
    /// Returns the path of the root, to which steps are appended; empty if the format has no name
    /// for the root.
    pub(crate) fn root(self) -> &'static str {
        match self {
            Self::Assignments => "json",
            Self::PathValue | Self::JsonLines => "",
        }
    }

    /// Appends to `path` the step that selects the member `key` of an object.
    pub(crate) fn push_key(self, path: &mut Vec<u8>, key: &str) {
        let bare = match self {
            Self::Assignments => is_identifier(key),
            Self::PathValue | Self::JsonLines => !key.is_empty() && key.chars().all(is_bare),
        };
        if bare {
            path.push(b'.');
            path.extend_from_slice(key.as_bytes());
        } else {
            push_bracket(path);
            path.push(b'"');
            key.chars().for_each(|c| Self::Assignments.push_char(path, c));
            path.extend_from_slice(b"\"]");
        }
    }

    /// Appends a part of a string value to `out`, with the escapes that the format requires.
    pub(crate) fn push_text(self, out: &mut Vec<u8>, text: &str) {
        let special: fn(u8) -> bool = match self {
            Self::Assignments => {
                |byte| !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\')
            }
            Self::PathValue | Self::JsonLines => |byte| matches!(byte, b'\\' | b'\t'..=b'\r'),
        };
        if text.bytes().any(special) {
            text.chars().for_each(|c| self.push_char(out, c));
        } else {
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn push_char(self, out: &mut Vec<u8>, c: char) {
        let quoted = self == Self::Assignments;
        let short = match c {
            '\\' => Some('\\'),
            '\n' => Some('n'),
            '\r' => Some('r'),
            '\t' => Some('t'),
            '"' if quoted => Some('"'),
            '\x08' if quoted => Some('b'),
            '\x0c' if quoted => Some('f'),
            _ => None,
        };
        match short {
            Some(letter) => out.extend_from_slice(&[b'\\', letter as u8]),
            None if quoted && (c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes());
            }
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends to `path` the step that selects the element at `index` of an array, counted from 0.
pub(crate) fn push_index(path: &mut Vec<u8>, index: u64) {
    push_bracket(path);
    push_decimal(path, index);
    path.push(b']');
}

/// Appends `[`, or `.[` if the path is empty.
fn push_bracket(path: &mut Vec<u8>) {
    path.extend_from_slice(if path.is_empty() { b".[" } else { b"[" });
}

fn push_decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut rest = number;
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The words that gron takes for reserved words of JavaScript, and writes in quotes if they are keys.
/// As in gron, `await` and `enum` are missing.
const RESERVED: [&str; 36] = [
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "new",
    "null",
    "return",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Returns whether a key is a JavaScript identifier and not one of the [`RESERVED`] words. gron
/// writes such keys after a dot.
fn is_identifier(key: &str) -> bool {
    let mut chars = key.chars();
    let begins = |c: char| c == '$' || c == '_' || unicode_ident::is_xid_start(c) && !is_extra(c);
    let goes_on = |c: char| c == '$' || unicode_ident::is_xid_continue(c) && !is_extra(c);
    chars.next().is_some_and(begins) && chars.all(goes_on) && !RESERVED.contains(&key)
}

/// Returns whether Unicode allows a character in identifiers only as an exception (`Other_ID_Start`
/// or `Other_ID_Continue`). gron does not allow these characters.
fn is_extra(c: char) -> bool {
    matches!(
        c,
        '\u{b7}'
            | '\u{387}'
            | '\u{1369}'..='\u{1371}'
            | '\u{19da}'
            | '\u{200c}'..='\u{200d}'
            | '\u{2118}'
            | '\u{212e}'
            | '\u{30fb}'
            | '\u{ff65}'
    )
}
