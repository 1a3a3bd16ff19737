//! Finds memory allocators that can be loaded before a program, in the folders that the dynamic loader
//! searches.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use contend_record::remedy::Library;

/// Allocators by the start of the name of their file, in the order in which they are tried.
const ALLOCATORS: [(&str, Library); 4] = [
    ("libjemalloc.so", Library::Jemalloc),
    ("libmimalloc.so", Library::Mimalloc),
    ("libtcmalloc_minimal.so", Library::Tcmalloc),
    ("libtcmalloc.so", Library::Tcmalloc),
];
/// Folders that the loader searches without configuration.
const DEFAULT_FOLDERS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// The configuration of the loader, which usually includes the files in a folder.
const CONFIGURATION: &str = "/etc/ld.so.conf";
/// Depth to which files of the configuration may include others.
const MAX_INCLUDES: usize = 3;

/// Returns one file for each allocator that is installed for programs of the machine's usual kind.
pub fn allocators() -> Vec<(Library, PathBuf)> {
    in_folders(&folders(Path::new(CONFIGURATION)))
}

fn in_folders(folders: &[PathBuf]) -> Vec<(Library, PathBuf)> {
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for folder in folders {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        files.extend(entries.map(|entry| entry.path()).filter(|path| start_of(path).is_some()));
    }
    let mut found: Vec<(Library, PathBuf)> = Vec::new();
    for (start, library) in ALLOCATORS {
        let mut of_this = files.iter().filter(|path| start_of(path) == Some(start));
        if found.iter().all(|(known, _)| *known != library)
            && let Some(path) = of_this.find(|path| is_loadable(path))
        {
            found.push((library, path.clone()));
        }
    }
    found
}

/// Returns the start of the name of an allocator's file; `None` for other files.
fn start_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    ALLOCATORS.iter().map(|(start, _)| *start).find(|start| name.starts_with(start))
}

/// Returns whether a file is a shared object for the same kind of machine as this program.
fn is_loadable(path: &Path) -> bool {
    let own = header(Path::new("/proc/self/exe"));
    own.is_some() && header(path) == own
}

/// Returns the class, the byte order and the machine in the header of an ELF file.
fn header(path: &Path) -> Option<[u8; 4]> {
    let mut start = [0; 20];
    File::open(path).ok()?.read_exact(&mut start).ok()?;
    start.starts_with(b"\x7fELF").then_some([start[4], start[5], start[18], start[19]])
}

/// Returns the folders in the loader's configuration, then those that it searches anyway.
fn folders(configuration: &Path) -> Vec<PathBuf> {
    let mut folders = configured(configuration, MAX_INCLUDES);
    folders.extend(DEFAULT_FOLDERS.map(PathBuf::from));
    folders
}

fn configured(file: &Path, includes: usize) -> Vec<PathBuf> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        match line.strip_prefix("include ") {
            Some(_) if includes == 0 => {}
            Some(pattern) => {
                // In practice, a pattern is all files of a folder that end in `.conf`.
                let included = Path::new(pattern.trim()).parent().map(fs::read_dir);
                let entries = included.into_iter().flatten().flatten().flatten();
                let mut files: Vec<PathBuf> = entries
                    .map(|entry| entry.path())
                    .filter(|path| path.extension().is_some_and(|end| end == "conf"))
                    .collect();
                files.sort();
                folders.extend(files.iter().flat_map(|file| configured(file, includes - 1)));
            }
            None if line.starts_with('/') => folders.push(line.into()),
            None => {}
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_the_loader_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("conf.d")).expect("room");
        let include = format!("include {}/*.conf\n# /comment\n/first\n", path("conf.d").display());
        fs::write(path("ld.so.conf"), include).expect("room");
        fs::write(path("conf.d/b.conf"), "/second # why\n").expect("room");
        fs::write(path("conf.d/a.conf"), "/third\n").expect("room");
        fs::write(path("conf.d/readme"), "/no\n").expect("room");
        let expected: Vec<PathBuf> =
            ["/third", "/second", "/first"].into_iter().map(PathBuf::from).collect();
        assert_eq!(configured(&path("ld.so.conf"), 1), expected);
        assert!(folders(Path::new("/no/such/file")).contains(&PathBuf::from("/usr/lib")));
    }

    #[test]
    fn one_loadable_file_of_each_allocator_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["libjemalloc.so.2", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4"] {
            std::os::unix::fs::symlink("/proc/self/exe", path(name)).expect("room");
        }
        fs::write(path("libmimalloc.so.2"), "not a library").expect("room");
        fs::write(path("libjemalloc.a"), "").expect("room");
        let found = in_folders(&[folder.path().to_owned(), "/no/such/folder".into()]);
        let expected = vec![
            (Library::Jemalloc, path("libjemalloc.so.2")),
            (Library::Tcmalloc, path("libtcmalloc_minimal.so.4")),
        ];
        assert_eq!(found, expected);
    }
}
