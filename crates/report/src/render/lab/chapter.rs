//! Renders the chapter of a suite: the source document and its conclusions, then the meaning of the
//! run's measurements, and then the tables that compare the measurements with the document.

use std::fmt::Write as _;

use contend_record::lab::{Chapter, RunRecord, View};

use super::super::layout::{BOLD, dimmed, paragraph};
use super::conclusion::{self, Conclusion};
use super::{
    Detail, disturbance, pipeline, process_thread, runtimes, shared_memory, source, synchronisation,
};

/// Contents of a suite's chapter about a run.
#[derive(Default)]
pub struct Content {
    /// The conclusions of the source document; empty if the run has no measurements to judge them
    /// by.
    pub conclusions: &'static [Conclusion],
    /// A sentence about how the conclusions are judged; may be empty.
    pub note: &'static str,
    /// The meaning of the measurements, in at most five sentences.
    pub meaning: Vec<String>,
    /// Rendered tables of the run's measurements, most of them next to the document's, each with
    /// its notes.
    pub tables: Vec<String>,
    /// Rendered tables that only a full report shows.
    pub details: Vec<String>,
    /// Views whose cases the tables show completely, so a full report does not repeat them.
    pub complete: &'static [View],
}

/// Returns the contents of a chapter, or `None` if the run has measured nothing that the chapter
/// compares.
pub fn content(chapter: Chapter, record: &RunRecord, width: usize) -> Option<Content> {
    match chapter {
        Chapter::ProcessThread => process_thread::chapter(record, width),
        Chapter::Pipeline => pipeline::chapter(record, width),
        Chapter::Synchronisation => synchronisation::chapter(record, width),
        Chapter::Runtimes => runtimes::chapter(record, width),
        Chapter::SharedMemory => shared_memory::chapter(record, width),
    }
}

/// Renders a chapter with the given amount of detail, wrapped to `width` columns. The tables must
/// have been rendered for the same width.
pub fn render(
    content: &Content,
    chapter: Chapter,
    record: &RunRecord,
    detail: Detail,
    width: usize,
) -> String {
    let mut out = String::new();
    paragraph(&mut out, "", &source::of(chapter).citation(), width);
    if !content.conclusions.is_empty() {
        let is_busy = disturbance::is_prevalent(record);
        let here = if is_busy { "here, on a busy machine" } else { "here" };
        let _ = writeln!(out, "\n{BOLD}Which conclusions hold {here}{BOLD:#}");
        out.push_str(&conclusion::list(content.conclusions, record, width));
        if !content.note.is_empty() {
            dimmed(&mut out, content.note, width);
        }
    }
    if !content.meaning.is_empty() {
        let _ = writeln!(out, "\n{BOLD}What this means{BOLD:#}");
        for sentence in &content.meaning {
            paragraph(&mut out, "- ", sentence, width);
        }
    }
    let details = content.details.iter().filter(|_| detail == Detail::Full);
    let tables: Vec<&str> = content.tables.iter().chain(details).map(String::as_str).collect();
    if !tables.is_empty() {
        let _ = writeln!(out, "\n{BOLD}Comparison{BOLD:#}");
        out.push_str(&tables.join("\n"));
    }
    out
}
