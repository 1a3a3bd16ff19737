//! Finds the stages in the source of a pipeline.
//!
//! A full shell grammar (brush-parser) determines where each stage begins and ends; the meaning of
//! stages is left to the shell. Source that is not exactly one foreground pipeline is refused, with
//! the position of the problem.

use std::ops::Range;

use brush_parser::ast::{
    AndOrList, Command, CompoundCommand, Pipeline, SeparatorOperator, SourceLocation,
};
use brush_parser::{ParseError as GrammarError, ParserOptions, Token, TokenizerError};

/// The source of a pipeline, with the positions of its stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The source as given.
    pub text: String,
    /// The stages, first to last, without a leading `!`.
    pub stages: Vec<StageText>,
    /// Whether the pipeline begins with `!`, which inverts its exit status.
    pub inverted: bool,
}

/// The position of a stage in the source, and the name of its command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageText {
    /// Byte range from the first to the last token of the stage. Bodies of here-documents follow
    /// the line and are not included.
    pub span: Range<usize>,
    /// Name of the command, if the stage is a simple command with nothing before its name, and the
    /// name is neither quoted nor expanded; otherwise `None`.
    pub program: Option<String>,
}

impl Parsed {
    /// Returns the source of a stage, with line breaks and indentation folded to spaces.
    ///
    /// # Panics
    /// Panics if `index` is not less than the number of stages.
    pub fn stage_text(&self, index: usize) -> String {
        let text = &self.text[self.stages[index].span.clone()];
        text.split('\n').map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// Returns the source of every stage. Returns `None` if the source has anything but blanks, a
    /// leading `!`, `|` and a final `;` outside of the stages, such as `|&`, a comment or the body
    /// of a here-document.
    pub fn plain_stages(&self) -> Option<Vec<&str>> {
        let text = &self.text;
        let first = self.stages.first()?.span.start;
        let last = self.stages.last()?.span.end;
        let pipes = self.stages.windows(2);
        let mut between = pipes.map(|pair| &text[pair[0].span.end..pair[1].span.start]);
        let plain = between.all(|between| between.trim() == "|")
            && ["", "!"].contains(&text[..first].trim())
            && ["", ";"].contains(&text[last..].trim());
        plain.then(|| self.stages.iter().map(|stage| &text[stage.span.clone()]).collect())
    }
}

/// An error that says why the stages of a source cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}{}", show_place(.text, *.place))]
pub struct ParseError {
    /// The problem and its remedy, worded for users.
    pub problem: String,
    /// The source as given to [`parse`].
    pub text: String,
    /// Byte offset of the problem in the source.
    pub place: usize,
}

/// Returns the source line at `place` and a line with a caret below it. Returns an empty string if
/// the source is blank.
fn show_place(text: &str, place: usize) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let place = text.floor_char_boundary(place.min(text.len()));
    let start = text[..place].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[place..].find('\n').map_or(text.len(), |newline| place + newline);
    let before: String =
        text[start..place].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("\n  {}\n  {before}^", &text[start..end])
}

/// Finds the stages of a pipeline.
///
/// # Errors
/// Returns an error in these cases:
/// - the source is empty or has a syntax error;
/// - the source is anything but one foreground pipeline, or uses `time`;
/// - the boundaries of the stages are uncertain.
pub fn parse(text: &str) -> Result<Parsed, ParseError> {
    let error = |problem: &str, place: usize| ParseError {
        problem: problem.to_owned(),
        text: text.to_owned(),
        place,
    };
    let offsets = ByteOffsets::new(text);
    let program = brush_parser::Parser::new(text.as_bytes(), &ParserOptions::default())
        .parse_program()
        .map_err(|source| syntax_error(text, &offsets, &source))?;

    let mut lists = program.complete_commands.iter().flat_map(|list| &list.0);
    let Some(list) = lists.next() else {
        return Err(error("the pipeline is empty", 0));
    };
    let tokens = Tokens::new(text, &offsets);
    if let Some(second) = lists.next() {
        let place = offsets.start(&second.0).unwrap_or(text.len());
        return Err(error("more than one pipeline: give one at a time", place));
    }
    check_single(&list.0, &list.1, &tokens, text.len(), &error)?;

    let pipeline = &list.0.first;
    let stages = stage_texts(pipeline, &offsets, &tokens)
        .filter(|stages| tokens.agree_with(text, stages))
        .ok_or_else(|| {
            // brush-parser 0.4 reports wrong positions for the words after a `<<WORD` on the same
            // line if they contain a command substitution.
            let place = tokens.first_operator(&["<<", "<<-"]).unwrap_or(0);
            error(
                "cannot find the boundaries of the stages here: move command substitutions off the \
                   here-document's line, for example into a variable in --setup",
                place,
            )
        })?;
    Ok(Parsed { text: text.to_owned(), stages, inverted: pipeline.bang })
}

