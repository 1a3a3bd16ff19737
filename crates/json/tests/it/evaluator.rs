//! Compares the output for random documents and paths with that of an evaluator that keeps the
//! whole document. Also checks that damaged documents are accepted or rejected as by `serde_json`.

use std::collections::BTreeSet;

use contend_json::format::Format;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::IgnoredAny;

use crate::{FORMATS, filtered, printed};

#[derive(Debug, Clone)]
enum Document {
    /// A number, `true`, `false` or `null`.
    Word(&'static str),
    String(String),
    Array(Vec<Document>),
    Object(Vec<(String, Document)>),
}

#[derive(Debug, Clone)]
enum Choice {
    Key(String),
    Index(usize),
    AnyMember,
    Any,
}

type Step = (bool, Choice);

/// Indices of children, from the root to a value.
type Route = Vec<usize>;

impl Document {
    fn children(&self) -> Vec<(Option<&str>, &Document)> {
        match self {
            Self::Array(items) => items.iter().map(|item| (None, item)).collect(),
            Self::Object(members) => members.iter().map(|(k, v)| (Some(k.as_str()), v)).collect(),
            _ => Vec::new(),
        }
    }

    /// Adds to `found` the routes of the values that `steps` select in this value. `route` is the
    /// route of this value.
    fn select(&self, steps: &[Step], route: &mut Route, found: &mut BTreeSet<Route>) {
        let Some(((descends, choice), rest)) = steps.split_first() else {
            found.insert(route.clone());
            return;
        };
        for (place, (key, child)) in self.children().into_iter().enumerate() {
            route.push(place);
            let chosen = match (choice, key) {
                (Choice::Key(wanted), Some(key)) => wanted == key,
                (Choice::Index(wanted), None) => *wanted == place,
                (Choice::AnyMember, Some(_)) | (Choice::Any, _) => true,
                _ => false,
            };
            if chosen {
                child.select(rest, route, found);
            }
            if *descends {
                child.select(steps, route, found);
            }
            route.pop();
        }
    }

    /// Returns the value as JSON without white space, with the escapes that `serde_json` writes,
    /// but with `\u001F` in place of `\u001f`.
    fn compact(&self) -> String {
        let list = |items: Vec<String>| items.join(",");
        match self {
            Self::Word(word) => (*word).to_owned(),
            Self::String(text) => quoted(text),
            Self::Array(items) => format!("[{}]", list(items.iter().map(Self::compact).collect())),
            Self::Object(members) => {
                let member = |(k, v): &(String, Self)| format!("{}:{}", quoted(k), v.compact());
                format!("{{{}}}", list(members.iter().map(member).collect()))
            }
        }
    }

    /// Returns the value as JSON, with the white space and the escapes that `bits` select.
    fn written(&self, bits: &mut impl Iterator<Item = u8>) -> String {
        let space = |bits: &mut dyn Iterator<Item = u8>| {
            ["", "", "", " ", "\n", "\t", "\r\n  "][usize::from(bits.next().unwrap_or(0)) % 7]
        };
        let mut out = space(bits).to_owned();
        match self {
            Self::Word(word) => out += word,
            Self::String(text) => out += &escaped(text, bits),
            Self::Array(_) | Self::Object(_) => {
                let array = matches!(self, Self::Array(_));
                out.push(if array { '[' } else { '{' });
                for (place, (key, child)) in self.children().into_iter().enumerate() {
                    out += if place > 0 { "," } else { "" };
                    if let Some(key) = key {
                        out += &format!("{}{}{}:", space(bits), escaped(key, bits), space(bits));
                    }
                    out += &child.written(bits);
                }
                out += space(bits);
                out.push(if array { ']' } else { '}' });
            }
        }
        out + space(bits)
    }

    /// Appends the lines that filtering prints for the value, whose path is `path`, and for
    /// everything inside it.
    fn lines(&self, path: &str, format: Format, out: &mut String) {
        match (format, self) {
            (Format::JsonLines, _) => *out += &format!("{}\n", self.compact()),
            (Format::Assignments, Self::Array(_)) => *out += &format!("{path} = [];\n"),
            (Format::Assignments, Self::Object(_)) => *out += &format!("{path} = {{}};\n"),
            (Format::Assignments, Self::Word(word)) => *out += &format!("{path} = {word};\n"),
            (Format::Assignments, Self::String(text)) => {
                *out += &format!("{path} = {};\n", assigned(text));
            }
            (Format::PathValue, Self::String(text)) => {
                let text = text.replace('\\', "\\\\").replace('\t', "\\t");
                let text = text.replace('\n', "\\n").replace('\r', "\\r");
                *out += &format!("{path}\t{text}\n");
            }
            (Format::PathValue, _) if self.children().is_empty() => {
                *out += &format!("{path}\t{}\n", self.compact());
            }
            (Format::PathValue, _) => {}
        }
        if format != Format::JsonLines {
            for (place, (key, child)) in self.children().into_iter().enumerate() {
                child.lines(&step_to(path, place, key), format, out);
            }
        }
    }
}

fn step_to(path: &str, place: usize, key: Option<&str>) -> String {
    let path = if path == "." { "" } else { path };
    let dot = if path.is_empty() { "." } else { "" };
    match key {
        None => format!("{path}{dot}[{place}]"),
        Some(key) if is_plain(key) => format!("{path}.{key}"),
        Some(key) => format!("{path}{dot}[{}]", assigned(key)),
    }
}

/// Returns whether a key consists of letters only. Such a key needs no quotes in any format, unless
/// it is a reserved word of JavaScript, which these tests do not use.
fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(char::is_alphabetic)
}

