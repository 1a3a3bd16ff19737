//! Extracts the texts of the repository: comments, strings, labels and pages.

use std::path::Path;

use super::super::Source;
use super::super::literals::literals;
use super::super::names::{is_of_tests, test_files};

/// Pages and sources that quote phrases in order to forbid them.
const EXEMPT: &[&str] =
    &["docs/GLOSSARY.md", "docs/STYLE.md", "xtask/src/check/language/phrases.rs"];

/// Names of derived traits for which clap prints the doc comments of a type as help.
const HELP_TRAITS: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Minimum number of words in a sentence. A shorter string is a label.
const SENTENCE_WORDS: usize = 3;

/// The origin of a text, which determines the limit for its density of phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Comments,
    /// Strings of one or two words, which are often identifiers.
    Labels,
    Page,
    /// Strings of three words or more outside of tests, and help texts.
    Strings,
}

/// A text with its location.
#[derive(Debug)]
pub struct Text<'a> {
    /// The folder of a package, such as `crates/lab`, or the path of a page.
    pub package: String,
    pub kind: Kind,
    pub path: &'a Path,
    /// The number of the first line, from 1.
    pub line: usize,
    /// The text without comment markers, with the line breaks of the source.
    pub content: String,
    /// Whether the text is a doc comment.
    pub is_doc: bool,
}

impl Text<'_> {
    /// Returns the text with each span of quoted code replaced by an ellipsis. Line breaks are kept.
    pub fn prose(&self) -> String {
        without_code(&self.content)
    }
}

/// Returns the texts of all given sources and pages that are not exempt.
pub fn texts<'a>(code: &'a [Source], pages: &'a [Source]) -> Vec<Text<'a>> {
    let tests = test_files(code);
    let mut texts = Vec::new();
    for source in code.iter().filter(|source| is_counted(source)) {
        match source.path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => {
                texts.extend(rust_comments(source));
                if !is_of_tests(&source.path, &tests) {
                    texts.extend(strings(source));
                }
            }
            _ => texts.extend(script_comments(source)),
        }
    }
    texts.extend(pages.iter().filter(|page| is_counted(page)).map(page));
    texts
}

fn is_counted(source: &Source) -> bool {
    !EXEMPT.iter().any(|path| source.path == Path::new(path))
}

/// Returns a text with its quoted code, `` `such as this` ``, replaced by an ellipsis. Line breaks
/// remain.
fn without_code(text: &str) -> String {
    let (mut prose, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('`') {
        prose.push_str(before);
        rest = after;
        if let Some((code, after)) = after.split_once('`')
            && !code.contains("\n\n")
        {
            prose.push('…');
            prose.extend(code.matches('\n'));
            rest = after;
        }
    }
    prose + rest
}

/// Counts the words of a text. Only words with an ASCII letter count.
pub fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.bytes().any(|b| b.is_ascii_alphabetic())).count()
}

/// A line of a comment, split into marker and content.
struct CommentLine<'a> {
    number: usize,
    marker: &'static str,
    content: &'a str,
    is_help: bool,
}

/// Returns the comments of a Rust source that have lines of their own. Adjacent lines with the same
/// marker are one text; examples of code are left out.
fn rust_comments(source: &Source) -> Vec<Text<'_>> {
    let help = help_lines(&source.text);
    let lines = source.text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.trim_start();
        let marker = ["///", "//!", "//"].into_iter().find(|marker| line.starts_with(marker))?;
        let is_help = help[index] && marker == "///";
        Some(CommentLine { number: index + 1, marker, content: &line[marker.len()..], is_help })
    });
    blocks(source, lines)
}

/// Joins adjacent lines of comments with the same marker.
fn blocks<'a>(source: &'a Source, lines: impl Iterator<Item = CommentLine<'a>>) -> Vec<Text<'a>> {
    let mut texts: Vec<Text<'_>> = Vec::new();
    let mut last = (0, "");
    let mut in_example = false;
    for CommentLine { number, marker, content, is_help } in lines {
        let continues = last == (number - 1, marker);
        last = (number, marker);
        in_example = in_example && continues;
        let is_fence = content.trim_start().starts_with("```");
        let content = if in_example || is_fence { "" } else { content };
        in_example ^= is_fence;
        match texts.last_mut().filter(|_| continues) {
            Some(text) => {
                text.content.push('\n');
                text.content.push_str(content);
            }
            None => texts.push(Text {
                package: package(&source.path),
                kind: if is_help { Kind::Strings } else { Kind::Comments },
                path: &source.path,
                line: number,
                content: content.to_owned(),
                is_doc: marker != "//" && marker != "#",
            }),
        }
    }
    texts
}

/// Returns for each line whether the line belongs to, or documents, a type that derives one of
/// `HELP_TRAITS`. Relies on rustfmt, which ends such a type with a brace in the first column.
fn help_lines(text: &str) -> Vec<bool> {
    let lines: Vec<_> = text.lines().collect();
    let mut help = vec![false; lines.len()];
    let mut index = 0;
    while index < lines.len() {
        if !derives_help(lines[index]) {
            index += 1;
            continue;
        }
        let mut start = index;
        while start > 0 && lines[start - 1].starts_with("///") {
            start -= 1;
        }
        let length = lines[index..].iter().position(|line| *line == "}" || line.ends_with(';'));
        let end = length.map_or(lines.len(), |length| index + length);
        help[start..end].fill(true);
        index = end;
    }
    help
}

