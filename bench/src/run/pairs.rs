//! placeholder
use anyhow::Result;
use std::path::Path;
/// x
pub fn check(_: &Path, _: u64, _: usize, _: impl Fn(&str)) -> Result<usize> {
    Ok(0)
}
