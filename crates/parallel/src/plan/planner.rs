//! Plans a pipeline: groups stages that run over the same chunks, finds where the input may be cut
//! for all of them, and drops stages that are not needed.

mod drafting;
mod source;

use contend_commands::{Simple, Word, head};
use contend_shell::environment::{Environment, Paths};

use super::classes::{self, Class, Combinable, PerRecord, Subject};
use crate::plan::ir::{
    Class as ClassName, Combine, Command, Group, Plan, Records, Source, Stage, Step,
};
use drafting::Drafting;
use source::Found;

/// A command that the user has declared to handle each record independently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The words with which the command begins.
    pub words: Vec<String>,
    /// The format of the records that the command reads and writes.
    pub records: Records,
}

impl Annotation {
    /// Parses the words with which a command begins: a program, and possibly arguments. Variables
    /// set before the program are ignored. Returns `None` if `command` is not a plain command, or
    /// if it redirects its input.
    pub fn read(command: &str, records: Records) -> Option<Self> {
        let simple = Simple::read(command).filter(|simple| simple.input.is_none())?;
        let words = std::iter::once(simple.program).chain(simple.arguments);
        Some(Self { words: words.map(|word| word.text).collect(), records })
    }
}

/// Properties of the machine and the invocation that a plan depends on.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The programs on the machine, and the locale.
    pub environment: &'a Environment,
    /// The commands that the user has annotated.
    pub annotations: &'a [Annotation],
    /// Size in bytes of the whole file that is standard input, whatever its offset; `None` unless
    /// it is a regular file.
    pub input_bytes: Option<u64>,
    /// Whether standard output is a terminal.
    pub output_is_terminal: bool,
    /// Whether names such as `s3://bucket/key` are those of objects in a store.
    pub reads_objects: bool,
}

/// Plans how to run the given stages. The plan opens the first stage's files itself only if its
/// first step runs over chunks, or if one of them is an object.
pub fn plan(stages: &[Simple], situation: &Situation<'_>) -> Plan {
    let found = source::find(stages, situation);
    let mut plan = draft(stages, &found, situation);
    match plan.steps.first_mut() {
        // The first command may behave differently if contend opens its files, or over a pipe.
        Some(Step::Serial(_)) if !found.source.has_object() => {
            let why = plan.stages.first().map(|stage| stage.why.clone());
            let why = why.filter(|_| found.first.is_some());
            draft(stages, &found.left_alone(why), situation)
        }
        // Something has to copy an object, even if the pipeline is only `cat`.
        None if found.source.has_object() => {
            let copy = command(0, &stages[0], &[], None);
            plan.steps.push(Step::Serial(vec![copy]));
            plan
        }
        Some(Step::Parallel(group)) if found.first.is_some() => {
            name_files(group, &stages[0]);
            plan
        }
        _ => plan,
    }
}

/// Sets `group.opening` to the group's first command, in a form that opens the plan's files
/// itself. Does nothing unless that command executes `stage`, the pipeline's first stage.
fn name_files(group: &mut Group, stage: &Simple) {
    if let Some(first) = group.serial.first().filter(|first| first.stage == 0) {
        let named = command(0, stage, &stage.arguments, None);
        group.opening = Some(Command { status: first.status, ..named });
    }
}

/// Returns whether combining outputs in the given way may end before the input does.
pub fn ends_early(combine: &Combine) -> bool {
    match combine {
        Combine::Through(command) => !command.program.ends_with("tail"),
        Combine::Merge(merge) => merge.first.is_some(),
        _ => false,
    }
}

/// Returns the stages with their indices. If the plan opens the first stage's files, that stage no
/// longer names them, or is omitted because it is not needed.
fn remaining_stages<'s>(stages: &'s [Simple], found: &'s Found) -> Vec<(usize, &'s Simple)> {
    let first = found.first.as_ref();
    let all = stages.iter().enumerate();
    let all = all.map(|(index, simple)| (index, first.filter(|_| index == 0).unwrap_or(simple)));
    all.skip(usize::from(found.left_out.is_some())).collect()
}

