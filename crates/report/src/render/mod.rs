//! Renders records as tables and documents for people, and as JSON for programs.

mod advice;
pub mod compare;
pub mod doctor;
pub mod history;
pub mod html;
pub mod json;
pub mod lab;
mod layout;
pub mod listing;
pub mod mechanisms;
mod page;
mod picture;
pub mod pipe;
mod remedies;
pub mod run;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
pub mod trace;
pub mod unit_costs;
pub mod units;
pub mod versus;
