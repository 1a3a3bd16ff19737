//! Compares contend with bash on random pipelines and inputs, and shrinks cases that differ.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use super::application::Application;
use super::{Environment, INPUT, Input, PipelineResult, bash, contend_run, folder};
use crate::support::slurm::Slurm;
use crate::support::{Command, by_effort, has, report, skip};

/// Stages of random pipelines, simple ones first.
const STAGES: &[&str] = &[
    "cat",
    "wc -l",
    "sort",
    "uniq",
    "rev",
    "grep a",
    "grep -v b",
    "grep -c b",
    "grep -a -o .",
    "sed s/a/b/",
    "sed -n /b/p",
    "sed -n 2p",
    "sed '$d'",
    "sed p",
    "tr ab ba",
    "tr -d a",
    "tr -s 'b\\n'",
    "tr ' ' '\\n'",
    "cut -c 2-",
    "cut -d ' ' -f 1",
    "awk '{ print $1 }'",
    "awk '{ s += $1 } END { print s }'",
    "awk 'NR % 2'",
    "awk '!seen[$0]++'",
    "sort -u",
    "sort -r",
    "sort -n",
    "sort -s -k 1,1",
    "sort -k 2",
    "sort -u -k 2",
    "sort -f",
    "sort -k 2,2nr -k 1,1",
    "sort -t , -k 2b,2.3 -k 1r",
    "LC_ALL=C sort",
    "uniq -c",
    "uniq -d",
    "uniq -i",
    "wc",
    "wc -m",
    "wc -L",
    "head -n 3",
    "tail -n 2",
    "tail -n +2",
    "fold -w 2",
    "expand",
    "comm -12 - other",
    "nl",
    "tac",
    "paste - -",
    "cat in -",
];
/// Pieces from which random input is composed.
const INPUT_PIECES: &[&[u8]] = &[
    b"a",
    b"b",
    b"\n",
    b" ",
    b"1",
    b"2.5",
    b"aa",
    b"B",
    b"end",
    b"\n\n",
    b"\xc3\xa9",
    b"\t",
    b"\r\n",
    b"\0",
    b"\xff",
];
const CASE_COUNT: u32 = 150;

/// A pipeline with its input, chunk size and environment.
#[derive(Debug, Clone)]
struct Case {
    stages: Vec<&'static str>,
    pieces: Vec<&'static [u8]>,
    part: usize,
    input: Input,
    locale: &'static str,
}

fn case() -> impl Strategy<Value = Case> {
    (
        prop::collection::vec(select(STAGES), 1..5),
        prop::collection::vec(select(INPUT_PIECES), 0..120),
        1_usize..40,
        select(&[Input::Pipe, Input::File][..]),
        select(&["C", "C.UTF-8"][..]),
    )
        .prop_map(|(stages, pieces, part, input, locale)| Case {
            stages,
            pieces,
            part,
            input,
            locale,
        })
}

/// How contend divides the input.
#[derive(Clone, Copy)]
enum Division<'a> {
    /// Into chunks, for threads.
    Chunks,
    /// Into parts, for an engine whose processes share only files with contend. Counts the cases in which there were parts.
    Parts(&'a Engine, &'a Cell<u32>),
}

/// The engine that runs parts: processes on this machine, unless the environment variable `CONTEND_TEST_ENGINE` names another
/// one, which needs some seconds for each case.
enum Engine {
    Local,
    Spark(Application),
    Slurm(Slurm),
}

impl Engine {
    fn new() -> Self {
        let name = std::env::var("CONTEND_TEST_ENGINE").unwrap_or_else(|_| "local".to_owned());
        match name.as_str() {
            "local" => Self::Local,
            "spark" => Self::Spark(Application::start("random_pipelines").expect("a Spark")),
            "slurm" => Self::Slurm(Slurm::start("random_pipelines").expect("a Slurm")),
            other => panic!("CONTEND_TEST_ENGINE: there is no engine {other}"),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Spark(_) => "spark",
            Self::Slurm(_) => "slurm",
        }
    }

    fn set_variables(&self, command: &mut Command) {
        match self {
            Self::Local => {}
            Self::Spark(application) => application.set_variables(command),
            Self::Slurm(slurm) => drop(command.env("SLURM_CONF", slurm.configuration())),
        }
    }
}

/// Returns the number of cases that the environment variable `CONTEND_TEST_CASES` asks for, if it is set.
fn given_cases() -> Option<u32> {
    std::env::var("CONTEND_TEST_CASES").ok().map(|count| count.parse().expect("a number"))
}

