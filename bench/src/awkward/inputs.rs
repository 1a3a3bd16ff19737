//! Awkward inputs, such as empty, binary or huge ones, or ones without a final newline.

use fastrand::Rng;

/// A property that makes an input awkward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// No such property: lines of words and numbers, for comparison.
    Plain,
    /// An empty input.
    Empty,
    /// A single line.
    OneLine,
    /// A last line without a newline.
    NoFinalNewline,
    /// Lines that end in CR LF.
    CarriageReturns,
    /// NUL bytes within lines.
    Nul,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// Characters of two to four bytes, and accents that combine with the preceding letter.
    Multibyte,
    /// A line of about 10 MB between two short ones.
    LongLine,
    /// Only newlines.
    OnlyNewlines,
    /// A quarter of a million lines of at most two bytes.
    TinyLines,
    /// Sequences of spaces and tabs at both ends of lines and between words.
    Blanks,
    /// Random bytes of any value.
    Binary,
    /// Characters with a meaning in regular expressions, shells or formats.
    Metacharacters,
    /// One line, repeated.
    AllEqual,
    /// A line of about 50 MB between two short ones.
    HugeLine,
    /// JSON objects, one on each line.
    JsonLines,
}

/// Approximate length of the long line, in bytes.
const LONG_LINE_BYTES: usize = 10_000_000;
/// Approximate length of the huge line, in bytes.
const HUGE_LINE_BYTES: usize = 50_000_000;
const TINY_LINES: usize = 250_000;

const WORDS: &[&str] = &[
    "a", "b", "the", "The", "foo", "bar", "foo bar", "x,y,z", "7", "42", "-3", "1.50", "Error",
    "error", "end", "abc", "aa", "k=v", "a:b:c",
];
const MULTIBYTE: &[&str] = &[
    "é",
    "É",
    "ß",
    "Straße",
    "e\u{301}",
    "o\u{308}",
    "日本語",
    "ー",
    "😀",
    "я",
    "a",
    "é,è",
    "ﬁ",
    "İ",
];
const META: &[&str] = &[
    ".*", "[a-z]", "^", "$", "\\", "\\n", "a\\|b", "(x)", "{2}", "*", "?", "+", "&", "/", "%s",
    "'", "\"", "$(x)", "#", "-", "--", "!", "~", "|",
];
const INVALID: &[&[u8]] = &[b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf5", b"a\x80b"];

impl Kind {
    /// Kinds of inputs that `awkward::pairs` uses. `parallel::pairs` also uses the other three.
    pub const ALL: [Self; 14] = [
        Self::Plain,
        Self::Empty,
        Self::OneLine,
        Self::NoFinalNewline,
        Self::CarriageReturns,
        Self::Nul,
        Self::InvalidUtf8,
        Self::Multibyte,
        Self::LongLine,
        Self::OnlyNewlines,
        Self::TinyLines,
        Self::Blanks,
        Self::Binary,
        Self::Metacharacters,
    ];

    /// Returns a random input with this property.
    pub fn bytes(self, random: &mut Rng) -> Vec<u8> {
        let count = random.usize(2..200);
        match self {
            Self::Plain => lines(count, b"\n", WORDS, random),
            Self::Empty => Vec::new(),
            Self::OneLine => lines(1, b"\n", WORDS, random),
            Self::NoFinalNewline => {
                let mut bytes = lines(count, b"\n", WORDS, random);
                bytes.pop();
                bytes
            }
            Self::CarriageReturns => lines(count, b"\r\n", WORDS, random),
            Self::Nul => strewn(count, &[b"\0"], random),
            Self::InvalidUtf8 => strewn(count, INVALID, random),
            Self::Multibyte => lines(count, b"\n", MULTIBYTE, random),
            Self::LongLine => long_line(LONG_LINE_BYTES, random),
            Self::HugeLine => long_line(HUGE_LINE_BYTES, random),
            Self::OnlyNewlines => vec![b'\n'; count],
            Self::TinyLines => tiny_lines(random),
            Self::Blanks => blanks(count, random),
            Self::Binary => (0..random.usize(1..20_000)).map(|_| random.u8(..)).collect(),
            Self::Metacharacters => lines(count, b"\n", META, random),
            Self::AllEqual => lines(1, b"\n", WORDS, random).repeat(count),
            Self::JsonLines => json_lines(count, random),
        }
    }
}

/// Makes `count` lines of one to six random `words`, with `end` after each line. About one line in
/// three repeats the previous one.
fn lines(count: usize, end: &[u8], words: &[&str], random: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut line = String::new();
    for _ in 0..count {
        if line.is_empty() || random.u8(0..3) > 0 {
            let words: Vec<&str> =
                (0..random.usize(1..=6)).map(|_| words[random.usize(..words.len())]).collect();
            line = words.join([" ", " ", ",", "\t"][random.usize(..4)]);
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.extend_from_slice(end);
    }
    bytes
}

/// Makes `count` lines of words, and inserts elements of `strange` at the beginning and at random
/// positions.
fn strewn(count: usize, strange: &[&[u8]], random: &mut Rng) -> Vec<u8> {
    let plain = lines(count, b"\n", WORDS, random);
    let mut bytes = Vec::new();
    for (place, byte) in plain.into_iter().enumerate() {
        // One occurrence is certain, at the beginning.
        if place == 0 || random.u8(0..40) == 0 {
            bytes.extend_from_slice(strange[random.usize(..strange.len())]);
        }
        bytes.push(byte);
    }
    bytes
}

fn long_line(length: usize, random: &mut Rng) -> Vec<u8> {
    let mut bytes = b"first\n".to_vec();
    while bytes.len() < length {
        bytes.extend_from_slice(WORDS[random.usize(..WORDS.len())].as_bytes());
        bytes.push(b' ');
    }
    bytes.extend_from_slice(b"\nlast\n");
    bytes
}

fn json_lines(count: usize, random: &mut Rng) -> Vec<u8> {
    let lines = (0..count).map(|number| {
        let word = WORDS[random.usize(..WORDS.len())];
        format!("{{\"a\":{number},\"b\":\"{word}\",\"c\":[{},null]}}\n", random.i8(..))
    });
    lines.collect::<String>().into_bytes()
}

fn tiny_lines(random: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..TINY_LINES {
        for _ in 0..random.u8(0..3) {
            bytes.push(b"ab7 "[random.usize(..4)]);
        }
        bytes.push(b'\n');
    }
    bytes
}

fn blanks(count: usize, random: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    let blank = |bytes: &mut Vec<u8>, random: &mut Rng| {
        (0..random.u8(0..4)).for_each(|_| bytes.push(b"  \t"[random.usize(..3)]));
    };
    for _ in 0..count {
        blank(&mut bytes, random);
        for _ in 0..random.u8(0..4) {
            bytes.extend_from_slice(WORDS[random.usize(..WORDS.len())].as_bytes());
            blank(&mut bytes, random);
        }
        bytes.push(b'\n');
    }
    bytes
}
