//! Whether a pipeline may be run again and again.

use crate::commands::Simple;
use crate::commands::purity::{is_pure, writes_by_itself};
use crate::pipeline::parse::Parsed;

/// Programs that change something, or start programs that may.
const CHANGE_THINGS: &[&str] = &[
    "apt", "apt-get", "ar", "bash", "chmod", "chown", "cp", "cpio", "crontab", "csplit", "curl",
    "dd", "dnf", "docker", "ed", "ex", "git", "install", "kill", "killall", "kubectl", "ln",
    "mail", "make", "mkdir", "mkfifo", "mv", "mysql", "parallel", "patch", "pip", "pkill", "psql",
    "rm", "rmdir", "rsync", "scp", "sendmail", "sh", "shred", "split", "sponge", "sqlite3", "ssh",
    "sudo", "tar", "tee", "touch", "truncate", "unzip", "vi", "vim", "wget", "xargs", "zip",
];

/// Why a pipeline is not run again and again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRepeatable {
    /// A stage writes to a file.
    #[error(
        "--try would run stage {stage} `{text}` again and again, and it writes to a file: leave \
         that out"
    )]
    Writes {
        /// The stage, from 1.
        stage: usize,
        /// Its text.
        text: String,
    },
    /// The set-up may change something.
    #[error(
        "--try would execute the --setup again and again, and it may change something: leave out \
         what writes files or starts programs that do"
    )]
    SetUp,
    /// A stage's program may change something.
    #[error(
        "--try would run stage {stage} `{text}` again and again, and {program} may change more \
         than its output: leave the stage out"
    )]
    Changes {
        /// The stage, from 1.
        stage: usize,
        /// Its text.
        text: String,
        /// The program.
        program: String,
    },
}

/// Refuses pipelines that would change something each time.
///
/// # Errors
/// The first stage that would, and why.
pub fn check_repeatable(parsed: &Parsed, setup: Option<&str>) -> Result<(), NotRepeatable> {
    // It is executed before every run, and its functions are perhaps among the stages.
    if let Some(setup) = setup {
        let text = setup.to_owned();
        let changes = programs(&text).find(|word| CHANGE_THINGS.contains(&word.as_str()));
        if changes.is_some() || writes_to_file(&text) {
            return Err(NotRepeatable::SetUp);
        }
    }
    for index in 0..parsed.stages.len() {
        let (stage, text) = (index + 1, parsed.stage_text(index));
        if Simple::read(&text).is_some_and(|simple| is_pure(&simple)) {
            continue;
        }
        let by_itself = Simple::read(&text).is_some_and(|simple| writes_by_itself(&simple));
        if by_itself || writes_to_file(&text) {
            return Err(NotRepeatable::Writes { stage, text });
        }
        let suspicious =
            |word: &String| CHANGE_THINGS.contains(&word.as_str()) || word.contains(['$', '`']);
        let changes = programs(&text).find(suspicious);
        if let Some(program) = changes {
            return Err(NotRepeatable::Changes { stage, text, program });
        }
    }
    Ok(())
}

/// Words that stand where a program's name may stand, here or in a compound command: anywhere
/// but after an option or in quotes. Better one too many.
fn programs(text: &str) -> impl Iterator<Item = String> {
    let mut places_a_command = true;
    text.split_whitespace().filter_map(move |word| {
        // Quotes within a name change nothing about it.
        let word = word.replace(['\\', '\'', '"'], "");
        let word = word.as_str();
        let stands_first = places_a_command;
        let plain = word.trim_matches(['(', ')', '{', '}', ';']);
        let opens = ["{", "(", "do", "then", "else", "if", "while", "until", "!", "&&", "||", ";"];
        let runs_others =
            ["busybox", "env", "nice", "nohup", "time", "timeout", "stdbuf", "exec", "command"];
        places_a_command = opens.contains(&word)
            || word.ends_with([';', '|', '&'])
            || runs_others.contains(&plain)
            || stands_first
                && (word.contains('=') || plain.parse::<f64>().is_ok() || word.starts_with('-'));
        let name = plain.rsplit(['/', '(']).next().unwrap_or(plain);
        (stands_first && !name.is_empty()).then(|| name.to_owned())
    })
}

