//! The programs that an attempt may start, which must be the same on all machines.
//!
//! What contend knows about a command holds for one version of its program. So a job has the checksums of its programs, and an
//! attempt on a machine with other ones fails, before it reads any input.

use std::collections::BTreeMap;
use std::fs::File;

use contend_shell::environment::in_path;

use super::attempt::checksum;
use crate::plan::ir::Group;

/// Checksums of executable files, by the names of the programs in the pipeline; `None` for a program that is not found.
pub type Programs = BTreeMap<String, Option<String>>;

/// Returns the programs that a group may start over a part, as they are on this machine.
pub(super) fn programs_of(group: &Group) -> Programs {
    let commands = group.serial.iter().chain(&group.each);
    commands.map(|command| (command.program.clone(), checksum_of(&command.program))).collect()
}

fn checksum_of(name: &str) -> Option<String> {
    checksum(&mut File::open(in_path(name)?).ok()?).ok()
}

/// Returns how the programs of this machine differ from those of the machine that planned the job, as a sentence; `None` if
/// they are the same.
pub(super) fn difference(planned: &Programs, own: &Programs) -> Option<String> {
    let (name, _) = planned.iter().find(|(name, planned)| own.get(*name) != Some(planned))?;
    Some(match own.get(name) {
        Some(Some(_)) => format!("{name} is another version than where the job was planned"),
        _ => format!("{name} is not found"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_missing_or_differ_are_named() {
        let one = |name: &str, checksum: Option<&str>| {
            Programs::from([(name.to_owned(), checksum.map(str::to_owned))])
        };
        let planned = one("sort", Some("1"));
        assert_eq!(difference(&planned, &planned), None);
        let told = |own: &Programs| difference(&planned, own).expect("they differ");
        assert_eq!(told(&one("sort", None)), "sort is not found");
        assert_eq!(told(&Programs::new()), "sort is not found");
        assert!(told(&one("sort", Some("2"))).starts_with("sort is another version"));
    }

    #[test]
    fn checksums_are_those_of_the_files_in_path() {
        let shell = checksum_of("sh").expect("there is a shell");
        assert_eq!(checksum_of("/bin/sh").as_ref(), Some(&shell));
        assert_eq!(checksum_of("no-such-program"), None);
    }
}
