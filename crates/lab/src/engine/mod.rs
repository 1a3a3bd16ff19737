//! The engine: plans cases, runs each in a process of its own, takes samples and summarises them.

pub mod experiment;
pub mod isolate;
pub mod noise;
pub mod plan;
pub mod protocol;
pub mod runner;
pub mod sampling;
pub mod serve;
pub mod setting;
pub mod timing;
