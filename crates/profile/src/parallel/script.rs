//! Scripts whose pipelines of plain commands are given to contend, the rest staying as it is.
//!
//! Where some neighbouring stages of a pipeline are plain commands, they become one command:
//! contend, with the words of all of them, a mark between. Expansions, redirections and
//! everything around are left to the shell, and lines stay lines. What could mean anything else
//! then is left as it is, and said.

use std::collections::BTreeSet;
use std::ops::Range;

use brush_parser::ast::{
    Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, SimpleCommand, SourceLocation,
};
use brush_parser::{ParserOptions, Token};
use contend_record::run::TakenOver;

use super::classes;
use super::text::is_built_in;

/// How the stages are marked for contend.
#[derive(Debug, Clone)]
pub struct Marks {
    /// The command that stands before everything, in the shell's words.
    pub command: String,
    /// What stands before every stage: no word of a script is this.
    pub mark: String,
}

/// A script as contend runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// Its text.
    pub text: String,
    /// Stages that are given to contend.
    pub taken: Vec<TakenOver>,
    /// Why nothing, or something, is left to the shell.
    pub left: Vec<String>,
}

/// Words that have to do with what a change would not keep.
const TELLTALES: &[(&str, &str)] = &[
    ("PIPESTATUS", "the script asks for the status of every stage"),
    ("xtrace", "the script shows its commands"),
    ("BASH_COMMAND", "the script looks at its commands"),
    ("DEBUG", "the script may look at its commands"),
    ("alias", "names may be aliases"),
    ("eval", "names may mean something else behind `eval`"),
    ("source", "names may be functions of another file"),
    ("BASH_SOURCE", "the script asks for its own name"),
    ("verbose", "the script shows its commands"),
    ("enable", "names may be built in"),
];

