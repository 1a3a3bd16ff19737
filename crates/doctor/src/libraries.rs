//! Finds the libraries of a process that determine which remedies have an effect: dynamically linked
//! ones by its map of memory, others by the names of environment variables in its executable.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use contend_record::remedy::Library;
use contend_sys::Pid;
use memchr::memmem::Finder;

/// Dynamically linked libraries by the start of the name of their file.
const BY_FILE: &[(&str, Library)] = &[
    ("libc.so.6", Library::Glibc),
    ("libc-2.", Library::Glibc),
    ("ld-musl-", Library::Musl),
    ("libgomp", Library::Openmp),
    ("libomp", Library::Openmp),
    ("libiomp", Library::Openmp),
    ("libopenblas", Library::Openblas),
    // As the wheels of NumPy and SciPy have it.
    ("libscipy_openblas", Library::Openblas),
    ("libmkl_", Library::Mkl),
    ("libjemalloc", Library::Jemalloc),
    ("libmimalloc", Library::Mimalloc),
    ("libtcmalloc", Library::Tcmalloc),
];

/// Statically linked libraries by the name of the environment variable that they read. The compiler may
/// store the last character apart from the others.
const BY_VARIABLE: &[(&str, Library)] = &[
    ("RAYON_NUM_THREAD", Library::Rayon),
    ("TOKIO_WORKER_THREAD", Library::Tokio),
    ("OMP_NUM_THREADS", Library::Openmp),
    ("OPENBLAS_NUM_THREADS", Library::Openblas),
];

/// Size of the largest executable that is searched, in bytes.
const MAX_EXECUTABLE_BYTES: u64 = 256 << 20;

/// The libraries of a process that were found so far.
#[derive(Debug, Clone, Default)]
pub struct Libraries {
    found: Option<BTreeSet<Library>>,
    program: Option<PathBuf>,
    /// Number of calls of [`Self::update`].
    updates: u32,
}

impl Libraries {
    /// Reads the map of a process's memory in some of the calls, among them the first one: a process may
    /// load libraries at any time, but most do so at their start, and a reading of a large map takes as
    /// long as hundreds of samples.
    pub fn update(&mut self, process: Pid) {
        self.updates += 1;
        if self.updates.is_power_of_two() {
            self.read(process);
        }
    }

    fn read(&mut self, process: Pid) {
        let folder = format!("/proc/{}", process.as_raw_nonzero());
        if let Ok(maps) = fs::read_to_string(format!("{folder}/maps"))
            && !maps.is_empty()
        {
            self.found.get_or_insert_default().extend(in_maps(&maps));
        }
        self.program = fs::read_link(format!("{folder}/exe")).ok().or(self.program.take());
    }

    /// Adds the libraries that are linked statically into the executable. Reads the whole file.
    pub fn search_executable(&mut self) {
        if let (Some(found), Some(program)) = (&mut self.found, &self.program) {
            // A file that cannot be read, such as one that was replaced, has no libraries.
            found.extend(in_executable(program).unwrap_or_default());
        }
    }

    /// Returns the libraries; `None` if the map of memory may not be read.
    pub fn found(&self) -> Option<Vec<Library>> {
        self.found.as_ref().map(|found| found.iter().copied().collect())
    }
}

/// Returns the libraries in the text of `/proc/PID/maps`.
fn in_maps(maps: &str) -> BTreeSet<Library> {
    let mut found = BTreeSet::new();
    let mut last = "";
    for line in maps.lines() {
        let Some((folder, name)) = line.rsplit_once('/') else { continue };
        if name == last {
            continue; // several ranges of one file
        }
        last = name;
        // The library of musl is also its loader, of which Debian has the name as a link.
        found.extend(folder.ends_with("-linux-musl").then_some(Library::Musl));
        let known = BY_FILE.iter().filter(|(start, _)| name.starts_with(start));
        found.extend(known.map(|(_, library)| *library));
        found.extend(is_free_threaded(name).then_some(Library::FreeThreadedPython));
    }
    found
}

