//! Experiments that measure the cost of concurrency, and the engine that runs them.
//!
//! An experiment is a constant in a module of [`experiments`] and a row of its table. The engine
//! plans the cases of the chosen experiments ([`engine::plan`]), runs each case in processes of its
//! own ([`engine::isolate`], [`engine::serve`]), and samples the cases in rounds until each has
//! enough samples or the budget is used ([`engine::runner`]). The result is a
//! [`contend_record::lab::RunRecord`].

pub mod engine;
pub mod experiments;
pub mod support;
