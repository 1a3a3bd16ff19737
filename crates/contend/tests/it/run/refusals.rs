//! Tests of command lines that programs refuse. contend must not drop, merge or replace a stage
//! with such a command line, so that the program reports the error.

use fastrand::Rng;

use super::{Environment, Input, assert_no_differences, folder, words};
use crate::support::{by_effort, has, skip};

/// Number of random command lines of `sort` at full effort.
const SORT_COMMAND_COUNT: usize = 150;
/// Number of random command lines of all other commands together, at full effort.
const OTHER_COMMAND_COUNT: usize = 60;

/// Options of `sort`, which refuses some of them, or some combinations.
const SORT_OPTIONS: &[&str] = &[
    "-g",
    "-i",
    "-h",
    "-n",
    "-d",
    "-M",
    "-f",
    "-b",
    "-r",
    "-s",
    "-u",
    "-z",
    "-gi",
    "-hn",
    "-dn",
    "-gM",
    "-di",
    "-bf",
    "-k 1.0",
    "-k 1,1.0",
    "-k 0",
    "-k 1,0",
    "-k 1g,1n",
    "-k 1i,1g",
    "-k 1d,1i",
    "-k 1,1n",
    "-k 2",
    "-k 1x",
    "-k ''",
    "-k 1,",
    "-k 1b,1r",
    "-t ,",
    "-t ''",
    "-t ab",
    "-t '\\0'",
    "-S 1M",
    "-S junk",
    "-S 99E",
    "-S 10%",
    "-S ''",
    "-T /no/such/folder",
    "-T .",
    "--parallel=0",
    "--parallel=2",
    "--parallel=x",
    "--batch-size=1",
    "--batch-size=2",
    "--batch-size=999999",
    "--rev",
    "--uniq",
    "--re",
    "--no-such",
    "--key=1",
    "--key",
    "--field-separator=,",
    "--sort=n",
    "--sort=zz",
    "--check=quiet",
    "-o",
    "--",
    "-",
    "+1",
    "-y",
    "nofile",
    "--stable=1",
];

/// Other commands that contend drops, merges or replaces, with options that they may refuse.
const COMMANDS: &[(&str, &[&str])] = &[
    ("cat", &["-u", "-Z", "--no-such", "--show", "-", "nofile", "--", "-A"]),
    ("uniq", &["-c", "-d", "-D", "-cD", "-u", "-x", "--cou", "--no-such", "-w x", "-", "-f", "-z"]),
    (
        "head",
        &[
            "-n 3",
            "-n x",
            "-n 1x",
            "-n",
            "-n -1",
            "-3",
            "-c 1b",
            "--lin=2",
            "-n 99999999999999999999",
            "-q",
            "--no",
        ],
    ),
    (
        "tail",
        &[
            "-n 3", "-n x", "-n 1x", "-n", "-n +2", "-3", "-c 1b", "--lin=2", "--pid=x", "-q",
            "--no",
        ],
    ),
    (
        "wc",
        &[
            "-l",
            "-w",
            "-c",
            "-m",
            "-L",
            "-x",
            "--lin",
            "--no-such",
            "--total=x",
            "-",
            "--files0-from=x",
        ],
    ),
    (
        "grep",
        &[
            "-c",
            "-m 1",
            "-m x",
            "-v",
            "a",
            "'['",
            "-e",
            "-E '('",
            "--cou",
            "-P '('",
            "-Z",
            "--no-such",
        ],
    ),
    ("tr", &["a b", "a", "-d", "-d a b", "-s a", "-x", "'[:no:]' b", "z-a b", "-c a b", "a ''"]),
    ("cut", &["-f 1", "-c 0", "-c 2-", "-f", "-d ,", "-d ab", "-c 3-2", "-b 1 -f 1", "--no", "-s"]),
    ("sed", &["p", "-n", "s/a/", "-e", "-u p", "'s/a/b/w'", "--no-such", "y/a/bc/", "-z p"]),
    ("rev", &["-x", "--no-such", "nofile"]),
    ("fold", &["-w 3", "-w 0", "-w x", "-x", "--no", "-b"]),
    ("comm", &["- other", "-12 - other", "-x - other", "-", "other", "--no - other"]),
    ("awk", &["1", "'{'", "-v", "-F , 1", "--no-such 1", "'{ print $1 }'"]),
];

