//! Parses the sets of GNU `tr`, with classes, repeats, ranges and escapes.

/// A set of bytes: whether each byte value is a member.
pub(super) type Set = [bool; 256];

/// Options for the interpretation of sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sets {
    /// Whether the first set is complemented (`-c`).
    pub(super) complemented: bool,
    /// Whether the first set is truncated to the length of the second (`-t`).
    pub(super) truncates: bool,
    /// Whether classes are those of the C locale. If not, sets with classes are rejected.
    pub(super) plain_letters: bool,
}

/// An element of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// A single byte or a range, as its bytes in order.
    Bytes(Vec<u8>),
    /// The bytes of a class such as `[:digit:]`.
    Class(Vec<u8>, ClassKind),
    /// A repeat `[x*n]` with its count. Without a count or with 0 (`None`), the repeat fills the
    /// second set up to the length of the first.
    Repeat(u8, Option<usize>),
    /// An equivalence class `[=x=]`, of which `x` is the only member.
    Equivalence(u8),
}

/// Kind of a class, which decides where a translation may contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassKind {
    /// `[:upper:]` or `[:lower:]`. The second set may contain such a class only at an index where
    /// one begins in the first set.
    Case,
    /// Any other class. The second set must not contain it.
    Other,
}

/// Exclusive upper bound of a repeat count, in bytes.
const REPEAT_LIMIT_BYTES: usize = 1 << 16;

impl Sets {
    /// Returns the set of bytes to delete or squeeze, complemented with `-c`. Returns `None` if
    /// `tr` rejects the set, or if it is not supported.
    pub(super) fn chosen(self, text: &str) -> Option<Set> {
        let mut set = [false; 256];
        for piece in self.pieces(text)? {
            match piece {
                Piece::Bytes(bytes) | Piece::Class(bytes, _) => {
                    for byte in bytes {
                        set[usize::from(byte)] = true;
                    }
                }
                Piece::Repeat(byte, Some(_)) | Piece::Equivalence(byte) => {
                    set[usize::from(byte)] = true;
                }
                Piece::Repeat(_, None) => return None,
            }
        }
        Some(if self.complemented { set.map(|is_in| !is_in) } else { set })
    }

