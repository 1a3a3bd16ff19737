//! Decides without a plan to run a pipeline as written: names and sizes often show that chunks
//! cannot pay off.

use contend_commands::awk::Awk;
use contend_commands::{Simple, Word, head, purity};
use contend_record::run::Decision;

use super::classes;
use super::estimate;
use super::flow::{Amount, Flow, Stream, size_of};
use super::planner::Annotation;

/// Programs whose output may be large although their input is small or empty.
const UNBOUNDED: &[&str] = &["jq", "xargs"];

/// Programs that write output while they read input.
const STREAMING: &[&str] =
    &["cat", "col", "cut", "egrep", "expand", "fgrep", "fold", "grep", "iconv", "rev", "tr"];
/// Maximum number of lines after which a `head` ends its pipeline too early to gain from chunks.
const MAX_LINES_WITHOUT_GAIN: u64 = 1000;

/// Returns the decision to run the stages as written, or `None` if names and sizes are not enough
/// to decide. `standard` is the amount of standard input, if known.
pub fn fast_path(
    stages: &[Simple],
    annotations: &[Annotation],
    standard: Option<Amount>,
) -> Option<Decision> {
    let is_known = |stage: &Simple| classes::may_gain(stage.name());
    if annotations.is_empty() && !stages.iter().any(is_known) {
        return Some(estimate::nothing_is_parallel());
    }
    if head_ends_early(stages) {
        return Some(estimate::ends_early());
    }
    let first = stages.first()?;
    let mut input = match purity::named_files(first) {
        Some(files) => Amount::of_files(files.into_iter().map(|file| file.text.as_str()))?,
        None if purity::source(first) == purity::Source::Standard => standard?,
        None => return None,
    };
    let mut stream = Stream::of_lines(input.line);
    let mut cpu = 0.0;
    for (index, stage) in stages.iter().enumerate() {
        let begins = |word: &Word| word.text.contains("BEGIN");
        if UNBOUNDED.contains(&stage.name()) || stage.arguments.iter().any(begins) {
            return None;
        }
        if index > 0 {
            let named = stage.arguments.iter().chain(&stage.input);
            input.bytes += named.filter_map(|file| size_of(&file.text)).sum::<u64>();
        }
        let arguments: Vec<String> = stage.arguments.iter().map(|word| word.text.clone()).collect();
        cpu +=
            stream.flow_through_known(&stage.program.text, &arguments).as_ref().map(Flow::cpu)?;
    }
    let expected = estimate::upper_bound(cpu, stages.len(), input.bytes);
    (!expected.is_worth_it()).then(|| expected.decision(input.bytes))
}

/// Returns whether one of the stages may write before it has read anything, in which case its
/// output must not wait for input.
pub fn may_write_first(stages: &[Simple]) -> bool {
    stages.iter().any(|stage| match Awk::given(stage) {
        Some(awk) => !awk.reads_first(),
        // The program of an awk may be in a file.
        None => stage.name().ends_with("awk") || !classes::is_known(stage.name()),
    })
}

/// Returns whether a `head` ends the pipeline after at most `MAX_LINES_WITHOUT_GAIN` lines, and the
/// stages before it write them as soon as there is input.
fn head_ends_early(stages: &[Simple]) -> bool {
    let few = |stage: &Simple| {
        head::head(stage).is_some_and(|lines| lines.count <= MAX_LINES_WITHOUT_GAIN)
    };
    let Some(place) = stages.iter().position(few) else { return false };
    stages[..place].iter().all(|stage| STREAMING.contains(&stage.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ir::Records;
    use contend_commands::testing::simple;

    /// Returns whether the fast path applies. `standard` is the size of standard input in bytes, if
    /// known.
    fn is_clear(pipeline: &str, standard: Option<u64>) -> bool {
        let stages: Vec<Simple> = pipeline.split(" | ").map(simple).collect();
        let amount = |bytes| Amount { bytes, line: 50.0 };
        fast_path(&stages, &[], standard.map(amount)).is_some()
    }

    #[test]
    fn small_inputs_need_no_plan() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(is_clear("tr a b | sort", Some(100_000)));
        assert!(!is_clear("tr a b | sort", Some(100_000_000)));
        assert!(!is_clear("tr a b | sort", None), "a stream may be of any size");
        assert!(is_clear(&format!("grep foo {own} | sort"), None));
        assert!(is_clear(&format!("sort <{own} | comm - {own}"), None));
    }

    #[test]
    fn unknown_commands_need_no_plan_unless_the_user_knows_them() {
        assert!(is_clear("my-own | other", None));
        let annotation = Annotation::read("my-own", Records::Lines).expect("plain words");
        let stages = [simple("my-own"), simple("other")];
        assert_eq!(fast_path(&stages, &[annotation], None), None);
    }

    #[test]
    fn pipelines_that_end_early_need_no_plan() {
        let large = Some(1_000_000_000);
        assert!(is_clear("grep x | cut -c 1 | head -n 3 | sort", large));
        assert!(is_clear("head", large));
        assert!(!is_clear("grep x | sort | head -n 3", large));
        assert!(!is_clear("grep x | head -n 1000000", large));
        assert!(!is_clear("grep x | head -n -3", large));
    }

    #[test]
    fn stages_that_may_write_first_are_known() {
        let may = |pipeline: &str| {
            let stages: Vec<Simple> = pipeline.split(" | ").map(simple).collect();
            may_write_first(&stages)
        };
        for silent in
            ["tr a b | sort", "awk '{ print }' | cat", "awk 'BEGIN { FS = \",\" } { print $1 }'"]
        {
            assert!(!may(silent), "{silent}");
        }
        for early in [
            "tr a b | awk 'BEGIN { print 1 } { print }'",
            "sed s/a/b/ | awk 'BEGIN { system(\"date\") }'",
            "awk 'BEGIN { while ((\"date\"|getline line) > 0) print line }'",
            "tr a b | my-own",
            "awk -f program",
        ] {
            assert!(may(early), "{early}");
        }
    }

    #[test]
    fn commands_with_unbounded_output_are_planned() {
        for pipeline in [
            "seq 1000000000 | sort",
            "find / | sort",
            "awk 'BEGIN { for (;;) print }' | sort",
            "jq -n 'range(1e9)' | sort",
            "xargs cat | sort",
            "grep -r foo . | sort",
            "cat /dev/zero | tr a b",
            "cat missing | tr a b",
            "sort -m --files0-from=- | tr a b",
            "my-own | sort",
            "tr a b | my-own | sort",
        ] {
            assert!(!is_clear(pipeline, Some(0)), "{pipeline}");
        }
    }
}
