//! Renders how throughput scales with the number of workers, up to all CPUs and beyond.

use contend_record::lab::{Case, RunRecord, ScalingFit};
use contend_record::parameters::{Parameters, names};
use contend_record::stats::{Coefficient, Law, Ratio, Unfit};

use super::super::layout::{columns_left_out, paragraph};
use super::super::units::nanoseconds;
use super::table::{figure, grid, parameter, parameter_names, row};

/// Renders a table of the cases, a sentence about the CPU quota if there is one, and a sentence for
/// each fitted law.
pub fn section(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let mut rows = vec![heading(cases, width)];
    rows.extend(cases.iter().map(|case| line(record, cases, case, width)));
    let mut out = grid(&rows, 0, width);
    if width < MIN_INTERVAL_COLUMNS {
        columns_left_out(&mut out, &["[95 % interval]"], width);
    }
    if let Some(quota) = record.host.cpu_quota {
        let held = cases.iter().filter_map(|case| case.metric("throttled")).fold(0.0, f64::max);
        let text = format!(
            "The cgroup's quota allows {quota:.2} of {} CPUs; it stopped the workers for up to {} in a \
             sample.",
            record.host.cpus_allowed,
            nanoseconds(held),
        );
        paragraph(&mut out, "- ", &text, width);
    }
    let experiment = cases.first().map_or("", |case| case.experiment.as_str());
    let laws = record.scaling.iter().filter(|fit| fit.experiment == experiment);
    for fit in laws {
        paragraph(&mut out, "- ", &sentence(fit, record.host.usable_cpus()), width);
    }
    out
}

/// Returns the names of those parameters of the cases that have several values, or that give the
/// number of workers.
fn names<'a>(cases: &[&'a Case]) -> Vec<&'a str> {
    let differs = |name: &&str| {
        let mut values: Vec<String> = cases.iter().map(|case| parameter(case, name)).collect();
        values.dedup();
        ["processes", "threads"].contains(name) || values.len() > 1
    };
    parameter_names(cases).into_iter().filter(differs).collect()
}

fn heading(cases: &[&Case], width: usize) -> Vec<String> {
    let names = names(cases).into_iter().map(str::to_owned);
    let mut heading: Vec<String> = names.collect();
    heading.extend(row(["elapsed", "load %", "CPU", "speed-up"]));
    if width >= MIN_INTERVAL_COLUMNS {
        heading.push("[95 % interval]".to_owned());
    }
    heading.push("efficiency".to_owned());
    heading
}

/// Minimum width at which intervals are shown, in columns.
const MIN_INTERVAL_COLUMNS: usize = 76;

fn line(record: &RunRecord, cases: &[&Case], case: &Case, width: usize) -> Vec<String> {
    let mut line: Vec<String> = names(cases).iter().map(|name| parameter(case, name)).collect();
    line.push(figure(case.median));
    line.push(case.metric("load").map_or_else(String::new, |load| format!("{load:.1}")));
    line.push(figure(case.metric("cpu")));
    let workers = workers(case);
    let speed_up = speed_up(cases, case, record.seed);
    line.push(speed_up.as_ref().map_or_else(String::new, |s| format!("{:.2}", s.ratio)));
    if width >= MIN_INTERVAL_COLUMNS {
        let interval = speed_up.as_ref().and_then(|speed_up| speed_up.ci95);
        line.push(
            interval.map_or_else(String::new, |[low, high]| format!("[{low:.2}, {high:.2}]")),
        );
    }
    let most = workers.min(record.host.usable_cpus());
    line.push(speed_up.map_or_else(String::new, |s| format!("{:.0} %", 100.0 * s.ratio / most)));
    line
}

/// Returns the number of workers: processes times threads in each, where a missing parameter counts
/// as 1.
pub fn workers(case: &Case) -> f64 {
    let number = |name| case.parameters.number(name).unwrap_or(1);
    (number("processes") * number("threads")) as f64
}