/// Returns a description of how the results of a command and of bash differ. Returns `None` if they
/// do not differ, or if `grep` found binary data: its messages about that vary from run to run.
fn difference(
    case: &Case,
    division: Division<'_>,
    run: impl Fn(&[&str], &str) -> Command,
) -> Option<String> {
    let input = case.pieces.concat();
    let folder = folder(&input);
    let environment = Environment { folder: folder.path(), input: case.input, locale: case.locale };
    // Limit the number of chunks, since each may start several processes.
    let part = case.part.max(input.len() / 12).to_string();
    let (count, fan_in) = ((case.part % 6 + 1).to_string(), (case.part % 3 + 2).to_string());
    let stages = case.stages.join(" | ");
    let (pipeline, options) = match division {
        Division::Chunks => (stages, vec!["-j", "3", "--part-size", &part]),
        Division::Parts(engine, _) => {
            let options = vec!["--on", engine.name(), "--parts", &count, "--fan-in", &fan_in];
            (format!("cat {INPUT} | {stages}"), options)
        }
    };
    let mut command = run(&options, &pipeline);
    if let Division::Parts(engine, _) = division {
        engine.set_variables(&mut command);
    }
    let [mut expected, mut found] = [bash(&pipeline), command].map(|it| environment.run(it));
    if let Division::Parts(_, divided) = division {
        let is_whole = found.stderr.iter().any(|word| word == "machine");
        divided.set(divided.get() + u32::from(!is_whole));
        // Each part has messages of its own, and contend says why it makes no parts.
        expected.stderr.clear();
        found.stderr.clear();
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 2, "the work directory is removed");
    }
    // How far grep has read when it detects binary data differs between runs.
    if ["binary", "matches"].iter().all(|word| expected.stderr.iter().any(|it| it == word)) {
        return None;
    }
    let [expected, found] = [expected, found].map(without_line_numbers);
    (expected != found).then(|| format!("bash: {expected:?}, contend: {found:?}"))
}

/// Removes numbers from the messages, because `rev` reports invalid text with a line number that is
/// relative to the chunk.
fn without_line_numbers(mut result: PipelineResult) -> PipelineResult {
    result.stderr.retain(|word| word.trim_end_matches(':').parse::<u64>().is_err());
    result
}

/// Runs cases until one differs, and returns the shrunk case as the error. The cases are the same
/// in every run.
fn find_smallest_difference(
    cases: u32,
    division: Division<'_>,
    run: impl Fn(&[&str], &str) -> Command + Copy,
) -> Result<(), TestError<Case>> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, random).run(&case(), |case| {
        match difference(&case, division, run) {
            Some(what) => Err(TestCaseError::fail(what)),
            None => Ok(()),
        }
    })
}

#[test]
fn random_pipelines_give_bash_s_output() {
    if !has("bash") {
        return skip("random_pipelines_give_bash_s_output", "there is no bash");
    }
    let cases = by_effort(CASE_COUNT / 3, CASE_COUNT);
    if let Err(error) = find_smallest_difference(cases, Division::Chunks, contend_run) {
        panic!("{error}");
    }
}

#[test]
fn random_pipelines_over_parts_give_bash_s_output() {
    if !has("bash") {
        return skip("random_pipelines_over_parts_give_bash_s_output", "there is no bash");
    }
    let cases = given_cases().unwrap_or_else(|| by_effort(CASE_COUNT / 3, 2000));
    let (engine, divided) = (Engine::new(), Cell::new(0));
    let division = Division::Parts(&engine, &divided);
    if let Err(error) = find_smallest_difference(cases, division, contend_run) {
        panic!("{error}");
    }
    assert!(divided.get() > cases / 4, "only {} of {cases} had parts", divided.get());
    if !matches!(engine, Engine::Local) {
        report(&format!("{} of {cases} pipelines had parts", divided.get()));
    }
}

/// Tests the shrinking with a command that replaces `rev` by `cat`.
#[test]
fn a_difference_is_shrunk() {
    if !has("bash") {
        return skip("a_difference_is_shrunk", "there is no bash");
    }
    let wrong = |_: &[&str], pipeline: &str| bash(&pipeline.replace("rev", "cat"));
    let Err(TestError::Fail(_, small)) =
        find_smallest_difference(CASE_COUNT, Division::Chunks, wrong)
    else {
        panic!("it differs")
    };
    assert_eq!(small.stages, ["rev"], "{small:?}");
    assert!(small.pieces.len() <= 2, "{small:?}");
}
