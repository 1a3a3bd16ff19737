//! Visits every pipeline of a script at any depth, except those in substitutions and coprocesses.

use std::collections::BTreeSet;

use brush_parser::ast::{
    AndOr, AndOrList, Command, CompoundCommand, CompoundList, Pipeline, Program,
};
use brush_parser::{Parser, ParserOptions};

/// Parses a script, or returns `None` if that fails. Extended globs are errors: whether a shell
/// accepts them depends on `shopt -s extglob`, and its error message quotes the line.
pub(super) fn parse(text: &str) -> Option<Program> {
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    Parser::new(text.as_bytes(), &options).parse_program().ok()
}

/// A pipeline with its context.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) pipeline: &'a Pipeline,
    /// The list of pipelines, joined by `&&` and `||`, that contains the pipeline.
    pub(super) list: &'a AndOrList,
    /// Whether the pipeline may run more than once, because it is in a loop or a function.
    pub(super) is_repeated: bool,
}

/// The pipelines and functions of a script.
#[derive(Debug, Default)]
pub(super) struct Walk<'a> {
    pub(super) pipelines: Vec<Found<'a>>,
    /// Names of the functions that the script defines.
    pub(super) functions: BTreeSet<&'a str>,
    /// Number of loops and functions around the code that is being visited.
    depth: usize,
}

impl<'a> Walk<'a> {
    /// Walks a parsed script, and collects its pipelines and the names of the functions that it
    /// defines.
    pub(super) fn of(program: &'a Program) -> Self {
        let mut walk = Self::default();
        program.complete_commands.iter().for_each(|list| walk.list(list));
        walk
    }

    fn list(&mut self, list: &'a CompoundList) {
        for item in &list.0 {
            self.pipeline(&item.0.first, &item.0);
            for AndOr::And(pipeline) | AndOr::Or(pipeline) in &item.0.additional {
                self.pipeline(pipeline, &item.0);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &'a Pipeline, list: &'a AndOrList) {
        self.pipelines.push(Found { pipeline, list, is_repeated: self.depth > 0 });
        pipeline.seq.iter().for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &'a Command) {
        match command {
            Command::Compound(compound, _) => self.compound(compound),
            Command::Function(function) => {
                self.functions.insert(&function.fname.value);
                self.repeated(|walk| walk.compound(&function.body.0));
            }
            Command::Simple(_) | Command::ExtendedTest(..) => {}
        }
    }

    fn repeated(&mut self, walk: impl FnOnce(&mut Self)) {
        self.depth += 1;
        walk(self);
        self.depth -= 1;
    }

    fn compound(&mut self, compound: &'a CompoundCommand) {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(group) => self.list(&group.list),
            CompoundCommand::ForClause(clause) => {
                self.repeated(|walk| walk.list(&clause.body.list));
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                self.repeated(|walk| walk.list(&clause.body.list));
            }
            CompoundCommand::CaseClause(clause) => {
                clause.cases.iter().filter_map(|case| case.cmd.as_ref()).for_each(|l| self.list(l));
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for branch in clause.elses.iter().flatten() {
                    branch.condition.iter().for_each(|list| self.list(list));
                    self.list(&branch.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.repeated(|walk| {
                    walk.list(&clause.0);
                    walk.list(&clause.1.list);
                });
            }
            CompoundCommand::Arithmetic(_) | CompoundCommand::Coprocess(_) => {}
        }
    }
}

/// Returns whether a stage is a compound command or defines a function, so that the stages inside
/// it are visited separately.
pub(super) fn is_compound(command: &Command) -> bool {
    matches!(command, Command::Compound(..) | Command::Function(_))
}

/// Returns whether a stage may contain a pipeline in a substitution, which the walk does not visit.
pub(super) fn substitutes(command: &Command) -> bool {
    let text = command.to_string();
    text.contains("$(") && text.contains('|') || text.contains('`')
}
