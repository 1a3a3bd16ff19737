//! Figures of the source documents, for the cases that reproduce their measurements.

use contend_record::lab::{Case, RunRecord, Unit, View};

use super::{pipeline, process_thread, runtimes, shared_memory, synchronisation};

/// A figure of a source document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reported {
    /// The figure, in the unit of the case.
    pub value: f64,
    /// Short name of the document, and what differs from the measurement, such as `the workshop, CPU time
    /// alone`.
    pub source: &'static str,
}

/// Returns the figure that a source document reports for a case; `None` without a figure.
pub fn reported(record: &RunRecord, case: &Case) -> Option<Reported> {
    let found = match case.view {
        View::PipelineSed | View::PipelineJson | View::PipelineFilter => pipeline::reported(case),
        View::OneByte => shared_memory::reported(case),
        View::Creation => process_thread::reported(case),
        View::HandoffPreset => synchronisation::reported(record, case),
        View::RuntimeDocument => runtimes::reported(case),
        _ => None,
    };
    found.filter(|_| matches!(case.unit, Unit::Nanoseconds | Unit::Bytes))
}
