//! Changes that may make a pipeline faster: one file and one row of [`TABLE`] for each rewrite.
//!
//! A rewrite states what can change and how certain the output is. [`crate::predict`] estimates the
//! gain, and [`crate::trial`] measures it.
//!
//! Rewrites only touch stages that parse as simple commands of program files: no functions, aliases
//! or builtins, and no redirections except of the first input. Commands that write files or start
//! programs (`tee`, `xargs`, scripts) have no module in [`contend_commands`] and are left alone.

mod another_awk;
mod byte_locale;
mod count_in_grep;
pub mod draft;
mod drop_cat;
mod filter_early;
mod fuse_cut;
mod fuse_grep;
mod fuse_head;
mod fuse_sed;
mod fuse_tr;
mod larger_pipe;
mod reduce_early;
mod sort_resources;
mod sort_unique;
mod split_stage;
mod top_lines;

use std::ops::Range;

use contend_commands::behaviour;
use contend_record::advice::{RewriteId, Safety};
use contend_record::pipe::{Outcome, PipeRecord};
use contend_shell::environment::Environment;

use draft::{Draft, Stage};

/// A rewrite: a row of [`TABLE`].
#[derive(Debug)]
pub struct Rewrite {
    /// Its identifier.
    pub id: RewriteId,
    /// Finds the places where it applies.
    find: fn(&Situation<'_>) -> Vec<Change>,
}

/// All rewrites, in the order in which a combination applies them.
pub const TABLE: &[Rewrite] = &[
    Rewrite { id: RewriteId::DropCat, find: drop_cat::find },
    Rewrite { id: RewriteId::ReduceEarly, find: reduce_early::find },
    Rewrite { id: RewriteId::FilterEarly, find: filter_early::find },
    Rewrite { id: RewriteId::FuseHead, find: fuse_head::find },
    Rewrite { id: RewriteId::FuseCut, find: fuse_cut::find },
    Rewrite { id: RewriteId::FuseTr, find: fuse_tr::find },
    Rewrite { id: RewriteId::FuseGrep, find: fuse_grep::find },
    Rewrite { id: RewriteId::FuseSed, find: fuse_sed::find },
    Rewrite { id: RewriteId::CountInGrep, find: count_in_grep::find },
    Rewrite { id: RewriteId::SortUnique, find: sort_unique::find },
    Rewrite { id: RewriteId::TopLines, find: top_lines::find },
    Rewrite { id: RewriteId::ByteLocale, find: byte_locale::find },
    Rewrite { id: RewriteId::AnotherAwk, find: another_awk::find },
    Rewrite { id: RewriteId::SortResources, find: sort_resources::find },
    Rewrite { id: RewriteId::SplitStage, find: split_stage::find },
    Rewrite { id: RewriteId::LargerPipe, find: larger_pipe::find },
];

/// Signal for a write to a pipe without readers.
const SIGPIPE: i32 = 13;

/// Smallest share of the wall time for which changing a single stage pays off.
const MIN_WALL_SHARE: f64 = 0.05;

/// The input of a rewrite.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The pipeline.
    pub draft: &'a Draft,
    /// Programs, locale, memory and CPUs.
    pub environment: &'a Environment,
    /// The profile of the original; [`Stage::origin`] maps stages to it.
    pub profile: Option<&'a PipeRecord>,
}

impl Situation<'_> {
    /// Applies `change` to every pair of neighbouring stages.
    fn neighbours<'s>(
        &'s self,
        change: impl Fn(usize, &'s Stage, &'s Stage) -> Option<Change> + 's,
    ) -> Vec<Change> {
        let pairs = self.draft.stages.windows(2).enumerate();
        pairs.filter_map(|(index, pair)| change(index, &pair[0], &pair[1])).collect()
    }

    /// Applies `change` to every stage that took a relevant share of the time.
    fn worthwhile(&self, change: impl Fn(usize, &Stage) -> Option<Vec<Change>>) -> Vec<Change> {
        let takes_time = |stage: &Stage| {
            let wall = self.profile.map_or(0.0, |profile| profile.wall_seconds);
            self.measured(stage).is_none_or(|s| s.service_seconds() >= MIN_WALL_SHARE * wall)
        };
        let stages = self.draft.stages.iter().enumerate().filter(|(_, stage)| takes_time(stage));
        stages.filter_map(|(index, stage)| change(index, stage)).flatten().collect()
    }

    /// Returns whether these stages all succeeded. A replacement for a stage that failed may fail
    /// with another message.
    fn went_well(&self, at: Range<usize>) -> bool {
        let Some(profile) = self.profile else { return true };
        let stages = self.draft.stages[at].iter().flat_map(|stage| &stage.origin);
        stages.filter_map(|&index| profile.stages.get(index)).all(did_its_work)
    }

    /// Returns the profile of a stage that is unchanged from the original.
    fn measured(&self, stage: &Stage) -> Option<&contend_record::pipe::Stage> {
        match stage.origin.as_slice() {
            [index] => self.profile?.stages.get(*index),
            _ => None,
        }
    }
}

