//! The objects of a store whose names have a prefix in common, as files of a directory.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use super::client;

/// A prefix of the names of objects in a store, without the slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Creates a prefix, such as `s3://bucket/folder`.
    pub fn new(name: &str) -> Self {
        Self(name.trim_end_matches('/').to_owned())
    }

    /// Returns the name of an object with this prefix.
    pub fn name_of(&self, object: &str) -> String {
        format!("{}/{object}", self.0)
    }

    /// Returns the names of the objects, without the prefix.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub fn list(&self) -> io::Result<Vec<String>> {
        client::list(&self.0)
    }

    /// Returns the contents of small objects, in this order.
    ///
    /// # Errors
    /// Returns an error if an object cannot be read.
    pub fn contents(&self, objects: &[&str]) -> io::Result<Vec<Vec<u8>>> {
        let names: Vec<String> = objects.iter().map(|object| self.name_of(object)).collect();
        client::contents(&names)?.into_iter().collect()
    }

    /// Copies an object into a new file, which appears as a whole.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read, or the file cannot be written.
    pub fn fetch(&self, object: &str, to: &Path) -> io::Result<()> {
        let folder = to.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".fetch-").tempfile_in(folder)?;
        client::copy_all(&self.name_of(object), &mut file)?;
        file.persist(to).map_err(|error| error.error)?;
        Ok(())
    }

    /// Creates or replaces an object, with the contents of a file that has just been opened. It appears as a whole.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or the object cannot be written.
    pub fn put(&self, object: &str, from: &File) -> io::Result<()> {
        client::put(&self.name_of(object), from)
    }

    /// Removes all objects with this prefix.
    ///
    /// # Errors
    /// Returns an error if an object cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        client::remove(&self.0)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
