//! Tests with ordinary users, and with programs that change their user.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{PublicFolder, as_nobody, contend, has, is_root, skip, text};

/// Runs a pipeline in a folder as the user `nobody`, or as the current user if that is not root.
/// Returns the output and the record. If that is not possible, skips the test with a message and
/// returns `None`.
fn run_as_nobody(test: &str, folder: &PublicFolder, pipeline: &str) -> Option<(String, Value)> {
    let program = folder.install(contend(), "contend", 0o755);
    let json = folder.path().join("record.json");
    let _ = std::fs::remove_file(&json);
    let output = as_nobody(test, &program)?
        .args(["pipe", "--output", "/dev/null", "--json", "record.json", pipeline])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    let record = std::fs::read_to_string(&json)
        .unwrap_or_else(|_| panic!("no record: {}", text(&output.stderr)));
    Some((text(&output.stdout), serde_json::from_str(&record).expect("JSON")))
}

#[test]
fn an_ordinary_user_sees_exact_bytes_and_waits() {
    let test = "an_ordinary_user_sees_exact_bytes_and_waits";
    let folder = PublicFolder::new();
    let pipeline = "seq 200000 | sed 's/$/x/' | LC_ALL=C sort -r | head -n 1";
    let Some((output, record)) = run_as_nobody(test, &folder, pipeline) else { return };
    assert_eq!(output, "9x\n");
    assert_eq!(record["stages"][1]["bytes_in"], 1_288_895);
    assert_eq!(record["stages"][1]["bytes_out"], 1_488_895);
    for stage in record["stages"].as_array().expect("a list") {
        let approximate = stage["approximate"].as_array().expect("a list");
        assert!(!approximate.contains(&"bytes_out".into()), "{stage}");
    }
    let starved = record["stages"][3]["starved_seconds"].as_f64().expect("a number");
    assert!(starved > 0.0, "{record}");
}

#[test]
fn an_ordinary_user_sees_short_stages_exactly() {
    let folder = PublicFolder::new();
    for _ in 0..5 {
        let test = "an_ordinary_user_sees_short_stages_exactly";
        let Some((_, record)) = run_as_nobody(test, &folder, "printf 123 | cat | wc -c") else {
            return;
        };
        assert_eq!(record["stages"][0]["bytes_out"], 3);
        assert_eq!(record["stages"][1]["bytes_out"], 3);
    }
}

/// Tests that stages are not traced when they execute a set-user-id program: a traced process would
/// not get the privileges of the program. A set-user-id `id`, started in every way that a stage can
/// be, must print user 0.
#[test]
fn set_user_id_programs_keep_their_privileges() {
    let test = "set_user_id_programs_keep_their_privileges";
    if !is_root() {
        return skip(test, "only root can make a set-user-id program");
    }
    let folder = PublicFolder::new();
    let id = ["/usr/bin/id", "/bin/id"].into_iter().find(|path| std::fs::metadata(path).is_ok());
    let Some(id) = id else { return skip(test, "there is no id") };
    folder.install(id, "privileged", 0o4755);
    // `cat` is a name that contend usually considers safe to trace.
    folder.install(id, "cat", 0o4755);
    let direct = run_as_nobody(test, &folder, "./privileged -u");
    let Some((output, _)) = direct else { return };
    if output != "0\n" {
        return skip(test, "programs in the folder for temporary files get no privileges");
    }
    let ways = [
        "./privileged -u | tr 0 0",
        "env A=b ./privileged -u | tr 0 0",
        "nice ./privileged -u | tr 0 0",
        "nohup ./privileged -u 2>/dev/null | tr 0 0",
        "sh -c 'exec ./privileged -u' | tr 0 0",
        "(./privileged -u) | tr 0 0",
        "exec ./privileged -u | tr 0 0",
        "true | ./cat -u",
        "echo -u | xargs ./privileged | tr 0 0",
        "PATH=.:$PATH cat -u | tr 0 0",
        "timeout 9 ./privileged -u | tr 0 0",
    ];
    for way in ways {
        for _ in 0..3 {
            let Some((output, _)) = run_as_nobody(test, &folder, way) else { return };
            assert_eq!(output, "0\n", "{way}");
        }
    }
}

#[test]
fn sudo_works_and_its_figures_are_marked() {
    let test = "sudo_works_and_its_figures_are_marked";
    if !has("sudo") || !is_root() {
        return skip(test, "there is no sudo, or these tests do not run as root");
    }
    let output = crate::support::Command::new(contend())
        .args(["pipe", "--output", "/dev/null", "sudo -n -u nobody id -un | cat"])
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    assert_eq!(text(&output.stdout), "nobody\n", "{}", text(&output.stderr));
}

#[test]
fn a_stage_of_another_user_is_marked_as_unreadable() {
    let test = "a_stage_of_another_user_is_marked_as_unreadable";
    if !is_root() {
        return skip(test, "only root can make a set-user-id program");
    }
    let folder = PublicFolder::new();
    let sleep = ["/usr/bin/sleep", "/bin/sleep"].into_iter().find(|p| std::fs::metadata(p).is_ok());
    let Some(sleep) = sleep else { return skip(test, "there is no sleep") };
    folder.install(sleep, "privileged", 0o4755);
    let Some((_, record)) = run_as_nobody(test, &folder, "./privileged 2 | cat") else { return };
    let stage = &record["stages"][0];
    assert!(stage["bytes_out"].is_null() || stage["approximate"] != serde_json::json!([]));
    let warnings = record["warnings"].as_array().expect("a list");
    assert!(warnings.iter().any(|warning| warning["id"] == "unreadable"), "{record}");
}