/// Returns whether a stage succeeded. grep may find nothing, and a reader may close the pipe early.
pub fn did_its_work(stage: &contend_record::pipe::Stage) -> bool {
    let finds_nothing = stage.exit_code == 1 && behaviour::selects(&stage.command);
    let cut_off = stage.outcome == Outcome::Killed(SIGPIPE);
    stage.exit_code == 0 || finds_nothing || cut_off
}

/// Distinguishes the changes that one rewrite proposes for the same stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variant {
    /// The rewrite has one change.
    Only,
    /// Replaces the program by this one.
    Program(String),
    /// Gives `sort` a larger buffer.
    Memory,
    /// Gives `sort` more threads.
    Threads,
    /// Compresses the temporary files of `sort`.
    Compression,
}

/// Identifies a change, independently of other changes made before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeId {
    /// The rewrite.
    pub rewrite: RewriteId,
    /// The rewrite's variant.
    pub variant: Variant,
    /// The affected stages of the original, from 1.
    pub stages: Vec<usize>,
}

impl ChangeId {
    /// Identifies a change of this draft.
    pub fn of(draft: &Draft, change: &Change) -> Self {
        let stages = draft.stages[change.at.clone()].iter();
        Self {
            rewrite: change.rewrite,
            variant: change.variant.clone(),
            stages: stages.flat_map(|stage| stage.origin.iter().map(|index| index + 1)).collect(),
        }
    }

    /// Returns whether this is the same change for the same or more stages: an earlier change may
    /// have merged some.
    pub fn includes(&self, other: &Self) -> bool {
        self.rewrite == other.rewrite
            && self.variant == other.variant
            && other.stages.iter().all(|stage| self.stages.contains(stage))
    }
}

/// A change of neighbouring stages.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The rewrite.
    pub rewrite: RewriteId,
    /// The rewrite's variant.
    pub variant: Variant,
    /// The stages that are replaced.
    pub at: Range<usize>,
    /// The replacements.
    pub stages: Vec<Replacement>,
    /// How certain it is that the output stays the same.
    pub safety: Safety,
    /// Why the change may help, for the reader of the report.
    pub reasons: Vec<String>,
}

/// A stage that replaces others.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    /// The text of the stage.
    pub text: String,
    /// The stages whose work it does, numbered as in [`Change::at`], with the expected share of
    /// each one's service time. Empty if only a pilot can measure it.
    pub work: Vec<(usize, f64)>,
}

impl Replacement {
    /// Creates a stage that does all the work of these.
    fn of(text: impl Into<String>, stages: impl IntoIterator<Item = usize>) -> Self {
        Self { text: text.into(), work: stages.into_iter().map(|index| (index, 1.0)).collect() }
    }
}

impl Change {
    /// Creates one stage that replaces two neighbours.
    fn fused(
        rewrite: RewriteId,
        first: usize,
        text: String,
        safety: Safety,
        reason: impl Into<String>,
    ) -> Self {
        let stages = vec![Replacement::of(text, [first, first + 1])];
        let (variant, reasons) = (Variant::Only, vec![reason.into()]);
        Self { rewrite, variant, at: first..first + 2, stages, safety, reasons }
    }

    /// Creates another text for one stage, with the expected `share` of its service time, if known.
    fn of_one(
        rewrite: RewriteId,
        index: usize,
        text: String,
        share: Option<f64>,
        safety: Safety,
        reason: impl Into<String>,
    ) -> Self {
        let work = share.map(|share| (index, share)).into_iter().collect();
        let stages = vec![Replacement { text, work }];
        let (variant, reasons) = (Variant::Only, vec![reason.into()]);
        Self { rewrite, variant, at: index..index + 1, stages, safety, reasons }
    }
}

