//! `contend demo`.

use anyhow::Result;

use crate::exit::Exit;
use crate::settings::How;

/// x
pub fn run((_how, _lines): (How, u64)) -> Result<Exit> {
    Ok(Exit::Success)
}
