//! Tests that pipelines behave with contend as in the shell: output, errors, exit status.

use crate::support::{Command, PublicFolder, contend, has, run, skip, text};

/// A pipeline with its setup.
struct Case {
    setup: &'static str,
    text: &'static str,
}

const fn case(text: &'static str) -> Case {
    Case { setup: "", text }
}

/// Pipelines that work in any shell.
const PORTABLE: &[Case] = &[
    case("echo one"),
    case("cat | tr a-z A-Z"),
    case("printf '%s|' 'a  b' \"c  d\" e\\ f | cat"),
    case("printf 'x\\n' | sed 's/x/a|b;c&d/' | tr '|' '\\n'"),
    case("X='p q' sh -c 'echo \"$X\"' | cat"),
    case("echo \"$HOME\" ~ $((6 * 7)) | cat"),
    case("echo *.txt [ab].none | cat"),
    case("{ echo in >made; sort <made >made2 2>&1; cat made2 made; } | cat"),
    case("sort <<E | cat\nb $HOME\na\nE\n"),
    case("cat <<'E' | sort -r\n$b\n`a`\nE\n"),
    case("echo x | cat - <<E\nhere\nE\n"),
    case("(echo a; echo b >&2; exit 3) | { cat; exit 4; }"),
    case("printf '1\\n2\\n' | while read -r l; do echo \"<$l>\"; done"),
    case("for i in 1 2 3\ndo\n  echo $i\ndone | cat # | exit 9"),
    case("if true; then echo yes; else echo no; fi | case x in x) cat;; esac"),
    case("! true | false"),
    case("! echo x | cat"),
    case("! true"),
    case("true | false"),
    case("false | true"),
    case("exit 7"),
    case("exit 7 | cat"),
    case("cat | exit 5"),
    case("nosuchcommand-x"),
    case("echo x | nosuchcommand-x"),
    case("./readable.txt | cat"),
    case("cat /no/such/file | cat"),
    case("yes | head -n 1"),
    case("sh -c 'kill -TERM $$' | cat"),
    case("cat | sh -c 'kill -KILL $$'"),
    case("echo ${undefined-default} | cat"),
    case("echo ${undefined?message} | cat"),
    case("echo $$ | while read -r a; do [ \"$a\" = $$ ] && echo same; done"),
    case("{ { until [ -e made ]; do sleep 0.01; done; echo late; } & echo early; : >made; } | cat"),
    case("f() { echo never; } | echo done"),
    case("X=1 | echo \"${X-unset}\""),
    case("{ trap 'echo trapped' EXIT; echo body; } | cat"),
    case("exec echo replaced | cat"),
    case(": | : | : | : | : | : | : | : | : | :"),
    case("echo 'é ü 漢字' | cat"),
    case("echo a \\\n  b |\n\n  cat"),
    case("cat >&2 | cat"),
    case("cat <&- | cat"),
    Case { setup: "f() { tr a-z A-Z; }", text: "echo abc | f" },
    Case { setup: "v='a  b'; export v", text: "echo \"$v\" | sh -c 'cat; echo \"$v\"'" },
    Case { setup: "set -u", text: "echo $undefined | cat" },
    Case { setup: "set -e", text: "{ false; echo not reached; } | cat" },
    Case { setup: "set -e", text: "cat | false" },
    Case { setup: "set -f", text: "echo *.txt | cat" },
    Case { setup: "IFS=,", text: "echo a,b | while read -r x y; do echo \"$y\"; done" },
    Case { setup: "set -- one two", text: "echo \"$2\" \"$#\" | cat" },
    Case { setup: "read -r first", text: "cat | sed \"s/^/$first:/\"" },
    Case { setup: "trap 'echo at the end' EXIT", text: "echo body | cat" },
    Case { setup: "set -e; trap 'echo at the end' EXIT", text: "sleep 0.1 | false" },
    Case { setup: "exec 9>kept 8>&1", text: "echo to 9 >&9 | { cat; echo to 8 >&8; }" },
    Case { setup: "cd /", text: "pwd | cat" },
    Case { setup: "umask 077", text: "umask | cat" },
    Case { setup: "echo before", text: "cat | cat" },
    Case { setup: "exit 6", text: "echo never | cat" },
    Case { setup: "set -x", text: "true" },
    Case { setup: "echo() { printf 'mine\\n'; }", text: "echo x | cat" },
    Case { setup: "read() { printf 'mine\\n'; }", text: "cat | cat" },
    Case { setup: "trap 'echo status $?' EXIT", text: "true | exit 5" },
    Case { setup: "trap '' PIPE", text: "sh -c 'echo x' | cat" },
];

/// Pipelines that work only in bash.
const BASH: &[Case] = &[
    case("ls /no/such/file |& cat"),
    case("cat <(echo a) <(echo b) | paste -s"),
    case("[[ -n x ]] | (( 1 + 1 )) | cat <<<'here string'"),
    case("for ((i = 0; i < 3; i++)); do echo $i; done | cat"),
    case("echo {a,b}{1,2} $'tab\\there' | cat"),
    case("echo ${PIPESTATUS[*]-none} $BASHPID | grep -c ."),
    Case { setup: "set -o pipefail", text: "exit 3 | exit 4 | true" },
    Case { setup: "set -o pipefail", text: "! false | true" },
    Case { setup: "shopt -s lastpipe", text: "echo a | read -r x" },
    Case { setup: "shopt -s extglob", text: "echo !(*.txt) | cat" },
    Case { setup: "function g { cat -n; }; export -f g", text: "echo x | bash -c g" },
    Case { setup: "set -e; trap 'echo failed' ERR; trap 'echo end' EXIT", text: "sleep 0.1 | cat" },
    Case { setup: "set -E; trap 'echo failed' ERR", text: "{ false; true; } | cat" },
    case("echo x | time -p cat"),
    Case { setup: "trap 'exit 3' EXIT", text: "true" },
    Case { setup: "trap 'echo failed $? ${PIPESTATUS[*]}' ERR", text: "false | true | exit 4" },
    Case { setup: "trap 'echo end $? ${PIPESTATUS[*]}' EXIT", text: "exit 1 | true" },
    Case { setup: "trap 'echo end $? ${PIPESTATUS[*]}' EXIT", text: "! false | exit 7" },
    Case { setup: "(exit 5)", text: "echo $?" },
    Case { setup: "a=(1 '2 3')", text: "printf '<%s>' \"${a[@]}\" | cat" },
];

