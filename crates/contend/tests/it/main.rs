//! Tests that run the real executable.

mod advice;
mod attach;
mod awk;
mod bytes;
mod cli;
mod cluster;
mod compare;
mod control_group;
mod deadline;
mod doctor;
mod doctor_try;
mod exports;
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
#[cfg(feature = "object-store")]
mod objects;
mod report;
mod rewrites;
mod run;
mod run_options;
mod semantics;
mod serve;
mod signals;
mod stdout;
#[path = "../support/mod.rs"]
mod support;
mod symptom_pages;
mod terminal;
mod trace;
mod users;
mod versus;
mod waits;
mod watch;
