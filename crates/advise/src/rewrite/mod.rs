//! Finds changes that may make a pipeline faster: one file and one row of [`TABLE`] for each
//! rewrite.
//!
//! A rewrite proposes changes, and states how certain it is that the output stays the same.
//! [`crate::predict`] estimates the gain, and [`crate::trial`] measures it.
//!
//! Rewrites only touch stages that parse as simple commands of program files: no functions, aliases
//! or builtins, and no redirections except of the first input. Commands that write files or start
//! programs (`tee`, `xargs`, scripts) have no module in [`contend_commands`] and are left alone,
//! except that `larger_pipe` may start them with a larger output pipe.

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
    /// Identifier of the rewrite in records.
    pub id: RewriteId,
    /// Returns the changes that the rewrite proposes.
    find: fn(&Situation<'_>) -> Vec<Change>,
}

/// All rewrites, in the order in which [`changes`] returns their changes.
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

/// Number of the signal for a write to a pipe without readers.
const SIGPIPE: i32 = 13;

/// Smallest ratio of a stage's service time to the wall time for which changing the stage may pay
/// off.
const MIN_WALL_SHARE: f64 = 0.05;

/// The input of a rewrite: a pipeline, and what is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The pipeline to change, to which other changes may have been applied.
    pub draft: &'a Draft,
    /// Programs, locale, memory and CPUs of the machine.
    pub environment: &'a Environment,
    /// The profile of the original, if there is one; [`Stage::origin`] maps stages to it.
    pub profile: Option<&'a PipeRecord>,
}

impl Situation<'_> {
    /// Calls `change` with every pair of neighbouring stages and the index of the first, and
    /// returns the changes.
    fn neighbours<'s>(
        &'s self,
        change: impl Fn(usize, &'s Stage, &'s Stage) -> Option<Change> + 's,
    ) -> Vec<Change> {
        let pairs = self.draft.stages.windows(2).enumerate();
        pairs.filter_map(|(index, pair)| change(index, &pair[0], &pair[1])).collect()
    }

    /// Calls `change` with the index of every stage that took a relevant share of the time or has
    /// no profile of its own, and with that stage. Returns the changes.
    fn worthwhile(&self, change: impl Fn(usize, &Stage) -> Option<Vec<Change>>) -> Vec<Change> {
        let takes_time = |stage: &Stage| {
            let wall = self.profile.map_or(0.0, |profile| profile.wall_seconds);
            self.measured(stage).is_none_or(|s| s.service_seconds() >= MIN_WALL_SHARE * wall)
        };
        let stages = self.draft.stages.iter().enumerate().filter(|(_, stage)| takes_time(stage));
        stages.filter_map(|(index, stage)| change(index, stage)).flatten().collect()
    }

    /// Returns whether the given stages all succeeded, as far as they were profiled. A replacement
    /// for a failed stage may fail with another message.
    fn went_well(&self, at: Range<usize>) -> bool {
        let Some(profile) = self.profile else { return true };
        let stages = self.draft.stages[at].iter().flat_map(|stage| &stage.origin);
        stages.filter_map(|&index| profile.stages.get(index)).all(did_its_work)
    }

    /// Returns the profile of the original stage whose work `stage` does, or `None` if there is no
    /// profile or `stage` does the work of several stages.
    fn measured(&self, stage: &Stage) -> Option<&contend_record::pipe::Stage> {
        match stage.origin.as_slice() {
            [index] => self.profile?.stages.get(*index),
            _ => None,
        }
    }
}

/// Returns whether a stage succeeded. A grep without a match and a stage whose reader closed the
/// pipe early count as successful.
pub fn did_its_work(stage: &contend_record::pipe::Stage) -> bool {
    let finds_nothing = stage.exit_code == 1 && behaviour::fails_without_match(&stage.command);
    let cut_off = stage.outcome == Outcome::Killed(SIGPIPE);
    stage.exit_code == 0 || finds_nothing || cut_off
}

/// The distinction between changes that one rewrite proposes for the same stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variant {
    /// The only change that the rewrite proposes for these stages.
    Only,
    /// A replacement of the program by the one with this name.
    Program(String),
    /// A larger buffer for `sort`.
    Memory,
    /// More threads for `sort`.
    Threads,
    /// Compression of the temporary files of `sort`.
    Compression,
}

