//! The page around the figures of a record: one file that needs nothing else.
//!
//! The record is part of the page, so that programs can read it from there ([`embedded_record`]). The page's
//! policy (CSP) permits its own script and style sheet by their hashes, and nothing from elsewhere.

use std::fmt::Write as _;

use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::chart::Colour;
use super::command::CommandLine;
use super::prose;
use super::table::Table;
use crate::render::advice::pasted;
use crate::render::text::printable;

/// The style sheet of every page.
pub const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Start tag of the element with the record.
const RECORD_TAG: &str = "<script type=\"application/json\" id=\"record\">";
const RECORD_END: &str = "</script>";
/// Text between the head and the body. Texts of a record are escaped, so that its first occurrence is this one.
const BODY_START: &str = "</head><body>";

/// A chart with everything that belongs to it.
#[derive(Debug)]
pub(super) struct Figure {
    pub title: String,
    /// Meaning of the colours.
    pub legend: Vec<(Colour, String)>,
    pub chart: Markup,
    /// The figures of the chart.
    pub table: Table,
    /// How they were measured, in a sentence.
    pub method: String,
}

/// A page about one record.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The measured subject, such as a command line.
    pub subject: &'a str,
    /// Kind of the record, such as `pipe`.
    pub kind: &'static str,
    /// Facts about the run, each in a few words.
    pub facts: Vec<String>,
    /// The result: a short paragraph.
    pub result: Markup,
    /// Sections with headings, in order.
    pub sections: Vec<(String, Markup)>,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// The machine, contend, and when the record was made.
    pub origin: Vec<(&'static str, String)>,
    /// The record as JSON.
    pub record: String,
}

impl Figure {
    /// Renders the figure. Its table is folded.
    pub(super) fn markup(&self) -> Markup {
        html! {
            figure {
                figcaption { (self.title) }
                @if !self.legend.is_empty() {
                    ul.legend { @for (colour, name) in &self.legend { li { span class={ "key " (colour.class()) } {} (name) } } }
                }
                (self.chart)
                p.readout aria-live="polite" {}
                @if !self.table.is_empty() {
                    details { summary { "Table" } (self.table.markup(&self.title)) }
                }
                p.method { (prose(&self.method)) }
            }
        }
    }
}

impl Page<'_> {
    /// Renders the whole page.
    pub(super) fn render(&self) -> String {
        let title = format!("{} – contend {}", short(self.subject), self.kind);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    (policy_element())
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content={ "contend " (env!("CARGO_PKG_VERSION")) };
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        p.kind { "contend " (self.kind) }
                        h1 { code dir="auto" { (printable(self.subject)) } }
                        ul.facts { @for fact in &self.facts { li { (fact) } } }
                    }
                    main {
                        div.result { (self.result) }
                        @for warning in &self.warnings { p.warning { strong { "Warning: " } (prose(warning)) } }
                        @for (heading, content) in &self.sections {
                            section { h2 { (heading) } (content) }
                        }
                    }
                    footer {
                        dl { @for (name, value) in &self.origin { dt { (name) } dd { (printable(value)) } } }
                    }
                    (PreEscaped(RECORD_TAG)) (PreEscaped(escaped(&self.record))) (PreEscaped(RECORD_END))
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        // No text, wherever it comes from, hides characters. Lines of the style sheet, of the script and of
        // commands remain, and so do tabs in commands, which can be pasted.
        let page = page.into_string();
        let visible = |line: &str| line.split('\t').map(printable).collect::<Vec<_>>().join("\t");
        page.split('\n').map(visible).collect::<Vec<_>>().join("\n")
    }
}

/// Renders the command line that makes the record again, and names the options that it lacks.
pub(super) fn made_with(command: &CommandLine) -> Markup {
    html! {
        p.again {
            (command.label()) ": " code { (pasted(&command.text)) }
            @if let Some(note) = command.note() { " " (note) }
        }
    }
}

/// Returns the record in a page that this module has made, as JSON; `None` for another page.
pub fn embedded_record(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once(RECORD_TAG)?;
    rest.split_once(RECORD_END).map(|(record, _)| record)
}

/// Returns a page that this module has made in the form in which a server sends it: with `head` at the end of
/// its head, `bar` at the beginning of its body, and without its policy. The server sends a policy in a header
/// instead, which has to permit [`style_source`] and [`script_source`].
pub fn served(page: &str, head: &Markup, bar: &Markup) -> String {
    let start = format!("{}{BODY_START}{}", head.0, bar.0);
    page.replacen(&policy_element().into_string(), "", 1).replacen(BODY_START, &start, 1)
}

