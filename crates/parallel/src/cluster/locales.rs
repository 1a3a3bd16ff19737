//! What the locales of a job's commands do with text, which must be the same on all machines.
//!
//! A locale that is not installed is silently replaced by the C locale, and locales of the same name order lines
//! differently in different versions of the C library. So both machines run programs over a
//! sample, and the checksums of the outputs must be equal.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::Write as _;
use std::process::{Command as Process, Stdio};

use xxhash_rust::xxh3::Xxh3;

use crate::plan::ir::{Command, Group};

/// Checksums of what programs do with a sample of text, by the names of the locales.
pub type Locales = BTreeMap<String, String>;

/// Lines whose order depends on the locale, and characters that are letters in some locales only.
const SAMPLE: &str = "a\nB\nA b\nab\na-b\na_b\nAB\nb\n#1\n10\n9\n-1\n1,5\n1.5\n\u{e4}\n\u{c4}\nz\n\u{e9}\ne\nE\nf\n\u{e5}\n\u{f8}\n\
                      \u{f1}\nn\no\nch\nc\nd\nll\nl\nm\n\u{131}\ni\nI\n\u{130}\n\u{df}\nss\n\u{43b}\n\u{41b}\n\u{3b1}\n\u{391}\n\
                      \u{3042}\n\u{4e2d}\n\u{56fd}\n\u{ac00}\n\u{5d0}\n\u{ff71}\n\u{301}e\n\u{200d}\n\u{1f600}\n~\n!\n\n \n";

/// The categories of locales on which outputs depend.
const CATEGORIES: [&str; 4] = ["LC_COLLATE", "LC_CTYPE", "LC_NUMERIC", "LC_TIME"];

/// Programs, with arguments, that show a locale's order, letters, length of characters, numbers, and names of months and
/// days.
const PROBES: &[&[&str]] = &[
    &["sort"],
    &["grep", "-o", "[[:alpha:]]"],
    &["wc", "-m"],
    &["sort", "-n"],
    &["env", "printf", "%.2f"],
    &["date", "-u", "-d", "1970-07-09", "+%c %A %B %b"],
];

/// Returns what the locales of a group's commands do on this machine. The C locale is left out: it is everywhere the same.
pub(super) fn locales_of(group: &Group) -> Locales {
    let commands = group.serial.iter().chain(&group.each);
    let used: BTreeSet<[String; 4]> =
        commands.map(|command| CATEGORIES.map(|category| locale(command, category))).collect();
    let is_other = |names: &[String; 4]| names.iter().any(|name| !matches!(&**name, "C" | "POSIX"));
    let used = used.into_iter().filter(is_other);
    used.map(|names| (description(&names), checksum(&names))).collect()
}

/// Returns the name of the locale of a command for a category.
fn locale(command: &Command, category: &str) -> String {
    let own = |name: &str| {
        let mut variables = command.variables.iter().rev();
        variables.find(|(variable, _)| variable == name).map(|(_, value)| value.clone())
    };
    let value = |name: &str| own(name).or_else(|| env::var(name).ok()).filter(|it| !it.is_empty());
    let value = value("LC_ALL").or_else(|| value(category)).or_else(|| value("LANG"));
    value.unwrap_or_else(|| "C".to_owned())
}

/// Returns the names of locales, in the order of [`CATEGORIES`], each once.
fn description(names: &[String; 4]) -> String {
    let mut names = names.to_vec();
    names.dedup();
    names.join(", ")
}

/// Returns a checksum of what programs do with the sample in locales for [`CATEGORIES`].
fn checksum(names: &[String; 4]) -> String {
    let mut hash = Xxh3::new();
    for words in PROBES {
        let mut process = Process::new(words[0]);
        process.args(&words[1..]).env_remove("LC_ALL");
        process.envs(CATEGORIES.iter().zip(names));
        hash.update(&output(process).unwrap_or_default());
        hash.update(b"\0");
    }
    format!("{:032x}", hash.digest128())
}

/// Returns what a program prints for the sample; `None` if it cannot be run.
fn output(mut process: Process) -> Option<Vec<u8>> {
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = process.spawn().ok()?;
    // A pipe has room for the sample, so that this does not wait for the program.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(SAMPLE.as_bytes()));
    drop(written); // some programs do not read it
    child.wait_with_output().ok().map(|output| output.stdout)
}

/// Returns how locales of this machine differ from those of the machine that planned the job, as a sentence; `None` if they
/// are the same.
pub(super) fn difference(planned: &Locales, own: &Locales) -> Option<String> {
    let (name, _) = planned.iter().find(|(name, planned)| own.get(*name) != Some(planned))?;
    Some(format!(
        "its locale {name} is missing, or differs from that of the machine that planned the job"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::attempt::testing::job;
    use super::*;

    fn of(text: &str) -> Locales {
        let folder = tempfile::tempdir().expect("a folder");
        let job = job(folder.path(), text, &[("in", "a\n")], 1);
        locales_of(&job.group)
    }

    #[test]
    fn locales_of_commands_are_examined() {
        assert_eq!(of("LC_ALL=C tr a-z A-Z <@/in"), Locales::new());
        let found = of("LC_ALL=C.UTF-8 tr a-z A-Z <@/in");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["C.UTF-8"]);
        let missing = [(); 4].map(|()| "xx_XX.UTF-8".to_owned());
        let c = [(); 4].map(|()| "C".to_owned());
        assert_eq!(checksum(&missing), checksum(&c), "a missing locale is the C locale");
        assert_ne!(found.values().next(), Some(&checksum(&c)));
    }

    #[test]
    fn locales_that_differ_are_named() {
        let one = |checksum: &str| Locales::from([("xx".to_owned(), checksum.to_owned())]);
        assert_eq!(difference(&one("1"), &one("1")), None);
        assert_eq!(difference(&Locales::new(), &one("1")), None);
        for own in [Locales::new(), one("2")] {
            assert!(difference(&one("1"), &own).expect("they differ").contains("locale xx"));
        }
    }
}
