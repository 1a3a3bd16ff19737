//! Compares the outcomes of two runs of one script.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use super::run::{Entry, Outcome};

/// A difference between contend's outcome and bash's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// contend does not end, but bash does.
    Hang,
    /// Different bytes on standard output.
    Stdout,
    /// A different exit status or signal.
    Status,
    /// Different content, kind or permissions of a file.
    FileContent,
    /// A file that only contend leaves.
    ExtraFile,
    /// A file that only bash leaves.
    MissingFile,
    /// Processes that continue after the end of contend, although none do after the end of bash.
    LeftRunning,
    /// More files left in `TMPDIR` by contend than by bash.
    TemporaryFile,
    /// Messages that differ even after [`normalise`].
    Stderr,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Hang => "hang",
            Self::Stdout => "stdout",
            Self::Status => "status",
            Self::FileContent => "file",
            Self::ExtraFile => "extra-file",
            Self::MissingFile => "missing-file",
            Self::LeftRunning => "left-running",
            Self::TemporaryFile => "temporary-file",
            Self::Stderr => "stderr",
        })
    }
}

/// Returns the differences between a run of contend and one of bash, the most severe first; none if
/// bash had to be killed.
pub fn compare(bash: &Outcome, contend: &Outcome) -> Vec<Difference> {
    if bash.status.is_none() {
        return Vec::new();
    }
    if contend.status.is_none() {
        return vec![Difference::Hang];
    }
    let files = |outcome: &Outcome, other: &Outcome| {
        outcome.files.keys().any(|name| !other.files.contains_key(name))
    };
    let changed = bash.files.iter().any(|(name, entry)| {
        contend.files.get(name).is_some_and(|other| !is_same_entry(entry, other))
    });
    let checks = [
        (Difference::Stdout, unnamed(&bash.stdout) != unnamed(&contend.stdout)),
        (Difference::Status, bash.status != contend.status),
        (Difference::FileContent, changed),
        (Difference::ExtraFile, files(contend, bash)),
        (Difference::MissingFile, files(bash, contend)),
        (Difference::LeftRunning, contend.left_running && !bash.left_running),
        (Difference::TemporaryFile, bash.temporary.len() < contend.temporary.len()),
        (Difference::Stderr, normalise(&bash.stderr) != normalise(&contend.stderr)),
    ];
    checks.into_iter().filter_map(|(difference, differs)| differs.then_some(difference)).collect()
}

/// Returns whether two entries are the same, except for the name of the script in messages.
fn is_same_entry(first: &Entry, second: &Entry) -> bool {
    match (first, second) {
        (Entry::File(mode, content), Entry::File(other_mode, other)) => {
            mode == other_mode && unnamed(content) == unnamed(other)
        }
        _ => first == second,
    }
}

/// Removes the name of the script from shell messages that were redirected to `output`. contend may
/// pass the script to bash as `/dev/fd/3`, and bash's messages then begin with that path. Line
/// numbers stay.
fn unnamed(output: &[u8]) -> Cow<'_, [u8]> {
    const AFTER_NAME: &[u8] = b": line ";
    let is_name = |name: &[u8]| {
        let number = name.strip_prefix(b"/dev/fd/");
        number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
            || name.ends_with(b"/script.sh")
    };
    let name_length = |line: &[u8]| {
        let length = line.windows(AFTER_NAME.len()).position(|text| text == AFTER_NAME);
        length.filter(|&length| is_name(&line[..length]))
    };
    if !output.split(|&byte| byte == b'\n').any(|line| name_length(line).is_some()) {
        return output.into();
    }
    let lines = output.split_inclusive(|&byte| byte == b'\n');
    lines
        .flat_map(|line| &line[name_length(line).unwrap_or(0)..])
        .copied()
        .collect::<Vec<_>>()
        .into()
}

/// Returns whether two runs of bash have the same outcome, apart from what [`normalise`] removes
/// from messages, or both had to be killed.
pub fn repeats(first: &Outcome, second: &Outcome) -> bool {
    first.status == second.status
        && first.left_running == second.left_running
        && compare(first, second).is_empty()
}

/// Words that identify a shell's message about a signal. `normalise` reduces the line to the word,
/// because the process id and the rest vary between runs.
const SIGNALS: [&str; 7] =
    ["Terminated", "Killed", "Broken pipe", "Hangup", "Aborted", "Interrupt", "User defined"];

/// Labels of the times that bash's `time` prints.
const TIMES: [&str; 3] = ["real", "user", "sys"];

/// Returns the lines of messages, without the shell's name, line numbers, process ids and times.
/// The lines are sorted, because the commands of a pipeline write at the same time.
pub fn normalise(stderr: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stderr);
    let mut lines: Vec<String> = text.lines().map(message).collect();
    lines.sort_unstable();
    lines
}

