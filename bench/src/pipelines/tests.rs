use super::*;
use crate::support::installed;

fn committed() -> Vec<Entry> {
    listing().expect("the committed listing keeps to its format")
}

#[test]
fn the_listing_is_large_enough_and_uses_known_programs() {
    let entries = committed();
    assert!(entries.len() >= 48, "{}", entries.len());
    assert!(entries.iter().filter(|entry| entry.trap.is_some()).count() >= 10);
    for entry in &entries {
        let stages = stages(&entry.text);
        assert!(!stages.is_empty());
        for stage in stages {
            assert!(PROGRAMS.contains(&program(stage)), "{}: {stage}", entry.name);
        }
    }
}

#[test]
fn every_pipeline_reads_its_input_and_writes_no_file() {
    for entry in committed() {
        let named = entry.text.split([' ', '<']).any(|word| word == entry.input.file);
        assert_eq!(named, !entry.from_stdin, "{}", entry.name);
        assert!(!outside_quotes(&entry.text).contains(['>', ';', '&', '$', '`']), "{}", entry.name);
    }
}

#[test]
fn all_inputs_together_have_at_most_the_documented_size() {
    let entries = committed();
    let files: BTreeSet<_> =
        entries.iter().map(|entry| (entry.input.file, entry.megabytes)).collect();
    assert!(files.iter().map(|(_, megabytes)| megabytes).sum::<u64>() <= 4100);
    let cases = crate::run::cases::listing().expect("the committed cases keep to their format");
    for input in &inputs::TABLE {
        let of_cases = cases.iter().flat_map(|case| case.with.iter().map(|with| with.0));
        let used: BTreeSet<&str> = of_cases
            .chain(cases.iter().map(|case| case.input))
            .chain(entries.iter().map(|entry| entry.input))
            .map(|input| input.file)
            .collect();
        assert!(used.contains(input.file), "{}", input.file);
    }
}

/// Also checks that every pipeline prints something, because pipelines are compared by their
/// output.
#[test]
fn every_pipeline_succeeds_on_a_small_input() {
    let folder = tempfile::tempdir().expect("a folder for the inputs");
    for entry in committed() {
        if !installed("every_pipeline_succeeds_on_a_small_input", &entry.text) {
            continue;
        }
        std::fs::create_dir_all(entry.folder(folder.path())).expect("a folder for a size");
        let path = entry.path(folder.path());
        if !path.is_file() {
            let mut file = File::create(path).expect("a file for the input");
            entry.input.write(200_000, 1, &mut file).expect("the input");
        }
        let (mut command, stdin) = entry.command(folder.path()).expect("the input is there");
        let done = command.stdin(stdin).output().expect("bash starts");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && errors.is_empty(), "{}: {errors}", entry.name);
        assert!(!done.stdout.is_empty(), "{} prints nothing", entry.name);
    }
}

#[test]
fn errors_name_the_file_the_line_and_the_remedy() {
    let error = |text: &str| format!("{:#}", parse("a.txt", text).expect_err("it is wrong"));
    let begin = "# head\n\npipeline one\n";
    assert_eq!(error("run cat"), "a.txt:1: `run` precedes the first `pipeline NAME`");
    assert_eq!(
        error("pipeline"),
        "a.txt:1: `pipeline` has no value: write a key, a space and the value"
    );
    assert_eq!(error(begin), "a.txt:3: pipeline one has no `input`: add it");
    assert_eq!(
        error(&format!("{begin}input text.txt 5MB\n")),
        "a.txt:3: pipeline one has no `run`: add it"
    );
    assert_eq!(
        error(&format!("{begin}input text.txt 5GB\n")),
        "a.txt:4: `5GB` is not a size: write 1MB to 400MB"
    );
    assert_eq!(
        error(&format!("{begin}input story.txt 5MB\n")),
        "a.txt:4: no input is named story.txt: see the table in inputs/mod.rs"
    );
    assert_eq!(
        error(&format!("{begin}size 5MB\n")),
        "a.txt:4: unknown key `size`: use pipeline, input, stdin, locale, trap or run"
    );
    assert_eq!(
        error(&format!("{begin}run cat\nrun cat\n")),
        "a.txt:5: `run` occurs twice in pipeline one: remove one"
    );
}

#[test]
fn the_lines_of_an_entry_are_parsed() {
    let text = "pipeline a\nstdin syslog 7MB\nlocale C\ntrap nothing to gain\nrun sort | uniq -c\n";
    let entries = parse("a.txt", text).expect("it keeps to the format");
    let [entry] = entries.as_slice() else { panic!("one entry: {entries:?}") };
    assert_eq!((entry.name.as_str(), entry.input.file, entry.megabytes), ("a", "syslog", 7));
    assert_eq!((entry.from_stdin, entry.locale.as_str()), (true, "C"));
    assert_eq!(entry.trap.as_deref(), Some("nothing to gain"));
    assert_eq!(entry.path(Path::new("in")), Path::new("in/7MB/syslog"));
}

#[test]
fn stages_are_split_at_unquoted_bars() {
    let text = r#"LC_ALL=C grep 'a|b' f | sed "s/\"|/x/" | tr \| ' '"#;
    let stages = stages(text);
    assert_eq!(stages, ["LC_ALL=C grep 'a|b' f", r#"sed "s/\"|/x/""#, r"tr \| ' '"]);
    assert_eq!(program(stages[0]), "grep");
}

/// Returns `text` without the strings in single quotation marks.
fn outside_quotes(text: &str) -> String {
    text.split('\'').step_by(2).collect()
}
