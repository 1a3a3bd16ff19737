//! What holds for the record of every program, whatever it does.

use serde_json::Value;

use crate::support::number;

/// Tolerance of the sums, in seconds: times are rounded to a nanosecond.
const ROUNDING_SECONDS: f64 = 1e-6;
/// Time for which the length of the observation and the sum of its moments may differ, in seconds.
const MARGIN_SECONDS: f64 = 0.05;

/// Checks that the figures of a record of `contend doctor` fit together: each thread is in one state and
/// each moment has one cause at any time, and parts are no larger than the whole.
///
/// # Panics
/// Panics with the record if they do not.
pub fn check(record: &Value) {
    let holds = |condition: bool, what: &str| assert!(condition, "{what}: {record:#}");
    let observed = number(&record["observed_seconds"]);
    let cpu = number(&record["cpu_seconds"]);

    let states = sum_of_states(record);
    holds(is_equal(states, number(&record["thread_seconds"])), "states and lives of threads");
    let running = record.pointer("/state_seconds/running").map_or(0.0, number);
    holds(is_equal(running, cpu), "running and CPU time");
    holds(cpu <= number(&record["host"]["cpus_online"]) * observed * 1.02 + MARGIN_SECONDS, "CPUs");
    holds(number(&record["system_seconds"]) <= cpu + ROUNDING_SECONDS, "system time");

    let moments = list(&record["moments"]);
    let shares: f64 = moments.iter().map(|moments| number(&moments["share"])).sum();
    let has_moments = !moments.is_empty() || observed > 0.0;
    holds((shares - 1.0).abs() < 0.001 || !has_moments, "shares of moments");
    let seconds: f64 = moments.iter().map(|moments| number(&moments["seconds"])).sum();
    holds((seconds - observed).abs() < 0.05 * observed + MARGIN_SECONDS, "moments");

    for thread in list(&record["threads"]) {
        let life = number(&thread["observed_seconds"]);
        holds(is_equal(sum_of_states(thread), life), "states and life of a thread");
        holds(life <= observed + MARGIN_SECONDS, "life of a thread");
    }
    let processes = list(&record["processes"]);
    let sum: f64 = processes.iter().map(|process| number(&process["cpu_seconds"])).sum();
    holds(sum <= cpu + ROUNDING_SECONDS, "CPU time of processes");
    holds(processes.len() as f64 <= number(&record["observation"]["processes"]), "processes");

    for finding in list(&record["findings"]) {
        let gain = finding["gain_share"].as_f64().unwrap_or(0.0);
        holds((0.0..=1.0).contains(&gain), "gain");
    }
    let others = record["observation"]["others_cpu_share"].as_f64().unwrap_or(0.0);
    holds((0.0..=1.0).contains(&others), "load of other programs");
    for layer in list(&record["observation"]["layers"]) {
        holds(layer["used"] == layer["reason"].is_null(), "why a source was not used");
    }
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn sum_of_states(value: &Value) -> f64 {
    value["state_seconds"].as_object().expect("states").values().map(number).sum()
}

fn is_equal(a: f64, b: f64) -> bool {
    (a - b).abs() < ROUNDING_SECONDS + 1e-6 * b
}
