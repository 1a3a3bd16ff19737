//! Jobs over files of a Hadoop file system, whose machines share a directory there.

use std::fs;

use super::lines;
use super::work::by_bash;
use crate::support::cluster::Setting;
use crate::support::hdfs::Hdfs;
use crate::support::text;

#[test]
fn files_and_outputs_are_in_a_hadoop_file_system() {
    // Processes with the name of the first folder belong to contend.
    let (setting, other) = (Setting::new(), Setting::new());
    let file = other.path("lines");
    fs::write(&file, lines()).expect("room");
    let test = "objects::hdfs::files_and_outputs_are_in_a_hadoop_file_system";
    let Some(mut hdfs) = Hdfs::start(test, &[file.clone(), other.path("in")]) else { return };
    let [lines, small] = [file, other.path("in")].map(|file| hdfs.name_of(&file));
    let work = format!("{}/some/jobs", hdfs.url);
    for (pipeline, parts, on_files) in [
        (format!("cat {lines} {small} | tr 0-9 a-j"), "1", "cat lines in | tr 0-9 a-j"),
        (format!("cat {lines} | grep 77"), "4", "cat lines | grep 77"),
        (format!("sort {lines} | uniq -c"), "5", "sort lines | uniq -c"),
        (format!("cat {small} | grep nothing"), "3", "cat in | grep nothing"),
    ] {
        let words = ["--on", "local", "--parts", parts, "--fan-in", "2", "--work", &work];
        let output = setting.output(&[&words[..], &[&pipeline]].concat());
        let message = text(&output.stderr);
        assert!(output.stdout == by_bash(&other, on_files), "{pipeline}: {message}");
        assert!(!message.contains("this machine only"), "{message}");
        assert_eq!(
            hdfs.paths(),
            ["/some rwxr-xr-x", "/some/jobs rwxr-xr-x"],
            "{pipeline}: {message}"
        );
        setting.assert_nothing_is_left();
    }
    let emit =
        ["--on", "spark", "--emit", "job", "--parts", "2", "--work", &work, "cat in | tr a b"];
    assert_eq!(setting.output(&emit).status.code(), Some(0));
    let paths = hdfs.paths();
    let folder = paths.iter().find(|path| path.contains(".contend-")).expect("a directory");
    assert!(folder.ends_with(" rwx------"), "others must not forge outputs: {paths:?}");
    let missing = format!("cat {}/data/none | tr a b", hdfs.url);
    let output = setting.output(&["--on", "local", "--parts", "2", &missing]);
    let message = text(&output.stderr);
    assert!(message.contains("cannot be read: No such file or directory"), "{message}");
    assert_eq!(output.status.code(), Some(125));
    // Nothing listens at this port.
    let nobody =
        ["--on", "local", "--parts", "2", "--work", "hdfs://127.0.0.1:1/x", "cat in | tr a b"];
    let output = setting.output(&nobody);
    let message = text(&output.stderr);
    assert!(message.contains("cannot use the work directory hdfs://127.0.0.1:1/x/"), "{message}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
    assert!(!message.contains("cannot remove"), "{message}");
    fs::remove_dir_all(setting.path("job")).expect("own folder");
    setting.assert_nothing_is_left();
}