fn classified(remaining_stages: &[(usize, &Simple)], situation: &Situation<'_>) -> Vec<Class> {
    let environment = situation.environment;
    let mut classes: Vec<Class> = remaining_stages
        .iter()
        .map(|(_, simple)| classify(&Subject { simple, environment }, situation))
        .collect();
    if situation.output_is_terminal {
        leave_terminal_to_last(&mut classes);
    }
    keep_pipes_at_ends(&mut classes);
    classes
}

/// Keeps a stage that only forwards data if it is between an opaque command and the pipeline's own
/// input or output. Without it, the command would see a file or a terminal instead of a pipe.
fn keep_pipes_at_ends(classes: &mut [Class]) {
    let is_kept = |class: &Class| *class != Class::Nothing;
    let is_opaque = |at: &usize| matches!(classes[*at], Class::Opaque(_));
    let first = classes.iter().position(is_kept).filter(is_opaque);
    let last = classes.iter().rposition(is_kept).filter(is_opaque);
    if let Some(before) = first.and_then(|at| at.checked_sub(1)) {
        classes[before] =
            Class::Opaque("the next stage may read a file differently from a pipe".into());
    }
    if let Some(after) = last.and_then(|at| classes.get_mut(at + 1)) {
        *after =
            Class::Opaque("the previous stage may write to a file differently from a pipe".into());
    }
}

/// Makes the last stage opaque if it writes differently to a terminal. Also does so if the stage
/// only forwards its input and follows an opaque one, which would otherwise write to the terminal.
fn leave_terminal_to_last(classes: &mut [Class]) {
    let Some((last, before)) = classes.split_last_mut() else { return };
    let heeds = match last {
        Class::PerRecord(class) => class.output_depends_on_tty,
        Class::Combinable(class) => class.each.output_depends_on_tty,
        Class::Nothing | Class::Opaque(_) => false,
    };
    let writer = before.iter().rfind(|class| **class != Class::Nothing);
    if heeds {
        *last = Class::Opaque(
            "its output is a terminal, and it writes differently to a terminal".into(),
        );
    } else if *last == Class::Nothing && matches!(writer, Some(Class::Opaque(_))) {
        let why = "the previous stage may write differently to a terminal";
        *last = Class::Opaque(why.into());
    }
}

/// Plans the stages for the input that has been found.
fn draft(stages: &[Simple], found: &Found, situation: &Situation<'_>) -> Plan {
    let remaining_stages = remaining_stages(stages, found);
    let mut classes = classified(&remaining_stages, situation);
    let mut drafting = Drafting::new(situation.input_bytes.is_some(), found.source.clone());
    if let Some(why) = found.left_out {
        drafting.record_class(&stages[0], ClassName::LeftOut, why);
    }
    if let (Some(why), Some(class @ Class::Opaque(_))) = (&found.obstacle, classes.first_mut()) {
        *class = Class::Opaque(why.clone().into());
    }
    // A program that reads the same standard input after the pipeline must find the right offset.
    if let (Some((0, _)), Some(class)) = (remaining_stages.first(), classes.first_mut())
        && let Class::Combinable(Combinable { combine, .. }) = class
        && ends_early(combine)
    {
        *class = Class::Opaque("it stops reading early".into());
    }
    // For a file, `wc` chooses the width of its columns from the size.
    if let (Some((0, _)), Some(Class::Combinable(class)), Some(bytes)) =
        (remaining_stages.first(), classes.first_mut(), drafting.file_bytes(situation.input_bytes))
        && let Combine::Numbers(numbers) = &mut class.combine
        && numbers.columns.len() > 1
    {
        numbers.width = bytes.to_string().len();
    }
    let mut at = 0;
    while at < remaining_stages.len() {
        at += next(&remaining_stages[at..], &classes[at..], stages, &mut drafting);
    }
    drafting.finish()
}