/// Runs a case with the shell and with contend, and returns the output, the messages and the exit
/// status of each, the shell's first. Leaves out messages that must differ.
fn both(shell: &str, case: &Case) -> [(String, String, Option<i32>); 2] {
    let whole = match case.setup {
        "" => case.text.to_owned(),
        setup => format!("{setup}\n{}", case.text),
    };
    let mut alone = Command::new(shell);
    alone.arg("-c").arg(whole);
    let mut under = Command::new(contend());
    under.args(["pipe", "--output", "/dev/null", "--shell", shell]);
    if !case.setup.is_empty() {
        under.args(["--setup", case.setup]);
    }
    under.arg("--").arg(case.text);
    [alone, under].map(|mut command| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("readable.txt"), "x").expect("room");
        std::fs::write(folder.path().join("b.txt"), "x").expect("room");
        let output = run(command.current_dir(folder.path()), "first line\nsecond line\n");
        // In contend, the report replaces the shell's message about a killed stage, and a message
        // says that the setup ended early. Skip both.
        let told = ["Killed", "Terminated", " Done ", "Broken pipe", "contend: "];
        let error = text(&output.stderr);
        let error = error
            .lines()
            .map(|line| without_time(&without_pid(line)))
            .filter(|line| !told.iter().any(|text| format!("{line} ").contains(text)));
        (text(&output.stdout), error.collect::<Vec<_>>().join("\n"), code(output.status))
    })
}

/// Returns the exit status as a shell reports it.
fn code(status: std::process::ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    status.code().or(status.signal().map(|signal| 128 + signal))
}

/// Replaces the time in a line of `time -p` by a word, and returns other lines unchanged.
fn without_time(line: &str) -> String {
    let is_time = |(name, time): (&str, &str)| {
        ["real", "user", "sys"].contains(&name) && time.parse::<f64>().is_ok()
    };
    let name = line.split_once(' ').filter(|&pair| is_time(pair)).map(|(name, _)| name);
    name.map_or_else(|| line.to_owned(), |name| format!("{name} SECONDS"))
}

fn without_pid(line: &str) -> String {
    line.split_whitespace()
        .map(|word| if word.parse::<u32>().is_ok_and(|n| n > 100) { "PID" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

fn same_in(shell: &str, cases: &[Case]) {
    let mut wrong = Vec::new();
    for case in cases {
        let [alone, under] = both(shell, case);
        if alone != under {
            wrong.push(format!(
                "{:?} {:?}\n  {shell}: {alone:?}\n  contend: {under:?}",
                case.setup, case.text
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn pipe_behaves_as_bash() {
    if !has("bash") {
        return skip("pipe_behaves_as_bash", "there is no bash");
    }
    same_in("bash", PORTABLE);
    same_in("bash", BASH);
}

#[test]
fn pipe_behaves_as_dash() {
    if !has("dash") {
        return skip("pipe_behaves_as_dash", "there is no dash");
    }
    same_in("dash", PORTABLE);
}

#[test]
fn pipe_behaves_as_busybox() {
    if !has("busybox") {
        return skip("pipe_behaves_as_busybox", "there is no busybox");
    }
    let folder = PublicFolder::new();
    let busybox = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|path| path.join("busybox"))
        .find(|path| path.is_file())
        .expect("found above");
    // busybox runs as a shell if its name is `sh`.
    let shell = folder.path().join("sh");
    std::os::unix::fs::symlink(busybox, &shell).expect("room");
    same_in(shell.to_str().expect("UTF-8"), PORTABLE);
}

#[test]
fn pipefail_is_optional() {
    let status = |arguments: &[&str]| {
        let mut command = crate::support::pipe(arguments);
        code(run(&mut command, "").status)
    };
    assert_eq!(status(&["exit 3 | true"]), Some(0));
    assert_eq!(status(&["--pipefail", "exit 3 | true"]), Some(3));
    assert_eq!(status(&["--pipefail", "--shell", "sh", "exit 3 | exit 4 | true"]), Some(4));
    assert_eq!(status(&["--pipefail", "! exit 3 | true"]), Some(0));
}

#[test]
fn large_streams_come_through_unchanged() {
    let input = "0123456789abcdef\n".repeat(200_000);
    let output = run(&mut crate::support::pipe(&["cat | cat | cat"]), &input);
    assert!(output.stdout == input.as_bytes());
}

#[test]
fn a_closed_standard_output_stays_closed() {
    let status = |script: &str| {
        let output = Command::new("sh").arg("-c").arg(script).output().expect("sh");
        code(output.status)
    };
    let alone = status("sh -c 'echo x' >&- 2>&-");
    let under =
        status(&format!("{} pipe --shell sh --output /dev/null 'echo x' >&- 2>&-", contend()));
    assert_eq!(alone, under);
    assert_ne!(alone, Some(0), "writing to a closed descriptor must fail");
}
