//! Random scripts that use the shell's features, run with bash and with `contend run`.
//!
//! A script and its surroundings follow from a seed and a number ([`generate`]). It runs in a fresh
//! folder, as text and as a file, with bash, with `contend run`, and with `contend run` forced to
//! use many parts ([`check`]). What is left behind is killed ([`run`]). Outcomes are compared
//! ([`compare`]); a script on which they differ is made small ([`shrink`]).

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