fn quoted(text: &str) -> String {
    let json = serde_json::to_string(text).expect("a string");
    json.replace("\\u001f", "\\u001F")
}

fn assigned(text: &str) -> String {
    let special = |c: char| {
        (c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) && !"\x08\x0c\n\r\t".contains(c)
    };
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\x08' => "\\b".to_owned(),
        '\x0c' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if special(c) => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

fn escaped(text: &str, bits: &mut impl Iterator<Item = u8>) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        let units = c.encode_utf16(&mut [0; 2]).to_vec();
        match bits.next().unwrap_or(0) % 4 {
            0 => units.iter().for_each(|unit| out += &format!("\\u{unit:04x}")),
            1 => units.iter().for_each(|unit| out += &format!("\\u{unit:04X}")),
            _ if c == '/' => out += "\\/",
            _ => {
                let quoted = serde_json::to_string(&c).expect("a string");
                out += &quoted[1..quoted.len() - 1];
            }
        }
    }
    out + "\""
}

fn strings() -> impl Strategy<Value = String> {
    let chars = prop::sample::select(
        "ab/\\\"\t\n\r\x08\x0c\0\x1f\x7f\u{85} é日\u{2028}\u{ffff}\u{1f600}"
            .chars()
            .collect::<Vec<_>>(),
    );
    prop_oneof![
        3 => vec(chars, 0..12).prop_map(String::from_iter),
        1 => "[a-z \\\\é]{20,90}",
    ]
}

fn keys() -> impl Strategy<Value = String> {
    let few = ["a", "b", "aa", "é", "", "odd key", "a.b", "[0]", "\"\\\n", "\u{1f600}"];
    prop_oneof![9 => prop::sample::select(few.map(str::to_owned).to_vec()), 1 => strings()]
}

fn documents() -> impl Strategy<Value = Document> {
    let words =
        ["null", "true", "false", "0", "-1", "1.50", "-0.1E+7", "1e400", "12345678901234567890"];
    let leaf = prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(Document::Word),
        strings().prop_map(Document::String),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Document::Array),
            vec((keys(), inner), 0..6).prop_map(Document::Object),
        ]
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let choice = prop_oneof![
        4 => keys().prop_map(Choice::Key),
        1 => (0_usize..4).prop_map(Choice::Index),
        1 => Just(Choice::AnyMember),
        3 => Just(Choice::Any),
    ];
    vec((prop::bool::weighted(0.3), choice), 0..5)
}

fn path_text(steps: &[Step]) -> String {
    let step = |(descends, choice): &Step| {
        let dots = if *descends { ".." } else { "." };
        match choice {
            Choice::Key(key) if is_plain(key) => format!("{dots}{key}"),
            Choice::Key(key) => format!("{dots}[{}]", quoted(key)),
            Choice::Index(index) => format!("{dots}[{index}]"),
            Choice::AnyMember => format!("{dots}*"),
            Choice::Any => format!("{dots}[]"),
        }
    };
    if steps.is_empty() { ".".to_owned() } else { steps.iter().map(step).collect() }
}

fn expected(document: &Document, paths: &[Vec<Step>], format: Format) -> String {
    let mut found = BTreeSet::new();
    for steps in paths {
        document.select(steps, &mut Vec::new(), &mut found);
    }
    let root = if format == Format::Assignments { "json" } else { "." };
    let mut out = String::new();
    for route in &found {
        let is_part = (0..route.len()).any(|length| found.contains(&route[..length]));
        if is_part {
            continue;
        }
        let mut path = root.to_owned();
        let mut document = document;
        for place in route {
            let (key, child) = document.children()[*place];
            path = step_to(&path, *place, key);
            document = child;
        }
        document.lines(&path, format, &mut out);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_same_is_found_as_in_the_whole_document(
        document in documents(),
        paths in vec(steps(), 1..4),
        bits in vec(any::<u8>(), 0..200),
        sizes in vec(1_usize..40, 1..5),
    ) {
        let text = document.written(&mut bits.into_iter().cycle());
        let texts: Vec<_> = paths.iter().map(|steps| path_text(steps)).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        for format in FORMATS {
            let (output, result) = filtered(text.as_bytes(), &sizes, &texts, format);
            prop_assert!(result.is_ok(), "{:?} in {text}", result);
            prop_assert_eq!(output, expected(&document, &paths, format), "{:?} in {}", texts, text);
        }
    }

    #[test]
    fn a_printed_path_leads_to_its_value(document in documents()) {
        let text = document.compact();
        for line in printed(&text, &["."], Format::PathValue).lines() {
            let (path, _) = line.split_once('\t').expect("a tab");
            let again = printed(&text, &[path], Format::PathValue);
            prop_assert!(again.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn a_changed_byte_is_judged_as_by_serde_json(
        document in documents(),
        place in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"\"\\{}[]:,0-.eutn \n\t\0\x1f\x80\xc3\xff".to_vec()),
        cut in any::<bool>(),
    ) {
        let mut text = document.compact().into_bytes();
        let place = place.index(text.len());
        if cut { text.truncate(place); } else { text[place] = byte; }
        let (_, result) = filtered(&text, &[usize::MAX], &["..a"], Format::JsonLines);
        // serde_json does not validate the UTF-8 of skipped values, and accepts empty input.
        let mut stream = serde_json::Deserializer::from_slice(&text).into_iter::<IgnoredAny>();
        let theirs = stream.try_fold(0, |count, value| value.map(|_| count + 1));
        let is_error = !matches!(theirs, Ok(1..)) || str::from_utf8(&text).is_err();
        prop_assert_eq!(result.is_err(), is_error, "{:?}, {:?}", result, theirs);
    }
}