fn check_single(
    list: &AndOrList,
    separator: &SeparatorOperator,
    tokens: &Tokens,
    end: usize,
    error: &impl Fn(&str, usize) -> ParseError,
) -> Result<(), ParseError> {
    if !list.additional.is_empty() {
        let place = tokens.first_operator(&["&&", "||"]).unwrap_or(end);
        let problem = "`&&` and `||` join pipelines: give one at a time, or put braces around \
                       a stage: `{ a && b; } | c`";
        return Err(error(problem, place));
    }
    if matches!(separator, SeparatorOperator::Async) {
        let place = tokens.last_operator("&").unwrap_or(end);
        return Err(error("a background pipeline is not supported: remove `&`", place));
    }
    if list.first.timed.is_some() {
        return Err(error(
            "`time` is not supported: remove it, as the report has the time of each stage",
            0,
        ));
    }
    Ok(())
}

/// A syntax error in source of any length, such as a script. A shell may accept the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line of the error, from 1. At the end of the source it is the last line.
    pub line: usize,
    /// What is wrong, worded for users, such as `unterminated single quote`; `None` if only the
    /// line is known.
    pub detail: Option<String>,
}

/// Returns the first syntax error of shell source, or `None` if it can be parsed. Extended globs
/// are accepted, as in bash after `shopt -s extglob`.
pub fn find_syntax_error(text: &str) -> Option<SyntaxError> {
    let mut parser = brush_parser::Parser::new(text.as_bytes(), &ParserOptions::default());
    let source = parser.parse_program().err()?;
    let ParseError { problem, place, .. } = syntax_error(text, &ByteOffsets::new(text), &source);
    let detail = match source {
        GrammarError::ParsingAtEndOfInput => Some("unexpected end of the text".to_owned()),
        _ => problem.split_once(": ").map(|(_, detail)| detail.to_owned()),
    };
    let place = text.floor_char_boundary(place.min(text.len()));
    Some(SyntaxError { line: text[..place].matches('\n').count() + 1, detail })
}

fn syntax_error(text: &str, offsets: &ByteOffsets, source: &GrammarError) -> ParseError {
    let end = text.trim_end().len();
    let (problem, place) = match source {
        GrammarError::ParsingNear(position) => {
            ("syntax error".to_owned(), offsets.of(position.index))
        }
        GrammarError::ParsingAtEndOfInput => {
            ("syntax error: unexpected end of the pipeline".to_owned(), end)
        }
        GrammarError::Tokenizing { inner, position } => {
            let opened = match inner {
                TokenizerError::UnterminatedSingleQuote(p)
                | TokenizerError::UnterminatedDoubleQuote(p)
                | TokenizerError::UnterminatedBackquote(p)
                | TokenizerError::UnterminatedAnsiCQuote(p) => Some(offsets.of(p.index)),
                _ => None,
            };
            let noticed = position.as_ref().map_or(end, |p| offsets.of(p.index).min(end));
            (
                format!("syntax error: {}", without_position(&inner.to_string())),
                opened.unwrap_or(noticed),
            )
        }
    };
    ParseError { problem, text: text.to_owned(), place }
}

/// Removes the position from the end of a tokenizer message, because the caret shows it.
fn without_position(message: &str) -> &str {
    message.split(" at ").next().unwrap_or(message).split(" found").next().unwrap_or(message)
}

