//! Random scripts that use the shell's features, run with bash and with `contend run`.
//!
//! A script and its setting are generated from a seed and a number ([`generate`]). The script runs
//! in a fresh folder, as text and as a file, with bash, with `contend run`, and with `contend run`
//! forced to use many chunks ([`check`]). Processes left behind are killed ([`run`]). Outcomes are
//! compared ([`compare`]), and a script on which they differ is shrunk ([`shrink`]).

pub mod check;
pub mod compare;
pub mod features;
pub mod files;
pub mod generate;
pub mod grammar;
pub mod published;
pub mod report;
pub mod run;
pub mod shrink;

#[cfg(test)]
mod tests;
