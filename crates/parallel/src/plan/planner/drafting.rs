//! Builds a plan: joins stages into a group if one cut suits all of them.

use contend_commands::Simple;

use super::head;
use crate::plan::classes::{Class, Combinable, Output, PerRecord};
use crate::plan::ir::{
    ByteSet, Class as ClassName, Combine, Command, Group, LineOrder, Merge, Plan, Source, Stage,
    Step,
};

/// A plan under construction.
#[derive(Debug)]
pub(super) struct Drafting {
    stages: Vec<Stage>,
    source: Source,
    steps: Vec<Step>,
    open: Option<Open>,
    /// Whether the input of the open group, or else of the next step, can be read again if the step
    /// fails.
    replayable: bool,
}

/// A group to which commands may still be added.
#[derive(Debug, Clone)]
struct Open {
    group: Group,
    /// Properties of the group's output.
    output: Output,
}

/// A group under construction that ends with a combinable command.
#[derive(Debug)]
pub(super) struct Combining {
    pub each: Vec<Command>,
    pub serial: Vec<Command>,
    open: Open,
    combine: Combine,
}

impl Drafting {
    pub(super) fn new(input_is_file: bool, source: Source) -> Self {
        let replayable = match source {
            Source::Files(_) => true,
            Source::Standard => input_is_file,
            Source::Own => false,
        };
        Self { stages: Vec::new(), source, steps: Vec::new(), open: None, replayable }
    }

    /// Returns the size in bytes of the plan's input, or `None` unless that is exactly one file of
    /// known size. `standard_input` is the size of standard input, if it is a regular file.
    pub(super) fn file_bytes(&self, standard_input: Option<u64>) -> Option<u64> {
        match &self.source {
            Source::Standard => standard_input,
            Source::Files(names) => match names.as_slice() {
                [name] => std::fs::metadata(name).ok().map(|data| data.len()),
                _ => None,
            },
            Source::Own => None,
        }
    }

    /// Records the class of the next stage of the pipeline, and the reason.
    pub(super) fn record_class(
        &mut self,
        simple: &Simple,
        class: ClassName,
        why: impl Into<String>,
    ) {
        self.stages.push(Stage { text: simple.text(), class, why: why.into() });
    }

    /// Adds a command that runs once, over the whole input.
    pub(super) fn serial(&mut self, command: Command) {
        self.close();
        match self.steps.last_mut() {
            Some(Step::Serial(commands)) => commands.push(command),
            _ => self.steps.push(Step::Serial(vec![command])),
        }
        self.replayable = false;
    }

    /// Adds a command that handles each record independently, in the forms that run over a chunk
    /// and over the whole input.
    pub(super) fn per_record(&mut self, class: &PerRecord, each: Command, whole: Command) {
        let is_ascii = self.open.as_ref().is_none_or(|open| open.output.keeps_ascii());
        let mut open = self.open_for(class);
        let ascii_in_c = class.ascii_in_c && (is_ascii || open.group.each.is_empty());
        open.group.each.push(Command { ascii_in_c, ..each });
        open.group.serial.push(whole);
        let ends = open.output.records.is_none();
        self.open = Some(open);
        if ends {
            self.close();
        }
    }

    /// Returns whether the input of the open group, or else of the next step, can be read again.
    pub(super) fn is_replayable(&self) -> bool {
        self.replayable
    }

