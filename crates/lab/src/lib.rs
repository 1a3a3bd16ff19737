//! Experiments on what concurrency costs, and the engine that runs them.
//!
//! An experiment is one file in [`experiments`] and one row of its table. The engine asks
//! each for its cases ([`plan`]), gives every case a fresh process ([`isolate`], [`serve`]),
//! and takes samples of all of them in turn until they are good enough or the time is used
//! ([`runner`]). What comes out is a [`contend_record::lab::RunRecord`].

mod calls;
pub mod experiment;
pub mod experiments;
mod files;
mod histogram;
pub mod inputs;
pub mod isolate;
pub mod limits;
pub mod noise;
mod pair;
pub mod plan;
pub mod programs;
pub mod protocol;
pub mod runner;
pub mod sampling;
pub mod serve;
pub mod setting;
pub mod suites;
pub mod timing;
pub mod tree;
mod work;