/// Returns the throughput of `case` relative to that of the case with one worker and otherwise the
/// same parameters. If `case` itself is that case, the ratio has no interval. Returns `None` if
/// there is no case with one worker, or if either case was not measured.
pub fn speed_up(cases: &[&Case], case: &Case, seed: u64) -> Option<Ratio> {
    let rest =
        |parameters: &Parameters| parameters.without(names::PROCESSES).without(names::THREADS);
    let alone = cases
        .iter()
        .find(|other| workers(other) < 1.5 && rest(&other.parameters) == rest(&case.parameters))?;
    let one = Ratio::of(&alone.samples, &case.samples, seed)?;
    if std::ptr::eq(*alone, case) {
        return Some(Ratio { ratio: 1.0, ci95: None, range: None }); // compared with itself
    }
    let times = |ends: Option<[f64; 2]>| ends.map(|ends| ends.map(|end| end * workers(case)));
    Some(Ratio { ratio: one.ratio * workers(case), ci95: times(one.ci95), range: times(one.range) })
}

/// Describes a fitted law on a machine with `cpus` CPUs, or why it does not fit.
pub fn sentence(fit: &ScalingFit, cpus: f64) -> String {
    let law = &fit.law;
    let [first, .., last] = law.workers.as_slice() else { return String::new() };
    let over = format!("{}, {first} to {last}", fit.over);
    if let Some(unfit) = law.unfit {
        let name = match law.law {
            Law::Amdahl => "Amdahl's law",
            Law::Universal => "the universal scalability law",
        };
        return format!("{over}: {name} does not fit: {}.", objection(unfit, fit));
    }
    let contention = coefficient(law.contention);
    let Some(coherency) = law.coherency.filter(|_| law.law == Law::Universal) else {
        let most = match law.contention.value {
            serial if serial > 1e-4 => format!("a speed-up of at most {:.1}", 1.0 / serial),
            _ => "no visible limit".to_owned(),
        };
        return format!("{over}: by Amdahl's law, {contention} of the work is serial: {most}.");
    };
    let beyond = *last as f64 > cpus + 0.01;
    let peak = match law.peak() {
        Some(peak) if !beyond => format!("; throughput would peak at {peak:.0}"),
        _ => String::new(),
    };
    let note = if beyond { ". These include the lack of further CPUs" } else { "" };
    format!(
        "{over}: by the universal scalability law, contention {contention}, coherency {}{peak}{note}.",
        coefficient(coherency)
    )
}

/// Describes why a law does not fit, and how many samples were disturbed, if any.
fn objection(unfit: Unfit, fit: &ScalingFit) -> String {
    let reason = match unfit {
        Unfit::OneSample => "there is only one sample per point".to_owned(),
        Unfit::SerialShareAboveOne { share } => {
            format!("{:.0} % of the work would be serial", 100.0 * share)
        }
        Unfit::CoherencyAboveOne { coherency } => format!(
            "coordination with one other worker would take {:.0} % of the work",
            100.0 * coherency
        ),
        Unfit::Superlinear { workers, time } => format!(
            "the speed-up is superlinear: {workers} workers take {:.0} % of the time of one",
            100.0 * time
        ),
        Unfit::Disturbed { workers, disturbed, samples } => {
            return format!(
                "{disturbed} of the {samples} samples with {}={workers} were disturbed",
                fit.over
            );
        }
    };
    match fit.disturbed {
        0 => reason,
        1 => format!("{reason}; 1 sample was disturbed"),
        many => {
            format!("{reason}; {many} samples were disturbed")
        }
    }
}

fn coefficient(coefficient: Coefficient) -> String {
    let percent = |value: f64| format!("{:.2}", 100.0 * value);
    let interval = coefficient
        .ci95
        .map_or_else(String::new, |[low, high]| format!(" [{}, {}]", percent(low), percent(high)));
    format!("{} %{interval}", percent(coefficient.value))
}

#[cfg(test)]
mod tests {
    use contend_record::Host;
    use contend_record::lab::{Metric, Unit, View};
    use contend_record::stats::Scaling;

    use super::super::sample::record;
    use super::*;

    fn case(processes: u64, threads: u64, seconds: f64, load: f64) -> Case {
        let parameters = Parameters::new().with("processes", processes).with("threads", threads);
        let mut case = Case::new(
            "saturation/compute",
            View::Computing,
            parameters.with("work", 100),
            Unit::Nanoseconds,
        );
        case.samples = vec![1e9 * seconds; 7];
        case.median = Some(1e9 * seconds);
        for (name, value) in [("load", load), ("cpu", 1e9 * seconds), ("throttled", 5e6)] {
            case.metrics.insert(name.to_owned(), Metric::of(Unit::Count, vec![value; 7]));
        }
        case
    }

