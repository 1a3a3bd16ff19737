//! Decides whether a pipeline may run repeatedly.
//!
//! The shell's grammar (brush-parser) yields every command of the source, including those in
//! substitutions. For each command, its name and arguments are checked, and for each redirection,
//! its target. Source that cannot be parsed is refused: a needless refusal is safe. Programs with
//! unknown names are accepted.
//!
//! `grammar`, `words` and `called` import each other because the shell's grammar is recursive:
//! commands have words, words have substitutions that contain commands, and some commands (`eval`,
//! `sh -c`) take commands as words.

mod called;
mod grammar;
mod words;

use crate::parse::Parsed;
use grammar::{command, program, stages};

/// The reason why a pipeline must not run again. Callers prefix the message with the option that
/// would run it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRepeatable {
    /// A stage may write to a file, start programs because of its options or script, or connect to
    /// another machine by a redirection (`/dev/tcp`, `/dev/udp`).
    #[error(
        "reruns the pipeline, and stage {stage}, '{text}', writes to a file: remove the redirection"
    )]
    Writes {
        /// Number of the stage, from 1.
        stage: usize,
        /// The source of the stage.
        text: String,
    },
    /// The setup may have a side effect.
    #[error(
        "reruns the --setup, which may have side effects: remove commands that write files or start \
         other programs"
    )]
    Setup,
    /// A stage runs a program that may have a side effect.
    #[error(
        "reruns the pipeline, and stage {stage}, '{text}', runs {program}, which may have side \
         effects: remove the stage"
    )]
    Changes {
        /// Number of the stage, from 1.
        stage: usize,
        /// The source of the stage.
        text: String,
        /// Name of the program, or its source if the name is known only at run time.
        program: String,
    },
    /// A stage cannot be parsed.
    #[error(
        "reruns the pipeline, and stage {stage}, '{text}', is too complex to rule out side effects: \
         simplify it"
    )]
    Unparsed {
        /// Number of the stage, from 1.
        stage: usize,
        /// The source of the stage.
        text: String,
    },
    /// The setup cannot be parsed.
    #[error("reruns the --setup, which is too complex to rule out side effects: simplify it")]
    SetupUnparsed,
}

/// The reason why a command must not run again.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// The command may write to a file, start programs because of its options or script, or connect
    /// to another machine by a redirection.
    Writes,
    /// The command starts the named program, which may have a side effect.
    Starts(String),
    /// The command cannot be parsed.
    Unparsed,
}

/// Checks that running a pipeline again, with its setup, has no side effects. Programs with unknown
/// names count as harmless.
///
/// # Errors
/// Returns an error if a stage or the setup may have a side effect or cannot be parsed.
pub fn check_repeatable(parsed: &Parsed, setup: Option<&str>) -> Result<(), NotRepeatable> {
    // The setup runs before every run, and may define functions that stages call.
    setup.map_or(Ok(()), check_setup)?;
    // Parse the whole source, since the bodies of here-documents follow the stages.
    let commands = stages(&parsed.text).filter(|found| found.len() == parsed.stages.len());
    for index in 0..parsed.stages.len() {
        let outcome = match &commands {
            Some(commands) => command(&commands[index]),
            None => Err(Change::Unparsed),
        };
        let (stage, text) = (index + 1, parsed.stage_text(index));
        outcome.map_err(|change| match change {
            Change::Writes => NotRepeatable::Writes { stage, text },
            Change::Starts(program) => NotRepeatable::Changes { stage, text, program },
            Change::Unparsed => NotRepeatable::Unparsed { stage, text },
        })?;
    }
    Ok(())
}