/// What may be commands of a script, from their first words on.
fn commands_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', ';', '&', '|', '{', '(', '`', '!']).map(|command| {
        let command = command.trim_start();
        let words = ["then ", "do ", "else ", "if ", "while ", "until "];
        words.iter().find_map(|word| command.strip_prefix(word)).unwrap_or(command).trim_start()
    })
}

/// Whether a line reads another script, as `. file` does.
fn reads_another(text: &str) -> bool {
    commands_of(text).any(|command| command.starts_with(". "))
}

/// Whether a command prints what functions are, or gives them to other programs.
fn shows_functions(command: &str) -> bool {
    let mut words = command.split([' ', '\t', ')', '"', '}']).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or("").trim_start_matches(['"', '$']);
    let option = |letter| {
        let begins = |word: &&str| word.starts_with('-');
        words.clone().take_while(begins).any(|word| word.contains(letter))
    };
    match first {
        "declare" | "typeset" => option('f') || words.next().is_none(),
        "export" | "readonly" | "local" => option('f'),
        "type" => !(option('t') || option('p') || option('P')),
        "command" => option('V'),
        "set" => words.next().is_none(),
        _ => false,
    }
}

/// Rewrites a script.
pub fn rewrite(text: &str, marks: &Marks) -> Rewritten {
    let untouched =
        |why: String| Rewritten { text: text.to_owned(), taken: Vec::new(), left: vec![why] };
    if let Some((_, why)) = TELLTALES.iter().find(|(word, _)| has_word(text, word)) {
        return untouched((*why).to_owned());
    }
    if reads_another(text) {
        return untouched("names may be functions of another file".to_owned());
    }
    if shows_commands(text) {
        return untouched("the script shows its commands".to_owned());
    }
    if commands_of(text).any(shows_functions) {
        return untouched("the script shows its functions, or hands them on".to_owned());
    }
    let parsed = brush_parser::Parser::new(text.as_bytes(), &ParserOptions::default());
    let program = { parsed }.parse_program();
    let Ok(program) = program else {
        return untouched("its syntax is not understood".to_owned());
    };
    let mut walk = Walk { pipelines: Vec::new(), functions: BTreeSet::new() };
    program.complete_commands.iter().for_each(|list| walk.list(list));
    let places = Places::new(text);
    let mut edits = Vec::new();
    let mut taken = Vec::new();
    for pipeline in &walk.pipelines {
        for run in runs(pipeline, &walk.functions) {
            let commands = &pipeline.seq[run];
            if let Some(mut found) = places.edits(commands, marks) {
                let start = found.first().map_or(0, |(span, _)| span.start);
                let line = text[..start].matches('\n').count() + 1;
                let texts: Vec<_> = commands.iter().map(ToString::to_string).collect();
                taken.push(TakenOver { line, text: texts.join(" | ") });
                edits.append(&mut found);
            }
        }
    }
    if taken.is_empty() {
        return untouched("no stage in it can work on parts of its input".to_owned());
    }
    edits.sort_by_key(|(span, _)| span.start);
    Rewritten { text: edited(text, &edits), taken, left: Vec::new() }
}

/// Whether it has the shell print what it executes: `set -x`, `set -ev`, `#!/bin/sh -x`.
fn shows_commands(text: &str) -> bool {
    let shows = |options: &str| {
        let letters = options.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        letters.contains(['x', 'v'])
    };
    let first = text.lines().next().filter(|line| line.starts_with("#!"));
    text.match_indices("set -").any(|(at, found)| shows(&text[at + found.len()..]))
        || first.and_then(|line| line.split_once(" -")).is_some_and(|(_, rest)| shows(rest))
}

/// Whether a word stands in the text, comments included: better once too often.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}

fn edited(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut done = 0;
    for (span, new) in edits {
        out.push_str(&text[done..span.start]);
        out.push_str(new);
        done = span.end;
    }
    out + &text[done..]
}

/// Every pipeline of a script, however deep.
struct Walk<'a> {
    pipelines: Vec<&'a Pipeline>,
    functions: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    fn list(&mut self, list: &'a CompoundList) {
        for item in &list.0 {
            for (_, pipeline) in &item.0 {
                self.pipelines.push(pipeline);
                pipeline.seq.iter().for_each(|command| self.command(command));
            }
        }
    }

    fn command(&mut self, command: &'a Command) {
        match command {
            Command::Compound(compound, _) => self.compound(compound),
            Command::Function(function) => {
                self.functions.insert(function.fname.value.clone());
                self.compound(&function.body.0);
            }
            Command::Simple(_) | Command::ExtendedTest(..) => {}
        }
    }

    fn compound(&mut self, compound: &'a CompoundCommand) {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(group) => self.list(&group.list),
            CompoundCommand::ForClause(clause) => self.list(&clause.body.list),
            CompoundCommand::ArithmeticForClause(clause) => self.list(&clause.body.list),
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
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
            CompoundCommand::Arithmetic(_) | CompoundCommand::Coprocess(_) => {}
        }
    }
}

/// What a stage may be among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fit {
    first: bool,
    last: bool,
    /// It may work on parts.
    known: bool,
}

/// Longest runs of stages that contend can take over, with one that may work on parts.
fn runs(pipeline: &Pipeline, functions: &BTreeSet<String>) -> Vec<Range<usize>> {
    let alone = pipeline.seq.len() == 1;
    let fits: Vec<Option<Fit>> =
        pipeline.seq.iter().map(|command| fit(command, functions, alone)).collect();
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for (index, fit) in fits.iter().enumerate() {
        match fit {
            None => start = index + 1,
            Some(fit) => {
                if fit.first {
                    start = index;
                }
                match runs.last_mut() {
                    Some(run) if run.start == start && run.end == index => run.end += 1,
                    _ => runs.push(start..index + 1),
                }
                if fit.last {
                    start = index + 1;
                }
            }
        }
    }
    runs.retain(|run| fits[run.clone()].iter().flatten().any(|fit| fit.known));
    runs
}

