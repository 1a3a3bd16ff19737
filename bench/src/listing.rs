//! Parses listings: entries that consist of keys and values, with one key on each line.

use anyhow::{Context as _, Result, ensure};

/// An entry: a line with the first key, and the lines up to the next entry.
#[derive(Debug)]
pub struct Block<'a> {
    file: &'a str,
    kind: &'a str,
    line: usize,
    /// Value of the first key.
    pub name: &'a str,
    fields: Vec<Field<'a>>,
}

/// A key and its value, with the number of their line.
#[derive(Debug)]
struct Field<'a> {
    line: usize,
    key: &'a str,
    value: &'a str,
}

/// Parses the entries of `text`, the content of `file`. The key `kind` starts an entry. Empty lines
/// and lines that start with `#` are skipped.
///
/// # Errors
/// Returns an error if a line has no value, or precedes the first entry. Errors name file and line.
pub fn blocks<'a>(file: &'a str, kind: &'a str, text: &'a str) -> Result<Vec<Block<'a>>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        if content.starts_with('#') || content.trim().is_empty() {
            continue;
        }
        let (key, value) = content.split_once(' ').with_context(|| {
            format!("{file}:{line}: `{content}` has no value: write a key, a space and the value")
        })?;
        let value = value.trim();
        if key == kind {
            blocks.push(Block { file, kind, line, name: value, fields: Vec::new() });
        } else {
            let block = blocks.last_mut().with_context(|| {
                format!("{file}:{line}: `{key}` precedes the first `{kind} NAME`")
            })?;
            block.fields.push(Field { line, key, value });
        }
    }
    Ok(blocks)
}

impl<'a> Block<'a> {
    /// Checks that the entry has only keys in `once` and `often`, and each key in `once` at most
    /// once.
    ///
    /// # Errors
    /// Returns an error if the entry has a key that is in neither list, or has a key in `once`
    /// twice.
    pub fn check(&self, once: &[&str], often: &[&str]) -> Result<()> {
        for (place, field) in self.fields.iter().enumerate() {
            let at = format!("{}:{}", self.file, field.line);
            ensure!(
                once.contains(&field.key) || often.contains(&field.key),
                "{at}: unknown key `{}`: use {}",
                field.key,
                enumerated(&[&[self.kind], once, often].concat())
            );
            let before = self.fields[..place].iter().any(|other| other.key == field.key);
            ensure!(
                !before || often.contains(&field.key),
                "{at}: `{}` occurs twice in {} {}: remove one",
                field.key,
                self.kind,
                self.name
            );
        }
        Ok(())
    }

    /// Returns the first value of `key`, or `None` if the entry does not have the key.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        self.values(key).next()
    }

    /// Returns all values of `key`, in order; none if the entry does not have the key.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |field| field.key == key).map(|field| field.value)
    }

    /// Returns all values of `key`, joined by newlines, or `None` if the entry does not have the
    /// key.
    pub fn lines(&self, key: &str) -> Option<String> {
        self.value(key)?;
        Some(self.values(key).collect::<Vec<_>>().join("\n"))
    }

    /// Returns the first value of `key`, parsed by `read`, or `None` if the entry does not have the
    /// key.
    ///
    /// # Errors
    /// Returns the error of `read`, with file and line.
    pub fn read<T>(&self, key: &str, read: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        let field = self.fields.iter().find(|field| field.key == key);
        let place = |field: &Field<'_>| format!("{}:{}", self.file, field.line);
        field.map(|field| read(field.value).with_context(|| place(field))).transpose()
    }

    /// Returns a message, with file and line, that the entry lacks `key`.
    pub fn missing(&self, key: &str) -> String {
        format!("{}:{}: {} {} has no `{key}`: add it", self.file, self.line, self.kind, self.name)
    }
}

/// Formats words as a list, such as `a, b or c`.
fn enumerated(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Parses a size such as `100MB` or `1GB`, and returns it in megabytes (millions of bytes). Returns
/// `None` if `size` has another form, is 0, or does not fit into a `u64`.
pub fn megabytes(size: &str) -> Option<u64> {
    let number = |unit: &str| size.strip_suffix(unit)?.parse::<u64>().ok();
    number("MB").or_else(|| number("GB")?.checked_mul(1000)).filter(|&megabytes| megabytes > 0)
}
