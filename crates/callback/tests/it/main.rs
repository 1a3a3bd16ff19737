//! The runtime as its users see it.

mod corners;
mod io;
mod patterns;
mod runtime;
mod support;
mod waiting;
