use contend_record::doctor::{Process, Relation, Runtime};

use super::super::super::testing::DOCTOR;
use super::*;

fn record() -> DoctorRecord {
    serde_json::from_str(DOCTOR).expect("a record")
}

/// Returns the page without its record.
fn markup(record: &DoctorRecord) -> String {
    let page = page(record).expect("JSON");
    page.split_once("<script").expect("the record comes last").0.to_owned()
}

#[test]
fn processes_and_threads_are_counted_beyond_the_lists() {
    let mut record = record();
    record.observation.processes = 250;
    record.observation.threads = 4711;
    let text = markup(&record);
    assert!(text.contains("<li>250 processes</li><li>4711 threads</li>"), "{text:.3000}");
    let (processes, threads) = (record.processes.len(), record.threads.len());
    assert!(text.contains(&format!("The table has {processes} of 250 processes.")));
    assert!(text.contains(&format!("The table has {threads} of 4711 threads.")));
    let terminal =
        crate::render::doctor::report(&record, crate::render::pipe::Detail::Summary, 100);
    assert!(terminal.contains("250 processes, 4711 threads"), "{terminal}");
    assert!(!markup(&self::record()).contains("The table has"));
}

#[test]
fn a_folded_table_has_the_processes() {
    let process = Process {
        pid: 815,
        command: "python3 <job>.py".to_owned(),
        runtime: Some(Runtime::Python),
        relation: Relation::Descendant,
        threads: 3,
        read_bytes: Some(77_000_000),
        writes: Some(12),
        ..Process::default()
    };
    let text = markup(&DoctorRecord { processes: vec![process], ..record() });
    let (_, section) = text.split_once("<h2>Processes</h2>").expect("a section");
    let (section, _) = section.split_once("</section>").expect("an end");
    assert!(section.starts_with("<details><summary>Table</summary>"), "{section}");
    for text in ["python3 &lt;job&gt;.py", ">815<", "CPython", "descendant", "77.0MB", ">12<"] {
        assert!(section.contains(text), "{text}: {section}");
    }
    assert!(
        !markup(&DoctorRecord { processes: Vec::new(), ..record() }).contains("Processes</h2>")
    );
}

#[test]
fn the_command_that_observes_again_is_near_the_head() {
    assert!(markup(&record()).contains("<code>contend doctor -- ./table</code>"));
}
