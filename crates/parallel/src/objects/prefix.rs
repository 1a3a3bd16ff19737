//! The objects of a store whose names have a prefix in common, as files of a directory.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use super::client;

/// A prefix of the names of objects in a store, without the slash at its end, unless it is that of all objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Creates a prefix, such as `s3://bucket/folder`.
    pub fn new(name: &str) -> Self {
        let trimmed = name.trim_end_matches('/');
        // Such as `hdfs:///`.
        Self(if trimmed.ends_with(':') { name } else { trimmed }.to_owned())
    }

    /// Returns the name of an object with this prefix.
    pub fn name_of(&self, object: &str) -> String {
        let slash = if self.0.ends_with('/') { "" } else { "/" };
        format!("{}{slash}{object}", self.0)
    }

    /// Prepares the prefix for a job, and creates an object without contents. In HDFS, the prefix is a directory, which only this
    /// user can read from then on.
    ///
    /// # Errors
    /// Returns an error if the object cannot be written, or not in 20 seconds.
    pub fn open(&self, object: &str) -> io::Result<()> {
        client::open(&self.0, object)
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
        super::copy_all(&self.name_of(object), &mut file)?;
        file.persist(to).map_err(|error| error.error)?;
        Ok(())
    }

    /// Creates or replaces an object, with the contents of a file. It appears as a whole.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or the object cannot be written.
    pub fn put(&self, object: &str, from: &File) -> io::Result<()> {
        client::put(&self.name_of(object), from)
    }

    /// Removes all objects with this prefix. Gives up after 20 seconds.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_slash() {
        let name = |prefix: &str| Prefix::new(prefix).name_of("x");
        assert_eq!(name("s3://bucket/jobs/"), "s3://bucket/jobs/x");
        assert_eq!(name("s3://bucket"), "s3://bucket/x");
        assert_eq!(name("hdfs:///"), "hdfs:///x");
        assert_eq!(name("hdfs://server:8020/"), "hdfs://server:8020/x");
    }
}
