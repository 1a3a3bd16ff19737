//! Tests that output, exit status and standard error are the same as in bash.

use super::{Environment, Input, assert_no_differences, awkward_lines, bash, folder, words};
use crate::support::{contend, has, is_tried, skip, text};

/// Pipelines that read standard input or the files in the folder.
const PIPELINES: &[&str] = &[
    "cat in | grep foo | cut -d ' ' -f 2 | sort | uniq -c | sort -rn | head -n 5",
    "tr A-Z a-z | tr -cs a-z '\\n' | sort | uniq -c | sort -k1,1nr -k2",
    "grep -v the | sed 's/a/<&>/g' | rev",
    "grep -c foo",
    "grep -c nothing-of-this",
    "grep nothing-of-this",
    "! grep foo",
    "! grep nothing-of-this",
    "cat in other | grep -i error | sort -u",
    "cat in in | wc",
    "cat other in | awk '{ n[$1]++ } END { for (k in n) print n[k] }' | tr 1 2 | sort",
    "cat in other | sed -n '$=' | tr 1 2",
    "wc <in",
    "sed s/a/b/ <in | sort <other | rev",
    "sort <other | uniq -c",
    "wc -l in",
    "wc -m",
    "sort",
    "sort -u",
    "sort -r in",
    "sort -n",
    "sort -k2",
    "sort -k2,2 -k1,1n -s",
    "sort -t, -k2 -u",
    "LC_ALL=C sort -f | uniq -i",
    "sort | uniq -d",
    "sort | uniq -u | wc -l",
    "sort | head -n 3",
    "sort -k2 | head -n 3",
    "sort -k2 | tail -n 3",
    "uniq",
    "uniq -c",
    "uniq -c | sort -n | tail -n 4",
    "head -n 7",
    "head -n 0",
    "uniq -d | wc -lc",
    "uniq -d | sort -r",
    "uniq -d | sort | grep -v o",
    "sort -z | head -n 3",
    "tr ' ' '\\000' | sort -z | uniq | head -n 2",
    "sort -z | uniq -z | tr '\\000' '\\n'",
    "grep nothing-at-all | xargs -n 1 echo none",
    "tr -cd 'a-c\\n' | head -n 20 | xargs -n 1 echo",
    "tr -d '\"\\047\\\\' | head -n 20 | xargs -L 1 echo",
    "head -n 1 in",
    "tail -n 7",
    "sed 's/foo/bar/' | head -n 3",
    "grep foo | tail -n 2",
    "awk '{ print $1 }' | sort | uniq -c",
    "awk -F, 'NF > 1 { print $2 }'",
    "awk '{ s += $1 } END { print s }'",
    "awk 'END { print NR }'",
    "cut -c 1-3 | sort -u | comm -12 - other",
    "LC_ALL=C sort | LC_ALL=C join - other",
    "sort -u | comm -23 - other",
    "cat other | awk '{ print $NF }' | comm -23 - other",
    "iconv -f UTF-8 -t UTF-16LE | wc -c",
    "iconv -f LATIN1 -t UTF-8 | sort -u",
    "tr -d '\\000' | fold -w 5 | sort | uniq -c",
    "cat -A | col -bx | expand",
    "jq -R . | jq -r .",
    "xargs -d '\\n' -n 50 printf '%s\\n' | wc -l",
    "sed -n 2p",
    "tr A-Z a-z | sed -n 2p",
    "sed 's/x/y/' | awk '!seen[$0]++' | sort",
    "nl | tac | sed 's/^ *//' | head -n 2",
    "cat in - | grep -v foo | md5sum",
    "cat | cat | cat",
    "cat | stat -Lc %F - | rev",
    "cat | wc -l - other | rev",
    "tee copied | sort | cmp - in",
    "grep foo | grep -v foo | sort",
    "sort in - | uniq -c",
    "sort -m other other",
    "sort -k2 | grep a",
    "sort | grep -v a",
    "sort -t a -t b -k2",
    "sort --parallel=0 | uniq",
    "sort -S foo -n | sort -k2",
    "sort -n | head -n 40",
    "sort -k2n -k1r",
    "sort -bf -k 2.2,3b -k 1",
    "printf '1\\2005\\n2\\n-\\3771\\n200\\n' | sort -n",
    "printf '1\\2005\\n2\\n\\n200\\n' | sort -n | head -n 2",
    "sort -z other in other",
    "cut -z -c 1-3 other in other",
    "sed -z s/o/0/ other in",
    "grep -i '[A-z]'",
    "grep -w '[^a]*'",
    "grep '[A-Z]\\b*'",
    "sed 's/.*/\\U&/'",
    "PATH=/nowhere sort in | uniq",
    "seq 2000 | sed 's/1/x/' | sort -r | head -n 3",
    "LC_ALL=C grep -a o | LC_ALL=C tr a-z A-Z | LC_ALL=C sort -u",
];

