//! Converts a plan to its published record.
//!
//! Every pattern names all fields, so that a new field of the plan requires a decision here:
//! publish it as a new field of the schema, or leave it out.

use contend_record::run::{
    CombineRecord, CommandRecord, CutRecord, GroupRecord, GuardRecord, MergeRecord, PlanRecord,
    SourceRecord, StepRecord,
};

use super::{Combine, Command, Cut, Group, Guard, Merge, Plan, Source, Step};

impl From<&Plan> for PlanRecord {
    fn from(plan: &Plan) -> Self {
        let Plan { stages, source, steps } = plan;
        Self {
            stages: stages.clone(),
            source: of_source(source),
            steps: steps.iter().map(of_step).collect(),
        }
    }
}

fn of_source(source: &Source) -> SourceRecord {
    match source {
        Source::Standard => SourceRecord::Standard,
        Source::Files(names) => SourceRecord::Files(names.clone()),
        Source::Own => SourceRecord::Own,
    }
}

fn of_step(step: &Step) -> StepRecord {
    match step {
        Step::Serial(commands) => StepRecord::Serial(of_commands(commands)),
        Step::Parallel(group) => StepRecord::Parallel(of_group(group)),
    }
}

fn of_commands(commands: &[Command]) -> Vec<CommandRecord> {
    commands.iter().map(of_command).collect()
}

fn of_command(command: &Command) -> CommandRecord {
    // Records have no operators: the executor decides whether one replaces the process.
    let Command {
        stage,
        variables,
        program,
        arguments,
        status,
        input,
        sorts,
        ascii_in_c,
        operator: _,
    } = command;
    CommandRecord {
        stage: *stage,
        variables: variables.clone(),
        program: program.clone(),
        arguments: arguments.clone(),
        status: *status,
        input: input.clone(),
        sorts: *sorts,
        ascii_in_c: *ascii_in_c,
    }
}

fn of_group(group: &Group) -> GroupRecord {
    let Group { serial, opening, cut, guard, each, combine, any_order, may_fail } = group;
    GroupRecord {
        serial: of_commands(serial),
        opening: opening.as_ref().map(of_command),
        cut: of_cut(cut),
        guard: of_guard(guard),
        each: of_commands(each),
        combine: of_combine(combine),
        any_order: *any_order,
        may_fail: *may_fail,
    }
}

fn of_cut(cut: &Cut) -> CutRecord {
    let &Cut { records, before, after, differ, ascending } = cut;
    CutRecord { records, before, after, differ, ascending }
}

fn of_guard(guard: &Guard) -> GuardRecord {
    let &Guard { without, utf8, terminated } = guard;
    GuardRecord { without, utf8, terminated }
}

fn of_combine(combine: &Combine) -> CombineRecord {
    match combine {
        Combine::Concatenate => CombineRecord::Concatenate,
        Combine::Adjoin { counted } => CombineRecord::Adjoin { counted: *counted },
        Combine::Merge(merge) => CombineRecord::Merge(of_merge(merge)),
        Combine::Counts { reverse, folder } => {
            CombineRecord::Counts { reverse: *reverse, folder: folder.clone() }
        }
        Combine::Numbers(numbers) => CombineRecord::Numbers(numbers.clone()),
        Combine::Through(command) => CombineRecord::Through(of_command(command)),
        Combine::Totals(command) => CombineRecord::Totals(of_command(command)),
    }
}