/// Returns whether a file is the program or the library of a `CPython` without a global interpreter
/// lock, such as `python3.13t`.
fn is_free_threaded(name: &str) -> bool {
    let version = name.strip_prefix("libpython").or(name.strip_prefix("python"));
    version.is_some_and(|version| {
        let rest = version.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        version.starts_with("3.") && (rest == "t" || rest.starts_with("t.so"))
    })
}

/// Returns the libraries whose variables an executable names.
fn in_executable(program: &Path) -> io::Result<BTreeSet<Library>> {
    const BLOCK_BYTES: usize = 1 << 20;
    let file = File::open(program)?;
    if file.metadata()?.len() > MAX_EXECUTABLE_BYTES {
        return Ok(BTreeSet::new());
    }
    let finders: Vec<(Finder<'_>, Library)> =
        BY_VARIABLE.iter().map(|(name, library)| (Finder::new(name), *library)).collect();
    let longest = BY_VARIABLE.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut found = BTreeSet::new();
    let mut block = Vec::with_capacity(BLOCK_BYTES + longest);
    loop {
        // A name may begin at the end of the block before.
        let kept = block.len().min(longest);
        block.drain(..block.len() - kept);
        let count = (&file).take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
        if count == 0 {
            return Ok(found);
        }
        let named = finders.iter().filter(|(finder, _)| finder.find(&block).is_some());
        found.extend(named.map(|(_, library)| *library));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn dynamically_linked_libraries_are_found_by_their_files() {
        let maps = "\
7f00-7f01 r--p 00000000 08:01 1 /usr/lib/x86_64-linux-gnu/libc.so.6
7f01-7f02 r-xp 00001000 08:01 1 /usr/lib/x86_64-linux-gnu/libc.so.6
7f02-7f03 r-xp 00000000 08:01 2 /opt/numpy.libs/libscipy_openblas64_-6bb31eeb.so
7f03-7f04 r-xp 00000000 08:01 3 /usr/lib/libgomp.so.1.0.0
7f04-7f05 r-xp 00000000 08:01 4 /usr/bin/python3.13t
7f05-7f06 rw-p 00000000 00:00 0 [heap]
7f06-7f07 rw-p 00000000 00:00 0
";
        let expected =
            [Library::Glibc, Library::Openmp, Library::Openblas, Library::FreeThreadedPython];
        assert_eq!(in_maps(maps), BTreeSet::from(expected));
        for name in ["/lib/ld-musl-x86_64.so.1", "/usr/lib/x86_64-linux-musl/libc.so"] {
            let maps = format!("7f00-7f01 r-xp 00000000 08:01 1 {name}\n");
            assert_eq!(in_maps(&maps), BTreeSet::from([Library::Musl]));
        }
        assert!(in_maps("55-56 r-xp 00000000 08:01 1 /usr/bin/ld-linux\n").is_empty());
    }

    #[test]
    fn builds_without_an_interpreter_lock_have_a_t_in_their_name() {
        assert!(is_free_threaded("python3.13t") && is_free_threaded("libpython3.14t.so.1.0"));
        for name in ["python3.13", "libpython3.13.so.1.0", "python3-config", "pythontest", "t"] {
            assert!(!is_free_threaded(name), "{name}");
        }
    }

    #[test]
    fn statically_linked_libraries_are_found_by_their_variables() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        // The name lies across the boundary of two blocks.
        let before = vec![b'x'; (1 << 20) - 5];
        file.write_all(&before).and_then(|()| file.write_all(b"RAYON_NUM_THREADS")).expect("room");
        assert_eq!(in_executable(file.path()).expect("a file"), BTreeSet::from([Library::Rayon]));
        assert!(in_executable(Path::new("/no/such/file")).is_err());
    }

    #[test]
    fn libraries_of_this_process_are_found() {
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("a process id");
        let mut libraries = Libraries::default();
        libraries.update(own);
        libraries.search_executable();
        let found = libraries.found().expect("its own map");
        let is_dynamic = cfg!(target_env = "gnu") && !cfg!(target_feature = "crt-static");
        assert!(found.contains(&Library::Glibc) == is_dynamic, "{found:?}");
        assert!(found.contains(&Library::Rayon), "the table in this file has the name");
    }
}
