//! Tests of the crate's public interface.

mod collection;
mod evaluator;
mod limits;

use std::io::{self, Read};

use contend_json::error::FilterError;
use contend_json::format::Format;
use contend_json::path::Query;

const FORMATS: [Format; 3] = [Format::PathValue, Format::Assignments, Format::JsonLines];

/// A reader that returns the input in pieces. Their sizes repeat those in `sizes` cyclically.
struct Pieces<'a> {
    input: &'a [u8],
    sizes: &'a [usize],
    reads: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.reads % self.sizes.len()];
        let size = size.min(self.input.len()).min(buffer.len());
        self.reads += 1;
        let (piece, rest) = self.input.split_at(size);
        buffer[..size].copy_from_slice(piece);
        self.input = rest;
        Ok(size)
    }
}

/// Filters an input that arrives in reads of the given sizes. Returns the output and the result.
fn filtered(
    input: &[u8],
    sizes: &[usize],
    paths: &[&str],
    format: Format,
) -> (String, Result<(), FilterError>) {
    let query = Query::parse(paths.iter().copied()).expect("paths");
    let mut output = Vec::new();
    let mut reader = Pieces { input, sizes, reads: 0 };
    let result = contend_json::filter(&mut reader, &mut output, &query, format);
    (String::from_utf8(output).expect("UTF-8"), result)
}

/// Returns the output for valid input.
fn printed(input: &str, paths: &[&str], format: Format) -> String {
    let (output, result) = filtered(input.as_bytes(), &[usize::MAX], paths, format);
    result.expect("JSON");
    output
}

/// Returns the error message for invalid input.
fn refused(input: &[u8]) -> String {
    let (_, result) = filtered(input, &[usize::MAX], &["."], Format::JsonLines);
    result.expect_err("not JSON").to_string()
}