fn stage_texts(
    pipeline: &Pipeline,
    offsets: &ByteOffsets,
    tokens: &Tokens,
) -> Option<Vec<StageText>> {
    let starts: Vec<usize> = pipeline
        .seq
        .iter()
        .enumerate()
        .map(|(index, command)| {
            // The grammar has no positions for redirections at the start of a command.
            let named = offsets.start(command)?;
            let before = if index == 0 { None } else { Some(tokens.last_pipe_before(named)?) };
            Some(tokens.first_start_after(before, pipeline.bang && index == 0).unwrap_or(named))
        })
        .collect::<Option<_>>()?;
    pipeline
        .seq
        .iter()
        .enumerate()
        .map(|(index, command)| {
            let start = starts[index];
            let stop = match starts.get(index + 1) {
                Some(&next) => tokens.last_pipe_before(next)?,
                None => tokens.terminator_after(known_end(command, offsets, tokens)?),
            };
            let end = tokens.last_end_within(start..stop)?;
            Some(StageText { span: start..end, program: plain_program(command) })
        })
        .collect()
}

/// Returns a byte offset inside the command or at its end, or `None` if the grammar reports none.
/// The command ends before the first newline, `;` or `&` operator at or after that offset.
fn known_end(command: &Command, offsets: &ByteOffsets, tokens: &Tokens) -> Option<usize> {
    let end = offsets.end(command)?;
    if let Command::Compound(CompoundCommand::IfClause(clause), _) = command {
        // The grammar reports only the word `if` as the span of an `if` clause.
        let last_list = clause.elses.as_ref().and_then(|elses| elses.last()).map(|e| &e.body);
        let inner = offsets.end(last_list.unwrap_or(&clause.then))?;
        return tokens.word_end_after(inner, "fi");
    }
    Some(end)
}

fn plain_program(command: &Command) -> Option<String> {
    let Command::Simple(simple) = command else {
        return None;
    };
    if simple.prefix.is_some() {
        return None;
    }
    let word = &simple.word_or_name.as_ref()?.value;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+:".contains(c);
    word.chars().all(plain).then(|| word.clone())
}

/// A map from the character offsets of the grammar to byte offsets.
struct ByteOffsets(Vec<usize>);

impl ByteOffsets {
    fn new(text: &str) -> Self {
        Self(text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect())
    }

    fn of(&self, character: usize) -> usize {
        self.0.get(character).or(self.0.last()).copied().unwrap_or(0)
    }

    fn start(&self, node: &impl SourceLocation) -> Option<usize> {
        Some(self.of(node.location()?.start.index))
    }

    fn end(&self, node: &impl SourceLocation) -> Option<usize> {
        Some(self.of(node.location()?.end.index))
    }
}

/// The tokens of the source, ordered by position.
struct Tokens(Vec<(Range<usize>, Kind)>);

enum Kind {
    Operator(String),
    Word(String),
}

impl Tokens {
    fn new(text: &str, offsets: &ByteOffsets) -> Self {
        let mut tokens: Vec<_> = brush_parser::tokenize_str(text)
            .unwrap_or_default()
            .into_iter()
            .map(|token| match token {
                Token::Operator(text, at) => (at, Kind::Operator(text)),
                Token::Word(text, at) => (at, Kind::Word(text)),
            })
            .map(|(at, kind)| (offsets.of(at.start.index)..offsets.of(at.end.index), kind))
            .collect();
        // The tokenizer emits the body of a here-document before the rest of its line.
        tokens.sort_by_key(|(span, _)| (span.start, span.end));
        Self(tokens)
    }

