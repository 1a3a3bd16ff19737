//! Integration tests of the runtime's public API.

mod corners;
mod io;
mod patterns;
mod runtime;
mod support;
mod waiting;