fn derives_help(line: &str) -> bool {
    let derived = line.strip_prefix("#[derive(").and_then(|rest| rest.split(')').next());
    let names = derived.into_iter().flat_map(|names| names.split(", "));
    names.into_iter().any(|name| HELP_TRAITS.contains(&name.trim_start_matches("clap::")))
}

/// Returns the strings of a Rust source outside of tests, including those in attributes.
fn strings(source: &Source) -> impl Iterator<Item = Text<'_>> {
    let strings = literals(&source.text).strings.into_iter();
    strings.filter(|(_, text)| words(text) > 0).map(|(line, text)| Text {
        package: package(&source.path),
        kind: if words(text) < SENTENCE_WORDS { Kind::Labels } else { Kind::Strings },
        path: &source.path,
        line,
        content: text.to_owned(),
        is_doc: false,
    })
}

/// Returns the comments with lines of their own in a source in another language, and the
/// documentation strings of Elixir.
fn script_comments(source: &Source) -> Vec<Text<'_>> {
    let extension = source.path.extension().and_then(|extension| extension.to_str());
    let is_elixir = extension.is_some_and(|extension| extension.starts_with("ex"));
    let marker = if matches!(extension, Some("ex" | "exs" | "sh")) { "#" } else { "//" };
    let mut in_document = false;
    let lines = source.text.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim_start();
        let number = index + 1;
        if is_elixir && line.ends_with("\"\"\"") {
            in_document = !in_document;
            return None;
        }
        let (marker, content) = if in_document {
            ("\"\"\"", line)
        } else {
            (marker, line.strip_prefix(marker).filter(|rest| !rest.starts_with('!'))?)
        };
        Some(CommentLine { number, marker, content, is_help: false })
    });
    blocks(source, lines)
}

/// Returns a page without its blocks of code and output.
fn page(source: &Source) -> Text<'_> {
    let mut in_block = false;
    let lines = source.text.lines().map(|line| {
        let is_fence = line.trim_start().starts_with("```");
        let is_prose = !in_block && !is_fence;
        in_block ^= is_fence;
        if is_prose { line } else { "" }
    });
    Text {
        package: source.path.display().to_string(),
        kind: Kind::Page,
        path: &source.path,
        line: 1,
        content: lines.collect::<Vec<_>>().join("\n"),
        is_doc: false,
    }
}

/// Returns the folder of a source's package, such as `crates/lab` or `bench`.
fn package(path: &Path) -> String {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    let first = parts.next().unwrap_or_default();
    match (first.as_ref(), parts.next()) {
        ("crates", Some(name)) => format!("crates/{name}"),
        _ => first.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<(Kind, usize, String)> {
        let sources = [Source { path: path.into(), text: text.to_owned() }];
        let (code, pages) =
            if path.contains(".md") { (&[][..], &sources[..]) } else { (&sources[..], &[][..]) };
        let found = texts(code, pages).into_iter();
        found.map(|text| (text.kind, text.line, text.content)).collect()
    }

    fn text(kind: Kind, line: usize, content: &str) -> (Kind, usize, String) {
        (kind, line, content.to_owned())
    }

    #[test]
    fn adjacent_lines_of_a_comment_are_one_text() {
        let source =
            "//! Head\n//! of it.\n\n/// One.\n/// ```\n/// code();\n/// ```\nfn f() {}\n// a";
        assert_eq!(
            of("crates/a/src/a.rs", source),
            [
                text(Kind::Comments, 1, " Head\n of it."),
                text(Kind::Comments, 4, " One.\n\n\n"),
                text(Kind::Comments, 9, " a"),
            ]
        );
    }

    #[test]
    fn help_and_attributes_are_strings_and_short_strings_labels() {
        let source = "/// Runs it.\n#[derive(Debug, clap::Args)]\nstruct A {\n    /// The file.\n    \
                      a: u8,\n}\n/// Other.\n#[error(\"cannot read it\")]\nstruct B(\"one\");";
        assert_eq!(
            of("crates/a/src/a.rs", source),
            [
                text(Kind::Strings, 1, " Runs it."),
                text(Kind::Strings, 4, " The file."),
                text(Kind::Comments, 7, " Other."),
                text(Kind::Strings, 8, "cannot read it"),
                text(Kind::Labels, 9, "one"),
            ]
        );
    }

    #[test]
    fn elixir_documents_and_comments_of_scripts_are_counted() {
        let source = "# One\ndefmodule A do\n  @doc \"\"\"\n  Two\n  \"\"\"\n  def a, do: 1\nend";
        assert_eq!(
            of("elixir/lib/a.ex", source),
            [text(Kind::Comments, 1, " One"), text(Kind::Comments, 4, "Two")]
        );
        let found = of("bench/a.sh", "#!/bin/sh\n# One\nb # two");
        assert_eq!(found, [text(Kind::Comments, 2, " One")]);
    }

    #[test]
    fn quoted_code_is_not_counted() {
        assert_eq!(without_code("a `behind` b `c\nd` e `f\n\ng`"), "a … b …\n e f\n\ng");
    }

    #[test]
    fn output_on_pages_is_not_counted() {
        assert_eq!(
            of("a.md", "one\n```\ntwo\n```\nthree"),
            [text(Kind::Page, 1, "one\n\n\n\nthree")]
        );
    }
}
