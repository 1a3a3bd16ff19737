//! Tests that run the real executable.

mod advice;
mod attach;
mod awk;
mod bytes;
mod cli;
mod compare;
mod deadline;
mod doctor;
mod doctor_try;
mod figures;
mod history;
mod inherited;
mod input;
mod json;
mod lab;
mod lab_pipeline;
mod lab_programs;
mod lab_runtimes;
mod lab_server;
mod lab_shared_memory;
mod lab_synchronisation;
mod rewrites;
mod run;
mod run_options;
mod semantics;
mod signals;
mod stdout;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod trace;
mod users;
mod versus;
mod waits;
mod watch;