/// Whether contend can take over a stage; `first` and `last` if it can be nothing else.
fn fit(command: &Command, functions: &BTreeSet<String>, alone: bool) -> Option<Fit> {
    let Command::Simple(simple) = command else { return None };
    let name = &simple.word_or_name.as_ref()?.value;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    if !name.chars().all(plain) || is_built_in(name) || functions.contains(name) {
        return None;
    }
    let mut fit = Fit { first: false, last: false, known: classes::is_worth_a_try(name) };
    for item in items(simple) {
        match item {
            CommandPrefixOrSuffixItem::Word(word) if keeps(&word.value, alone) => {}
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word)
                if !assignment.append && keeps(&word.value, alone) => {}
            CommandPrefixOrSuffixItem::IoRedirect(IoRedirect::File(
                fd,
                kind,
                IoFileRedirectTarget::Filename(word),
            )) if keeps(&word.value, alone) => match (fd, kind) {
                (None | Some(0), IoFileRedirectKind::Read) => fit.first = true,
                (
                    None | Some(1),
                    IoFileRedirectKind::Write
                    | IoFileRedirectKind::Append
                    | IoFileRedirectKind::Clobber,
                ) => fit.last = true,
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(fit)
}

fn items(simple: &SimpleCommand) -> impl Iterator<Item = &CommandPrefixOrSuffixItem> {
    let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
    prefix.chain(simple.suffix.iter().flat_map(|suffix| &suffix.0))
}

/// Whether a word does nothing to the shell: in a pipeline it would be expanded in a shell of its
/// own, with contend it is in the script's.
fn keeps(word: &str, alone: bool) -> bool {
    let changing = ["$((", "$[", "RANDOM", "BASHPID", "BASH_SUBSHELL", "SECONDS", "$'"];
    let assigns = word.match_indices("${").any(|(at, _)| {
        let end = word[at..].find('}').map_or(word.len(), |end| at + end);
        word[at..end].contains(['=', '?', '!'])
    });
    alone || !(assigns || changing.iter().any(|text| word.contains(text)))
}

/// Where things stand in the text, in bytes.
struct Places<'t> {
    text: &'t str,
    offsets: Vec<usize>,
    pipes: Vec<Range<usize>>,
}

impl<'t> Places<'t> {
    fn new(text: &'t str) -> Self {
        let offsets: Vec<usize> =
            text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect();
        let at = |index: usize| offsets.get(index).copied().unwrap_or(text.len());
        let tokens = brush_parser::tokenize_str(text).unwrap_or_default();
        let pipes = tokens.into_iter().filter_map(|token| match token {
            Token::Operator(name, span) if name == "|" => {
                Some(at(span.start.index)..at(span.end.index))
            }
            _ => None,
        });
        let mut pipes: Vec<_> = pipes.filter(|span| &text[span.clone()] == "|").collect();
        pipes.sort_by_key(|span| span.start);
        Self { text, offsets, pipes }
    }

    /// What has to be changed so that these stages become one command; `None` where it is not
    /// certain where they stand.
    fn edits(&self, commands: &[Command], marks: &Marks) -> Option<Vec<(Range<usize>, String)>> {
        let mut edits = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            let Command::Simple(simple) = command else { return None };
            let start = self.start(simple)?;
            let assignments = simple.prefix.as_ref().map_or(0, |prefix| prefix.0.len());
            let mark = format!("{} {assignments} ", marks.mark);
            if index == 0 {
                edits.push((start..start, format!("{} {mark}", marks.command)));
            } else {
                let pipe = self.pipes.iter().rfind(|pipe| pipe.end <= start)?;
                let between = &self.text[pipe.end..start];
                if !between.chars().all(|c| c.is_whitespace() || c == '\\') {
                    return None;
                }
                // A line that ends behind `|` goes on; behind a word it has to be said.
                let gap = between.replace("\\\n", "\n").replace('\n', "\\\n");
                edits.push((
                    pipe.start..start,
                    format!(" {}{gap}", mark.trim_end().to_owned() + " "),
                ));
            }
            edits.extend(self.inputs(simple, marks)?);
        }
        Some(edits)
    }

    /// Where a command begins, if its first word stands there.
    fn start(&self, simple: &SimpleCommand) -> Option<usize> {
        let place = self.offsets.get(simple.location()?.start.index).copied()?;
        let name = &simple.word_or_name.as_ref()?.value;
        let first = match simple.prefix.as_ref().and_then(|prefix| prefix.0.first()) {
            None => name.clone(),
            Some(CommandPrefixOrSuffixItem::AssignmentWord(_, word)) => word.value.clone(),
            // Redirections in front have no place in the grammar.
            Some(_) => return None,
        };
        let only_assignments = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let plain = { only_assignments }
            .all(|item| matches!(item, CommandPrefixOrSuffixItem::AssignmentWord(..)));
        (plain && self.text[place..].starts_with(&first)).then_some(place)
    }

    /// `<file` becomes words, so that a file that is not there is the stage's affair alone.
    fn inputs(&self, simple: &SimpleCommand, marks: &Marks) -> Option<Vec<(Range<usize>, String)>> {
        let mut edits = Vec::new();
        for item in items(simple) {
            let CommandPrefixOrSuffixItem::IoRedirect(IoRedirect::File(
                _,
                IoFileRedirectKind::Read,
                IoFileRedirectTarget::Filename(word),
            )) = item
            else {
                continue;
            };
            let at = self.offsets.get(word.location()?.start.index).copied()?;
            if !self.text[at..].starts_with(&word.value) {
                return None;
            }
            let before = self.text[..at].trim_end_matches([' ', '\t']);
            let sign = before.strip_suffix('<')?;
            let sign =
                sign.strip_suffix('0').filter(|rest| rest.ends_with([' ', '\t'])).unwrap_or(sign);
            edits.push((sign.len()..at, format!(" {} '<' ", marks.mark)));
        }
        Some(edits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> Rewritten {
        rewrite(text, &Marks { command: "C".to_owned(), mark: "@".to_owned() })
    }

    #[test]
    fn plain_stages_become_one_command() {
        for (text, wanted) in [
            ("cat $IN | tr A-Z a-z | sort >out", "C @ 0 cat $IN  @ 0 tr A-Z a-z  @ 0 sort >out"),
            ("x=1\nsort \"$f\"; echo done", "x=1\nC @ 0 sort \"$f\"; echo done"),
            ("LC_ALL=C sort <f | uniq -c", "C @ 1 LC_ALL=C sort @ '<' f  @ 0 uniq -c"),
            (
                "echo a | sort | while read -r l; do :; done",
                "echo a | C @ 0 sort | while read -r l; do :; done",
            ),
            (
                "if a; then\n  cut -f1 x |\n    sort\nfi\n",
                "if a; then\n  C @ 0 cut -f1 x  @ 0 \\\n    sort\nfi\n",
            ),
            (
                "f() { grep x | é; }\nsort é | tr a b\n",
                "f() { C @ 0 grep x | é; }\nC @ 0 sort é  @ 0 tr a b\n",
            ),
            ("(sort a &) && ! cut -f1 b", "(C @ 0 sort a &) && ! C @ 0 cut -f1 b"),
        ] {
            assert_eq!(
                rewritten(text).text.replace("  ", " "),
                wanted.replace("  ", " "),
                "{text}"
            );
        }
    }

    #[test]
    fn what_could_mean_something_else_stays() {
        for text in [
            "sort() { :; }\nsort f | uniq",
            "sort f 2>/dev/null",
            "sort f |& uniq -c 2>&1",
            "sort <(cut -f1 x)",
            "sort f${x:=1} | while :; do :; done",
            "sort a | # why\n uniq",
            "sort a | uniq; echo ${PIPESTATUS[0]}",
            "set -x\nsort a",
            "alias sort=x\nsort a",
            "f() { sort a; }\ndeclare -f f",
            "f() { sort a; }\nssh host \"$(typeset -f f); f\"",
            "f() { sort a; }; export -f f",
            "f() { sort a; }; if type f; then f; fi",
            "f() { sort a; }; set",
            "echo a",
            "cat a",
            "sort <<E\nx\nE\n",
        ] {
            let result = rewritten(text);
            assert!(result.text == text || !result.text.contains("C @ 0 sort"), "{}", result.text);
        }
    }

    #[test]
    fn what_only_looks_like_showing_functions_is_none() {
        for text in ["declare -A f=1", "find . -type f", "type -P sort", "set -e", "export f=1"] {
            let result = rewritten(&format!("{text}\nsort a"));
            assert_eq!(result.taken.len(), 1, "{text}: {:?}", result.left);
        }
    }

    #[test]
    fn lines_stay_lines() {
        let text = "a\nsort x |\n\n  tr a b |\n  cut -f1\nb\n";
        let result = rewritten(text);
        assert_eq!(result.text.matches('\n').count(), text.matches('\n').count());
        let text = "sort x | tr a b | cut -f1".to_owned();
        assert_eq!(result.taken, [TakenOver { line: 2, text }]);
    }
}
