//! The same pipeline over parts of its input at the same time, with the same bytes.
//!
//! - [`plan`]: from stages to a plan. It knows no process and no machine.
//! - [`execute`]: carrying out a plan with processes of this machine.

pub mod execute;
pub mod plan;
