//! Properties of commands that observation cannot reveal, derived from their names and options.

use crate::awk::Awk;
use crate::grep::Grep;
use crate::sed::Sed;
use crate::sort::Sort;
use crate::{Simple, purity, wc};

/// Programs that count as barriers with any options. Names that end in `sum`, and `grep -c`, are
/// recognized separately.
const BARRIERS: &[&str] = &["cksum", "shuf", "sort", "tac", "tail", "tsort", "wc", "xargs"];

/// Returns whether the command counts as a barrier, which writes nothing until its input ends. No
/// option is considered except `grep -c`: `tail -n +2` counts as a barrier although it is not one.
pub fn is_barrier(command: &str) -> bool {
    let Some(program) = program(command) else { return false };
    let counts = program.ends_with("grep") && has_option(command, &['c'], &["--count"]);
    let digests = program.ends_with("sum");
    BARRIERS.contains(&program) || digests || counts
}

/// Returns whether the command is a `sort` without an option to merge or check. It sorts its whole
/// input, and so may spill to temporary files before reaching EOF. Abbreviated long options such as
/// `--mer` are not recognized.
pub fn sorts(command: &str) -> bool {
    let other = has_option(command, &['m', 'c', 'C'], &["--merge", "--check"]);
    program(command) == Some("sort") && !other
}

/// Commands whose output depends on their arguments only.
const ARGUMENT_ONLY: &[&str] = &["echo", "printf", "true", "yes", ":"];

/// Returns whether the command certainly writes only to standard output, which may be redirected to
/// a file, apart from error messages.
pub fn writes_output_alone(command: &str) -> bool {
    read_with_output(command)
        .is_some_and(|simple| purity::is_pure(&simple) || ARGUMENT_ONLY.contains(&simple.name()))
}

/// Parses a simple command, and drops a final redirection of its standard output to a file. Returns
/// `None` for other redirections of output, for a file name with characters besides ASCII letters,
/// digits and `/._-+`, and for anything but a simple command.
fn read_with_output(command: &str) -> Option<Simple> {
    Simple::read(command).or_else(|| {
        let (before, file) = command.rsplit_once('>')?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c) || c == ' ';
        // Rejects `2>`, `&>` and `>&`. If the `>` is quoted, the text before it has an unterminated
        // quote and does not parse.
        let before = before.strip_suffix(" 1").unwrap_or(before);
        let before = before.strip_suffix('>').unwrap_or(before);
        let other = before.ends_with(|c: char| c.is_ascii_digit() || "&<>\\".contains(c));
        let named = file.split_whitespace().count() == 1 && file.chars().all(plain);
        (named && !other).then(|| Simple::read(before)).flatten()
    })
}

/// Returns whether the command is a `grep` with known options, which exits with code 1 if it
/// selects no line.
pub fn fails_without_match(command: &str) -> bool {
    Simple::read(command).is_some_and(|simple| Grep::read_with_files(&simple).is_some())
}

/// Commands that read a pipe until EOF, besides those in [`reads_all`].
const READ_TO_EOF: &[&str] = &["nl", "rev", "tac", "tail", "wc"];

/// Returns whether the command certainly takes its input from standard input and reads it until
/// EOF, unless it fails or is killed.
pub fn drains(command: &str) -> bool {
    let Some(simple) = Simple::read(command) else { return false };
    let named = READ_TO_EOF.contains(&simple.name()) && purity::is_pure(&simple);
    (reads_all(command) || named) && purity::source(&simple) == purity::Source::Standard
}

/// Returns whether the command is a `grep` that may write to standard error and still succeed, as
/// for binary input. Returns `false` with `-a` or `-c`, for a `grep` that [`Grep::read`] rejects,
/// and for all other commands.
pub fn may_warn(command: &str) -> bool {
    read_with_output(command)
        .and_then(|simple| Grep::read(&simple))
        .is_some_and(|grep| !grep.options.has('c') && !grep.reads_anything_as_text())
}

/// Returns whether the command's output is certainly as long as its input, apart from a final
/// newline.
pub fn keeps_size(command: &str) -> bool {
    let Some(simple) = read_with_output(command) else { return false };
    let plain = || simple.arguments.iter().all(|a| !a.text.starts_with('-') || a.text == "-");
    match simple.name() {
        "cat" | "tac" => plain(),
        _ => Sort::read(&simple).is_some_and(|sort| !sort.options.has('u')),
    }
}

/// Returns whether the command certainly reads its input until EOF, unless it fails or is killed.
pub fn reads_all(command: &str) -> bool {
    let Some(simple) = Simple::read(command) else { return false };
    match simple.name() {
        "cat" | "cut" | "sort" | "tr" | "uniq" => true,
        "grep" | "egrep" | "fgrep" => Grep::read(&simple).is_some_and(|grep| {
            grep.is_plain_filter() || grep.options.has_only("EFGPeiyvwxsahUzc")
        }),
        "sed" => Sed::read(&simple).is_some(),
        "awk" | "gawk" | "mawk" => {
            Awk::read(&simple).is_some_and(|awk| !awk.program.contains("exit"))
        }
        "wc" => wc::counts_lines(&simple),
        _ => false,
    }
}