/// Returns a plan that runs the stages as written. A `cat` at the beginning is dropped if the next
/// stage can read the file itself, unless `pipefail` is set: then the exit code of every stage
/// matters.
pub fn plain(stages: &[Simple], paths: &Paths, pipefail: bool) -> Plan {
    let reader = if pipefail { None } else { source::reader_of_file(stages, paths) };
    let skipped = usize::from(reader.is_some());
    let left = stages.iter().enumerate().skip(skipped);
    let left = left
        .map(|(index, simple)| (index, reader.as_ref().filter(|_| index == 1).unwrap_or(simple)));
    let commands = left.map(|(index, simple)| command(index, simple, &simple.arguments, None));
    let said = stages.iter().map(|simple| Stage {
        text: simple.text(),
        class: ClassName::Opaque,
        why: String::new(),
    });
    Plan {
        stages: said.collect(),
        source: Source::Own,
        steps: vec![Step::Serial(commands.collect())],
    }
}

fn classify(subject: &Subject<'_>, situation: &Situation<'_>) -> Class {
    let simple = subject.simple;
    if let Some(input) = &simple.input {
        return Class::Opaque(format!("it reads `{}`, not the previous stage", input.text).into());
    }
    match annotation(simple, situation) {
        Some(annotation) => classes::annotated(annotation.records),
        None => classes::classify(subject),
    }
}

/// Returns the first annotation whose words the command begins with, or `None` if there is none.
fn annotation<'a>(simple: &Simple, situation: &Situation<'a>) -> Option<&'a Annotation> {
    let texts = std::iter::once(&simple.program).chain(&simple.arguments).map(|word| &word.text);
    situation.annotations.iter().find(|annotation| {
        annotation.words.len() <= simple.arguments.len() + 1
            && annotation.words.iter().zip(texts.clone()).all(|(said, is)| said == is)
    })
}

/// Adds the first of the remaining stages to the plan, or drops it. Also adds later stages that
/// form one step with it. Returns the number of stages added or dropped.
fn next(
    remaining_stages: &[(usize, &Simple)],
    classes: &[Class],
    stages: &[Simple],
    drafting: &mut Drafting,
) -> usize {
    let (index, simple) = remaining_stages[0];
    let shown = &stages[index];
    match &classes[0] {
        Class::Opaque(why) => {
            drafting.record_class(shown, ClassName::Opaque, why.clone());
            drafting.serial(command(index, simple, &simple.arguments, None));
            1
        }
        Class::Nothing => {
            drafting.record_class(shown, ClassName::LeftOut, "it only forwards its input");
            1
        }
        Class::PerRecord(class) if class.looks_back && !drafting.is_replayable() => {
            let why = "later input may change earlier lines, and a pipe cannot be re-read";
            drafting.record_class(shown, ClassName::Opaque, why);
            drafting.serial(command(index, simple, &simple.arguments, Some(class)));
            1
        }
        Class::PerRecord(class) => {
            drafting.per_record(class, each(index, simple, class), whole(index, simple, class));
            drafting.record_class(shown, ClassName::PerRecord, "handles each record independently");
            1
        }
        Class::Combinable(class) => combinable(remaining_stages, classes, stages, class, drafting),
    }
}

