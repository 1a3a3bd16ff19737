//! Tests that trials find faster changes, and that reports of advice fit narrow terminals.

use serde_json::Value;

use crate::in_quiet;
use crate::support::{
    Command, candidates, contend, numbered_lines, pipe, record_of, run, shell_output, text,
};

#[test]
fn the_winner_gives_the_same_output_in_a_shell() {
    in_quiet(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = numbered_lines(folder.path(), 200_000);
        // Running grep first saves enough time that a few rounds prove it.
        let pipeline = format!("cat {file} | sed 's/a/A/g' | sort | uniq | grep keep");
        let trial = ["--try", "--discard", "--budget", "12", "--seed", "1", &pipeline];
        let record = record_of(&mut pipe(&trial), "");
        let winner = record["trial"]["winner"].as_u64();
        let winner = winner.unwrap_or_else(|| panic!("no winner: {record:#}"));
        let winner = &candidates(&record)[usize::try_from(winner).expect("small")];
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