fn of_merge(merge: &Merge) -> MergeRecord {
    let Merge { command, lines, first, folder } = merge;
    MergeRecord {
        command: of_command(command),
        lines: lines.clone(),
        first: *first,
        folder: folder.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use contend_shell::environment::Environment;
    use serde_json::Value;

    use super::*;
    use crate::plan::planner::{self, Annotation, Situation};
    use crate::plan::text::{self, Reading};

    /// Pipelines with their locales. Together, their plans have every kind of step and combination,
    /// and set every field.
    const PIPELINES: &[(&str, &str)] = &[
        ("grep -c x", "C"),
        ("tr a b | cut -d: -f2 | wc -lw", "C"),
        ("sort -k2,2nr -t: | head -n 3", "C"),
        ("sort | uniq -c | sort -rn", "C"),
        ("sort -r -T /tmp | uniq -c", "C"),
        ("sort -T /tmp -u", "C"),
        ("uniq", "C"),
        ("uniq -c", "C"),
        ("uniq -d", "C"),
        ("grep x | head -n 3", "C"),
        ("LC_ALL=C tr a b | nl", "C"),
        ("awk '{ s += $1 } END { print s }' /etc/passwd", "C"),
        ("own | sort -z", "C"),
        ("sed -n 2p", "C"),
        ("cat /etc/passwd | grep root", "C"),
        ("sort /etc/passwd", "C"),
        ("date | rev", "C"),
        ("comm -12 - /etc/passwd", "C"),
        ("tr a b | sed s/a/b/ | grep -i x", "en_US.UTF-8"),
        ("jq .a", "en_US.UTF-8"),
        ("cat /etc/passwd | col -b", "C"),
    ];

    fn plan(text: &str, locale: &str) -> Plan {
        let Reading::Commands { stages, .. } = text::read(text) else { panic!("{text}") };
        let environment = Environment::for_tests(locale);
        let records = super::super::Records::Csv;
        let annotation = Annotation { words: vec!["own".to_owned()], records };
        let situation = Situation {
            environment: &environment,
            annotations: &[annotation],
            input_bytes: None,
            output_is_terminal: false,
            reads_objects: false,
        };
        planner::plan(&stages, &situation)
    }

    /// Collects the names of all non-null fields and all variants in the JSON form of a plan, each
    /// with the name of its parent as a prefix. Adds ` is set` to the name of a field that is
    /// `true`.
    fn collect(parent: &str, value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                    let set = if *value == Value::Bool(true) { " is set" } else { "" };
                    found.insert(format!("{parent}.{name}{set}"));
                    collect(name, value, found);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(parent, value, found)),
            Value::String(text) => drop(found.insert(format!("{parent}.{text}"))),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Removes operators, which records do not publish.
    fn remove_operators(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("operator");
                fields.values_mut().for_each(remove_operators);
            }
            Value::Array(values) => values.iter_mut().for_each(remove_operators),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    #[test]
    fn a_record_has_all_that_is_in_the_plan() {
        let mut found = BTreeSet::new();
        for (text, locale) in PIPELINES {
            let plan = plan(text, locale);
            let mut json = serde_json::to_value(&plan).expect("a plan is data");
            collect("plan", &json, &mut found);
            remove_operators(&mut json);
            let record = PlanRecord::from(&plan);
            assert_eq!(serde_json::to_value(&record).expect("a record is data"), json, "{text}");
        }
        // The comparison cannot cover fields that are in none of the plans.
        for name in [
            "steps.serial",
            "steps.parallel",
            "parallel.opening",
            "cut.differ",
            "combine.concatenate",
            "combine.adjoin",
            "combine.merge",
            "combine.counts",
            "combine.numbers",
            "combine.through",
            "combine.totals",
            "merge.lines",
            "merge.first",
            "merge.folder",
            "cut.ascending is set",
            "parallel.any_order is set",
            "each.ascii_in_c is set",
            "each.operator",
            "adjoin.counted is set",
            "parallel.may_fail is set",
            "counts.reverse is set",
            "counts.folder",
            "each.sorts is set",
            "guard.terminated is set",
            "guard.utf8 is set",
            "source.standard",
            "source.files",
            "source.own",
        ] {
            assert!(found.contains(name), "no plan has `{name}`: {found:?}");
        }
    }

    #[test]
    fn a_plan_survives_being_shipped() {
        for (text, locale) in PIPELINES {
            let plan = plan(text, locale);
            let json = serde_json::to_string(&plan).expect("a plan is data");
            let arrived: Plan = serde_json::from_str(&json).expect("a plan");
            assert_eq!(arrived, plan, "{text}");
        }
    }
}