/// Pipelines that fail or print messages.
const FAILING_PIPELINES: &[&str] = &[
    "grep '['",
    "grep foo | sed 's/x'",
    "sort -k 0",
    "sort --no-such-option | uniq",
    "sed s/a/b/ | cut | sort",
    "tr a | sort",
    "sort missing",
    "cat missing in | sort -u",
    "cat in missing | grep -c foo",
    "grep foo missing in",
    "grep foo in missing | sort",
    "sed s/a/b/ missing | sort",
    "sort <missing",
    "sort <missing | wc -l",
    "cat in | sort <missing",
    "cat . | sort",
    "grep foo . | sort",
    "sort .",
    "wc .",
    "sort | comm - missing",
    "sort | join - missing",
    "no-such-command",
    "no-such-command | sort",
    "sort | no-such-command",
    "./in | sort",
    "sort | ./in",
    "awk '{ exit 3 }' | sort",
    "sort | awk '{ exit 3 }'",
    "awk 'BEGIN {' | sort",
    "awk '{ print $1 / 0 }' | sort",
    "jq . | sort",
    "iconv -f UTF-16 -t UTF-8 | sort",
    "iconv -f UTF-8 -t ASCII | wc -l",
    "xargs -n 3 no-such-command",
    "xargs -d '\\n' -n 9 false",
    "sed s/a/b/ | head -n x",
    "head -n 3 missing",
    "sort -o in/x",
    "sh -c 'kill -TERM $$' | sort",
    "sort | sh -c 'cat; kill -KILL $$'",
    "sort | sh -c 'exit 300'",
    "uniq missing",
];

fn assert_all_same(test: &str, pipelines: &[&str], input: &[u8], ways: &[(&[&str], &str, Input)]) {
    if !has("bash") {
        return skip(test, "there is no bash");
    }
    let folder = folder(input);
    let folder = folder.path();
    let mut wrong = Vec::new();
    for (row, pipeline) in pipelines.iter().enumerate() {
        for (column, &(options, locale, input)) in ways.iter().enumerate() {
            if !is_tried(row, column, 2) {
                continue;
            }
            let environment = Environment { folder, input, locale };
            wrong.extend(environment.difference(options, pipeline));
        }
    }
    assert_no_differences(&wrong);
}

#[test]
fn chunks_give_bash_s_output() {
    let ways: [(&[&str], _, _); 2] = [
        (&["-j", "3", "--part-size", "900"], "C.UTF-8", Input::File),
        (&["-j", "3", "--part-size", "1700"], "C", Input::Pipe),
    ];
    assert_all_same("chunks_give_bash_s_output", PIPELINES, &words(20_000), &ways);
}

#[test]
fn awkward_lines_give_bash_s_output_in_chunks() {
    let ways: [(&[&str], _, _); 2] = [
        (&["-j", "3", "--part-size", "1100"], "C", Input::File),
        (&["-j", "2", "--part-size", "2k"], "C.UTF-8", Input::Pipe),
    ];
    assert_all_same(
        "awkward_lines_give_bash_s_output_in_chunks",
        PIPELINES,
        &awkward_lines(15_000),
        &ways,
    );
}

/// Tests commands that run in the C locale on ASCII chunks, with non-ASCII chunks in between.
#[test]
fn ascii_and_non_ascii_chunks_give_bash_s_output() {
    let pipelines = [
        "sed 's/./<&>/3'",
        "sed 's/[^ ]*/<&>/2' | sed 's/^...//'",
        "grep -o '[a-z]*.$'",
        "grep -o 'n.e'",
        "sed 's/\\(.\\)\\(.\\)/\\2\\1/' | sort",
        "sed 's/.$//;s/^\\(.\\).*/\\1&/' | grep -v '[x-z]' | sort -k2,2nr",
        "tr a '\\351' | sed 's/^./x/' | LC_ALL=C sort",
        "sed 'y/ab/ba/;s/^.//' | sort | uniq -c",
    ];
    let ascii = "zone 3 alpha\nnine 1 beta\n\nxa ba 7 gamma\n".repeat(40);
    let other = "z\u{f6}ne 2 \u{e9}tude\nn\u{e9}e 5 na\u{ef}ve\n\u{df}a \u{101} 4\n".repeat(25);
    let mut input = [ascii.as_str(), &other, &ascii, &ascii, &other].concat().into_bytes();
    input.extend_from_slice(b"ab\xffcd 8\nlast of all");
    let ways: [(&[&str], _, _); 2] = [
        (&["-j", "3", "--part-size", "600"], "C.UTF-8", Input::File),
        (&["-j", "2", "--part-size", "900"], "C.UTF-8", Input::Pipe),
    ];
    assert_all_same("ascii_and_non_ascii_chunks_give_bash_s_output", &pipelines, &input, &ways);
}

