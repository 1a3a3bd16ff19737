//! The tables of a profiled pipeline: its stages.

use contend_record::pipe::{Figure, Outcome, PipeRecord, Stage};

use super::sheet::{Field, Notation, Quantity, Sheet, Workbook};
use super::{estimate, origin};
use crate::render::pipe::bottleneck_name;

/// Returns the tables of a profiled pipeline.
pub fn workbook(record: &PipeRecord) -> Workbook {
    let sheet = Sheet::new("stage", "Stages", &record.stages, stage(record));
    Workbook::new("pipe", &record.command, record, whole(record), vec![sheet])
}

fn whole(record: &PipeRecord) -> Vec<Field<'static, PipeRecord>> {
    type Whole<'a> = Field<'a, PipeRecord>;
    let seconds = |name: &str, help, value: fn(&PipeRecord) -> f64| {
        Whole::figure(name, Quantity::Seconds, help, value).with_notation(Notation::Sentence)
    };
    let mut fields = vec![
        Whole::label("pipeline", |record| record.command.clone()),
        seconds(
            "wall_seconds",
            "Wall time from the start of the stages to the end of the last one.",
            |record| record.wall_seconds,
        ),
        seconds("cpu_seconds", "User and system time of all stages.", |record| {
            record.total.user_seconds + record.total.system_seconds
        }),
        Whole::figure(
            "exit_code",
            Quantity::Plain,
            "Exit status of the pipeline, as the shell would return it.",
            exit_code,
        ),
        Whole::figure("runs", Quantity::Count, "Number of runs with these medians.", |record| {
            record.runs.as_ref().map(|runs| runs.count)
        }),
    ];
    let median_wall = estimate(
        ("median_wall", Quantity::Seconds),
        [
            "Median wall time of several runs.",
            "Lower end of the 95 % interval of the median wall time.",
            "Upper end of the 95 % interval of the median wall time.",
            "Wall time of the shortest of several runs.",
            "Wall time of the longest of several runs.",
        ],
        record.runs.as_ref().map_or(0, |runs| runs.count),
        |record: &PipeRecord| Some((&record.runs.as_ref()?.wall_seconds).into()),
    );
    fields.extend(median_wall.map(|field| field.with_notation(Notation::Sentence)));
    fields.push(Whole::detail("bottleneck", bottleneck).for_people());
    fields.extend(origin(
        |record: &PipeRecord| &record.host,
        |record| record.contend.as_ref(),
        |record| &record.started_at,
    ));
    fields
}

/// Returns the exit status of the pipeline; `None` if it is unknown, because contend was attached to it.
pub(super) fn exit_code(record: &PipeRecord) -> Option<i32> {
    record.attached.is_none().then_some(record.exit_code)
}

/// Returns the exit status of a stage; `None` if the stage has not ended, or its status is unknown.
fn exit_code_of_stage(stage: &Stage) -> Option<i32> {
    match stage.outcome {
        Outcome::Unknown | Outcome::Unobserved | Outcome::Running => None,
        Outcome::Exited
        | Outcome::Killed(_)
        | Outcome::NotFound
        | Outcome::NotExecutable
        | Outcome::Interrupted(_) => Some(stage.exit_code),
    }
}

/// Returns the name of the bottleneck and the evidence for it.
fn bottleneck(record: &PipeRecord) -> String {
    let name = bottleneck_name(&record.bottleneck, &record.stages, usize::MAX);
    let name = name.strip_prefix("Bottleneck: ").unwrap_or(&name); // the column says so
    format!("{name}. {}", record.bottleneck.evidence).trim_end().to_owned()
}

fn stage(record: &PipeRecord) -> Vec<Field<'_, Stage>> {
    type OfStage<'a> = Field<'a, Stage>;
    let seconds = |name: &str, help, value: fn(&Stage) -> f64| {
        OfStage::figure(name, Quantity::Seconds, help, value)
    };
    let count = |name: &str, help, value: fn(&Stage) -> Option<u64>| {
        OfStage::figure(name, Quantity::Count, help, value).for_programs()
    };
    vec![
        OfStage::label("stage", |stage| stage.index),
        OfStage::label("command", |stage| stage.command.clone()),
        seconds(
            "wall_seconds",
            "Wall time from the start of all stages to the end of the stage.",
            |stage| stage.wall_seconds,
        ),
        seconds("cpu_seconds", "User and system time.", Stage::cpu_seconds),
        seconds("user_seconds", "CPU time in user mode.", |stage| stage.user_seconds)
            .for_programs(),
        seconds("system_seconds", "CPU time in the kernel.", |stage| stage.system_seconds)
            .for_programs(),
        seconds("on_cpu_seconds", "Wall time with at least one task on a CPU.", |stage| {
            stage.on_cpu_seconds
        }),
        seconds("run_queue_seconds", "Wall time queued for a CPU.", |stage| {
            stage.run_queue_seconds
        }),
        seconds("starved_seconds", "Wall time waiting for input.", |stage| stage.starved_seconds),
        seconds("blocked_seconds", "Wall time blocked on output.", |stage| stage.blocked_seconds),
        seconds(
            "other_wait_seconds",
            "Wall time of all waits except those for a CPU, for input and on output.",
            |stage| stage.other_wait_seconds,
        ),
        seconds("unexplained_seconds", "Wall time that no sample explains.", |stage| {
            stage.unexplained_seconds
        }),
        seconds("service_seconds", "Wall time on a CPU or in other waits.", |stage| {
            stage.service_seconds
        })
        .for_programs(),
        OfStage::figure("input_bytes", Quantity::Bytes, "Bytes read.", |stage| stage.bytes_in),
        OfStage::figure("output_bytes", Quantity::Bytes, "Bytes written.", |stage| stage.bytes_out),
        count("reads", "Number of read-like system calls.", |stage| stage.reads),
        count("writes", "Number of write-like system calls.", |stage| stage.writes),
        count("voluntary_switches", "Number of voluntary context switches.", |stage| {
            Some(stage.voluntary_switches)
        }),
        count("involuntary_switches", "Number of involuntary context switches.", |stage| {
            Some(stage.involuntary_switches)
        }),
        OfStage::figure(
            "max_rss_bytes",
            Quantity::Bytes,
            "Largest resident set size of any one process.",
            |stage| stage.max_rss_bytes,
        ),
        OfStage::figure(
            "first_output_seconds",
            Quantity::Seconds,
            "Wall time from the start of all stages to the first output.",
            |stage| stage.first_output_seconds,
        )
        .for_programs(),
        OfStage::figure("exit_code", Quantity::Plain, "Exit status.", exit_code_of_stage),
        OfStage::detail("is_bottleneck", |stage| record.bottleneck.stage == Some(stage.index)),
        OfStage::detail("approximate", |stage| {
            let names: Vec<&str> = stage.approximate.iter().copied().map(column_of).collect();
            names.join(" ")
        })
        .for_programs(),
    ]
}

/// Returns the name of the column that has a figure.
fn column_of(figure: Figure) -> &'static str {
    match figure {
        Figure::BytesIn => "input_bytes",
        Figure::BytesOut => "output_bytes",
        Figure::Reads => "reads",
        Figure::Writes => "writes",
        Figure::MaxRssBytes => "max_rss_bytes",
    }
}
