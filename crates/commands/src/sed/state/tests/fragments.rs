//! Property tests on random fragments of scripts: the parser overlooks no command, and proved
//! scripts write the same output in chunks.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::super::script::{Delimiters, Function, Script};
use super::super::{Mode, per_record};
use super::chunks::{input, is_gnu_sed, parts, run};

/// Fragments that start, end or hide commands. None forms a loop by itself.
const SCRAPS: &[&str] = &[
    "s/a/b/",
    "s/",
    "/",
    "/",
    "s|",
    "|",
    "y/a/b/",
    "y/",
    "a",
    "b",
    "[",
    "]",
    "[^",
    "[[:alpha:]]",
    "\\",
    "\\/",
    "\\n",
    "\n",
    "\n",
    ";",
    "{",
    "}",
    "p",
    "d",
    "g",
    "2",
    "I",
    "M",
    "!",
    ",",
    "$",
    "~",
    "+",
    "#",
    "#n\n",
    " ",
    "w f",
    "w",
    "e",
    "W",
    "=",
    "l",
    "q",
    "x",
    "G",
    "z",
    "a x\n",
    "i\\\n",
    "c\\",
    "/a/",
    "\\,",
    "\\,b,",
    "&",
    "*",
    ".",
    "^",
    ":",
];

fn soup() -> impl Strategy<Value = String> {
    vec(select(SCRAPS), 1..9).prop_map(|scraps| scraps.concat())
}

/// Returns whether `sed --sandbox` finds no command in the script that reads or writes a file or
/// executes a program.
fn passes_sandbox(script: &str) -> bool {
    let output = std::process::Command::new("sed")
        .args(["--sandbox", "-e", script])
        .env("LC_ALL", "C")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("sed");
    !String::from_utf8_lossy(&output.stderr).contains("sandbox")
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        rng_seed: proptest::test_runner::RngSeed::Fixed(21),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_command_is_hidden(script in soup()) {
        let names_file = |function: &Function| {
            matches!(function, Function::WriteFile(..) | Function::ReadFile(..))
        };
        for delimiters in [Delimiters::Certain, Delimiters::Shielded] {
            let Ok(read) = Script::read(&script, delimiters) else { continue };
            let names_files = read.commands.iter().any(|command| names_file(&command.function));
            if is_gnu_sed() && !names_files && !read.reaches_out() {
                prop_assert!(passes_sandbox(&script));
            }
        }
    }

    #[test]
    fn proved_fragments_print_the_same_in_chunks(
        script in soup(),
        input in input(),
        cuts in vec(any::<bool>(), 1..6),
        (extended, multibyte) in any::<(bool, bool)>(),
    ) {
        let mode = Mode { extended, multibyte, ..Mode::default() };
        if !is_gnu_sed() || per_record(&script, mode).is_err() {
            return Ok(());
        }
        let (whole, _) = run(&script, mode, &input);
        let joined: Vec<u8> = parts(&input, b'\n', &cuts)
            .into_iter()
            .flat_map(|part| run(&script, mode, &part).0)
            .collect();
        prop_assert_eq!(joined, whole);
    }
}
