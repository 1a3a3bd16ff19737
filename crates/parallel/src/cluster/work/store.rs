//! What the machines of a job share if they have a store of objects instead of a directory.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{LOCK, OutputFile, PREFIX, State, Work, attempt_in, log_name};
use crate::objects::{self, Prefix};

/// Number of random characters at the end of a prefix in a store.
const RANDOM_CHARS: usize = 16;
/// Name of the directory for the files of attempts on this machine.
pub(super) const SCRATCH: &str = "scratch";

/// Where work directories are created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The parent directory.
    pub directory: PathBuf,
    /// The name of the prefix, in a store, of what the machines share; `None` if they share the directory.
    pub store: Option<String>,
}

impl Place {
    /// Returns the place with a name: that of a directory, or of a prefix in a store. What a driver needs itself is then in
    /// `directory`, by default the current one.
    pub fn named(name: PathBuf, directory: Option<PathBuf>) -> Self {
        match name.to_str().filter(|name| objects::is_object(name)) {
            Some(prefix) => {
                let directory = directory.unwrap_or_else(|| ".".into());
                Self { directory, store: Some(prefix.to_owned()) }
            }
            None => Self { directory: name, store: None },
        }
    }

    /// Returns a sentence about why this contend can have no work directory here, if that is known without asking.
    pub fn trouble(&self) -> Option<String> {
        let store = self.store.as_ref()?;
        let is_root = Prefix::new(store).name_of("").trim_end_matches('/').ends_with(':');
        if !objects::is_supported() {
            return Some("this contend was built without the feature object-store".to_owned());
        }
        (is_root && store.starts_with(objects::S3)).then(|| "a bucket is missing".to_owned())
    }
}

impl Work {
    /// Returns the work directory of a job that exists, and whose files are below a prefix in a store, if one is given.
    #[must_use]
    pub fn in_store(self, prefix: Option<&str>) -> Self {
        Self {
            store: prefix.map(Prefix::new),
            state: Arc::new(State { is_used: true.into(), ..State::default() }),
            ..self
        }
    }

    /// Returns the work directory with a new prefix, below the given one, for what the machines share.
    #[must_use]
    pub fn in_new_store(self, parent: Option<&str>) -> Self {
        let end: String =
            std::iter::repeat_with(fastrand::alphanumeric).take(RANDOM_CHARS).collect();
        let name = |parent: &str| Prefix::new(parent).name_of(&format!("{PREFIX}{end}"));
        let store = parent.map(|parent| Prefix::new(&name(parent)));
        Self { store, state: Arc::default(), ..self }
    }

    /// Returns the prefix of the objects that the machines share; `None` if they share the directory.
    pub fn store(&self) -> Option<&Prefix> {
        self.store.as_ref()
    }

    /// Prepares the store, if there is one, and checks that it can be written.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn open_store(&self) -> io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        store.open(LOCK)?;
        self.state.is_used.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Notes that the store could not be used for so long that the job is to be continued later.
    pub fn keep(&self) {
        self.state.is_kept.store(true, Ordering::Relaxed);
    }

    /// Returns whether the job is to be continued later.
    pub fn is_kept(&self) -> bool {
        self.state.is_kept.load(Ordering::Relaxed)
    }

    /// Copies a file of the directory to the store, if there is one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the object cannot be written.
    pub fn publish(&self, name: &str) -> io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        store.put(name, &File::open(self.path.join(name))?)
    }

    /// Says that an attempt begins, if the machines share a store. In a directory, they see its file.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    pub fn announce(&self, part: usize, attempt: u64) -> io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        store.put(&log_name(part, attempt), &File::open("/dev/null")?)
    }

    /// Copies a file from the store into the directory, if there is one.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read, or the file cannot be written.
    pub(super) fn fetch(&self, name: &str) -> io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        store.fetch(name, &self.path.join(name))
    }

    /// Copies new reports from the store into the directory, if there is one, and creates an empty log for each attempt that has
    /// begun.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read, or a file cannot be written.
    pub(super) fn fetch_reports(&self) -> io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut reports = Vec::new();
        let names = store.list()?;
        for name in &names {
            let end = attempt_in(OsStr::new(name)).map(|(_, _, end)| end);
            let path = self.path.join(name);
            match end {
                Some("json") if !path.exists() => reports.push(name.as_str()),
                Some("log") if !path.exists() => drop(File::create(path)?),
                _ => {}
            }
        }
        for (name, report) in reports.iter().zip(store.contents(&reports)?) {
            let mut file = tempfile::Builder::new().prefix(".report-").tempfile_in(&self.path)?;
            io::Write::write_all(&mut file, &report)?;
            file.persist(self.path.join(name)).map_err(|error| error.error)?;
        }
        Ok(())
    }

    /// Copies an output from the store, if there is one, and it is not here yet. An output that does not exist is no error.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read, or the file cannot be written.
    pub fn fetch_output(&self, output: &OutputFile) -> io::Result<()> {
        let name = &output.file;
        if self.store.is_none() || name.contains('/') || self.path.join(name).exists() {
            return Ok(());
        }
        match self.fetch(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            fetched => fetched,
        }
    }

    /// Checks that the file of an output has the size that was reported. What is in a store is not read, because its reports
    /// appear after the outputs.
    ///
    /// # Errors
    /// Returns a sentence for users if the file cannot be read, or has another size.
    pub fn check_size(&self, output: &OutputFile) -> Result<(), String> {
        if self.store.is_some() { Ok(()) } else { self.found(output).map(|_| ()) }
    }

    /// Removes a file of this machine whose contents are in the store.
    pub fn forget(&self, name: &str) {
        if self.store.is_some() {
            let _ = fs::remove_file(self.path.join(name)); // the directory is removed at the end, too
        }
    }

    /// Returns the path of the directory for the files of attempts on this machine, if there is a store.
    pub fn scratch(&self) -> PathBuf {
        self.path.join(SCRATCH)
    }
}