    /// Returns why the outputs of a command of the given class cannot be combined here, or `None`
    /// if they can.
    pub(super) fn obstacle(&self, class: &Combinable) -> Option<&'static str> {
        let is_parted = self.open.as_ref().is_some_and(|open| open.needs_neighbours(class));
        if matches!(class.combine, Combine::Totals(_)) && (!self.replayable || is_parted) {
            return Some("its sums may be inexact and a pipe cannot be re-read");
        }
        let in_order = matches!(class.combine, Combine::Concatenate | Combine::Adjoin { .. })
            || matches!(class.combine, Combine::Through(_));
        let is_local = |open: &Open| open.group.cut.is_local();
        let shares =
            self.replayable && class.each.cut.is_local() && self.open.as_ref().is_none_or(is_local);
        (!class.any_order && !in_order && !shares)
            .then_some("equal lines must stay in input order, and a pipe cannot be re-read")
    }

    /// Moves filters before the sort that precedes them. Returns `false`, and changes nothing, if
    /// that is impossible, such as for input that cannot be read again when the guard rejects a
    /// chunk.
    pub(super) fn select_before(
        &mut self,
        filters: Vec<(&PerRecord, Command)>,
        sort: &Combinable,
    ) -> bool {
        let mut classes = filters.iter().map(|(class, _)| *class);
        let open = self.open.clone().or_else(|| classes.next().map(Open::new));
        let Some(mut open) = open.filter(|_| self.replayable) else { return false };
        let is_admitted = classes.all(|class| open.admit(class)) && open.clone().admit(&sort.each);
        if !is_admitted || open.needs_neighbours(sort) {
            return false;
        }
        open.group.each.extend(filters.into_iter().map(|(_, each)| each));
        self.open = Some(open);
        true
    }

    /// Begins a group that ends with a command of the given class, which the caller adds. The group
    /// begins with the commands of the open group if possible. `stage` is the index of the
    /// command's stage.
    pub(super) fn begin_combining(&mut self, class: &Combinable, stage: usize) -> Combining {
        // If the input cannot be read again, a failure must be known before outputs are combined.
        let may_fail = |open: &Open| !self.replayable && open.group.may_fail;
        if self.open.as_ref().is_some_and(|open| may_fail(open) || open.needs_neighbours(class)) {
            self.close();
        }
        let mut open = self.open_for(&class.each);
        open.group.any_order = class.any_order;
        let (each, serial) =
            (std::mem::take(&mut open.group.each), std::mem::take(&mut open.group.serial));
        Combining { each, serial, open, combine: at_stage(&class.combine, stage) }
    }

    /// Adds the finished group to the plan.
    pub(super) fn end_combining(&mut self, combining: Combining) {
        let Combining { each, serial, open, combine } = combining;
        let group = Group { serial, each, combine, ..open.group };
        self.steps.push(Step::Parallel(group));
        self.replayable = false;
    }

    pub(super) fn finish(mut self) -> Plan {
        self.close();
        self.explain_c_locale();
        Plan { stages: self.stages, source: self.source, steps: self.steps }
    }

    /// For each stage that runs in the C locale over ASCII, adds that fact to the stage's reason.
    fn explain_c_locale(&mut self) {
        let groups = self.steps.iter().filter_map(|step| match step {
            Step::Parallel(group) if group.can_use_c() => Some(group),
            _ => None,
        });
        for command in groups.flat_map(|group| &group.each).filter(|command| command.ascii_in_c) {
            if let Some(stage) = self.stages.get_mut(command.stage) {
                stage.why.push_str("; ASCII input runs in the faster C locale");
            }
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.steps.push(Step::Parallel(open.group));
            self.replayable = false;
        }
    }

    /// Removes and returns the open group, extended by the requirements of one more command. If the
    /// open group cannot admit the command, closes it and returns a new one. Also returns a new
    /// group if none is open.
    fn open_for(&mut self, class: &PerRecord) -> Open {
        if let Some(mut open) = self.open.take() {
            if open.admit(class) {
                return open;
            }
            self.open = Some(open);
            self.close();
        }
        Open::new(class)
    }
}

/// Returns the combination with its commands attributed to the given stage.
fn at_stage(combine: &Combine, stage: usize) -> Combine {
    match combine.clone() {
        Combine::Merge(merge) => {
            Combine::Merge(Merge { command: Command { stage, ..merge.command }, ..merge })
        }
        Combine::Through(command) => Combine::Through(Command { stage, ..command }),
        Combine::Totals(command) => Combine::Totals(Command { stage, ..command }),
        other => other,
    }
}

impl Open {
    fn new(class: &PerRecord) -> Self {
        let group = Group {
            serial: Vec::new(),
            opening: None,
            cut: class.cut.clone(),
            guard: class.guard.clone(),
            each: Vec::new(),
            combine: Combine::Concatenate,
            any_order: false,
            may_fail: class.may_fail,
        };
        Self { group, output: class.output }
    }