#[test]
fn pipelines_give_bash_s_output_with_default_options() {
    let ways: [(&[&str], _, _); 2] =
        [(&["-j", "3"], "C", Input::Pipe), (&["-j", "2"], "C.UTF-8", Input::File)];
    let input = words(3_000_000);
    assert_all_same("pipelines_give_bash_s_output_with_default_options", PIPELINES, &input, &ways);
}

/// Tests that reverse line feeds move back to a line of an earlier chunk.
#[test]
fn reverse_line_feeds_reach_earlier_chunks() {
    let mut input = words(60_000);
    input.extend_from_slice(b"last\n");
    input.extend_from_slice(&[b'\x0b'; 100]);
    input.extend_from_slice(b"over it\n");
    let ways: [(&[&str], _, _); 2] =
        [(&["-j", "3", "--part-size", "500"], "C", Input::Pipe), (&["-j", "2"], "C", Input::File)];
    let pipelines =
        ["nl | col -bx", "col -b | rev", "tr a b | nl | cut -c 3- | col -bx | tail -n 3"];
    assert_all_same("reverse_line_feeds_reach_earlier_chunks", &pipelines, &input, &ways);
}

#[test]
fn commands_have_a_pipe_wherever_bash_gives_one() {
    if !has("bash") {
        return skip("commands_have_a_pipe_wherever_bash_gives_one", "there is no bash");
    }
    let folder = folder(b"one\ntwo\n");
    let made = |run: &str, text: &str| {
        std::fs::write(folder.path().join("script"), text).expect("room");
        let script = format!("echo one >out; {{ {run}; }} <in >>out 2>&1; cat out");
        let output = bash(&script).current_dir(folder.path()).output().expect("bash");
        self::text(&output.stdout)
    };
    for text in [
        "cat | stat -Lc %F - | rev",
        "cat | cat | stat -Lc %F - | rev",
        "rev | stat -Lc %F /dev/stdout | cat",
        "rev | cat | stat -Lc %F - /dev/stdout | cat | cat",
        "rev | grep -h o in out | cat",
        "cat <in | stat -Lc %F - | rev",
        "cat in | stat -Lc %F - | rev",
    ] {
        let expected = made("bash script", text);
        assert!(expected.lines().count() > 1, "{text}: {expected}");
        for options in ["", "-j 2 --part-size 1"] {
            let run = format!("{} run {options}", contend());
            assert_eq!(made(&format!("{run} '{text}'"), text), expected, "{text} {options}");
            assert_eq!(made(&format!("{run} -f script"), text), expected, "-f {text} {options}");
        }
    }
}

/// Tests the file offset after commands that share an open file with the caller.
#[test]
fn the_file_offset_after_a_run_is_that_of_bash() {
    if !has("bash") {
        return skip("the_file_offset_after_a_run_is_that_of_bash", "there is no bash");
    }
    let folder = folder(&words(40_000_000));
    let left = |run: &str, pipeline: &str| {
        let script = format!("{{ {run} '{pipeline}' >/dev/null; wc -c; }} <in");
        let output = bash(&script).current_dir(folder.path()).output().expect("bash");
        assert!(output.status.success(), "{script}: {output:?}");
        text(&output.stdout)
    };
    let run = format!("{} run -j 2", contend());
    for pipeline in ["grep -m 1 foo", "head -n 3", "grep foo | wc -l", "sort | uniq -c", "cut -c 1"]
    {
        assert_eq!(left(&run, pipeline), left("bash -c", pipeline), "{pipeline}");
    }
}

#[test]
fn empty_inputs_give_bash_s_output() {
    let forced: &[&str] = &["-j", "3", "--part-size", "100"];
    let ways = [
        (forced, "C", Input::Nothing),
        (&[], "C.UTF-8", Input::Nothing),
        (forced, "C.UTF-8", Input::Closed),
        (&[], "C", Input::Closed),
    ];
    assert_all_same("empty_inputs_give_bash_s_output", PIPELINES, b"", &ways);
}

#[test]
fn failing_commands_give_bash_s_output_and_status() {
    let forced: &[&str] = &["-j", "3", "--part-size", "700"];
    let ways = [
        (forced, "C", Input::File),
        (forced, "C.UTF-8", Input::Pipe),
        (&[], "C", Input::Pipe),
        (forced, "C", Input::Nothing),
    ];
    assert_all_same(
        "failing_commands_give_bash_s_output_and_status",
        FAILING_PIPELINES,
        &words(8_000),
        &ways,
    );
}

/// Tests that messages about awkward text are not repeated for every chunk.
#[test]
fn failing_commands_on_awkward_lines_give_bash_s_output() {
    let ways: [(&[&str], _, _); 2] = [
        (&["-j", "3", "--part-size", "700"], "C.UTF-8", Input::File),
        (&["-j", "3", "--part-size", "700"], "C", Input::Pipe),
    ];
    assert_all_same(
        "failing_commands_on_awkward_lines_give_bash_s_output",
        FAILING_PIPELINES,
        &awkward_lines(8_000),
        &ways,
    );
}
