//! Family `pipeline`: a study of pipelines in the shell, rebuilt.

pub mod awk;
mod filter;
mod hold;
mod json;
mod sed;
mod stages;
mod startup;
mod subject;

pub use filter::EXPERIMENT as FILTER;
pub use hold::EXPERIMENT as HOLD;
pub use json::EXPERIMENT as JSON;
pub use sed::EXPERIMENT as SED;
pub use startup::EXPERIMENT as STARTUP;