    #[test]
    fn a_law_that_cannot_be_fitted_gives_no_limit() {
        let points: [(u64, &[f64]); 3] = [(1, &[1.0; 7]), (2, &[3.24; 7]), (3, &[5.48; 7])];
        let fit = |law, disturbed, times: usize| {
            let points = points.map(|(workers, samples)| (workers, &samples[..times]));
            ScalingFit {
                experiment: "saturation/compute".to_owned(),
                parameters: Parameters::new(),
                over: "threads".to_owned(),
                law: Scaling::through(law, &points, 1).expect("points enough"),
                disturbed,
            }
        };
        let mut mostly_disturbed = fit(Law::Amdahl, 6, 7);
        let reason = Unfit::Disturbed { workers: 2, disturbed: 5, samples: 7 };
        mostly_disturbed.law.unfit = Some(reason);
        let said = [
            sentence(&fit(Law::Amdahl, 3, 7), 4.0),
            sentence(&fit(Law::Universal, 1, 7), 4.0),
            sentence(&fit(Law::Amdahl, 0, 7), 4.0),
            sentence(&fit(Law::Universal, 0, 1), 4.0),
            sentence(&mostly_disturbed, 4.0),
        ];
        insta::assert_snapshot!(textwrap::fill(&said.join("\n"), 96), @r"
        threads, 1 to 3: Amdahl's law does not fit: 224 % of the work would be serial; 3 samples were
        disturbed.
        threads, 1 to 3: the universal scalability law does not fit: 224 % of the work would be serial;
        1 sample was disturbed.
        threads, 1 to 3: Amdahl's law does not fit: 224 % of the work would be serial.
        threads, 1 to 3: the universal scalability law does not fit: there is only one sample per point.
        threads, 1 to 3: Amdahl's law does not fit: 5 of the 7 samples with threads=2 were disturbed.
        ");
        assert!(said.iter().all(|text| !text.contains("speed-up of")), "{said:?}");
    }

    #[test]
    fn speed_up_is_relative_to_one_worker() {
        let cases = vec![case(1, 1, 1.0, 50.0), case(1, 2, 1.25, 100.0), case(1, 4, 2.5, 100.0)];
        let points: Vec<_> =
            [1, 2, 4].into_iter().zip(cases.iter().map(|c| c.samples.as_slice())).collect();
        let fit = |law, points| ScalingFit {
            experiment: "saturation/compute".to_owned(),
            parameters: Parameters::new(),
            over: "threads".to_owned(),
            law: Scaling::through(law, points, 1).expect("points enough"),
            disturbed: 0,
        };
        let scaling = vec![fit(Law::Amdahl, &points[..2]), fit(Law::Universal, &points)];
        let host = Host { cpus_allowed: 2, cpu_quota: Some(2.0), ..Host::default() };
        let record = RunRecord { host, scaling, ..record(None, cases) };
        let cases: Vec<&Case> = record.cases.iter().collect();
        let text = anstream::adapter::strip_str(&section(&record, &cases, 100)).to_string();
        insta::assert_snapshot!(text, @r"
        processes  threads  elapsed  load %    CPU  speed-up  [95 % interval]  efficiency
                1        1    1.00s    50.0  1.00s      1.00                        100 %
                1        2    1.25s   100.0  1.25s      1.60     [1.60, 1.60]        80 %
                1        4    2.50s   100.0  2.50s      1.60     [1.60, 1.60]        80 %
        - The cgroup's quota allows 2.00 of 2 CPUs; it stopped the workers for up to 5.00ms in a sample.
        - threads, 1 to 2: by Amdahl's law, 25.00 % [25.00, 25.00] of the work is serial: a speed-up of at
          most 4.0.
        - threads, 1 to 4: by the universal scalability law, contention 0.00 % [0.00, 0.00], coherency
          12.50 % [12.50, 12.50]. These include the lack of further CPUs.
        ");
    }
}