    /// Returns whether a last command of the given class would spoil the group: workers could run
    /// it over chunks that are not neighbours, so that equal lines would be adjacent there but not
    /// in the input.
    fn needs_neighbours(&self, class: &Combinable) -> bool {
        let cut = &self.group.cut;
        class.any_order && cut.differ.is_some() && !cut.ascending
    }

    /// Adds a command's requirements on its input to those of the group, and its effects to the
    /// properties of the group's output. Returns `false`, and changes nothing, if that output may
    /// not meet the requirements.
    fn admit(&mut self, class: &PerRecord) -> bool {
        let Self { group, output } = self;
        let fits = output.records == Some(class.cut.records)
            && class.cut.differ.is_none()
            && (!class.writes_on_empty_input || output.map.is_some())
            && (output.keeps_utf8 || !class.guard.utf8)
            && class.guard.without.intersection(output.adds).is_empty();
        let before = carried(class.cut.before, output);
        let after = carried(class.cut.after, output);
        let (true, Some(before), Some(after)) = (fits, before, after) else { return false };
        group.cut.before = group.cut.before.intersection(before);
        group.cut.after = group.cut.after.intersection(after);
        group.guard = group.guard.and(&class.guard);
        group.may_fail |= class.may_fail;
        *output = composed(output, &class.output);
        true
    }
}

/// Returns the bytes of the input that become bytes of `set` in the output, or `None` if the
/// mapping is unknown. If `set` has all bytes, no mapping is needed.
fn carried(set: ByteSet, output: &Output) -> Option<ByteSet> {
    if set.is_all() {
        return Some(set);
    }
    output.map.map(|map| ByteSet::of(|byte| set.contains(map[usize::from(byte)])))
}

fn composed(first: &Output, second: &Output) -> Output {
    let map = first.map.zip(second.map).map(|(a, b)| a.map(|byte| b[usize::from(byte)]));
    Output {
        records: second.records,
        keeps_utf8: first.keeps_utf8 && second.keeps_utf8,
        adds: first.adds.union(second.adds),
        ascii_of_ascii: first.keeps_ascii() && second.keeps_ascii(),
        map,
    }
}

impl Combining {
    /// Adds the next stage to a group that ends with a sort, if the stage drops or counts
    /// duplicates, or selects the first lines. Returns the reason to record, or `None` if the stage
    /// was not added.
    pub(super) fn absorb(
        &mut self,
        stage: usize,
        simple: &Simple,
        class: Option<&Class>,
    ) -> Option<&'static str> {
        let Some(Class::Combinable(class)) = class else { return None };
        let Combine::Merge(merge) = &mut self.combine else { return None };
        if self.open.output.records != Some(class.each.cut.records) {
            return None;
        }
        let command = super::whole(stage, simple, &class.each);
        let whole_lines =
            merge.lines.as_mut().filter(|order| order.separator == b'\n' && order.keys.is_empty());
        match (&class.combine, whole_lines) {
            (Combine::Adjoin { counted: false }, Some(order)) => {
                self.each.last_mut()?.arguments.insert(0, "-u".to_owned());
                order.unique = true;
                self.serial.push(command);
                Some("duplicates are dropped while sorting and merging")
            }
            (
                Combine::Adjoin { counted: true },
                Some(&mut LineOrder { unique: false, reverse, .. }),
            ) => {
                self.each.push(command.clone());
                self.serial.push(command);
                let folder = merge.folder.take();
                self.combine = Combine::Counts { reverse, folder };
                Some("lines of sorted chunks are counted, and the counts are merged")
            }
            (Combine::Through(_), _) if merge.first.is_none() => {
                let lines = head::head(simple).filter(|lines| lines.files.is_empty())?;
                merge.first = Some(lines.count);
                self.each.push(command.clone());
                self.serial.push(command);
                Some("only the first lines of sorted chunks are merged")
            }
            _ => None,
        }
    }
}
