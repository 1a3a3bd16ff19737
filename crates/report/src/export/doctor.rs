//! The tables of a diagnosis: the causes of its moments, the states of its threads, and its findings.

use contend_record::doctor::{DoctorRecord, Finding, Moments, ThreadState};

use super::sheet::{Field, Quantity, Sheet, Workbook};
use super::{name, origin};
use crate::render::doctor::{cause_name, state_name, symptom_name};

/// Returns the tables of a diagnosis.
pub fn workbook(record: &DoctorRecord) -> Workbook {
    let states: Vec<(ThreadState, f64)> =
        record.state_seconds.iter().map(|(state, seconds)| (*state, *seconds)).collect();
    let findings: Vec<(usize, &Finding)> =
        record.findings.iter().enumerate().map(|(place, found)| (place + 1, found)).collect();
    let sheets = vec![
        Sheet::new("cause", "Causes", &record.moments, cause()),
        Sheet::new("state", "States of threads", &states, state(record.thread_seconds)),
        Sheet::new("finding", "Findings", &findings, finding()),
    ];
    Workbook::new("doctor", &record.command, record, whole(), sheets)
}

fn whole() -> Vec<Field<'static, DoctorRecord>> {
    type Whole<'a> = Field<'a, DoctorRecord>;
    let seconds = |name: &str, help, value: fn(&DoctorRecord) -> f64| {
        Whole::figure(name, Quantity::Seconds, help, value)
    };
    let mut fields = vec![
        Whole::label("program", |record| record.command.clone()),
        Whole::detail("diagnosis", |record| record.diagnosis.clone()).for_people(),
        seconds("observed_seconds", "Length of the observation.", |record| record.observed_seconds),
        seconds("cpu_seconds", "CPU time of the observed threads.", |record| record.cpu_seconds),
        seconds("system_seconds", "CPU time in the kernel.", |record| record.system_seconds),
        seconds(
            "thread_seconds",
            "Sum over all threads of the time for which each was observed.",
            |record| record.thread_seconds,
        ),
        Whole::figure(
            "cpus",
            Quantity::Count,
            "Number of CPUs that the program may use at the same time.",
            |record| record.cpus,
        ),
        Whole::figure("exit_code", Quantity::Plain, "Exit status of the program.", |record| {
            record.exit_code
        }),
    ];
    fields.extend(origin(
        |record: &DoctorRecord| &record.host,
        |record| record.contend.as_ref(),
        |record| &record.started_at,
    ));
    fields
}

fn cause() -> Vec<Field<'static, Moments>> {
    type OfCause<'a> = Field<'a, Moments>;
    vec![
        OfCause::label("cause", |moments| name(&moments.cause)).for_programs(),
        OfCause::detail("cause", |moments| cause_name(moments.cause)).for_people(),
        OfCause::figure(
            "time_seconds",
            Quantity::Seconds,
            "Wall time for which this was the cause.",
            |moments| moments.seconds,
        ),
        OfCause::figure("share", Quantity::Share, "Share of the observation.", |moments| {
            moments.share
        }),
    ]
}

fn state(thread_seconds: f64) -> Vec<Field<'static, (ThreadState, f64)>> {
    type OfState<'a> = Field<'a, (ThreadState, f64)>;
    vec![
        OfState::label("state", |(state, _)| name(state)).for_programs(),
        OfState::detail("state", |(state, _)| state_name(*state)).for_people(),
        OfState::figure(
            "time_seconds",
            Quantity::Seconds,
            "Time of all threads in this state.",
            |(_, seconds)| *seconds,
        ),
        OfState::figure(
            "share",
            Quantity::Share,
            "Share of the time of all threads.",
            move |(_, seconds)| (thread_seconds > 0.0).then_some(seconds / thread_seconds),
        ),
    ]
}

fn finding<'a>() -> Vec<Field<'a, (usize, &'a Finding)>> {
    type OfFinding<'a> = Field<'a, (usize, &'a Finding)>;
    vec![
        // There may be several findings of one symptom.
        OfFinding::label("finding", |(number, _)| *number),
        OfFinding::label("symptom", |(_, finding)| name(&finding.symptom)).for_programs(),
        OfFinding::detail("symptom", |(_, finding)| symptom_name(finding.symptom)).for_people(),
        OfFinding::figure(
            "gain_share",
            Quantity::Share,
            "Estimated share of the wall time that a remedy would save.",
            |(_, finding)| finding.gain_share,
        ),
        OfFinding::detail("message", |(_, finding)| finding.message.clone()),
        OfFinding::detail("remedy", |(_, finding)| finding.remedy.clone()),
        OfFinding::detail("remedy_command", |(_, finding)| finding.command.clone()),
    ]
}