/// Returns the total size of the command's input files in bytes. Returns `None` if the files are
/// unknown, if there is none, or if one is standard input, is missing or is not a regular file.
/// With `after_setup`, also returns `None` for a relative path, since the setup may change the
/// working directory.
pub fn named_bytes(command: &str, after_setup: bool) -> Option<u64> {
    let simple = Simple::read(command)?;
    let mut sum = 0;
    for file in purity::named_files(&simple)? {
        if after_setup && !file.text.starts_with('/') {
            return None;
        }
        let data = std::fs::metadata(&file.text).ok().filter(std::fs::Metadata::is_file)?;
        sum += data.len();
    }
    Some(sum)
}

/// Returns the program's name without its directory, or `None` if there is no program. The program
/// is taken to be the first word without `=`.
fn program(command: &str) -> Option<&str> {
    let word = command.split_whitespace().find(|word| !word.contains('='))?;
    word.rsplit('/').next()
}

/// Returns whether a word starts with one of the `long` options, or starts with a single `-` and
/// contains one of `letters`, be it an option or part of an option's argument.
fn has_option(command: &str, letters: &[char], long: &[&str]) -> bool {
    command.split_whitespace().any(|word| match word.strip_prefix('-') {
        Some(options) if !options.starts_with('-') => options.contains(letters),
        _ => long.iter().any(|option| word.starts_with(option)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_name_and_options() {
        for held in ["LC_ALL=C sort -n", "/usr/bin/wc -l", "sha256sum", "grep -ic x"] {
            assert!(is_barrier(held), "{held}");
        }
        for streams in ["grep x", "cat", "awk '{ print }'", ""] {
            assert!(!is_barrier(streams), "{streams}");
        }
        assert!(sorts("LC_ALL=C sort -k 2,2n -u") && sorts("sort --parallel=2"));
        assert!(!sorts("sort -m a b") && !sorts("sort --check") && !sorts("tsort"));
        for same in ["cat a b", "sort -k2,2n", "LC_ALL=C sort f", "tac"] {
            assert!(keeps_size(same), "{same}");
        }
        for other in ["cat -n a", "sort -u", "sort -m a b", "sort -o f", "sed p", "cat $x"] {
            assert!(!keeps_size(other), "{other}");
        }
    }

    #[test]
    fn output_sent_to_a_file_is_still_output() {
        for alone in ["sed p >/dev/null", "sort -n >f", "cat >>f", "tr a b 1>f", "cat > f"] {
            assert!(writes_output_alone(alone), "{alone}");
        }
        for other in ["sed p 2>f", "cat >&2", "cat &>f", "x >f", "cat >$f", "awk '{ print >f }'"] {
            assert!(!writes_output_alone(other), "{other}");
        }
    }

    #[test]
    fn commands_that_read_a_pipe_until_eof_are_known() {
        for all in ["wc -c", "tail -n 3", "cut -c 2", "cat", "cat -", "sort"] {
            assert!(drains(all), "{all}");
        }
        for other in ["wc -c f", "cat f", "head", "sed 5q", "python3 x", "cat <f", "tail -f"] {
            assert!(!drains(other), "{other}");
        }
    }

    #[test]
    fn commands_that_may_exit_early_are_known() {
        for whole in ["cat f", "grep -c x f", "sed s/a/b/ f", "awk '{ print }'", "wc -l"] {
            assert!(reads_all(whole), "{whole}");
        }
        for early in ["head f", "grep -q x", "grep -m 1 x", "sed 5q", "awk '{ exit }'", "wc -c f"] {
            assert!(!reads_all(early), "{early}");
        }
    }

    #[test]
    fn sizes_of_named_files_add_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| format!("{}/{name}", folder.path().display());
        std::fs::write(path("a"), "12345").expect("room");
        std::fs::write(path("b"), "123").expect("room");
        let (a, b) = (path("a"), path("b"));
        let named_bytes = |text: &str| super::named_bytes(text, false);
        assert_eq!(named_bytes(&format!("cat {a} {b}")), Some(8));
        assert_eq!(named_bytes(&format!("sed s/a/b/ <{a}")), Some(5));
        assert_eq!(named_bytes(&format!("grep x {a}")), Some(5));
        assert_eq!(super::named_bytes(&format!("cat {a}"), true), Some(5));
        assert_eq!(super::named_bytes("cat Cargo.toml", true), None);
        assert!(super::named_bytes("cat Cargo.toml", false) > Some(0));
        for unknown in ["cat".to_owned(), format!("cat {a} -"), format!("cat {}", path("none"))] {
            assert_eq!(named_bytes(&unknown), None, "{unknown}");
        }
    }
}
