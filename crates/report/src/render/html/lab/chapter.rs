//! What a suite says about its source document: which conclusions hold, and what the figures mean.

use contend_record::lab::RunRecord;
use maud::{Markup, html};

use crate::render::lab::chapter::content;
use crate::render::lab::source;
use crate::render::text::printable;

/// Width for which tables in text would be rendered, which a page does not have.
const WIDTH: usize = 120;

/// Returns the sections of the record's chapter; none if it has no chapter, or has measured nothing for it.
pub(super) fn sections(record: &RunRecord) -> Vec<(String, Markup)> {
    let Some(chapter) = record.chapter else { return Vec::new() };
    let Some(content) = content(chapter, record, WIDTH) else { return Vec::new() };
    let mut sections = Vec::new();
    let source = source::of(chapter);
    if !content.conclusions.is_empty() {
        let judged =
            content.conclusions.iter().map(|conclusion| (conclusion, (conclusion.judge)(record)));
        let list = html! {
            p { (source.citation()) }
            @for (conclusion, (verdict, evidence)) in judged {
                article {
                    h3 { (conclusion.letter) ". " (verdict.sentence()) }
                    p { (conclusion.claim) "." }
                    p { (printable(&evidence)) }
                }
            }
            @if !content.note.is_empty() { p.method { (content.note) } }
        };
        sections.push(("Which conclusions hold here".to_owned(), list));
    }
    if !content.meaning.is_empty() {
        let list =
            html! { ul { @for sentence in &content.meaning { li { (printable(sentence)) } } } };
        sections.push(("What this means".to_owned(), list));
    }
    sections
}