/// Returns up to three random options, joined by spaces.
fn random_options(random: &mut Rng, options: &[&str]) -> String {
    let count = random.usize(..4);
    let chosen: Vec<&str> = (0..count).map(|_| options[random.usize(..options.len())]).collect();
    chosen.join(" ")
}

/// Returns a random pipeline with the command, which contend may drop, merge or replace there.
fn in_random_pipeline(random: &mut Rng, command: &str) -> String {
    let before = ["", "cat | ", "tr x y | "][random.usize(..3)];
    let after = ["", " | sort", " | uniq -c", " | wc -l", " | sort -n | tail -n 4"];
    let after = after[random.usize(..after.len())];
    format!("{before}{command}{after}")
}

fn differences(pipelines: impl Iterator<Item = String>) -> Vec<String> {
    let folder = folder(&words(60_000));
    let mut wrong = Vec::new();
    for (number, pipeline) in pipelines.enumerate() {
        let input = if number % 2 == 0 { Input::File } else { Input::Pipe };
        let environment = Environment { folder: folder.path(), input, locale: "C" };
        // Whether an early exit interrupts a stage depends on timing, in bash as well.
        let is_cut = ["head", "-m"].iter().any(|word| pipeline.contains(word));
        let forced = ["-j", "3", "--part-size", "7k", "--pipefail"];
        for options in [&forced[..forced.len() - usize::from(is_cut)], &[]] {
            let set = if options.contains(&"--pipefail") { "set -o pipefail; " } else { "" };
            let mut expected = environment.run(super::bash(&format!("{set}{pipeline}")));
            let mut found = environment.run(super::contend_run(options, &pipeline));
            // Several commands may print the same message.
            for done in [&mut expected, &mut found] {
                done.stderr = vec![done.stderr.is_empty().to_string()];
            }
            if expected != found {
                wrong.push(format!("{pipeline} {options:?}\n  {expected:?}\n  {found:?}"));
            }
        }
    }
    wrong
}

#[test]
fn a_refused_sort_is_never_dropped_or_replaced() {
    if !has("bash") {
        return skip("a_refused_sort_is_never_dropped_or_replaced", "there is no bash");
    }
    let mut random = Rng::with_seed(11);
    let found = ["-gi", "-hn", "-dn", "-k 1.0", "-gM", "-k1g,1n", "-k1i,1g", "--batch-size=999999"];
    let found = found.iter().map(|options| format!("sort {options} in | sort | wc -l"));
    let drawn = std::iter::repeat_with(|| {
        let sort = format!("sort {}", random_options(&mut random, SORT_OPTIONS));
        in_random_pipeline(&mut random, &sort)
    });
    assert_no_differences(&differences(
        found.chain(drawn.take(by_effort(SORT_COMMAND_COUNT / 3, SORT_COMMAND_COUNT))),
    ));
}

#[test]
fn refused_options_are_reported_by_the_command() {
    if !has("bash") {
        return skip("refused_options_are_reported_by_the_command", "there is no bash");
    }
    let mut random = Rng::with_seed(12);
    let drawn = std::iter::repeat_with(|| {
        let (name, options) = COMMANDS[random.usize(..COMMANDS.len())];
        let command = format!("{name} {}", random_options(&mut random, options));
        in_random_pipeline(&mut random, &command)
    });
    let drawn: Vec<String> =
        drawn.take(by_effort(OTHER_COMMAND_COUNT / 2, OTHER_COMMAND_COUNT)).collect();
    assert_no_differences(&differences(drawn.into_iter()));
}