fn combinable(
    remaining_stages: &[(usize, &Simple)],
    classes: &[Class],
    stages: &[Simple],
    class: &Combinable,
    drafting: &mut Drafting,
) -> usize {
    let (index, simple) = remaining_stages[0];
    if let (Combine::Merge(merge), Some(Class::Combinable(after))) =
        (&class.combine, classes.get(1))
        && matches!(&after.combine, Combine::Merge(_))
        && after.ignores_order
        && after.each.cut.records == class.each.cut.records
        && !drops_records(simple)
        && merge.first.is_none()
        && !class.each.may_fail
        && classes::surely_succeeds(simple)
    {
        let why = "the next stage sorts again";
        drafting.record_class(&stages[index], ClassName::LeftOut, why);
        return 1;
    }
    let order_is_ignored =
        matches!(classes.get(1), Some(Class::Combinable(after)) if after.ignores_order);
    let obstacle = if class.order_unknown && !order_is_ignored {
        Some("its output has no defined order, and no sort follows")
    } else {
        drafting.obstacle(class)
    };
    if let Some(why) = obstacle {
        drafting.record_class(&stages[index], ClassName::Opaque, why);
        drafting.serial(command(index, simple, &simple.arguments, Some(&class.each)));
        return 1;
    }
    drafting.record_class(&stages[index], ClassName::Combinable, describe_combiner(&class.combine));
    let mut taken = 1 + move_filters_before_sort(remaining_stages, classes, class, drafting);
    let mut group = drafting.begin_combining(class, index);
    group.each.push(each(index, simple, &class.each));
    group.serial.push(whole(index, simple, &class.each));
    for (&(filter, simple), class) in remaining_stages.iter().zip(classes).take(taken).skip(1) {
        if let Class::PerRecord(class) = class {
            group.serial.push(whole(filter, simple, class));
        }
        let why = "it only takes lines away: it comes before the sort, which has less to do then";
        drafting.record_class(&stages[filter], ClassName::PerRecord, why);
    }
    if let Some(&(next, after)) = remaining_stages.get(taken)
        && let Some(why) = group.absorb(next, after, classes.get(taken))
    {
        drafting.record_class(&stages[next], ClassName::Combinable, why);
        taken += 1;
    }
    drafting.end_combining(group);
    taken
}

/// Moves the filters that directly follow the sort, which is the first remaining stage, to the
/// place before it: all of them or, if that is impossible or of no use, none. Returns the number of
/// filters moved.
fn move_filters_before_sort(
    remaining_stages: &[(usize, &Simple)],
    classes: &[Class],
    sort: &Combinable,
    drafting: &mut Drafting,
) -> usize {
    let (_, simple) = remaining_stages[0];
    if !matches!(sort.combine, Combine::Merge(_)) || drops_records(simple) {
        return 0; // the sort reduces the work of the filter, too
    }
    let selects = |class: &PerRecord| class.selects && class.cut == sort.each.cut;
    let filters =
        remaining_stages.iter().zip(classes).skip(1).map_while(|(&(index, simple), class)| {
            match class {
                Class::PerRecord(class) if selects(class) => {
                    Some((class, each(index, simple, class)))
                }
                _ => None,
            }
        });
    let filters: Vec<_> = filters.collect();
    let count = filters.len();
    if count > 0 && drafting.select_before(filters, sort) { count } else { 0 }
}

fn describe_combiner(combine: &Combine) -> &'static str {
    match combine {
        Combine::Concatenate => "outputs are concatenated in order",
        Combine::Adjoin { .. } => "duplicates at chunk boundaries are collapsed",
        Combine::Merge(_) => "sorted chunks are merged",
        Combine::Counts { .. } => "counts of chunks are merged",
        Combine::Numbers(_) => "numbers of chunks are combined",
        Combine::Through(_) => "it runs once more, on the outputs of all chunks",
        Combine::Totals(_) => "totals of chunks are summed, unless one was rounded",
    }
}

/// Returns whether a sort may write fewer records than it reads.
fn drops_records(simple: &Simple) -> bool {
    contend_commands::sort::Sort::read(simple).is_none_or(|sort| sort.drops_equal_lines())
}

/// Returns the command with which a stage runs over a chunk.
fn each(index: usize, simple: &Simple, class: &PerRecord) -> Command {
    let arguments = class.arguments.as_ref().unwrap_or(&simple.arguments);
    let operator = class.operator.clone();
    Command { operator, ..command(index, simple, arguments, Some(class)) }
}

/// Returns the command with which a stage runs over the whole input.
fn whole(index: usize, simple: &Simple, class: &PerRecord) -> Command {
    Command { sorts: false, ..command(index, simple, &simple.arguments, Some(class)) }
}

