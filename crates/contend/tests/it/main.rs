//! Tests on the real executable.

mod cli;
mod figures;
mod input;
mod semantics;
mod signals;
mod support;
mod terminal;
mod users;
