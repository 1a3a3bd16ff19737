//! The words of a stage, as the shell has expanded them, and its environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use contend_commands::{Simple, Word};
use contend_shell::environment::in_path;
use contend_sys::environment;

use super::super::program::can_start;
use crate::objects;

/// Environment variables by name.
pub(super) type Environment = BTreeMap<OsString, OsString>;

/// The variable in which a shell passes the path of the command that it starts.
const COMMAND_PATH: &str = "_";

/// The command that the shell would have started for a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// Name of the command, followed by its arguments.
    words: Vec<OsString>,
    /// The variables in the command's environment, except `COMMAND_PATH`.
    pub(super) environment: Environment,
}

impl Words {
    /// Returns the command of this process's stage, with the environment of this process.
    pub(super) fn of_this_process(words: &[OsString]) -> Self {
        let environment = std::env::vars_os().filter(|(name, _)| name != COMMAND_PATH).collect();
        Self { words: words.to_vec(), environment }
    }

    /// Returns whether a word may be the name of an object in a store.
    pub(super) fn may_name_object(&self) -> bool {
        self.words.iter().any(|word| word.to_str().is_some_and(objects::is_object))
    }

    /// Returns whether a word may name a file descriptor of this process, such as `/dev/fd/3`.
    pub(super) fn names_descriptors(&self) -> bool {
        let folders: [&[u8]; 2] = [b"/dev/fd/", b"/proc/self/"];
        self.words.iter().any(|word| {
            let word = word.as_bytes();
            folders.iter().any(|folder| word.windows(folder.len()).any(|part| part == *folder))
        })
    }

    /// Returns the stage as a plain command that sets the variables missing from `common`. Returns
    /// `None` unless all words and these variables are UTF-8.
    pub(super) fn simple(&self, common: &Environment) -> Option<Simple> {
        let (program, arguments) = self.words.split_first()?;
        let own = self.environment.iter().filter(|(name, _)| !common.contains_key(*name));
        let variables = own.map(|(name, value)| Some((name.to_str()?.to_owned(), word(value)?)));
        Some(Simple {
            variables: variables.collect::<Option<_>>()?,
            program: word(program)?,
            arguments: arguments.iter().map(|text| word(text)).collect::<Option<_>>()?,
            input: None,
        })
    }

    /// Returns the command, or `None` if its name is not UTF-8, its program cannot be found, or the
    /// kernel may be unable to start it.
    pub(super) fn command(&self) -> Option<Command> {
        let (name, arguments) = self.words.split_first()?;
        let path = in_path(name.to_str()?).filter(|path| can_start(path))?;
        let mut command = Command::new(&path);
        command.env_clear().envs(&self.environment).env(COMMAND_PATH, &path);
        command.arg0(name).args(arguments);
        Some(command)
    }

    /// Makes `shell` look up the program and start it, in the environment of the stage. `name` is
    /// the shell's name in messages.
    pub(super) fn give_to(&self, shell: &mut Command, name: &str) {
        shell.env_clear().envs(&self.environment);
        shell.args(["-c", "\"$@\"", name]).args(&self.words);
    }

    /// Appends the words and the environment to a message.
    pub(super) fn write(&self, message: &mut Vec<u8>) {
        let variables = self.environment.iter().map(|(name, value)| {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            pair
        });
        write_list(message, self.words.iter().cloned());
        write_list(message, variables);
    }

    /// Reads words and an environment from a message, and advances past them. Returns `None` if the
    /// message is malformed.
    pub(super) fn read(message: &mut &[u8]) -> Option<Self> {
        let words = read_list(message)?;
        let pairs = read_list(message)?.into_iter().map(|pair| {
            let pair = pair.into_vec();
            // A variable's name has at least one byte.
            let end = pair.iter().skip(1).position(|&byte| byte == b'=')? + 1;
            let (name, value) = (OsStr::from_bytes(&pair[..end]), &pair[end + 1..]);
            Some((name.to_owned(), OsStr::from_bytes(value).to_owned()))
        });
        Some(Self { words, environment: pairs.collect::<Option<_>>()? })
    }
}

fn word(text: &OsStr) -> Option<Word> {
    text.to_str().map(Word::new)
}

/// Appends the number of strings, and each string with a NUL after it, to a message. No string
/// contains a NUL.
fn write_list(message: &mut Vec<u8>, strings: impl ExactSizeIterator<Item = OsString>) {
    message.extend(strings.len().to_le_bytes());
    for string in strings {
        message.extend(string.as_bytes());
        message.push(0);
    }
}

fn read_list(message: &mut &[u8]) -> Option<Vec<OsString>> {
    let (count, rest) = message.split_first_chunk()?;
    *message = rest;
    let mut read = || {
        let end = message.iter().position(|&byte| byte == 0)?;
        let string = OsStr::from_bytes(&message[..end]).to_owned();
        *message = &message[end + 1..];
        Some(string)
    };
    (0..usize::from_le_bytes(*count)).map(|_| read()).collect()
}

/// Returns the variables that have the same value in all stages.
pub(super) fn common_environment(stages: &[Words]) -> Environment {
    let Some((first, others)) = stages.split_first() else { return Environment::new() };
    let mut common = first.environment.clone();
    common.retain(|name, value| {
        others.iter().all(|other| other.environment.get(name).is_some_and(|it| it == value))
    });
    common
}

/// Removes all variables from the environment of this process, except the wanted ones.
///
/// # Errors
/// Returns an error if this process has other threads, so that changes would not be safe.
pub(super) fn adopt(wanted: &Environment) -> io::Result<()> {
    let present = std::env::vars_os().filter(|(name, _)| !wanted.contains_key(name));
    let changes: Vec<_> = present.map(|(name, _)| (name, None)).collect();
    environment::change(&changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, variables: &[(&str, &str)]) -> Words {
        let words = text.split(' ').map(OsString::from).collect();
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Words { words, environment: variables.collect() }
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let mut odd = words("sort", &[("A", "x=y"), ("BASH_FUNC_f%%", "() { :;\n}"), ("=", "=")]);
        odd.words.push(OsString::from_vec(vec![0xff, b'\n']));
        odd.words.push(OsString::new());
        let stages = [odd, words("uniq -c", &[])];
        let mut message = Vec::new();
        for stage in &stages {
            stage.write(&mut message);
        }
        let mut rest = message.as_slice();
        let read = [Words::read(&mut rest), Words::read(&mut rest)].map(Option::unwrap);
        assert_eq!((read, rest.len()), (stages, 0));
        for end in 0..message.len() {
            let mut part = &message[..end];
            let both = (Words::read(&mut part), Words::read(&mut part));
            assert!(both.1.is_none(), "a message of {end} bytes is not whole");
        }
    }

    #[test]
    fn variables_of_one_stage_are_its_own() {
        let stages = [
            words("sort -r", &[("A", "1"), ("LC_ALL", "C")]),
            words("uniq", &[("A", "1"), ("B", "2")]),
        ];
        let common = common_environment(&stages);
        assert_eq!(common, words("x", &[("A", "1")]).environment);
        let texts = stages.map(|stage| stage.simple(&common).expect("UTF-8").text());
        assert_eq!(texts, ["LC_ALL=C sort -r", "B=2 uniq"]);
    }
}
