//! Tests of measurements that depend on an otherwise idle machine.

use serde_json::Value;

use crate::in_quiet;
use crate::support::{cases, lab_record, metric};

#[test]
fn creation_costs_cpu_time_of_parent_and_child() {
    in_quiet(|| {
        let record = lab_record(&["units/create", "--quick", "--only", "n=100", "--budget", "8"]);
        let kind = |name: &str| {
            let found = cases(&record).iter().find(|case| case["parameters"]["kind"] == name);
            found.unwrap_or_else(|| panic!("no {name}")).clone()
        };
        for (name, children) in [("fork", true), ("posix_spawn", true), ("thread", false)] {
            let case = kind(name);
            assert!(case["median"].as_f64().is_some_and(|median| median > 1000.0), "{case}");
            assert!(metric(&case, "cpu_self") > 0.0, "{case}");
            assert_eq!(metric(&case, "cpu_children") > 0.0, children, "{case}");
            assert!(case["facts"]["parent_rss_bytes"].as_u64().is_some_and(|rss| rss > 100_000));
        }
        let median = |name: &str| kind(name)["median"].as_f64().expect("measured");
        assert!(median("thread-pool") < median("thread") && median("thread") < median("fork"));
    });
}

/// Checks the memory of one parked process and of one parked thread, which is the slope of a fit
/// over the number of units. Compares it with the size of a kernel stack and with the pages that
/// one unit touches.
#[test]
fn memory_of_a_unit_agrees_with_the_kernel() {
    in_quiet(|| {
        let record = lab_record(&["units/memory", "--quick", "--budget", "12"]);
        let fit = |kind: &str, metric: &str| {
            let is_it = |fit: &&Value| {
                fit["metric"] == metric
                    && fit["parameters"]["kind"] == kind
                    && fit["parameters"].get("parent_mib").is_none()
            };
            let fits = record["fits"].as_array().expect("a list");
            let found = fits.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {metric}"));
            found["line"]["slope"].as_f64().expect("a number")
        };
        // A kernel stack is 16 KiB on these architectures. The kernel counts stacks in batches.
        for kind in ["process", "thread"] {
            let stack = fit(kind, "kernel_stacks");
            assert!((stack - 16_384.0).abs() < 0.05 * 16_384.0, "{kind}: {stack}");
        }
        // RSS also counts shared pages.
        let (own, naive) = (fit("process", "user"), fit("process", "rss_sum"));
        assert!(own > 10_000.0 && naive > 3.0 * own, "{own} {naive}");
        // A thread has touched a page or two of its stack and its control block.
        let own = fit("thread", "user");
        assert!((4_096.0..40_000.0).contains(&own), "{own}");
        assert!(fit("thread", "value") < fit("process", "value"));
    });
}
