//! Experiments on what concurrency costs, and the engine that runs them.
//!
//! An experiment is one file in [`experiments`] and one row of its table. The engine asks
//! each for its cases ([`engine::plan`]), gives every case a fresh process ([`engine::isolate`],
//! [`engine::serve`]), and takes samples of all of them in turn until they are good enough or the
//! time is used ([`engine::runner`]). What comes out is a [`contend_record::lab::RunRecord`].

pub mod engine;
pub mod experiments;
pub mod support;