/// Returns all changes that apply.
pub fn changes(situation: &Situation<'_>) -> Vec<Change> {
    let found = TABLE.iter().flat_map(|rewrite| (rewrite.find)(situation));
    let sound = found.filter(|change| situation.went_well(change.at.clone()));
    // With pipefail, exit statuses count that are hidden otherwise, including those of stages that
    // a reader cut off.
    let least = if situation.environment.pipefail { Safety::ThisData } else { Safety::Always };
    sound.map(|change| Change { safety: change.safety.max(least), ..change }).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use contend_record::Host;
    use contend_record::pipe::Boundary;
    use contend_shell::parse::parse;

    /// Returns the draft of a pipeline on a machine with every program, in this locale.
    pub(crate) fn draft(text: &str, environment: &Environment) -> Draft {
        Draft::read(&parse(text).expect("one pipeline"), environment).expect("a draft")
    }

    /// Returns the pipelines that a rewrite produces from this one, in the C locale.
    pub(crate) fn apply(id: RewriteId, text: &str) -> Vec<String> {
        apply_in(id, text, &Environment::for_tests("C"))
    }

    pub(crate) fn apply_in(id: RewriteId, text: &str, environment: &Environment) -> Vec<String> {
        let draft = draft(text, environment);
        let situation = Situation { draft: &draft, environment, profile: None };
        let rewrite = TABLE.iter().find(|rewrite| rewrite.id == id).expect("in the table");
        let found = (rewrite.find)(&situation);
        found.iter().map(|change| draft.changed(change, environment).text()).collect()
    }

    /// Returns the safety of the only change.
    pub(crate) fn safety(id: RewriteId, text: &str) -> Safety {
        let environment = Environment::for_tests("C");
        let draft = draft(text, &environment);
        let situation = Situation { draft: &draft, environment: &environment, profile: None };
        let found: Vec<_> =
            changes(&situation).into_iter().filter(|change| change.rewrite == id).collect();
        assert_eq!(found.len(), 1, "{text}");
        found[0].safety
    }

    /// Returns a one-second profile with `stages` stages that all pass `bytes` bytes.
    pub(crate) fn profile_of(stages: usize, bytes: u64) -> PipeRecord {
        let stage = |index| contend_record::pipe::Stage {
            index,
            command: format!("c{index}"),
            wall_seconds: 1.0,
            user_seconds: 0.5,
            on_cpu_seconds: 0.5,
            bytes_in: Some(bytes),
            bytes_out: Some(bytes),
            ..Default::default()
        };
        let boundary = |from| Boundary {
            from,
            to: from + 1,
            bytes: Some(bytes),
            bytes_per_second: Some(bytes as f64),
            capacity_bytes: Some(65_536),
            ..Boundary::default()
        };
        PipeRecord {
            wall_seconds: 1.0,
            stages: (1..=stages).map(stage).collect(),
            boundaries: (1..stages).map(boundary).collect(),
            host: Host { cpus_allowed: 2, ..Host::default() },
            ..PipeRecord::default()
        }
    }

    #[test]
    fn a_stage_that_failed_is_left_alone() {
        let environment = Environment::for_tests("C");
        let draft = draft("cat missing | sort | uniq", &environment);
        let mut profile = profile_of(3, 1000);
        let count = |profile: &PipeRecord| {
            let profile = Some(profile);
            changes(&Situation { draft: &draft, environment: &environment, profile }).len()
        };
        assert_eq!(count(&profile), 2);
        profile.stages[0].exit_code = 1;
        assert_eq!(count(&profile), 1);
        profile.stages[0].exit_code = 141;
        profile.stages[0].outcome = Outcome::Killed(SIGPIPE);
        assert_eq!(count(&profile), 2);
    }

    #[test]
    fn every_rewrite_has_one_row() {
        let mut ids: Vec<_> = TABLE.iter().map(|rewrite| rewrite.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TABLE.len());
    }

    #[test]
    fn functions_aliases_redirections_and_side_effects_are_left_alone() {
        let environment = Environment::for_tests("C");
        for text in [
            "cat f | unknown-program",
            "f | g",
            "sort f >out | uniq",
            "sort f 2>&1 | uniq",
            "grep x f | tee copy | wc -l",
            "sort f | xargs echo | uniq",
            "grep x f |& wc -l",
            "{ sort f; } | uniq",
            "sort \"$f\" | uniq",
            "sort -o out f | uniq",
            "sort f | uniq - out",
            "sed -i s/a/b/ f | sed s/c/d/",
            "while read -r l; do echo $l; done | wc -l",
            "grep x f | wc -l # a comment | x",
        ] {
            let Some(draft) = Draft::read(&parse(text).expect("one"), &environment) else {
                continue;
            };
            let situation = Situation { draft: &draft, environment: &environment, profile: None };
            let found = changes(&situation);
            let harmless = |change: &Change| change.rewrite == RewriteId::LargerPipe;
            assert!(found.iter().all(harmless), "{text}: {found:?}");
        }
    }
}