fn command(
    stage: usize,
    simple: &Simple,
    arguments: &[Word],
    class: Option<&PerRecord>,
) -> Command {
    let variables = simple.variables.iter().map(|(name, value)| (name.clone(), value.text.clone()));
    Command {
        stage,
        variables: variables.collect(),
        program: simple.program.text.clone(),
        arguments: arguments.iter().map(|word| word.text.clone()).collect(),
        status: class.map_or(crate::plan::ir::StatusRule::Zero, |class| class.status),
        sorts: class.is_some() && simple.name() == "sort",
        ascii_in_c: false,
        operator: None,
        input: simple.input.as_ref().map(|file| file.text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_commands::testing::simple;
    use contend_shell::environment::in_path;

    fn planned(stages: &[&str], output_is_terminal: bool) -> Plan {
        let environment = Environment::for_tests("C");
        let situation = Situation {
            environment: &environment,
            annotations: &[],
            input_bytes: None,
            output_is_terminal,
            reads_objects: false,
        };
        let stages: Vec<Simple> = stages.iter().map(|text| simple(text)).collect();
        plan(&stages, &situation)
    }

    /// Returns the classes of the given stages, first to last.
    fn classes(stages: &[&str], output_is_terminal: bool) -> Vec<ClassName> {
        let plan = planned(stages, output_is_terminal);
        plan.stages.into_iter().map(|stage| stage.class).collect()
    }

    #[test]
    fn terminal_dependent_commands_are_opaque_on_a_terminal() {
        use ClassName::{LeftOut, Opaque, PerRecord};
        let coloured = ["tr a b", "grep --color=auto x"];
        assert_eq!(classes(&coloured, true), [PerRecord, Opaque]);
        assert_eq!(classes(&coloured, false), [PerRecord, PerRecord]);
        assert_eq!(classes(&["tr a b", "grep --color=never x"], true), [PerRecord, PerRecord]);
        // The output of grep is a pipe.
        assert_eq!(classes(&["grep --color=auto x", "cat"], true), [PerRecord, LeftOut]);
        assert_eq!(classes(&["tr a b", "my-own", "cat"], true), [PerRecord, Opaque, Opaque]);
    }

    #[test]
    fn commands_that_look_back_need_a_seekable_input() {
        use ClassName::{Opaque, PerRecord};
        let class = |stages: &[&str]| classes(stages, false);
        assert_eq!(class(&["my-own", "col -bx", "rev"]), [Opaque, Opaque, PerRecord]);
        assert_eq!(class(&["col -bx", "rev"]), [Opaque, PerRecord]);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "text\n").expect("room");
        let cat = format!("cat {}", file.display());
        assert_eq!(class(&[&cat, "col -bx", "rev"])[1..], [PerRecord, PerRecord]);
    }

    #[test]
    fn the_reason_for_a_first_stage_with_a_file_is_not_the_file() {
        let why = |text: &str| planned(&[text, "sort"], false).stages[0].why.clone();
        let reason = "`s` keeps its value from line to line";
        assert_eq!(why("awk '!s[$1]++' /etc/passwd"), reason);
        assert_eq!(why("awk '!s[$1]++' </etc/passwd"), reason);
        assert!(why("awk '!s[$1]++' /dev/tty").contains("/dev/tty"));
    }

    #[test]
    fn a_cat_that_makes_a_pipe_for_a_command_that_is_not_known_is_kept() {
        use ClassName::{LeftOut, Opaque, PerRecord};
        let kept = |stages: &[&str]| classes(stages, false);
        assert_eq!(kept(&["tr a b", "my-own", "cat"]), [PerRecord, Opaque, Opaque]);
        assert_eq!(kept(&["cat", "my-own", "tr a b"]), [Opaque, Opaque, PerRecord]);
        // One pipe is enough.
        assert_eq!(kept(&["cat", "cat", "my-own", "tr a b"]), [LeftOut, Opaque, Opaque, PerRecord]);
        assert_eq!(kept(&["tr a b", "my-own", "cat", "cat"]), [PerRecord, Opaque, Opaque, LeftOut]);
        // The unknown command has a pipe on that side anyway, or the neighbour is known.
        let between = ["tr a b", "cat", "my-own", "cat", "tr a b"];
        assert_eq!(kept(&between), [PerRecord, LeftOut, Opaque, LeftOut, PerRecord]);
        assert_eq!(kept(&["cat", "tr a b", "cat"]), [LeftOut, PerRecord, LeftOut]);
    }

    /// Returns the programs of every group, over chunks and as written.
    fn groups(pipeline: &str) -> Vec<(Vec<String>, Vec<String>)> {
        let stages: Vec<&str> = pipeline.split(" | ").collect();
        let programs = |commands: &[Command]| {
            commands.iter().map(|command| command.program.clone()).collect::<Vec<_>>()
        };
        let steps = planned(&stages, false).steps;
        let groups = steps.iter().filter_map(|step| match step {
            Step::Parallel(group) => Some((programs(&group.each), programs(&group.serial))),
            Step::Serial(_) => None,
        });
        groups.collect()
    }

    #[test]
    fn filters_after_a_sort_move_before_it() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let pipeline = "cat FILE | tr a b | sort -k2 | awk 'length > 2' | grep -v x | tr b c";
        assert_eq!(
            groups(&pipeline.replace("FILE", own)),
            [(words("tr awk grep sort"), words("tr sort awk grep")), (words("tr"), words("tr"))]
        );
        let pipeline = "sort FILE | sed -n /x/p | uniq -c";
        let expected = (words("sed sort uniq"), words("sort sed uniq"));
        assert_eq!(groups(&pipeline.replace("FILE", own)), [expected]);
        for stays in [
            "tr a b | sort | grep x", // a pipe
            "cat FILE | uniq -d | sort | grep x",
            "cat FILE | sort -u | grep x",
            "cat FILE | sort | grep -o x",
            "cat FILE | sort | sed s/a/b/",
            "cat FILE | sort | awk '{ print $1 }'",
            "cat FILE | sort | grep -z x",
        ] {
            let groups = groups(&stays.replace("FILE", own));
            assert!(groups.iter().all(|(each, serial)| each == serial), "{stays}: {groups:?}");
        }
    }

    #[test]
    fn a_cat_of_one_file_is_left_out_where_that_makes_no_difference() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let commands = |pipeline: &str| {
            let stages: Vec<Simple> = pipeline.split(" | ").map(simple).collect();
            let names = stages.iter().map(|stage| stage.program.text.clone());
            let paths = names.filter_map(|name| Some((name.clone(), in_path(&name)?))).collect();
            let plan = plain(&stages, &paths, false);
            let [Step::Serial(commands)] = &plan.steps[..] else { panic!("plain") };
            commands.iter().map(|it| (it.stage, it.input.clone())).collect::<Vec<_>>()
        };
        let file = Some(own.to_owned());
        assert_eq!(commands(&format!("cat {own} | tr a b | wc")), [(1, file.clone()), (2, None)]);
        assert_eq!(commands(&format!("cat {own} | LC_ALL=C sort")), [(1, file)]);
        for pipeline in [
            "cat FILE",
            "cat -n FILE | tr a b",
            "cat FILE FILE | tr a b",
            "cat missing | tr a b",
            "cat / | tr a b",
            "cat - | tr a b",
            "cat FILE | wc",
            "cat FILE | tail -f",
            "cat FILE | sort FILE",
            "cat FILE | sort <FILE",
            "cat FILE | sed 'w FILE'",
            "cat FILE | tee FILE",
            "cat FILE | my-own",
            "LC_ALL=C cat FILE | tr a b",
            "tr a b | cat FILE",
        ] {
            let pipeline = pipeline.replace("FILE", own);
            let (first, _) = commands(&pipeline)[0];
            assert_eq!(first, 0, "{pipeline}");
        }
    }

    #[test]
    fn sequential_stages_open_their_files_themselves() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for first in ["awk '{ n[$1]++ } END { for (k in n) print k }'", "nl", "paste - -"] {
            let plan = planned(&[&format!("cat {own} {own}"), first, "tr a b"], false);
            assert_eq!(plan.source, Source::Own, "{first}");
            let [Step::Serial(commands), Step::Parallel(_)] = plan.steps.as_slice() else {
                panic!("{first}: {:?}", plan.steps);
            };
            assert_eq!(commands.len(), 2, "{first}");
        }
    }
}
