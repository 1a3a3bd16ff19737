//! Installed programs that experiments start.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Returns the path of the first executable file `name` in the directories of `PATH`, or `None` if
/// there is none.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

/// Returns a message that names the first of the programs `names` that is not installed, or `None`
/// if all are.
pub fn missing<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let missing = names.into_iter().find(|name| find(name).is_none())?;
    Some(format!("{missing} is not installed"))
}
