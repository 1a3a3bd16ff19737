//! The environment variables of a job, which its commands get on all machines.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Command;

use contend_sys::spawn;
use serde::{Deserialize, Serialize};

/// The variables that each machine keeps: the directory for temporary files, and the file with what authenticates a process of
/// Hadoop, which YARN writes for each container.
const OF_MACHINE: [&str; 2] = ["TMPDIR", "HADOOP_TOKEN_FILE_LOCATION"];

/// Environment variables and their values, without those that each machine keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Returns the variables of this process.
    ///
    /// # Errors
    /// Returns the name of a variable that is not UTF-8, or whose value is not.
    pub fn of_this_process() -> Result<Self, OsString> {
        let text = |(name, value): (OsString, OsString)| match (name.to_str(), value.to_str()) {
            (Some(text), Some(value)) => Ok((text.to_owned(), value.to_owned())),
            _ => Err(name),
        };
        env::vars_os()
            .filter(|(name, _)| is_shared(name))
            .map(text)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns whether this process has exactly these variables.
    pub fn are_set(&self) -> bool {
        Self::of_this_process().as_ref() == Ok(self)
    }

    /// Gives a command these variables. It inherits only those of this machine.
    pub fn set_for(&self, command: &mut Command) {
        command.env_clear();
        command.envs(env::vars_os().filter(|(name, _)| !is_shared(name)));
        command.envs(&self.0);
    }

    /// Replaces this process with the same program and arguments, but with these variables, which threads of a process must
    /// not change. Returns only if that fails, with the error.
    pub fn start_again(&self) -> io::Error {
        let program = match env::current_exe() {
            Ok(program) => program,
            Err(error) => return error,
        };
        let mut command = Command::new(program);
        self.set_for(command.args(env::args_os().skip(1)));
        spawn::become_command(&mut command)
    }
}

/// Returns whether all machines get a variable.
fn is_shared(name: &OsStr) -> bool {
    OF_MACHINE.iter().all(|of_machine| name != *of_machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the environment of a command that prints it.
    fn printed(variables: &Variables) -> BTreeMap<String, String> {
        let mut command = Command::new("/usr/bin/env");
        command.env("LEFT", "over");
        variables.set_for(&mut command);
        let output = command.output().expect("env starts").stdout;
        let text = String::from_utf8(output).expect("UTF-8");
        let split = |line: &str| {
            line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        text.lines().filter_map(split).collect()
    }

    #[test]
    fn a_command_has_the_variables_and_no_others() {
        let set = [("TZ", "UTC"), ("A", "b=c"), ("EMPTY", "")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let variables = Variables(BTreeMap::from(set.clone()));
        let mut found = printed(&variables);
        found.retain(|name, _| is_shared(OsStr::new(name)));
        assert_eq!(found, BTreeMap::from(set));
        assert!(!variables.are_set());
        assert!(Variables::of_this_process().expect("UTF-8").are_set());
    }

    #[test]
    fn each_machine_keeps_its_own_variables() {
        assert!(!is_shared(OsStr::new("TMPDIR")));
        assert!(!is_shared(OsStr::new("HADOOP_TOKEN_FILE_LOCATION")));
        assert!(is_shared(OsStr::new("PATH")));
    }
}