impl Variant {
    /// Returns the variant in words, or `None` for [`Variant::Only`].
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Only => None,
            Self::Program(name) => Some(name),
            Self::Memory => Some("memory"),
            Self::Threads => Some("threads"),
            Self::Compression => Some("compression"),
        }
    }
}

/// An identifier of a change that does not depend on the changes made before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeId {
    /// The rewrite that proposes the change.
    pub rewrite: RewriteId,
    /// What distinguishes the change from others of the rewrite for the same stages.
    pub variant: Variant,
    /// The affected stages of the original, from 1.
    pub stages: Vec<usize>,
}

impl ChangeId {
    /// Returns the identifier of a change to `draft`.
    ///
    /// # Panics
    /// Panics if the stages at `change.at` do not exist in `draft`.
    pub fn of(draft: &Draft, change: &Change) -> Self {
        let stages = draft.stages[change.at.clone()].iter();
        Self {
            rewrite: change.rewrite,
            variant: change.variant.clone(),
            stages: stages.flat_map(|stage| stage.origin.iter().map(|index| index + 1)).collect(),
        }
    }

    /// Returns whether `self` is the same change as `other`, for at least the same stages. It may
    /// affect more stages if an earlier change has merged some.
    pub fn includes(&self, other: &Self) -> bool {
        self.rewrite == other.rewrite
            && self.variant == other.variant
            && other.stages.iter().all(|stage| self.stages.contains(stage))
    }
}

/// A change to one stage or to several neighbouring stages.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The rewrite that proposes the change.
    pub rewrite: RewriteId,
    /// What distinguishes the change from others of the rewrite for the same stages.
    pub variant: Variant,
    /// Indices of the replaced stages, from 0.
    pub at: Range<usize>,
    /// The stages that replace those at `at`, in order.
    pub stages: Vec<Replacement>,
    /// Whether the output always stays the same, or why it has to be checked.
    pub safety: Safety,
    /// Why the change may help and how its result may differ, in words for the report.
    pub reasons: Vec<String>,
}

/// A stage that replaces others.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    /// The shell text of the stage.
    pub text: String,
    /// The stages whose work the replacement does, by their indices (from 0, as in [`Change::at`]),
    /// each with the share of its service time that the replacement is expected to take. Empty if
    /// only a pilot can measure the replacement.
    pub work: Vec<(usize, f64)>,
}

impl Replacement {
    /// Creates a stage that does all the work of the given stages.
    fn of(text: impl Into<String>, stages: impl IntoIterator<Item = usize>) -> Self {
        Self { text: text.into(), work: stages.into_iter().map(|index| (index, 1.0)).collect() }
    }
}

impl Change {
    /// Creates a change that replaces two neighbouring stages by one.
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

    /// Creates a change to the text of one stage. `share` is the share of the stage's service time
    /// that the changed stage is expected to take, if known.
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

/// Returns all changes that apply to stages that succeeded, as far as these were profiled. With
/// `pipefail`, no change is [`Safety::Always`].
pub fn changes(situation: &Situation<'_>) -> Vec<Change> {
    let found = TABLE.iter().flat_map(|rewrite| (rewrite.find)(situation));
    let sound = found.filter(|change| situation.went_well(change.at.clone()));
    // With pipefail, the exit statuses of all stages count, including those of stages whose reader
    // closed the pipe early.
    let least = if situation.environment.pipefail { Safety::ThisData } else { Safety::Always };
    sound.map(|change| Change { safety: change.safety.max(least), ..change }).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use contend_record::Host;
    use contend_record::pipe::Boundary;
    use contend_shell::parse::parse;

    /// Returns the draft of a pipeline in the given environment.
    pub(crate) fn draft(text: &str, environment: &Environment) -> Draft {
        Draft::read(&parse(text).expect("one pipeline"), environment).expect("a draft")
    }

    /// Returns the pipelines that the single changes of a rewrite produce from `text` in the C
    /// locale.
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

    /// Returns the safety of the only change that a rewrite makes to `text`.
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