    /// Returns the bytes of the first set and, at the same indexes, their replacements. The second
    /// vector may be longer. Returns `None` if `tr` rejects a set, or if one is not supported.
    pub(super) fn translation(self, first: &str, second: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut from, mut cases, mut has_class) = (Vec::new(), Vec::new(), false);
        for piece in self.pieces(first)? {
            match piece {
                Piece::Class(bytes, kind) => {
                    has_class = true;
                    if kind == ClassKind::Case {
                        cases.push(from.len());
                    }
                    from.extend(bytes);
                }
                Piece::Bytes(bytes) => from.extend(bytes),
                Piece::Equivalence(byte) => from.push(byte),
                Piece::Repeat(byte, count) => from.extend(std::iter::repeat_n(byte, count?)),
            }
        }
        if self.complemented {
            from = (0..=255).filter(|byte| !from.contains(byte)).collect();
        }
        let to = self.opposite(second, &from, &cases)?;
        let is_single = to.len() == from.len() && to.windows(2).all(|pair| pair[0] == pair[1]);
        if self.complemented && has_class && !is_single {
            return None;
        }
        from.truncate(to.len());
        Some((from, to))
    }

    /// Returns the bytes of the second set `text`. Without `-t`, a set that is shorter than the
    /// first is filled up with its last byte; a longer one is not truncated. `from` contains the
    /// bytes of the first set, and `cases` the indexes at which its case classes start. Returns
    /// `None` if `tr` rejects the second set, or if it is not supported.
    fn opposite(self, text: &str, from: &[u8], cases: &[usize]) -> Option<Vec<u8>> {
        let pieces = self.pieces(text)?;
        let known = pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) | Piece::Class(bytes, _) => bytes.len(),
            Piece::Repeat(_, count) => count.unwrap_or(0),
            Piece::Equivalence(_) => 1,
        });
        let known: usize = known.sum();
        let mut missing = pieces.iter().filter(|piece| matches!(piece, Piece::Repeat(_, None)));
        if missing.next().is_some() && missing.next().is_some() {
            return None;
        }
        let mut to = Vec::new();
        let ends_with_class = matches!(pieces.last(), Some(Piece::Class(..)));
        for piece in pieces {
            match piece {
                Piece::Bytes(bytes) => to.extend(bytes),
                // The second set may contain only case classes, each opposite one in the first set.
                Piece::Class(bytes, ClassKind::Case)
                    if !self.complemented && cases.contains(&to.len()) =>
                {
                    to.extend(bytes);
                }
                Piece::Repeat(byte, count) => {
                    let count = count.unwrap_or_else(|| from.len().saturating_sub(known));
                    to.extend(std::iter::repeat_n(byte, count));
                }
                Piece::Class(..) | Piece::Equivalence(_) => return None,
            }
        }
        if to.len() < from.len() && !self.truncates {
            let last = *to.last().filter(|_| !ends_with_class)?;
            to.resize(from.len(), last);
        }
        Some(to)
    }

    /// Splits a set into its elements. Returns `None` if `tr` rejects the set, or if it is not
    /// supported.
    fn pieces(self, text: &str) -> Option<Vec<Piece>> {
        let characters = characters(text)?;
        let mut pieces = Vec::new();
        let mut rest = characters.as_slice();
        while let Some((&(first, escaped), after)) = rest.split_first() {
            if first == b'['
                && !escaped
                && let Some((piece, after)) = self.bracketed(after)?
            {
                pieces.push(piece);
                rest = after;
                continue;
            }
            rest = match after {
                [(b'-', false), (last, _), after @ ..] => {
                    if *last < first {
                        return None;
                    }
                    pieces.push(Piece::Bytes((first..=*last).collect()));
                    after
                }
                after => {
                    pieces.push(Piece::Bytes(vec![first]));
                    after
                }
            };
        }
        Some(pieces)
    }

    /// Parses the element after an opening bracket, and returns it with the rest. Returns
    /// `Some(None)` if the bracket is literal, and `None` if `tr` rejects the element or it is not
    /// supported.
    #[expect(clippy::option_option, reason = "a literal bracket is not an error")]
    fn bracketed(self, inner: &[Character]) -> Option<Option<(Piece, &[Character])>> {
        if let [(mark @ (b':' | b'='), false), inner @ ..] = inner {
            let end = inner.windows(2).position(|pair| pair == [(*mark, false), (b']', false)]);
            if let Some(end) = end {
                let name: Vec<u8> = inner[..end].iter().map(|(byte, _)| *byte).collect();
                let piece = match (mark, name.as_slice()) {
                    (b':', name) => self.class(name)?,
                    (_, &[byte]) => Piece::Equivalence(byte),
                    _ => return None,
                };
                return Some(Some((piece, &inner[end + 2..])));
            }
        }
        let [(byte, _), (b'*', false), after @ ..] = inner else { return Some(None) };
        let Some(end) = after.iter().position(|character| *character == (b']', false)) else {
            return Some(None);
        };
        let digits: Vec<u8> = after[..end].iter().map(|(byte, _)| *byte).collect();
        let digits = std::str::from_utf8(&digits).ok()?;
        let radix = if digits.starts_with('0') { 8 } else { 10 };
        let count = match digits {
            "" => None,
            digits => Some(
                usize::from_str_radix(digits, radix).ok().filter(|n| *n < REPEAT_LIMIT_BYTES)?,
            ),
        };
        Some(Some((Piece::Repeat(*byte, count.filter(|count| *count > 0)), &after[end + 1..])))
    }

    fn class(self, name: &[u8]) -> Option<Piece> {
        let test: fn(&u8) -> bool = match name {
            b"alnum" => u8::is_ascii_alphanumeric,
            b"alpha" => u8::is_ascii_alphabetic,
            b"blank" => |byte| matches!(byte, b' ' | b'\t'),
            b"cntrl" => u8::is_ascii_control,
            b"digit" => u8::is_ascii_digit,
            b"graph" => u8::is_ascii_graphic,
            b"lower" => u8::is_ascii_lowercase,
            b"print" => |byte| (b' '..=b'~').contains(byte),
            b"punct" => u8::is_ascii_punctuation,
            b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
            b"upper" => u8::is_ascii_uppercase,
            b"xdigit" => u8::is_ascii_hexdigit,
            _ => return None,
        };
        let kind = match name {
            b"upper" | b"lower" => ClassKind::Case,
            _ => ClassKind::Other,
        };
        let bytes = (0..=255).filter(test).collect();
        self.plain_letters.then_some(Piece::Class(bytes, kind))
    }
}

/// A byte, and whether it was escaped, which makes it literal.
type Character = (u8, bool);

/// Returns the bytes of a set with escapes resolved. Returns `None` for a set that is not ASCII,
/// and for an escape that makes `tr` warn.
fn characters(text: &str) -> Option<Vec<Character>> {
    if !text.is_ascii() {
        return None;
    }
    let mut characters = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = first == b'\\';
        let (byte, after) = if escaped { super::escape(after)? } else { (first, after) };
        characters.push((byte, escaped));
        rest = after;
    }
    Some(characters)
}