/// Escapes JSON so that no string in it ends the element, begins a comment in it, or changes the direction of
/// writing. The result is JSON with the same values.
fn escaped(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut out, character| {
        match character {
            '<' | '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
        out
    })
}

fn policy_element() -> Markup {
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        style_source(),
        script_source()
    );
    html! { meta http-equiv="Content-Security-Policy" content=(policy); }
}

/// Returns the source that permits the style sheet of every page in a policy (CSP): its hash.
pub fn style_source() -> String {
    hash(STYLE)
}

/// Returns the source that permits the script of every page in a policy (CSP): its hash.
pub fn script_source() -> String {
    hash(SCRIPT)
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
}

/// Shortens a subject for the title of the browser's window.
fn short(subject: &str) -> String {
    crate::render::layout::cut(&printable(subject), 60)
}

#[cfg(test)]
mod tests {
    use super::super::command::Purpose;
    use super::*;

    fn empty_page() -> Page<'static> {
        Page {
            subject: "",
            kind: "pipe",
            facts: Vec::new(),
            result: html! {},
            sections: Vec::new(),
            warnings: Vec::new(),
            origin: Vec::new(),
            record: "{}".to_owned(),
        }
    }

    fn page(subject: &str, record: &str) -> String {
        let page = Page {
            subject,
            warnings: vec![subject.to_owned()],
            origin: vec![("Machine", subject.to_owned())],
            record: record.to_owned(),
            ..empty_page()
        };
        page.render()
    }

    #[test]
    fn the_record_can_be_read_from_the_page() {
        let record = r#"{"command":"echo '</script><!-- \" & \u2028'","n":[1,2.5]}"#;
        let page = page("x", record);
        let found = embedded_record(&page).expect("a record");
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(parse(found), parse(record));
        assert_eq!(embedded_record("<!doctype html><p>no record"), None);
    }

    #[test]
    fn nothing_of_a_record_is_markup() {
        for hostile in
            ["<script>alert(1)</script>", "\"onload=\"alert(1)", "</title><b>", "\u{202e}abc"]
        {
            let page = page(hostile, &serde_json::to_string(hostile).expect("JSON"));
            assert_eq!(page.matches("<script").count(), 2, "{hostile}");
            assert!(!page.contains("<b>") && !page.contains("\"onload=\""), "{hostile}");
            assert!(!page.contains('\u{202e}'), "{hostile}");
        }
    }

    #[test]
    fn a_served_page_has_a_bar_and_no_policy_of_its_own() {
        let page = page("</head><body>", "{}");
        let served = served(&page, &html! { link rel="icon"; }, &html! { nav { "bar" } });
        assert!(!served.contains("Content-Security-Policy"));
        assert!(
            served.contains("<link rel=\"icon\"></head><body><nav>bar</nav><header>"),
            "{served}"
        );
        assert_eq!(served.matches("<nav>").count(), 1);
        assert_eq!(embedded_record(&served), Some("{}"));
    }

    #[test]
    fn a_command_can_be_pasted() {
        let text = "contend pipe 'cut -d\t <a\nsort'".to_owned();
        let mut command = CommandLine { text, purpose: Purpose::Comparison };
        let page =
            |command: &CommandLine| Page { result: made_with(command), ..empty_page() }.render();
        let shown = ">Command: <code>contend pipe 'cut -d\t &lt;a\nsort'</code></p>";
        assert!(page(&command).contains(shown), "{}", page(&command));
        command.purpose = Purpose::Measurement { unrecorded: &["--stdin", "--setup"] };
        let note = "</code> Options that the record does not keep, such as --stdin or --setup, are missing.</p>";
        assert!(page(&command).contains("To measure again: <code>contend pipe"));
        assert!(page(&command).contains(note), "{}", page(&command));
    }

    #[test]
    fn the_page_is_small_and_loads_nothing() {
        assert!(SCRIPT.len() < 10_000, "{}", SCRIPT.len());
        let page = page("x", "{}");
        for loader in ["src=", "href=", "url(", "@import", "fetch(", "http://", "https://"] {
            assert!(!page.contains(loader), "{loader}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}
