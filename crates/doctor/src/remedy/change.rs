//! A change to how a command is started, and the command line that makes the same change in a shell.

use std::ffi::{OsStr, OsString};

use contend_record::shell::quote;

/// A change to how a command is started: its environment, its words, or the CPUs on which it may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Names the change among others of the same remedy.
    pub label: String,
    /// Variables to set.
    pub set: Vec<(&'static str, String)>,
    /// Variables to remove.
    pub unset: Vec<&'static str>,
    /// The words of the changed command, program first; `None` if they stay.
    pub words: Option<Vec<OsString>>,
    /// Number of the only CPU on which the command may run; `None` for all that it has.
    pub cpu: Option<usize>,
}

impl Change {
    /// Returns a change that sets a variable.
    pub fn set(name: &'static str, value: impl Into<String>) -> Self {
        Self { set: vec![(name, value.into())], ..Self::default() }.labelled()
    }

    /// Returns a change that removes a variable.
    pub fn unset(name: &'static str) -> Self {
        Self { unset: vec![name], ..Self::default() }.labelled()
    }

    /// Returns a change that runs other words. `label` names it.
    pub fn words(words: Vec<OsString>, label: impl Into<String>) -> Self {
        Self { label: label.into(), words: Some(words), ..Self::default() }
    }

    /// Returns a change that allows a single CPU.
    pub fn one_cpu(cpu: usize) -> Self {
        Self { cpu: Some(cpu), ..Self::default() }.labelled()
    }

    /// Returns the change with another one to the environment added.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.set.extend(other.set);
        self.unset.extend(other.unset);
        self.labelled()
    }

    fn labelled(mut self) -> Self {
        self.label = self.prefix();
        self
    }

    /// Returns the shell text that makes the change if it precedes the command; empty if only the words
    /// of the command change.
    fn prefix(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        if !self.unset.is_empty() {
            parts.push("env".to_owned());
            parts.extend(self.unset.iter().map(|name| format!("-u {name}")));
        }
        parts.extend(self.set.iter().map(|(name, value)| format!("{name}={}", quote(value))));
        parts.extend(self.cpu.map(|cpu| format!("taskset -c {cpu}")));
        parts.join(" ")
    }

    /// Returns the command line with the change, ready to paste. `words` are those of the unchanged
    /// command. Words that are not UTF-8 are shown with replacement characters.
    pub fn command_line(&self, words: &[OsString]) -> String {
        let words = self.words.as_deref().unwrap_or(words);
        let words = words.iter().map(|word| quote(&word.to_string_lossy()));
        let prefix = Some(self.prefix()).filter(|prefix| !prefix.is_empty());
        prefix.into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the words as a command line, ready to paste.
pub fn command_line(words: &[impl AsRef<OsStr>]) -> String {
    let words = words.iter().map(|word| quote(&word.as_ref().to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_can_be_pasted() {
        let words: Vec<OsString> = vec!["./a b".into(), "x=1".into()];
        let line = |change: &Change| change.command_line(&words);
        let plain = "'./a b' 'x=1'";
        assert_eq!(line(&Change::set("A", "1 2")), format!("A='1 2' {plain}"));
        assert_eq!(line(&Change::unset("A")), format!("env -u A {plain}"));
        let both = Change::unset("A").and(Change::set("B", "2"));
        assert_eq!(line(&both), format!("env -u A B=2 {plain}"));
        assert_eq!(both.label, "env -u A B=2");
        assert_eq!(line(&Change::one_cpu(3)), format!("taskset -c 3 {plain}"));
        let words_only = Change::words(vec!["make".into(), "-j2".into()], "-j2");
        assert_eq!((line(&words_only).as_str(), words_only.label.as_str()), ("make -j2", "-j2"));
    }
}