fn message(line: &str) -> String {
    if let Some(signal) = SIGNALS.iter().find(|signal| line.contains(**signal)) {
        return (*signal).to_owned();
    }
    let is_time = |name: &&&str| {
        let figure = line.strip_prefix(**name).and_then(|rest| rest.strip_prefix([' ', '\t']));
        figure.is_some_and(|figure| figure.bytes().all(|byte| b"0123456789.ms".contains(&byte)))
    };
    if let Some(name) = TIMES.iter().find(is_time) {
        return (*name).to_owned();
    }
    let Some((program, rest)) = line.split_once(": ") else { return line.to_owned() };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let is_shell = ["bash", "contend", "sh"].contains(&name)
        || Path::new(name).extension().is_some_and(|extension| extension == "sh")
        || program.starts_with("/dev/fd/");
    if !is_shell {
        return line.to_owned();
    }
    let mut rest = rest.strip_prefix("-c: ").unwrap_or(rest);
    if let Some((number, behind)) =
        rest.strip_prefix("line ").and_then(|rest| rest.split_once(": "))
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        rest = behind;
    }
    format!("shell: {rest}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use contend_sys::child::ExitStatus;

    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            status: Some(ExitStatus::Exited(0)),
            stdout: b"out\n".to_vec(),
            stderr: b"bash: line 1: message\n".to_vec(),
            files: BTreeMap::from([("a".into(), Entry::File(0o644, b"text".to_vec()))]),
            temporary: Vec::new(),
            left_running: false,
            wall: Duration::ZERO,
        }
    }

    #[test]
    fn a_planted_difference_of_each_kind_is_noticed() {
        type Plant = fn(&mut Outcome);
        let planted: [(Difference, Plant); 9] = [
            (Difference::Hang, |outcome| outcome.status = None),
            (Difference::Stdout, |outcome| outcome.stdout.push(0)),
            (Difference::Status, |outcome| outcome.status = Some(ExitStatus::Signaled(1))),
            (Difference::FileContent, |outcome| {
                outcome.files.insert("a".into(), Entry::File(0o644, b"texT".to_vec()));
            }),
            (Difference::ExtraFile, |outcome| {
                outcome.files.insert("b".into(), Entry::Folder(0o755));
            }),
            (Difference::MissingFile, |outcome| outcome.files.clear()),
            (Difference::LeftRunning, |outcome| outcome.left_running = true),
            (Difference::TemporaryFile, |outcome| outcome.temporary.push("t".into())),
            (Difference::Stderr, |outcome| outcome.stderr = b"bash: other\n".to_vec()),
        ];
        assert_eq!(compare(&outcome(), &outcome()), []);
        for (kind, plant) in planted {
            let mut other = outcome();
            plant(&mut other);
            assert_eq!(compare(&outcome(), &other), [kind]);
        }
    }

    #[test]
    fn the_script_name_in_a_redirected_message_is_ignored() {
        let with = |text: &[u8]| Outcome {
            stdout: text.to_vec(),
            files: BTreeMap::from([("a".into(), Entry::File(0o644, text.to_vec()))]),
            ..outcome()
        };
        let bash = with(b"a\n/tmp/x/script.sh: line 3: no: not found\n");
        assert_eq!(compare(&bash, &with(b"a\n/dev/fd/3: line 3: no: not found\n")), []);
        let others: [&[u8]; 4] = [
            b"a\n/dev/fd/3: line 4: no: not found\n",
            b"a\n/dev/fd/3: line 3: yes: not found\n",
            b"a\n/dev/null: line 3: no: not found\n",
            b"a\nx /dev/fd/3: line 3: no: not found\n",
        ];
        for other in others {
            let found = compare(&bash, &with(other));
            assert_eq!(found, [Difference::Stdout, Difference::FileContent]);
        }
    }

    #[test]
    fn messages_are_compared_without_names_lines_ids_and_order() {
        let same = [
            "bash: line 1: x: No such file\nsort: y\n",
            "sort: y\n/tmp/z/script.sh: line 14: x: No such file\n",
        ];
        assert_eq!(normalise(same[0].as_bytes()), normalise(same[1].as_bytes()));
        let killed = ["bash: line 1: 12 Terminated  sleep 1", "s: line 2: 7 Terminated  sleep"];
        assert_eq!(normalise(killed[0].as_bytes()), normalise(killed[1].as_bytes()));
        assert_ne!(normalise(b"bash: line 1: x\n"), normalise(b"bash: line 1: x\nbash: x\n"));
        assert_ne!(normalise(b"sort: x\n"), normalise(b"bash: x\n"));
        let times: [&[u8]; 2] = [b"real 0.01\nuser\t0m0.001s\n", b"real 0.00\nuser\t0m0.012s\n"];
        assert_eq!(normalise(times[0]), normalise(times[1]));
        assert_ne!(normalise(b"real 0.01\n"), normalise(b"sys 0.01\n"));
        assert_ne!(normalise(b"real a\n"), normalise(b"real b\n"));
    }
}