/// Checks that running a setup again has no side effects. Programs with unknown names count as
/// harmless.
///
/// # Errors
/// Returns an error if the setup may have a side effect or cannot be parsed.
pub fn check_setup(setup: &str) -> Result<(), NotRepeatable> {
    program(setup).map_err(|change| match change {
        Change::Unparsed => NotRepeatable::SetupUnparsed,
        Change::Writes | Change::Starts(_) => NotRepeatable::Setup,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn check(text: &str) -> Result<(), NotRepeatable> {
        check_repeatable(&parse(text).expect("one pipeline"), None)
    }

    /// Returns the texts for which [`check_repeatable`] has a result that `judged` rejects.
    fn others<'a>(
        texts: &[&'a str],
        judged: impl Fn(&Result<(), NotRepeatable>) -> bool,
    ) -> Vec<&'a str> {
        texts.iter().copied().filter(|text| !judged(&check(text))).collect()
    }

    fn writes(outcome: &Result<(), NotRepeatable>) -> bool {
        matches!(outcome, Err(NotRepeatable::Writes { .. }))
    }

    fn starts(outcome: &Result<(), NotRepeatable>) -> bool {
        matches!(outcome, Err(NotRepeatable::Changes { .. }))
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn read_only_commands_are_repeatable() {
        let texts = [
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
            "grep 'a > b' f | sort",
            "awk '$1 > 5' f",
            "awk '{ if (a > b) print }' f",
            "gawk -b -F: -v n=3 -e '{ print $1 }' f",
            "awk \"{ print \\$$n }\" f",
            "[ 3 -gt 2 ]",
            "cat f 2>/dev/null",
            "cmd 2>&1 | cat 2>&- 3<&0 >/dev/fd/2 &>/dev/null",
            "cat <<<x",
            "cat <<E | sort\na > b; tee m\nE\n",
            "cat <<'E' | sort\n$(tee m)\nE\n",
            "for i in 1 2; do echo $i; done",
            "while read x; do (( x > 1 )); echo $((x+1)) ${x:-y} ${#x}; done",
            "[[ a > b && $x =~ ^(tee|rm)$ ]]",
            "echo \"tee\" 'rm x; tee' $'tee\\n' a\\>b \"> f\" \"it's\" | cat",
            "case $x in tee) echo a;; rm|mv) echo b;; esac",
            "sed -n '/new/p'",
            "sed 's/we/ew/' f",
            "sed -e '/x/{' -e 's/[/]/x/g' -e '}' -e 'a we' -e 'y/we/ew/;bw;:w'",
            "sed 's/[[:space:]/]*w f/x/;s|we|we|2p' f",
            "sed 's/a/b/w /dev/stdout' f",
            "sed --expression \"s/$a/$b/\" --quiet -l 5 f",
            "cat <(sort a) <(sort b) | sort",
            "cat $(ls; echo 'a > b') \"$(ls \"$x\")\" `ls` | sort",
            "a > >(sort)",
            "env A=b LC_ALL=C sort f",
            "timeout -k 5 -s KILL 5 nice -n 5 nice -5 stdbuf -oL grep x",
            "command -v tee",
            "busybox awk '{ print $1 }'",
            "eval 'cat f'",
            "x=$(ls) sort f",
            "~/bin/mine -o x",
            "uniq -f 1 in",
            "if [ -f x ]; then cat x; else echo; fi",
            "f() { tr a b; }",
            "xz -dkc f | date +%s",
        ];
        assert_eq!(others(&texts, Result::is_ok), NONE);
    }

    #[test]
    fn a_set_up_that_writes_is_refused() {
        let parsed = parse("a | b").expect("one pipeline");
        for setup in [
            "g() { date >> f; }",
            "touch f",
            "f() { tee x; }",
            "exec 3>log",
            "alias x=tee",
            "alias x='env -i'",
            "trap 'rm f' EXIT",
            "echo \"$(echo a # )\ntee m)\"",
            "x=$(date >> f)",
            ". ./lib",
            "eval \"$x\"",
        ] {
            let refused = check_repeatable(&parsed, Some(setup));
            assert_eq!(refused, Err(NotRepeatable::Setup), "{setup}");
        }
        for setup in [
            "f() { sed s/a/b/; }; F=x",
            "set -o pipefail",
            "cd /tmp 2>/dev/null",
            "x=(a 'b c' [3]=d); shopt -s extglob; export A=b; ulimit -n 10; umask 022",
            "trap '' PIPE; trap - TERM",
            "exec 3<f",
            "# nothing > f",
        ] {
            assert_eq!(check_repeatable(&parsed, Some(setup)), Ok(()), "{setup}");
        }
    }

    #[test]
    fn a_command_that_writes_by_itself_is_refused() {
        let texts = [
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
            "gawk -i inplace '{print \"x\" $0}' g1",
            "gawk -e '{ print > \"f\" }'",
            "gawk -l filefuncs '{ print }'",
            "gawk '@load \"x\"; { print }'",
            "sed --in s/a/aa/g g2",
            "sed --i p g2",
            "sed -n -i.bak p f",
            "sed -Ei p f",
            "/opt/mine/sed -i p f",
            "./sort -o f f",
            "sed -i \"$x\" f",
            "sed 's/1/b/wouty' h",
            "sed '/x/wout'",
            "sed 's/x/y/e'",
            "sed 's/x/y/ge'",
            "sed '1e date'",
            "sed -e p -e '1~2{p;wout' -e '}'",
            "sed -e 'a x\\\\' -e 'w f'",
            "sed 's/[\\]/x/w f'",
            "sed \"s/$x/y/w f\"",
            "sed -s --expression='w f'",
            "uniq in 7",
            "sort -o \"$f\"",
            "zstd -c -o f",
            "env LC_ALL=C sort -o f",
            "yq -i .a f",
        ];
        assert_eq!(others(&texts, writes), NONE);
    }

    #[test]
    fn a_redirection_to_a_file_is_refused() {
        let texts = [
            "sort f >out",
            "a | b >>out",
            "{ a; } > out | b",
            "a 2>errors | b",
            "a >| f",
            "a >& f",
            "a &>f",
            "a &>>f",
            "a <>f",
            "a >&$x",
            "a >$x",
            "{ echo x >& lg; cat h; } | sort",
            "cat </dev/tcp/host/80",
            "while read x; do (( x > 1 )); echo $((x+1)) >> m; done",
            "(( x > 1 )) 2>f",
            "[[ a ]] >f",
            "[ a > b ]",
            "f() { a; } >f",
            "for x in a; do b >c; done",
            "cat <<E\n$(a >b)\nE\n",
            "cat ${x:-$(a >b)}",
        ];
        assert_eq!(others(&texts, writes), NONE);
    }

    #[test]
    fn a_program_that_may_change_something_is_refused() {
        let texts = [
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
            "seq 3 | dash -c \"cat; echo x >>m\"",
            "a | busybox sh -c x",
            "a | zsh -c x",
            "a | unlink f",
            "a | logger",
            "start-stop-daemon x",
            "zypper x | . x y",
            "eval \"$x\"",
            "eval 'tee m'",
            "eval -- 'tee m'",
            "source x",
            ". x",
            "exec tee m",
            "command tee f",
            "command -p tee f",
            "builtin eval 'tee f'",
            "nice -n 5 tee f",
            "nice -5 tee f",
            "env -i A=b tee f",
            "env -S 'tee f'",
            "env $x sort",
            "timeout -k 3 5 tee f",
            "timeout $x tee f",
            "stdbuf -o L tee f",
            "a | /usr/bin/te? f",
            "a | {tee,f}",
            "a | $'te\\x65' f",
            "a | \"$HOME\"/x",
        ];
        assert_eq!(others(&texts, starts), NONE);
    }

    #[test]
    fn side_effects_are_found_in_every_position() {
        let texts = [
            "seq 3 | while read f;do tee -a m <h;done | sort | uniq",
            "{ cat h|tee -a m; } | sort | uniq",
            "cat <(tee -a m <h) | sort | uniq",
            "cat $(tee -a m <h >/dev/null; echo h) | sort",
            "cat `tee -a m <h >/dev/null; echo h` | sort",
            "cat \"$(tee -a m <h)\" | sort",
            "cat \"`tee -a m <h`\" | sort",
            "cat \"${x:-\"$(tee m)\"}\" | sort",
            "a >(tee m)",
            "a > >(tee m)",
            "cat < <(tee m)",
            "cat <<<$(tee m)",
            "cat <<E | sort\n`tee m`\nE\n",
            "x=$(tee m) sort",
            "x[$(tee m)]=1 sort",
            "{ x=(a $(tee m)); } | sort",
            "echo $(( $(tee m) + 1 ))",
            "echo \"$(( '$(tee m)' ))\"",
            "(( x = $(tee m) ))",
            "for ((i = $(tee m); i < 3; i++)); do a; done",
            "for i in $(tee m); do a; done",
            "case $(tee m) in a) b;; esac",
            "case a in a) tee m;; esac",
            "[[ -n $(tee m) ]]",
            "{ read 'x[$(tee m)]'; }",
            "if a; then b; elif c; then tee m; fi",
            "until tee m; do a; done",
            "f() { tee m; }",
            "{ a & tee m & } | b",
            "coproc tee m",
        ];
        assert_eq!(others(&texts, starts), NONE);
    }

    #[test]
    fn unparsable_commands_are_not_repeatable() {
        let texts = [
            "echo `echo \\$(tee m)`",
            "echo \"$(echo 'a)\" | b",
            "echo ${x@P}",
            "{ cat <<E; echo $(tee m); }\na\nE\n",
            "f() {",
            "echo 'a",
            "echo ${x:-<(tee m)}",
            "echo \\$'\\' >f ''",
        ];
        let parsed = parse("a | b").expect("one pipeline");
        let read = |text: &&&str| {
            check_repeatable(&parsed, Some(text)) != Err(NotRepeatable::SetupUnparsed)
        };
        assert_eq!(texts.iter().filter(read).collect::<Vec<_>>(), NONE.iter().collect::<Vec<_>>());
        assert!(matches!(check("echo ${x@P} | b"), Err(NotRepeatable::Unparsed { stage: 1, .. })));
    }
}
