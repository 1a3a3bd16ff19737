//! Strings, numbers and literals, piece by piece as they stand in the window.

use crate::error::FilterError;
use crate::source::Source;

/// Takes the text of a string, key, number or literal.
pub(crate) trait Sink {
    /// Whole characters as they stand in the input, without quotes, backslashes and control
    /// characters below U+0020.
    fn plain(&mut self, text: &[u8]) -> Result<(), FilterError>;

    /// What an escape sequence stands for.
    fn escaped(&mut self, escaped: Escaped) -> Result<(), FilterError>;
}

/// What an escape sequence stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escaped {
    Char(char),
    /// Half of a surrogate pair without its other half: no character.
    Lone(u16),
}

impl Escaped {
    /// The character, or U+FFFD where there is none.
    pub(crate) fn character(self) -> char {
        match self {
            Self::Char(c) => c,
            Self::Lone(_) => char::REPLACEMENT_CHARACTER,
        }
    }
}

/// Takes text that nobody wants.
pub(crate) struct Ignore;

impl Sink for Ignore {
    #[inline]
    fn plain(&mut self, _: &[u8]) -> Result<(), FilterError> {
        Ok(())
    }

    #[inline]
    fn escaped(&mut self, _: Escaped) -> Result<(), FilterError> {
        Ok(())
    }
}

/// Reads a string after its opening quote, to behind its closing one.
#[inline]
pub(crate) fn string(source: &mut Source, sink: &mut impl Sink) -> Result<(), FilterError> {
    loop {
        if source.peek()?.is_none() {
            return Err(source.error("the input ends inside a string"));
        }
        let rest = source.rest();
        let plain = plain_length(rest);
        let stop = rest.get(plain).copied();
        if plain > 0 {
            sink.plain(&rest[..plain])?;
            source.advance(plain);
        }
        match stop {
            None => {}
            Some(b'"') => {
                source.advance(1);
                return Ok(());
            }
            Some(b'\\') => {
                source.advance(1);
                escape(source, sink)?;
            }
            Some(_) => return Err(control_character(source)),
        }
    }
}

#[cold]
fn control_character(source: &Source) -> FilterError {
    let found = source.found();
    source.error(format!("{found} cannot stand in a string: it must be escaped"))
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Bytes before the first quote, backslash or control character; eight at a time, since most
/// strings are too short for wider steps to pay.
#[inline]
fn plain_length(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some(eight) = text[length..].first_chunk::<8>() {
        let special = special_bytes(u64::from_le_bytes(*eight));
        if special != 0 {
            return length + (special.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let tail = &text[length..];
    length + tail.iter().position(|byte| is_special(*byte)).unwrap_or(tail.len())
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The high bit of the first special byte, and perhaps bits above it: a borrow can reach the
/// bytes that follow, never those before.
#[inline]
fn special_bytes(eight: u64) -> u64 {
    let zero = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes;
    let control = eight.wrapping_sub(ONES * 0x20) & !eight;
    let quote = zero(eight ^ (ONES * u64::from(b'"')));
    let backslash = zero(eight ^ (ONES * u64::from(b'\\')));
    (control | quote | backslash) & HIGH_BITS
}

/// Reads an escape sequence after its backslash, and the other half of a pair if there is one.
#[inline(never)]
fn escape(source: &mut Source, sink: &mut impl Sink) -> Result<(), FilterError> {
    let mut unit = escape_unit(source)?;
    while (0xd800..0xdc00).contains(&unit) {
        if source.peek()? != Some(b'\\') {
            break;
        }
        source.advance(1);
        let next = escape_unit(source)?;
        if let Some(Ok(pair)) = char::decode_utf16([unit, next]).next() {
            return sink.escaped(Escaped::Char(pair));
        }
        sink.escaped(Escaped::Lone(unit))?;
        unit = next;
    }
    sink.escaped(char::from_u32(u32::from(unit)).map_or(Escaped::Lone(unit), Escaped::Char))
}

/// The UTF-16 unit that an escape sequence names.
fn escape_unit(source: &mut Source) -> Result<u16, FilterError> {
    let unit = match source.peek()? {
        Some(byte @ (b'"' | b'\\' | b'/')) => byte,
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => {
            source.advance(1);
            return four_digits(source);
        }
        None => return Err(source.error("the input ends inside a string")),
        Some(_) => {
            let found = source.found();
            return Err(source.error(format!("there is no escape sequence \\ with {found}")));
        }
    };
    source.advance(1);
    Ok(unit.into())
}

fn four_digits(source: &mut Source) -> Result<u16, FilterError> {
    let mut unit = 0;
    for _ in 0..4 {
        let Some(digit) = source.peek()?.and_then(hexadecimal) else {
            let found = source.found();
            let problem = format!("\\u needs four hexadecimal digits: {found} is none");
            return Err(source.error(problem));
        };
        source.advance(1);
        unit = unit << 4 | u16::from(digit);
    }
    Ok(unit)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Where one is in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numeral {
    Start,
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Numeral {
    /// The rule of RFC 8259, section 6, as an automaton; none where the number cannot go on.
    #[inline]
    fn after(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Start, b'-') => Self::Minus,
            (Self::Start | Self::Minus, b'0') => Self::Zero,
            (Self::Start | Self::Minus | Self::Integer, b'0'..=b'9') => Self::Integer,
            (Self::Zero | Self::Integer, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Self::ExponentDigits
            }
            _ => return None,
        })
    }

    fn is_complete(self) -> bool {
        matches!(self, Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits)
    }
}

/// Reads a number, as text: no digit is lost, however many there are.
pub(crate) fn number(source: &mut Source, sink: &mut impl Sink) -> Result<(), FilterError> {
    let mut state = Numeral::Start;
    while source.peek()?.is_some() {
        let rest = source.rest();
        let step = |byte: &u8| {
            let next = state.after(*byte);
            state = next.unwrap_or(state);
            next.is_none()
        };
        let stop = rest.iter().position(step);
        let length = stop.unwrap_or(rest.len());
        sink.plain(&rest[..length])?;
        source.advance(length);
        if stop.is_some() {
            break;
        }
    }
    if state.is_complete() {
        return Ok(());
    }
    let found = source.found();
    Err(source.error(format!("a digit is missing in a number: there is {found}")))
}

/// Reads `true`, `false` or `null`.
pub(crate) fn literal(
    source: &mut Source,
    word: &'static str,
    sink: &mut impl Sink,
) -> Result<(), FilterError> {
    for letter in word.bytes() {
        if source.peek()? != Some(letter) {
            let found = source.found();
            return Err(source.error(format!("`{word}` was begun, but there is {found}")));
        }
        source.advance(1);
    }
    sink.plain(word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_byte_is_found_at_every_place() {
        for special in (0..0x20).chain([b'"', b'\\']) {
            for before in 0..40 {
                for other in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff, 0xa2, 0xdc] {
                    let mut text = vec![other; before];
                    text.push(special);
                    text.extend([other, special, other, b'"', b'\\', 0, other, other, other]);
                    assert_eq!(plain_length(&text), before, "{special:#x} after {other:#x}");
                }
            }
        }
        assert_eq!(plain_length(&[b'a'; 19]), 19);
    }
}