    /// Returns whether `stages` agree with the tokens: no stage is empty, no two overlap, and each
    /// word token in a stage is what `text` has at the token's position.
    fn agree_with(&self, text: &str, stages: &[StageText]) -> bool {
        let in_order = stages.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start)
            && stages.iter().all(|stage| stage.span.start < stage.span.end);
        let in_stage = |at: &Range<usize>| stages.iter().any(|s| s.span.contains(&at.start));
        in_order
            && self.0.iter().filter(|(span, _)| in_stage(span)).all(|(span, kind)| match kind {
                Kind::Operator(_) => true,
                Kind::Word(word) => text
                    .get(span.clone())
                    .is_some_and(|slice| slice.replace("\\\n", "").trim() == word.trim()),
            })
    }

    fn operators<'a>(
        &'a self,
        names: &'a [&str],
    ) -> impl DoubleEndedIterator<Item = &'a Range<usize>> {
        self.0.iter().filter_map(|(span, kind)| match kind {
            Kind::Operator(name) if names.contains(&name.as_str()) => Some(span),
            _ => None,
        })
    }

    fn first_operator(&self, names: &[&str]) -> Option<usize> {
        self.operators(names).next().map(|span| span.start)
    }

    fn last_operator(&self, name: &str) -> Option<usize> {
        self.operators(&[name]).next_back().map(|span| span.end - name.len())
    }

    fn last_pipe_before(&self, place: usize) -> Option<usize> {
        self.operators(&["|", "|&"]).rfind(|span| span.start < place).map(|span| span.start)
    }

    /// Returns the start of the first token after the pipe at `pipe`, or of the first token of the
    /// source if `pipe` is `None`. Skips newlines and, with `bang`, a `!`. Returns `None` if there
    /// is no token.
    fn first_start_after(&self, pipe: Option<usize>, bang: bool) -> Option<usize> {
        let behind = |span: &Range<usize>| pipe.is_none_or(|pipe| span.start > pipe);
        let no_break = |kind: &Kind| !matches!(kind, Kind::Operator(name) if name == "\n");
        let no_bang = |kind: &Kind| !(bang && matches!(kind, Kind::Word(word) if word == "!"));
        let mut tokens = self.0.iter().filter(|(span, kind)| behind(span) && no_break(kind));
        let (span, _) = tokens.find(|(_, kind)| no_bang(kind))?;
        Some(span.start)
    }

    /// Returns the byte offset of the first newline, `;` or `&` at or after `place`, or
    /// `usize::MAX` if there is none.
    fn terminator_after(&self, place: usize) -> usize {
        self.operators(&["\n", ";", "&"])
            .find(|span| span.start >= place)
            .map_or(usize::MAX, |span| span.start)
    }

    fn last_end_within(&self, range: Range<usize>) -> Option<usize> {
        self.0
            .iter()
            .filter(|(span, _)| range.contains(&span.start))
            .map(|(span, _)| span.end)
            .max()
    }

    fn word_end_after(&self, place: usize, name: &str) -> Option<usize> {
        self.0.iter().find_map(|(span, kind)| match kind {
            Kind::Word(word) if word == name && span.start >= place => Some(span.end),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(text: &str) -> Vec<String> {
        let parsed = parse(text).expect("one pipeline");
        (0..parsed.stages.len()).map(|index| parsed.stage_text(index)).collect()
    }

    #[test]
    fn words_quotes_and_redirections_stay_with_their_stage() {
        assert_eq!(
            stages("sed 's/a|b/c/' <in | sort -k1 >out 2>&1 | X=1 wc -l # | no stage"),
            ["sed 's/a|b/c/' <in", "sort -k1 >out 2>&1", "X=1 wc -l"]
        );
        assert_eq!(
            stages("é'ü' |& b \\\n -x | \"$(c | d)\" `e|f`;"),
            ["é'ü'", "b \\ -x", "\"$(c | d)\" `e|f`"]
        );
    }

    #[test]
    fn redirections_before_the_command_belong_to_it() {
        assert_eq!(
            stages("<in cat | 2>&1 X=1 sort -n |& >out uniq"),
            ["<in cat", "2>&1 X=1 sort -n", ">out uniq",]
        );
        assert_eq!(stages("! <in cat |\n <x sort"), ["<in cat", "<x sort"]);
    }

    #[test]
    fn compound_commands_are_stages() {
        assert_eq!(
            stages("(a; b) | { c; } >x | while read -r l\ndo echo $l\ndone <y | [[ -n x ]]"),
            ["(a; b)", "{ c; } >x", "while read -r l do echo $l done <y", "[[ -n x ]]"]
        );
        assert_eq!(
            stages("if a; then b; elif c\nthen d >fi; else e; fi >x | if f; then g; fi\n"),
            ["if a; then b; elif c then d >fi; else e; fi >x", "if f; then g; fi"]
        );
        assert_eq!(
            stages("case x in a|b) c;; esac | f() { g; }"),
            ["case x in a|b) c;; esac", "f() { g; }"]
        );
    }

    #[test]
    fn bodies_of_here_documents_are_no_part_of_the_span() {
        assert_eq!(
            stages("cat <<A - | sort <<'B' >x\n1|\nA\n2\nB\n"),
            ["cat <<A -", "sort <<'B' >x"]
        );
        assert_eq!(stages("a | cat <<-E\n\tb\n\tE\n"), ["a", "cat <<-E"]);
        assert_eq!(
            stages("a \"$(b | c)\" | cat <<E | d $x\n1\nE\n"),
            ["a \"$(b | c)\"", "cat <<E", "d $x"]
        );
    }

    #[test]
    fn misplaced_operators_are_rejected() {
        let (problem, place) = refusal("a <<E | b \"$(c | d)\" | e\n1\nE\n");
        assert!(problem.contains("here-document"), "{problem}");
        assert_eq!(place, 2);
    }

    #[test]
    fn only_a_bare_first_word_is_a_plain_program() {
        let parsed = parse("sed x | X=1 cat | \"tr\" a | $CMD | (a) | /bin/cat").expect("one");
        let programs: Vec<_> = parsed.stages.iter().map(|s| s.program.as_deref()).collect();
        assert_eq!(programs, [Some("sed"), None, None, None, None, Some("/bin/cat")]);
    }

    #[test]
    fn an_exclamation_mark_inverts() {
        let parsed = parse("! a | b").expect("one");
        assert!(parsed.inverted);
        assert_eq!(parsed.stage_text(0), "a");
    }

    /// Parses source that must be refused, and returns the message and the byte offset of the
    /// caret.
    fn refusal(text: &str) -> (String, usize) {
        let error = parse(text).expect_err("not one pipeline");
        (error.problem, error.place)
    }

    #[test]
    fn everything_else_is_refused_with_its_place() {
        assert_eq!(refusal("a | b; c").1, 7);
        assert_eq!(refusal("a\nb | c").1, 2);
        assert_eq!(refusal("a && b").1, 2);
        assert_eq!(refusal("a | b || c").1, 6);
        assert_eq!(refusal("a | b &").1, 6);
        assert_eq!(refusal("a | | b").1, 4);
        assert_eq!(refusal("a |").1, 3);
        assert_eq!(refusal("a | 'b").1, 4);
        assert_eq!(refusal("").0, "the pipeline is empty");
        assert_eq!(refusal("  # nothing").0, "the pipeline is empty");
        assert!(refusal("time a | b").0.contains("time"));
    }

    #[test]
    fn syntax_errors_have_a_line() {
        let found = |text: &str| find_syntax_error(text).map(|error| (error.line, error.detail));
        let with = |line, detail: &str| Some((line, Some(detail.to_owned())));
        assert_eq!(found("if true"), with(1, "unexpected end of the text"));
        assert_eq!(found("for i in a; do\n"), with(1, "unexpected end of the text"));
        assert_eq!(found("sort x\n\nfi\n"), Some((3, None)));
        assert_eq!(found("sort x\necho 'a"), with(2, "unterminated single quote"));
        assert_eq!(found("ls !(a) | sort; f() { :; }\n"), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn the_caret_stands_below_the_place() {
        let error = parse("a |\n\tb | | c").expect_err("syntax error");
        assert_eq!(error.to_string(), "syntax error\n  \tb | | c\n  \t    ^");
    }

    proptest::proptest! {
        #[test]
        fn stages_joined_by_pipes_are_found_again(
            commands in proptest::collection::vec("[a-z]{1,6}( [a-z0-9]{1,4}){0,3}( '[a-z|;& ]{0,6}')?", 1..6),
        ) {
            proptest::prop_assume!(!commands.iter().any(|c| {
                let first = c.split(' ').next().unwrap_or("");
                ["if", "for", "case", "while", "until", "do", "done", "fi", "then", "else", "elif",
                 "esac", "in", "time", "select", "coproc", "function"].contains(&first)
            }));
            let text = commands.join(" | ");
            proptest::prop_assert_eq!(stages(&text), commands);
        }
    }
}
