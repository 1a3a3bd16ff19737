//! Tests that scripts keep their semantics. The scripts combine every feature of shells with stages
//! that contend can parallelise. They run as text and as files, with default options and with small
//! chunks.
//!
//! docs/guides/parallelise.md lists the same rows; a test compares the two.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{code, words};
use crate::support::{contend, has, is_tried, skip};

/// Time after which a script counts as hanging.
const DEADLINE: Duration = Duration::from_mins(1);

/// Sets of options. At full effort, every script runs with each of them.
const OPTIONS: &[&[&str]] =
    &[&[], &["-j", "3", "--part-size", "2k"], &["-j", "2", "--part-size", "1M"]];

/// Features with scripts that use them. `big`, its copy `copy`, and `small` are files; `a` and `b`
/// are files with one line; `nofile` does not exist; standard input is the line `STDIN`.
const ROWS: &[(&str, &[&str])] = &[
    (
        "input from a file (`<`)",
        &[
            "sort <big | uniq -c | tail -n 3",
            "f=big; <$f sort -r | head -n 2",
            "sort <nofile | wc -l; echo $?",
            "echo keep >out; sort <nofile >out; cat out",
            "rm -f out; sort <nofile >out; ls out",
            "f=nofile; sort <$f | tr a b >out; echo $?; ls out",
            "sort <nofile <big | wc -l",
            "sort <small <big | wc -l",
            "f=small; sort <$f <big | wc -l; sort <big <$f | wc -l",
        ],
    ),
    (
        "numbered descriptors (`n<`, `n>`)",
        &[
            "f=big; sort 00<$f | wc -l",
            "f=big; sort 0<$f 3<small | tail -n 1",
            "f=big; sort 3<$f /dev/fd/3 | tail -n 1",
            "f=big; sort $f 1>out; tail -n 1 out",
            "f=big; { sort $f 3>out | tail -n 1 >&3; } 3>&1; ls -s out",
            "exec 3<big; sort <&3 | tail -n 2; sort <&3 | wc -l",
            "exec 3<big; read -r l <&3; echo $l; f=-r; sort $f <&3 | tail -n 2",
            "exec 4>out; f=big; sort $f >&4; echo more >&4; tail -n 2 out",
            "f=big; grep -c a $f <&-; sort $f 4<&-",
            "f=big; sort $f >&-; echo $?",
            "seq 12 | sort - a <&- | wc -l; uniq <&- | sort; sort <&- | cat",
            "exec <&-; x=1; awk $x | awk $x; sort | cat",
            "mkdir d; x=-r; sort $x <d; echo $?; sort $x <d | wc -l; tr a b <d | sort",
            "x=-r; sort $x 0>out; echo $?; sort $x 0>out | wc -l",
        ],
    ),
    (
        "ambiguous redirections",
        &[
            "sort <$nope; echo $?",
            "f='a b'; sort <$f; echo $?",
            "f='a -r'; sort <$f | wc -l; echo $?",
            "sort <[ab]; echo $?",
            "sort <{a,b}; echo $?",
            "arr=(a b); sort <${arr[@]} | uniq; echo $?",
            "sort <$(echo a; echo b); echo $?",
            "sort <$nope a; echo $?",
            "sort <$nope | wc -l; echo $?",
            "sort <*.none | wc -l; echo $?",
            "f=big; sort $f >$nope | uniq; echo $?",
            "f=big; sort $f >'' | uniq; echo $?",
        ],
    ),
    (
        "targets from expansions",
        &[
            "arr=(a big); sort <${arr[1]} | tail -n 1",
            "sort <bi[g] | tail -n 1",
            "sort <$(echo big) | tail -n 1",
            "d=$PWD; sort <$d/big >$d/out.$((1+1)); tail -n 1 out.2",
            "sort <~/nofile | wc -l",
            "x=o; sort big >${x}ut; sort -r big >>\"${x}ut\"; wc -l <out",
        ],
    ),
    (
        "output (`>`, `>>`, `>|`), and the order of redirections",
        &[
            "f=big; sort $f >out; tail -n 1 out",
            "f=big; sort $f >>out; sort $f >>out; wc -l out",
            "set -o noclobber; echo x >out; f=big; sort $f >out; echo $?; cat out",
            "set -C; echo x >out; f=big; sort $f >|out; wc -l out",
            "f=big; sort $f >out <nofile; ls out",
            "f=big; sort >out2 <nofile >out; ls out*",
            "f=big; sort $f >out nosuch; echo $?; wc -l out",
            "f=big; sort $f 2>&1 >out | wc -l; sort nofile$x 2>&1 >out | wc -l",
            "f=big; sort nofile$x >out 2>&1; wc -l out",
            "x=-r; sort $x 2>&1 >out <nofile; >out2 2>&1 <nofile sort $x; cat out2",
            "sort nofile$x 2>err | uniq; wc -l err",
            "f=big; sort nofile$x $f &>out; wc -l out",
            "f=big; sort $f >nodir/out | wc -l; echo $?",
            "f=big; sort $f >out | wc -l; wc -l out",
            "f=big; sort $f | tee copy | uniq -c >out; cmp copy <(sort big); wc -l out",
        ],
    ),
    (
        "reading and writing (`<>`)",
        &[
            "f=-r; sort $f <>big | tail -n 1; cmp big copy",
            "f=-r; sort $f <>new | wc -l; ls new",
            "f=big; sort $f 1<>out; tail -n 1 out",
        ],
    ),
    (
        "here-documents and here-strings",
        &[
            "x=c; sort -r <<E | tr a b\n$x\n$(echo b)\na\nE\n",
            "x=c; tr a b <<'E' | sort\n$x\na\nE\n",
            "if :; then\n\tsort <<-E | tr a b\n\tb\n\ta\n\tE\nfi",
            "x='b a'; tr ' ' '\\n' <<<$x | sort",
            "f=big; sort $f - <<<zzzz | tail -n 2",
            "f=big; sort $f | sed \"$(cat <<E\ns/a/b/\nE\n)\" | tail -n 1",
        ],
    ),
    (
        "substitutions that read a stage's input",
        &[
            "f=big; sort $f | sed \"s/^/$(read -r l; echo $l)/\" | tail -n 2",
            "f=big; tr a b <$f | sort | grep -c \"$(cat | tail -n 1)\"; echo $?",
            "f=big; sort $f | grep -c ${x:-$(cat | tail -n 1)}; echo $?",
            "f=big; sort $f | uniq -c | tail -n $(echo 2 | cat) | sort -r",
            "f=big; sort $f | tr a b >\"$(cat >copy; echo out)\"; wc -l copy out",
        ],
    ),
    (
        "process substitution",
        &[
            "f=big; sort <(cut -c1 $f) | uniq -c | tail -n 2",
            "f=big; sort $f | comm -12 - <(sort $f) | wc -l",
            "f=big; sort $f | tee >(wc -l >out) | tail -n 1; until [ -s out ]; do sleep 0.01; done; cat out",
        ],
    ),
    (
        "fifos in both directions",
        &[
            "mkfifo fa fb; tr a b <fa >fb & exec 3>fa 4<fb; echo a >&3; exec 3>&-; cat <&4",
            "mkfifo fa fb; x=a; tr $x b <fa | sort >fb & exec 3>fa; cat big >&3; exec 3>&-; tail -n 1 fb",
            "mkfifo fa; f=big; cat $f >fa & sort fa | tail -n 1; wait",
            "mkfifo fa; f=big; wc -l <fa & sort $f >fa; wait",
            "mkfifo fa; f=-r; { cat big; cat big; } >fa & sort $f <fa | uniq -c | tail -n 1; wait",
        ],
    ),
    (
        "background lists (`&`), `wait`, `$!`",
        &[
            "x=a; printf 'b\\na\\n' | { tr $x x | sort & wait; }",
            "x=a; tr $x x | sort & wait",
            "x=-r; sort $x & wait; echo $?",
            "while read -r l; do :; done <small; { sort | uniq | wc -l; } & wait",
            "while read -r l; do :; done <small; x=-r; sort $x | wc -l & wait",
            "while read -r l; do :; done <<E\n1\nE\nf() { sort | wc -l; }; f & wait",
            "if :; then :; fi <small; sort | wc -l & wait",
            "x=-r; sort $x <big | tail -n 1 & wait $!; echo $?",
            "f=big; grep zz $f & p=$!; wait $p; echo $?",
            "f=big; { sort $f | tail -n 1; } & { sort -r $f | tail -n 1; } >out & wait; cat out",
            "f=big; sort $f | sleep 0.1 & sort -r $f | tail -n 1; wait",
            "x=a; tr $x x | sort & y=1; wait; echo $y",
        ],
    ),
    (
        "coprocesses",
        &[
            "x=a; coproc tr $x b; echo a >&${COPROC[1]}; exec {COPROC[1]}>&-; cat <&${COPROC[0]}",
            "x=a; coproc C { tr $x b | sort; }; cat a b >&${C[1]}; exec {C[1]}>&-; cat <&${C[0]}",
        ],
    ),
    (
        "subshells, groups, conditions, `case`",
        &[
            "f=big; (cd /; sort $OLDPWD/$f | tail -n 1); pwd | wc -l",
            "f=big; { sort $f | tail -n 1; echo x; } | tr x y",
            "f=big; { sort -r; } <$f | tail -n 1",
            "f=big; if sort $f | grep -q a; then echo yes; else echo no; fi",
            "f=big; sort $f | grep -q nowhere || echo none; sort nofile$x && echo not",
            "f=big; case $(sort $f | wc -l) in *0) echo zero;; *) sort $f | tail -n 1;; esac",
            "f=big; [[ $(sort $f | tail -n 1) == z* ]] || (( $(grep -c a $f) > 3 )) && echo many",
            "f=big; ! sort $f | grep -q nowhere; echo $?",
            "f=big; ! grep nowhere $f; echo $?",
        ],
    ),
    (
        "functions",
        &[
            "f() { sort \"$@\" | uniq -c | tail -n $n; }; n=2; f big; f -r big",
            "f() { local g=$1; shift; grep \"$g\" \"$@\"; }; f foo big | wc -l; f nowhere big; echo $?",
            "tr() { echo mine; }; f=big; sort $f | tr a b",
            "f() { sort big | tail -n $1 >$2; return 3; }; f 1 out; echo $?; cat out",
            "f() { tr $1 $2 | sort; }; f a b <small",
            "f() { echo $LINENO; sort nofile$1; }\n\nf x; echo $LINENO",
        ],
    ),
    (
        "loops",
        &[
            "for i in a b big small; do sort $i | wc -l; done",
            "for i in 1 2 3 4 5 6 7 8; do tr $i x <small | sort | tail -n 1; done",
            "for ((i = 1; i < 4; i++)); do sort -k$i big | tail -n 1; done",
            "i=0; while [ $i -lt 9 ]; do i=$((i+1)); grep -c $i small; done",
            "cat a b | while read -r l; do grep -c \"$l\" big; done",
            "sort big | uniq | while read -r l; do echo \"$l\"; done | tail -n 2",
            "i=3; until [ $i = 0 ]; do i=$((i-1)); sort -r small | head -n $i >out.$i; done; wc -l out.*",
            "for i in 1 2 3 4 5 6; do x=1 && sort -r small | sed -n ${i}p & wait; done",
            "for f in big small; do for n in 1 2; do sort $f | tail -n $n; break; done; done",
            "for f in big; do { sort $f; sort -r $f; } | uniq -c | tail -n 1; done >out; cat out",
            "for f in big nofile small; do sort $f || continue; echo did; done | tail -n 1",
        ],
    ),
    (
        "variables, arrays, positional parameters",
        &[
            "f=big n=2; LC_ALL=C sort $f | tail -n $n; echo $LC_ALL",
            "a=(-r -k1 big); sort \"${a[@]}\" | head -n 2",
            "set -- -r big; sort \"$@\" | head -n 1; sort $* | tail -n 1",
            "IFS=,; a='-r,big'; sort $a | head -n 1",
            "IFS=12; a='-r1big'; sort $a | head -n 1",
            "f='big small'; sort $f | tail -n 1; sort \"$f\" | tail -n 1; echo $?",
            "x='a*'; f=big; grep $x $f | wc -l; grep \"$x\" $f | wc -l",
            "export X=1; f=big; Y=2 sort $f | X=3 awk 'END { print ENVIRON[\"X\"], ENVIRON[\"Y\"] }'",
            "f=big; declare -i n=1+1; sort $f | tail -n $n",
            "f=big; readonly f; sort $f | tail -n 1",
        ],
    ),
    (
        "expansions that see their surroundings",
        &[
            "shopt -s extglob\nf=big; sort @(small|$f) | tail -n 1",
            "f=big; while read -r l; do\nshopt -s extglob\nsort @(a|b) | tail -n 1\nbreak\ndone <$f; echo x",
            "printf '1\\n3\\n2\\n' | sort -r | sed \"s/^/$(read l; echo $l):/\"",
            "f=big; sort $f |\n  sed \"s/^/$LINENO:/\" |\n  tail -n 1; echo $LINENO",
            "f=big; sort ${f:=small} | tail -n 1; sort ${g:=small} | tail -n 1; echo \"[$g]\"",
            "sort ${g:=small} | tail -n 1; echo \"[$g]\"",
            "f=big; sort $f | tail -n $((n=2)); echo \"[$n]\"",
            "echo x; f=big; sort $f | tail -n 1; echo $_",
            "f=big; sort $f | sed \"s/^/$BASH_SUBSHELL:/\" | tail -n 1",
            "f=big; sort $f | sed \"s/^/$-:/\" | tail -n 1; echo $-",
            "f=big; false; sort $f | sed \"s/^/$?:/\" | tail -n 1",
            "f=big; for i in 1 2; do false; sort $f | sed \"s/^/$?:/\" | tail -n 1; done",
            "f=big; echo $0 | wc -l; sort $f | sed \"s/^/$#:/\" | tail -n 1",
            "f=big; sort $f | sed \"s/^/$(pwd | wc -l):/\" | tail -n 1",
            "f=big; sort $f | grep \"$(sort <nofile)\" | wc -l",
        ],
    ),
    (
        "unset variables (`set -u`, `${x?}`)",
        &[
            "set -u; echo 1 | sort | grep \"$nope\" | tr a b; echo here",
            "set -u; f=big; sort $f | grep \"$nope\" | tr a b; echo here",
            "set -u; sort $nope | tr a b; echo here",
            "set -u; f=big; sort $f >$nope | wc -l; echo here",
            "f=big; sort $f | grep \"${x?msg}\" | tr a b; echo here",
            "sort ${x?msg} | tr a b; echo here",
            "set -u; echo ${x-none}; sort $nope; echo not here",
            "echo a; : ${x?msg}; sort $f; echo not here",
        ],
    ),
    (
        "`set -e`, `pipefail`, `!`",
        &[
            "set -e; f=big; sort $f | tail -n 1; grep nowhere $f; echo not here",
            "set -e; f=big; grep nowhere $f | sort; echo here",
            "set -eo pipefail; f=big; grep nowhere $f | sort; echo not here",
            "set -o pipefail; f=big; grep nowhere $f | sort | wc -l; echo $?",
            "set -o pipefail; f=big; sort $f nofile | uniq | wc -l; echo $?",
            "f=big; set -o pipefail; sort $f | grep -c . | tail -n 1; set +o pipefail; sort nofile | wc -l; echo $?",
            "set -e; f=big; ! grep nowhere $f; if grep nowhere $f; then :; fi; grep nowhere $f || echo here",
            "set -e; f() { grep nowhere big; echo not here; }; f",
            "set -euo pipefail; f=big; sort $f | uniq -c | sort -rn | tail -n 1; echo ${1-none}",
        ],
    ),
    (
        "`set -f`, `set -a`, `set -m`",
        &[
            "set -f; f=bi*; sort $f | wc -l; echo $f",
            "set -a; f=big; sort $f | tail -n 1; env | grep -c contend",
            "set -a; for i in 1 2; do sort big | tail -n 1; done; env | grep -c contend",
            "set -m; f=big; sort $f | tail -n 1 & wait",
        ],
    ),
    (
        "`time`, traps, `exec`",
        &[
            "{ f=big; time sort $f | tail -n 1; } 2>/dev/null",
            "{ f=big; for i in 1 2; do time -p sort $f | tail -n 1; done; } 2>/dev/null",
            "trap 'echo end' EXIT; f=big; sort $f | tail -n 1",
            "trap 'echo err' ERR; f=big; sort nofile$x; grep nowhere $f; for i in 1 2; do grep nowhere $f; done; echo x",
            "trap 'echo err $LINENO' ERR; f=big\nfor i in 1 2; do\n  sort $f | grep nowhere\ndone\necho x",
            "trap '' PIPE; x=a; seq 100000 | tr 0-9 $x-j | head -n 1",
            "trap '' INT; f=big; sort $f | tail -n 1; kill -INT $$; echo alive",
            "trap 'sort big | tail -n 1' USR1; x=1; kill -USR1 $$; sort small$y | wc -l",
            "f=big; exec sort $f",
            "exec 2>/dev/null; f=big; sort $f | tail -n 1; sh -c 'kill -9 $$'",
            "exec 2>/dev/null; f=big; sort $f | tail -n 1; sh -c 'kill -9 $$'\n",
            "exec 2>/dev/null; f=big; sort $f | tail -n 1; cat <<X\n$f\nX\nsh -c 'kill -9 $$'\n",
            "f=big; sort $f | tail -n 1; cat <<X\n$f",
            "LC_ALL=xx_XX.UTF-8; f=big; sort $f | tail -n 1; LC_ALL=C tail -n 1 $f",
            "f=big; exec <$f; sort -r$x | tail -n 1",
            "f=big; exec >out; sort $f | tail -n 1; exec >&2; ls",
            "exec 2>err; f=nofile; sort $f | wc -l; wc -l <err",
        ],
    ),
    (
        "names (`hash`, `alias`, `PATH`, functions, `command`)",
        &[
            "hash -p /bin/echo sort; f=big; sort $f | wc -l",
            "export PATH=/nonexistent; f=big; sort $f | /usr/bin/head -n 1",
            "PATH=/nonexistent; f=big; sort $f; echo $?",
            "unset PATH; f=big; sort $f; echo $?",
            "mkdir d; printf '#!/bin/sh\\necho mine\\n' >d/sort; chmod +x d/sort; PATH=$PWD/d:$PATH; f=big; sort $f | tr m M",
            "shopt -s expand_aliases\nalias sort='sort -r'\nf=big; sort $f | head -n 1",
            "f=big; command sort $f | tail -n 1; builtin echo $f; env sort $f | tail -n 1",
            "s=sort; f=big; $s $f | tail -n 1; \\sort $f | tail -n 1; 'sort' $f | tail -n 1",
            "eval 'sort() { echo evil; }'; f=big; sort $f",
            "echo 'sort() { echo sourced; }' >lib; . ./lib; f=big; sort $f | tr s S",
            "f=big; sort $f | no-such-command; echo $?; no-such-command | sort$x; echo $?",
            "f=big; sort $f |& ./big |& wc -l; v=1 nosuch 2>&1 | wc -l",
        ],
    ),
    (
        "statuses of every stage (`PIPESTATUS`)",
        &[
            "f=big; grep nowhere $f | sort nofile | wc -l; echo ${PIPESTATUS[@]}",
            "f=big; sort $f | (exit 3); echo $?",
            "{ f=big; sort $f | sh -c 'kill -9 $$'; echo $?; } 2>/dev/null",
        ],
    ),
    (
        "sources that are cut off",
        &[
            "x=y; yes $x | tr y z | head -n 3",
            "x=y; yes $x | grep $x | sed s/y/z/ | head -n 2",
            "x=y; while :; do echo $x; done | tr y z | head -n 2; echo $?",
            "f=big; { head -n 1; wc -c; } <$f; { sort -r | head -n 1; } <$f",
            "f=big; (sort -r$x | head -n 1; wc -l) <$f",
        ],
    ),
];

