//! Family `server`: many connections, served by processes, threads, callback threads or tasks.

mod http;
mod models;
mod own;
mod table;

pub use self::own::{VERB, serve};
use crate::experiment::SubjectError;

fn wrong(message: impl Into<String>) -> SubjectError {
    SubjectError::Wrong(message.into())
}
