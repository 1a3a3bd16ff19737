use std::collections::BTreeSet;

use super::*;
use crate::pipelines::stages;
use crate::run::forms::FORMS;
use crate::support::installed;

fn committed() -> Vec<Case> {
    listing().expect("the committed cases keep to their format")
}

#[test]
fn every_theme_has_enough_valid_cases() {
    let cases = committed();
    let of = |theme: &str| cases.iter().filter(|case| case.theme == theme).count();
    assert!(of("oneliners") >= 10 && of("unix") >= 30 && of("logs") >= 8 && of("weather") >= 5);
    for case in &cases {
        assert!(case.sizes.is_sorted() && case.sizes.first() == Some(&1), "{}", case.name);
        let stages = stages(&case.text).len();
        assert!(case.serial.iter().all(|stage| (1..=stages).contains(stage)), "{}", case.name);
        let named = case.text.split([' ', '<', '\n']).any(|word| word == case.input.file);
        assert!(named != case.from_stdin || case.prepare.is_some(), "{}", case.name);
    }
    let large: BTreeSet<&str> = cases
        .iter()
        .filter(|case| case.sizes.contains(&1000))
        .map(|case| case.input.file)
        .collect();
    assert!(large.len() <= 9, "GB on a disk: {large:?}");
}

#[test]
fn the_lines_of_a_case_are_parsed() {
    let text = "case a\nstdin syslog\nwith words.txt 2MB\nsizes 1MB 1GB\nlocale C\nserial 1,3\n\
                run sort | cut -c 1 | head\nmap cut -c 1\nrest head\n";
    let cases = parse("a.txt", text).expect("it keeps to the format");
    let [case] = cases.as_slice() else { panic!("one case: {cases:?}") };
    assert_eq!((case.name.as_str(), case.theme, case.input.file), ("a", "a", "syslog"));
    assert!(case.from_stdin && !case.script && case.part.is_none());
    assert_eq!((&case.sizes[..], &case.serial[..]), (&[1, 1000][..], &[1, 3][..]));
    assert!(matches!(&case.with[..], [(input, 2)] if input.file == "words.txt"));
    let [parallel, xargs, forkrun] = case.forms.each_ref().map(|form| form.as_deref());
    assert_eq!(
        parallel,
        Some("f() { cut -c 1; }; export -f f\nparallel --pipe --block 10M -k f | head")
    );
    assert_eq!(xargs, None, "a stream has no halves");
    assert!(forkrun.is_some_and(|form| form.ends_with("\nfrun -k -s f | head")));
}

#[test]
fn errors_name_the_file_the_line_and_the_remedy() {
    let error = |text: &str| format!("{:#}", parse("a.txt", text).expect_err("it is wrong"));
    assert_eq!(error("case a\nrun x\n"), "a.txt:1: case a has no `input`: add it");
    assert_eq!(
        error("case a\ninput syslog\nrun x\nrun y\n"),
        "a.txt:1: case a has no `part`: add it"
    );
    assert_eq!(
        error("case a\ninput syslog\nsizes 1KB\nrun x\n"),
        "a.txt:3: `1KB` is not a size: write as in 1MB or 1GB"
    );
    assert_eq!(
        error("case a\ninput syslog\nserial x\nrun x\n"),
        "a.txt:3: `x` is not a stage: write as in 3,5"
    );
}

/// Checks the sources for xargs. The speed of a tool is comparable only if its output is the same.
#[test]
fn every_generated_form_prints_the_same_as_its_case() {
    const TEST: &str = "every_generated_form_prints_the_same_as_its_case";
    let folder = tempfile::tempdir().expect("a folder for the inputs");
    let xargs = FORMS.iter().position(|(tool, _)| *tool == "xargs").expect("it is there");
    for case in committed().iter().filter(|case| case.prepare.is_none()) {
        let Some(form) = case.forms[xargs].as_ref().filter(|_| installed(TEST, &case.text)) else {
            continue;
        };
        for &(input, size) in [(case.input, 1)].iter().chain(&case.with) {
            let at = case.folder(folder.path(), 1).join(input.file);
            folder::make(&at, |out| input.write(size * 200_000, 1, out)).expect("the input");
        }
        let scratch = tempfile::tempdir_in(folder.path()).expect("a folder");
        let run = |text: &str| {
            let mut command = crate::bash_command(text);
            command.current_dir(case.folder(folder.path(), 1)).env("LC_ALL", &case.locale);
            let done = command.env("SCRATCH", scratch.path()).output().expect("bash starts");
            (done.status.code(), done.stdout)
        };
        let plain = run(&case.text);
        assert!(!plain.1.is_empty(), "{} prints nothing", case.name);
        assert!(run(form) == plain, "{}: {form}", case.name);
    }
}