/// Whether there is a `>` outside of quotes that leads to a file.
fn writes_to_file(text: &str) -> bool {
    let mut quote = None;
    let mut characters = text.char_indices().peekable();
    while let Some((place, c)) = characters.next() {
        match (quote, c) {
            (_, '\\') if quote != Some('\'') => drop(characters.next()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '>') => {
                let target = text[place..].trim_start_matches(['>', '|', ' ']);
                let harmless = target.starts_with('&')
                    || ["/dev/null", "/dev/stderr", "/dev/stdout"]
                        .iter()
                        .any(|device| target.starts_with(device));
                let compares = text[place..].starts_with(">=") || text[..place].contains("((");
                if !harmless && !compares {
                    return true;
                }
                while characters.next_if(|(_, c)| *c == '>').is_some() {}
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::parse::parse;

    fn check(text: &str) -> Result<(), NotRepeatable> {
        check_repeatable(&parse(text).expect("one pipeline"), None)
    }

    #[test]
    fn what_only_reads_and_prints_may_run_again() {
        for text in [
            "cat f | sort 2>/dev/null | uniq -c",
            "awk '$1 > 3' f | grep '>' | sed 's/>/x/'",
            "while read -r l; do echo \"$l > x\"; done <f 2>&1 | wc",
            "python3 -c 'print(1)' | cat",
            "cat rm | grep tee",
            "sed ':a;N;$!ba;s/\\n/ /g' f | sed -n '2p;5q' | sed 's/we/were/g'",
            "find . -name x | sort",
            "gzip -dc f.gz | sort",
            "gzip | wc -c",
            "perl -ne 'print' f",
            "awk -f prog f",
            "uniq -c f",
            "{ echo a; echo b; } | (( x > 3 ))",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_set_up_that_writes_is_refused() {
        let parsed = parse("a | b").expect("one pipeline");
        for setup in ["g() { date >> f; }", "touch f", "f() { tee x; }", "exec 3>log"] {
            let refused = check_repeatable(&parsed, Some(setup));
            assert_eq!(refused, Err(NotRepeatable::SetUp), "{setup}");
        }
        for setup in ["f() { sed s/a/b/; }; F=x", "set -o pipefail", "cd /tmp 2>/dev/null"] {
            assert_eq!(check_repeatable(&parsed, Some(setup)), Ok(()), "{setup}");
        }
    }

    #[test]
    fn what_writes_or_changes_is_refused() {
        for text in [
            "sed -i s/a/b/ f",
            "sed -ni.bak p f",
            "sed -E --in-place p f",
            "sed -n 'w F' f",
            "sed 's/a/b/w F' f",
            "sed '1e date' f",
            "sed 's/a/b/e' f",
            "sort f -o f",
            "sort -of f",
            "uniq in out",
            "uniq - out",
            "sort --outp=f",
            "awk '{ print > \"F\" }' f",
            "awk '{ system($0) }' f",
            "find . -delete",
            "find . -exec rm {} +",
            "perl -pi -e 's/a/b/' f",
            "gzip f",
            "a | xz -k f",
        ] {
            assert!(matches!(check(text), Err(NotRepeatable::Writes { .. })), "{text}");
        }
        for text in ["sort f >out", "a | b >>out", "{ a; } > out | b", "a 2>errors | b", "a >| f"] {
            assert!(matches!(check(text), Err(NotRepeatable::Writes { .. })), "{text}");
        }
        for text in [
            "a | tee copy",
            "a | \\tee copy",
            "a | \"te\"e copy",
            "a | 'tee' copy",
            "a | busybox tee copy",
            "a | $T copy",
            "a | xargs rm",
            "a | sudo b",
            "while read -r f; do rm \"$f\"; done",
            "env X=1 tee f",
            "timeout 5 curl x",
            "/usr/bin/tee f",
            "a | (cd x && mv a b)",
        ] {
            assert!(matches!(check(text), Err(NotRepeatable::Changes { .. })), "{text}");
        }
    }
}