/// The effects of a script: output, exit status, messages and files.
#[derive(PartialEq, Eq)]
struct Outcome {
    stdout: String,
    status: Option<i32>,
    stderr: Vec<String>,
    files: BTreeMap<String, Vec<u8>>,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stdout: String = self.stdout.chars().take(300).collect();
        let files: Vec<_> = self.files.iter().map(|(name, data)| (name, data.len())).collect();
        write!(formatter, "{:?} {stdout:?} {:?} {files:?}", self.status, self.stderr)
    }
}

/// Returns the sorted messages without prefixes such as `bash: line 3:`.
fn messages(stderr: &str) -> Vec<String> {
    let mut messages: Vec<_> = { stderr.lines() }
        .map(|line| match line.split_once(": line ") {
            Some((_, rest)) => rest.split_once(": ").map_or(rest, |(_, rest)| rest).to_owned(),
            None => line.to_owned(),
        })
        .collect();
    messages.sort();
    messages
}

/// Waits until a child exits, and returns its status. If it does not exit within [`DEADLINE`],
/// kills its process group and returns `None`.
fn wait(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return Some(code(status));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL); // nothing else would help
    child.wait().expect("it is ours");
    None
}

/// Runs a command in a new folder with the script and the files that it uses, and returns its
/// effects.
fn outcome(script: &str, command: &mut Command) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let write = |name: &str, data: &[u8]| fs::write(path.join(name), data).expect("room");
    write("script", script.as_bytes());
    write("big", &words(30_000));
    write("copy", &words(30_000));
    write("small", b"5 x\n1 y\n3 a\n");
    write("a", b"A1\n");
    write("b", b"B1\n");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let (errors, error_writer) = std::io::pipe().expect("a pipe");
    command.current_dir(path).stdin(Stdio::piped()).stdout(writer).stderr(error_writer);
    command.env("LC_ALL", "C.UTF-8").process_group(0);
    let mut child = command.spawn().expect("it starts");
    command.stdout(Stdio::null()).stderr(Stdio::null()); // closes our copies
    let mut stdin = child.stdin.take().expect("piped");
    let _ = stdin.write_all(b"STDIN\n"); // not every script reads it
    drop(stdin);
    let read = |mut pipe: std::io::PipeReader| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).map(|_| bytes)
        })
    };
    let (reader, errors) = (read(reader), read(errors));
    let status = wait(&mut child);
    let text = |bytes: std::io::Result<Vec<u8>>| {
        String::from_utf8_lossy(&bytes.expect("a pipe")).into_owned()
    };
    Outcome {
        stdout: text(reader.join().expect("no panic")),
        stderr: messages(&text(errors.join().expect("no panic"))),
        files: files(path),
        status,
    }
}

