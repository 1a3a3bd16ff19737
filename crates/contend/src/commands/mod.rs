//! The verbs: one file each.

pub mod advice;
pub mod compare;
pub mod demo;
pub mod generate;
pub mod history;
pub mod json;
pub mod lab;
pub mod pipe;
pub mod run;

/// UTC, to the second.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
