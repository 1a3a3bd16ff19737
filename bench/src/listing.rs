//! The format of the listings: entries of keys and values, one a line.

use anyhow::{Context as _, Result, ensure};

/// An entry: what stands between one line with the first key and the next.
#[derive(Debug)]
pub struct Block<'a> {
    file: &'a str,
    kind: &'a str,
    line: usize,
    /// Its name: the value of the first key.
    pub name: &'a str,
    fields: Vec<Field<'a>>,
}

/// A key with its value.
#[derive(Debug)]
struct Field<'a> {
    line: usize,
    key: &'a str,
    value: &'a str,
}

/// The entries of a text, each begun by a line with the key `kind`; errors name file and line.
///
/// # Errors
/// Where a line has no value or stands before the first entry.
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
                format!("{file}:{line}: `{key}` stands before the first `{kind} NAME`")
            })?;
            block.fields.push(Field { line, key, value });
        }
    }
    Ok(blocks)
}

impl<'a> Block<'a> {
    /// Refuses keys but these, and any of `once` that stands twice.
    ///
    /// # Errors
    /// When there is one.
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
                "{at}: `{}` stands twice in {} {}: remove one",
                field.key,
                self.kind,
                self.name
            );
        }
        Ok(())
    }

    /// The value of a key, if it is there.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        self.values(key).next()
    }

    /// All values of a key that may stand more than once.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |field| field.key == key).map(|field| field.value)
    }

    /// The lines of a key that may stand more than once, as one text.
    pub fn lines(&self, key: &str) -> Option<String> {
        self.value(key)?;
        Some(self.values(key).collect::<Vec<_>>().join("\n"))
    }

    /// What `read` makes of the value of a key, if it is there.
    ///
    /// # Errors
    /// Those of `read`, with the line.
    pub fn read<T>(&self, key: &str, read: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        let field = self.fields.iter().find(|field| field.key == key);
        let place = |field: &Field<'_>| format!("{}:{}", self.file, field.line);
        field.map(|field| read(field.value).with_context(|| place(field))).transpose()
    }

    /// That a key is missing.
    pub fn missing(&self, key: &str) -> String {
        format!("{}:{}: {} {} has no `{key}`: add it", self.file, self.line, self.kind, self.name)
    }
}

/// As in `a, b or c`.
fn enumerated(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Megabytes in a size as in 100MB or 1GB.
pub fn megabytes(size: &str) -> Option<u64> {
    let number = |unit: &str| size.strip_suffix(unit)?.parse::<u64>().ok();
    number("MB").or_else(|| number("GB")?.checked_mul(1000)).filter(|&megabytes| megabytes > 0)
}
