//! Tests that trials find faster changes, and that reports of advice fit narrow terminals.

use serde_json::Value;

use crate::in_quiet;
use crate::support::{
    Command, candidates, contend, numbered_lines, pipe, record_of, run, shell_output, text,
};

/// Returns the group in which a trial sorts a candidate, and the bits of its wall time relative to
/// the original's. The bits of positive numbers have the same order as the numbers.
fn rank(candidate: &Value) -> (u8, u64) {
    let wall = candidate["wall_ratio"]["median"].as_f64();
    let group = match candidate["verdict"].as_str().expect("text") {
        "faster" | "cheaper" => 0,
        "wrong" => 2,
        _ if wall.is_some() => 1,
        _ => 3,
    };
    (group, wall.unwrap_or(f64::MAX).to_bits())
}

#[test]
fn the_winner_gives_the_same_output_in_a_shell() {
    in_quiet(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = numbered_lines(folder.path(), 200_000);
        // Running grep first saves enough time that a few rounds prove it.
        let pipeline = format!("cat {file} | sed 's/a/A/g' | sort | uniq | grep keep");
        let trial = ["--try", "--discard", "--budget", "12", "--seed", "1", &pipeline];
        let record = record_of(&mut pipe(&trial), "");
        assert_eq!(record["trial"]["winner"], 0, "the winner comes first: {record:#}");
        assert!(candidates(&record)[1..].is_sorted_by_key(rank), "{record:#}");
        let winner = &candidates(&record)[0];
        assert_eq!(winner["output_equal"], true);
        assert!(["faster", "cheaper"].contains(&winner["verdict"].as_str().expect("text")));
        let command = winner["command"].as_str().expect("text");
        assert_ne!(command, pipeline);
        assert_eq!(shell_output(command), shell_output(&pipeline));
        let measured = winner["measured_wall_seconds"].as_f64().expect("measured");
        let [low, high] =
            [0, 1].map(|i| winner["measured_interval"][i].as_f64().expect("a number"));
        assert!(low <= measured && measured <= high);
        let predicted = |one: &Value| one["predicted_cpu_seconds"].as_f64().is_some();
        assert!(candidates(&record).iter().any(predicted));
    });
}

#[test]
fn advice_except_commands_fits_60_columns() {
    in_quiet(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = numbered_lines(folder.path(), 900_000);
        let pipeline =
            format!("cat {file} | sed 's/a/A/g' | sort | uniq -c | sort -rn | grep keep");
        let mut command = Command::new(contend());
        let output = run(command.args(["pipe", "--discard", &pipeline]).env("COLUMNS", "60"), "");
        let report = text(&output.stderr);
        for line in report.lines().filter(|line| !line.contains(&file)) {
            assert!(line.chars().count() <= 60, "{line:?}");
        }
        assert!(report.contains("Try\n"), "{report}");
    });
}