/// Returns the names and contents of the files in a folder, except the script.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = folder.read_dir().expect("a folder").map(|entry| entry.expect("a file").path());
    let files = entries.filter(|path| path.is_file() && !path.ends_with("script"));
    { files }
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("a file"))
        })
        .collect()
}

/// Returns descriptions of how contend differs from bash for a script, as text and as a file. Not
/// all options are tried at quick effort.
fn differences(script: &str) -> Vec<String> {
    let bash = |arguments: &[&str]| outcome(script, Command::new("bash").args(arguments));
    let forms = [(vec![script], bash(&["-c", script])), (vec!["-f", "script"], bash(&["script"]))];
    let mut differences = Vec::new();
    for (row, (form, expected)) in forms.into_iter().enumerate() {
        for (column, options) in OPTIONS.iter().enumerate() {
            if !is_tried(row + script.len(), column, 2) {
                continue;
            }
            let mut command = Command::new(contend());
            let found = outcome(script, command.arg("run").args(*options).args(&form));
            if found != expected {
                let how = if form.len() == 1 { "text" } else { "-f" };
                differences.push(format!(
                    "{script}\n  {how} {options:?}\n  bash:    {expected:?}\n  contend: {found:?}"
                ));
            }
        }
    }
    differences
}

/// Tests every `parts`-th row from `part`, so that several tests run in parallel.
fn rows(part: usize, parts: usize) {
    if !has("bash") {
        return skip("features", "there is no bash");
    }
    let rows = ROWS.iter().skip(part).step_by(parts);
    let found: Vec<_> = rows
        .flat_map(|(name, scripts)| {
            scripts
                .iter()
                .flat_map(|script| differences(script))
                .map(move |difference| format!("[{name}] {difference}"))
        })
        .collect();
    assert!(found.is_empty(), "{} differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn shell_features_behave_as_in_bash_1() {
    rows(0, 3);
}

#[test]
fn shell_features_behave_as_in_bash_2() {
    rows(1, 3);
}

#[test]
fn shell_features_behave_as_in_bash_3() {
    rows(2, 3);
}

/// Tests scripts whose standard input stays open and silent until they have ended.
#[test]
fn scripts_that_do_not_read_standard_input_do_not_wait_for_it() {
    if !has("bash") {
        return skip(
            "scripts_that_do_not_read_standard_input_do_not_wait_for_it",
            "there is no bash",
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("big"), words(30_000)).expect("room");
    for script in ["sort big | uniq -c", "f=big; sort $f | uniq -c", "x=1; seq 20 | sort -k$x"] {
        let mut bash = Command::new("bash");
        let expected = bash.args(["-c", script]).current_dir(folder.path());
        let expected = expected.stdin(Stdio::null()).output().expect("it starts").stdout;
        for options in OPTIONS {
            let (stdin, writer) = std::io::pipe().expect("a pipe");
            let output = tempfile::tempfile().expect("a file");
            let mut command = Command::new(contend());
            command.arg("run").args(*options).arg(script).current_dir(folder.path());
            command.stdin(stdin).stdout(output.try_clone().expect("a file")).process_group(0);
            let mut child = command.spawn().expect("it starts");
            assert_eq!(wait(&mut child), Some(0), "{script} {options:?}");
            let mut found = Vec::new();
            let mut output = output;
            output.rewind().expect("a file");
            output.read_to_end(&mut found).expect("a file");
            assert_eq!(found, expected, "{script} {options:?}");
            drop(writer);
        }
    }
}

#[test]
fn the_page_lists_the_features_that_are_tested() {
    let page = include_str!("../../../../../docs/guides/parallelise.md");
    let (_, list) =
        page.split_once("(`crates/contend/tests/it/run/features.rs`):\n\n").expect("a list");
    let listed: Vec<_> = list.lines().map_while(|line| line.strip_prefix("- ")).collect();
    assert_eq!(listed, ROWS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn differences_of_every_kind_are_detected() {
    let outcome = |script: &str| outcome(script, Command::new("bash").args(["-c", script]));
    let same = outcome("sort big; echo x >out; echo y >&2; exit 3");
    for other in [
        "sort -r big; echo x >out; echo y >&2; exit 3",
        "sort big; echo z >out; echo y >&2; exit 3",
        "sort big; echo x >out; echo x >new; echo y >&2; exit 3",
        "sort big; echo x >out; echo z >&2; exit 3",
        "sort big; echo x >out; echo y >&2; exit 4",
    ] {
        assert_ne!(same, outcome(other), "{other}");
    }
}
