//! Family `pipeline`: a study of pipelines in the shell, rebuilt.

pub mod awk;
mod buffering;
mod filter;
mod json;
mod sed;
mod stages;
mod startup;
mod subject;

pub use buffering::EXPERIMENT as HOLD;
pub use filter::EXPERIMENT as FILTER;
pub use json::EXPERIMENT as JSON;
pub use sed::EXPERIMENT as SED;
pub use startup::EXPERIMENT as STARTUP;
