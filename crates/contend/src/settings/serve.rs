//! Settings of `contend serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use super::{publish_directory, store};
use crate::cli::serve::ServeArgs;

/// Settings of `contend serve`.
#[derive(Debug)]
pub struct Serve {
    /// Address at which to listen; port 0 means a free port.
    pub address: SocketAddr,
    /// Path of the store, which need not exist.
    pub store: PathBuf,
    /// Directory in which runs publish their progress; `None` if it is unknown.
    pub live: Option<PathBuf>,
    /// Whether to open the page in the browser.
    pub opens: bool,
}

/// Returns the settings of `contend serve`.
///
/// # Errors
/// Returns a [`UsageError`](crate::exit::UsageError) if the store's directory is unknown.
pub fn serve(args: ServeArgs) -> Result<Serve> {
    let (address, opens) = (args.address(), args.open);
    Ok(Serve { address, store: store(args.store)?, live: publish_directory(), opens })
}
