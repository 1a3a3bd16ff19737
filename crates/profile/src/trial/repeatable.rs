//! Whether a pipeline may be run again and again.
//!
//! The grammar of the shell (brush-parser) says which commands a text holds, down to those in
//! substitutions; each is judged by its name and its arguments, and each redirection by where it
//! leads. What cannot be read is refused: better one too many.

use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem,
    CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget,
    IoHereDocument, IoRedirect, Pipeline, RedirectList, SimpleCommand, Word as RawWord,
};
use brush_parser::word::{
    ParameterExpr, ParameterTransformOp, WordPiece, WordPieceWithSource, parse as parse_word,
    parse_heredoc,
};
use brush_parser::{Parser, ParserOptions, Token, tokenize_str};

use crate::commands::purity::{is_pure, writes_by_itself};
use crate::commands::{Simple, Word};
use crate::pipeline::parse::Parsed;

/// Programs that change something, or start programs that may.
const CHANGE_THINGS: &str = "\
    . 7z 7za ansible ansible-playbook apk apt apt-get ar as ash at aws az bash batch bind brew \
    bun bundle bwrap cargo cc cfdisk chattr chfn chgrp chmod chown chpasswd chroot chsh clang \
    clang++ cmake compgen complete convert cp cpio crontab csh csplit curl dash dd ddrescue \
    debconf dnf doas docker dpkg duckdb ed emacs enable entr ex expect fallocate fc fdisk ffmpeg \
    fish flatpak flock fsck ftp fusermount g++ gcc gcloud gdb gem gh git gpasswd gpg gpg2 \
    groupadd groupdel groupmod gsutil halt helm hg init initctl insmod install ip6tables \
    iptables javac joe kill killall kpartx ksh kubectl ld ldconfig link ln logger logrotate \
    losetup lp lpr ltrace magick mail mailx make mariadb mkdir mkfifo mkfs mknod mksh mkswap \
    mktemp modprobe mogrify mongo mongosh mount mutt mv mysql mysqladmin nano nc ncat netcat \
    newgrp nft ninja npm npx nsenter numactl nvim objcopy pacman parallel parted passwd patch \
    pbcopy perf pico pip pip3 pkexec pkill plink pnpm podman poweroff prename psql rar rbash \
    rclone reboot redis-cli rename renice rm rmdir rmmod rpm rsync runuser rustc rustup sash scp \
    screen script sendmail service setcap setfacl setfattr sftp sh shred shutdown skill snap \
    socat source split sponge sqlite sqlite3 ssh ssh-add ssh-copy-id ssh-keygen \
    start-stop-daemon strace strip stty su sudo svn swapoff swapon sysctl systemctl systemd-run \
    tar tcsh tee telinit telnet terraform tftp timedatectl tmux touch truncate tune2fs ufw \
    umount unlink unrar unshare unzip update-alternatives useradd userdel usermod valgrind vi \
    view vim vimdiff vipw visudo wall watch wget wipefs wl-copy write xargs xclip xsel yarn yash \
    yum zip zsh zypper";

/// Commands of the shell that read names of variables, whose subscripts are executed if they hold
/// substitutions, even between single quotes.
const READ_NAMES: &[&str] = &[
    "[",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
];

/// Where something may be written without changing anything.
const DEVICES: &[&str] = &["/dev/full", "/dev/null", "/dev/stderr", "/dev/stdout", "/dev/zero"];

/// A command that runs the command among its arguments.
struct Wrapper {
    name: &'static str,
    /// Options without an argument.
    alone: &'static [&'static str],
    /// Options with one.
    with_value: &'static [&'static str],
    /// How many operands stand before the command.
    operands: usize,
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", &[], &[], 0),
    wrapper("busybox", &[], &[], 0),
    wrapper("chrt", &["-b", "-f", "-i", "-o", "-r"], &[], 1),
    wrapper("command", &["-p"], &[], 0),
    wrapper(
        "env",
        &["-", "-i", "--ignore-environment", "-v", "--debug"],
        &["-u", "--unset", "-C", "--chdir"],
        0,
    ),
    wrapper("exec", &["-c", "-l"], &["-a"], 0),
    wrapper("ionice", &["-t"], &["-c", "-n"], 0),
    wrapper("nice", &[], &["-n", "--adjustment"], 0),
    wrapper("nohup", &[], &[], 0),
    wrapper("setsid", &["-c", "-w", "--wait"], &[], 0),
    wrapper("stdbuf", &[], &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    wrapper("taskset", &["-c"], &[], 1),
    wrapper("time", &["-p", "-v"], &["-f"], 0),
    wrapper(
        "timeout",
        &["-v", "--verbose", "--foreground", "--preserve-status", "-f", "-p"],
        &["-k", "--kill-after", "-s", "--signal"],
        1,
    ),
    wrapper("toybox", &[], &[], 0),
];

const fn wrapper(
    name: &'static str,
    alone: &'static [&'static str],
    with_value: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper { name, alone, with_value, operands }
}

/// Stands in a word for what the shell puts there while it runs.
const UNKNOWN: char = '\u{fffd}';

/// Why a pipeline is not run again and again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRepeatable {
    /// A stage writes to a file.
    #[error(
        "--try would run stage {stage} `{text}` again and again, and it writes to a file: leave \
         that out"
    )]
    Writes {
        /// The stage, from 1.
        stage: usize,
        /// Its text.
        text: String,
    },
    /// The set-up may change something.
    #[error(
        "--try would execute the --setup again and again, and it may change something: leave out \
         what writes files or starts programs that do"
    )]
    SetUp,
    /// A stage's program may change something.
    #[error(
        "--try would run stage {stage} `{text}` again and again, and {program} may change more \
         than its output: leave the stage out"
    )]
    Changes {
        /// The stage, from 1.
        stage: usize,
        /// Its text.
        text: String,
        /// The program.
        program: String,
    },
    /// A stage cannot be read.
    #[error(
        "--try would run stage {stage} `{text}` again and again, and it cannot be read far enough \
         to tell what it changes: write it more plainly"
    )]
    Unread {
        /// The stage, from 1.
        stage: usize,
        /// Its text.
        text: String,
    },
    /// The set-up cannot be read.
    #[error(
        "--try would execute the --setup again and again, and it cannot be read far enough to tell \
         what it changes: write it more plainly"
    )]
    SetUpUnread,
}

/// What a command would do each time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// It writes to a file.
    Writes,
    /// This program may change something.
    Starts(String),
    /// It cannot be read.
    Unread,
}

/// Refuses pipelines that would change something each time.
///
/// # Errors
/// The first stage that would, and why.
pub fn check_repeatable(parsed: &Parsed, setup: Option<&str>) -> Result<(), NotRepeatable> {
    // It is executed before every run, and its functions are perhaps among the stages.
    if let Some(setup) = setup {
        program(setup).map_err(|change| match change {
            Change::Unread => NotRepeatable::SetUpUnread,
            Change::Writes | Change::Starts(_) => NotRepeatable::SetUp,
        })?;
    }
    // The whole text, since the bodies of here-documents stand behind the stages.
    let commands = stages(&parsed.text).filter(|found| found.len() == parsed.stages.len());
    for index in 0..parsed.stages.len() {
        let outcome = match &commands {
            Some(commands) => command(&commands[index]),
            None => Err(Change::Unread),
        };
        let (stage, text) = (index + 1, parsed.stage_text(index));
        outcome.map_err(|change| match change {
            Change::Writes => NotRepeatable::Writes { stage, text },
            Change::Starts(program) => NotRepeatable::Changes { stage, text, program },
            Change::Unread => NotRepeatable::Unread { stage, text },
        })?;
    }
    Ok(())
}

/// The commands of the one pipeline in the text.
fn stages(text: &str) -> Option<Vec<Command>> {
    let program = read_program(text)?;
    let mut items = program.into_iter().flat_map(|list| list.0);
    let (item, None) = (items.next()?, items.next()) else { return None };
    Some(item.0.first.seq)
}

fn read_program(text: &str) -> Option<Vec<CompoundList>> {
    if is_misplaced(text) {
        return None;
    }
    let program = Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program();
    program.ok().map(|program| program.complete_commands)
}

/// Whether brush-parser 0.4 takes something out of its substitution: what follows a `<<WORD` on its
/// line, where it looks like words beside an empty one.
fn is_misplaced(text: &str) -> bool {
    let tokens = tokenize_str(text).unwrap_or_default();
    let is_here =
        |token: &Token| matches!(token, Token::Operator(name, _) if name.starts_with("<<"));
    let is_empty =
        |token: &Token| ["$()", "$(()", "$[]", "${}"].iter().any(|e| token.to_str().contains(e));
    tokens.iter().any(is_here) && tokens.iter().any(is_empty)
}

/// Judges a text of its own: a set-up, or what stands in a substitution.
fn program(text: &str) -> Result<(), Change> {
    read_program(text).ok_or(Change::Unread)?.iter().try_for_each(list)
}

fn list(list: &CompoundList) -> Result<(), Change> {
    list.0.iter().try_for_each(|item| item.0.iter().try_for_each(|(_, part)| pipeline(part)))
}

fn pipeline(pipeline: &Pipeline) -> Result<(), Change> {
    pipeline.seq.iter().try_for_each(command)
}

fn command(command: &Command) -> Result<(), Change> {
    match command {
        Command::Simple(found) => simple(found),
        Command::Compound(found, redirects) => {
            compound(found)?;
            redirect_list(redirects.as_ref())
        }
        // It is judged where it stands, whether or not it is called.
        Command::Function(function) => {
            compound(&function.body.0)?;
            redirect_list(function.body.1.as_ref())
        }
        Command::ExtendedTest(test, redirects) => {
            extended_test(&test.expr)?;
            redirect_list(redirects.as_ref())
        }
    }
}

fn compound(compound: &CompoundCommand) -> Result<(), Change> {
    match compound {
        CompoundCommand::Arithmetic(found) => arithmetic(&found.expr.value),
        CompoundCommand::ArithmeticForClause(found) => {
            let parts = [&found.initializer, &found.condition, &found.updater];
            parts.into_iter().flatten().try_for_each(|part| arithmetic(&part.value))?;
            list(&found.body.list)
        }
        CompoundCommand::BraceGroup(found) => list(&found.list),
        CompoundCommand::Subshell(found) => list(&found.list),
        CompoundCommand::ForClause(found) => {
            words(found.values.iter().flatten())?;
            list(&found.body.list)
        }
        CompoundCommand::CaseClause(found) => {
            words([&found.value])?;
            words(found.cases.iter().flat_map(|case| &case.patterns))?;
            found.cases.iter().filter_map(|case| case.cmd.as_ref()).try_for_each(list)
        }
        CompoundCommand::IfClause(found) => {
            list(&found.condition)?;
            list(&found.then)?;
            found.elses.iter().flatten().try_for_each(|part| {
                part.condition.iter().try_for_each(list)?;
                list(&part.body)
            })
        }
        CompoundCommand::WhileClause(found) | CompoundCommand::UntilClause(found) => {
            list(&found.0)?;
            list(&found.1.list)
        }
        CompoundCommand::Coprocess(found) => command(&found.body),
    }
}

fn extended_test(test: &ExtendedTestExpr) -> Result<(), Change> {
    let both = match test {
        ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
            extended_test(left)?;
            return extended_test(right);
        }
        ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
            return extended_test(inner);
        }
        ExtendedTestExpr::UnaryTest(_, word) => [Some(word), None],
        ExtendedTestExpr::BinaryTest(_, left, right) => [Some(left), Some(right)],
    };
    both.into_iter().flatten().try_for_each(|word| subscript(&read(&word.value)?.text))
}

fn simple(simple: &SimpleCommand) -> Result<(), Change> {
    let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
    let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
    for item in prefix {
        item_of(item)?;
    }
    let mut seen = Vec::new();
    if let Some(name) = &simple.word_or_name {
        seen.push(read(&name.value)?);
    }
    for item in suffix {
        seen.extend(item_of(item)?);
    }
    called(&seen)
}

/// Judges a part of a simple command; the word that the command sees of it.
fn item_of(item: &CommandPrefixOrSuffixItem) -> Result<Option<Word>, Change> {
    match item {
        CommandPrefixOrSuffixItem::IoRedirect(found) => redirect(found).map(|()| None),
        CommandPrefixOrSuffixItem::Word(word) => read(&word.value).map(Some),
        CommandPrefixOrSuffixItem::AssignmentWord(found, word) => {
            assignment(found)?;
            match found.value {
                AssignmentValue::Scalar(_) => read(&word.value).map(Some),
                AssignmentValue::Array(_) => Ok(Some(Word::new(UNKNOWN))),
            }
        }
        // The command sees the name of a pipe.
        CommandPrefixOrSuffixItem::ProcessSubstitution(_, inner) => {
            list(&inner.list).map(|()| Some(Word::new("/dev/fd/63")))
        }
    }
}

fn assignment(assignment: &Assignment) -> Result<(), Change> {
    if let AssignmentName::ArrayElementName(_, index) = &assignment.name {
        arithmetic(index)?;
    }
    match &assignment.value {
        AssignmentValue::Scalar(word) => words([word]),
        AssignmentValue::Array(elements) => elements.iter().try_for_each(|(key, value)| {
            words(key)?;
            words([value])
        }),
    }
}

fn redirect_list(redirects: Option<&RedirectList>) -> Result<(), Change> {
    redirects.iter().flat_map(|redirects| &redirects.0).try_for_each(redirect)
}

fn redirect(redirect: &IoRedirect) -> Result<(), Change> {
    match redirect {
        IoRedirect::File(_, kind, IoFileRedirectTarget::Filename(word)) => {
            let file = read(&word.value)?.text;
            // In bash these reach for other machines.
            let connects = file.starts_with("/dev/tcp/") || file.starts_with("/dev/udp/");
            let reads = matches!(kind, IoFileRedirectKind::Read) && !connects;
            if reads || is_device(&file) { Ok(()) } else { Err(Change::Writes) }
        }
        IoRedirect::File(_, kind, IoFileRedirectTarget::Duplicate(word)) => {
            let target = read(&word.value)?.text;
            let reads = matches!(kind, IoFileRedirectKind::DuplicateInput);
            // Anything but a descriptor, or `-` to close it, is the name of a file.
            let number = target.strip_suffix('-').unwrap_or(&target);
            let descriptor = number.chars().all(|c| c.is_ascii_digit()) && !target.is_empty();
            if reads || descriptor || is_device(&target) { Ok(()) } else { Err(Change::Writes) }
        }
        IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, inner)) => {
            list(&inner.list)
        }
        IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_)) => Ok(()),
        IoRedirect::HereDocument(_, document) => here_document(document),
        IoRedirect::HereString(_, word) => words([word]),
        IoRedirect::OutputAndError(word, _) => {
            if is_device(&read(&word.value)?.text) {
                Ok(())
            } else {
                Err(Change::Writes)
            }
        }
    }
}

fn is_device(file: &str) -> bool {
    let number = |number: &str| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    DEVICES.contains(&file) || file.strip_prefix("/dev/fd/").is_some_and(number)
}

fn here_document(document: &IoHereDocument) -> Result<(), Change> {
    if document.requires_expansion { between_quotes(&document.doc.value) } else { Ok(()) }
}

/// Judges a command by its words: the name, and what it is asked to do.
fn called(words: &[Word]) -> Result<(), Change> {
    let Some((name, arguments)) = words.split_first() else { return Ok(()) };
    let starts = |name: &str| Err(Change::Starts(name.to_owned()));
    if !is_plain(name) {
        return starts(&name.raw);
    }
    let program = name.text.rsplit('/').next().unwrap_or(&name.text);
    if CHANGE_THINGS.split(' ').any(|name| name == program) || program.starts_with("mkfs.") {
        return starts(program);
    }
    if program == "eval" || program == "trap" {
        return executed(program, arguments);
    }
    if program == "alias" {
        return aliased(arguments);
    }
    if READ_NAMES.contains(&program) {
        arguments.iter().try_for_each(|word| subscript(&word.text))?;
        let callback = |word: &Word| program != "printf" && word.text.starts_with("-C");
        return if arguments.iter().any(callback) { starts(program) } else { Ok(()) };
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == program) {
        let behind = wrapper.command(arguments).ok_or(Change::Starts(program.to_owned()))?;
        return called(behind);
    }
    let by_name = |program: Word| {
        let arguments = arguments.to_vec();
        Simple { variables: Vec::new(), program, arguments, input: None }
    };
    // What is pure is known better than the signs of writing, if all of it is known. A program
    // outside of the system's folders need not be what its name says, but it probably is.
    let is_known = arguments.iter().all(|word| !word.text.contains(UNKNOWN));
    let is_certain = is_known && is_pure(&by_name(name.clone()));
    let harmless = is_certain || !writes_by_itself(&by_name(Word::new(program)));
    if harmless { Ok(()) } else { Err(Change::Writes) }
}

/// Whether the shell makes nothing of a name but take away quotes and find a home directory.
fn is_plain(name: &Word) -> bool {
    let expands = name.raw.contains(['*', '?', '[', '{']) && name.raw != "[";
    !expands && !name.text.contains(UNKNOWN)
}

/// Judges the arguments of `eval` and `trap`, which are commands themselves.
fn executed(name: &str, arguments: &[Word]) -> Result<(), Change> {
    let ends_options = arguments.first().is_some_and(|word| word.text == "--");
    let behind = &arguments[usize::from(ends_options)..];
    let used = if name == "eval" { behind } else { behind.get(..1).unwrap_or(&[]) };
    let text = used.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    match (text.contains(UNKNOWN), text.starts_with('-')) {
        // `trap - PIPE` and `trap -p` set nothing.
        (false, true) if name == "trap" => Ok(()),
        (false, false) => program(&text),
        _ => Err(Change::Starts(name.to_owned())),
    }
}

/// Judges what stands for a name from now on: what follows it then is not known.
fn aliased(arguments: &[Word]) -> Result<(), Change> {
    arguments.iter().filter_map(|word| word.text.split_once('=')).try_for_each(|(_, text)| {
        let runs_others = |word: &str| WRAPPERS.iter().any(|wrapper| wrapper.name == word);
        if text.contains(UNKNOWN) || text.split_whitespace().any(runs_others) {
            return Err(Change::Starts("alias".to_owned()));
        }
        program(text)
    })
}

/// Judges a text that may be the name of a variable with a subscript.
fn subscript(text: &str) -> Result<(), Change> {
    if text.contains('[') && text.contains(['$', '`']) { between_quotes(text) } else { Ok(()) }
}

impl Wrapper {
    /// The command among the arguments, perhaps none; `None` where it cannot be told where it
    /// begins.
    fn command<'a>(&self, arguments: &'a [Word]) -> Option<&'a [Word]> {
        let mut rest = arguments;
        // These only look for a command.
        if self.name == "command" && rest.first().is_some_and(|word| is_lookup(&word.text)) {
            return Some(&[]);
        }
        while let Some((first, behind)) = rest.split_first() {
            if first.text == "--" {
                rest = behind;
                break;
            }
            if !first.text.starts_with('-') {
                break;
            }
            rest = behind.get(self.values_behind(&first.text)?..)?;
        }
        if self.name == "env" {
            let assigns = |word: &&Word| word.text.contains('=');
            rest = &rest[rest.iter().take_while(assigns).count()..];
        }
        // What stands there may be an option or nothing, once it is known.
        let is_certain = |word: &Word| !word.text.starts_with(UNKNOWN);
        if rest.iter().take(self.operands).all(is_certain) {
            Some(rest.get(self.operands..).unwrap_or(&[]))
        } else {
            None
        }
    }

    /// How many arguments follow this option; `None` if it is not known.
    fn values_behind(&self, option: &str) -> Option<usize> {
        if self.alone.contains(&option) {
            return Some(0);
        }
        if self.with_value.contains(&option) {
            return Some(1);
        }
        let attached = |known: &&&str| match option.strip_prefix(**known) {
            Some(value) => !known.starts_with("--") || value.starts_with('='),
            None => false,
        };
        let is_number = option[1..].chars().all(|c| c.is_ascii_digit());
        let is_known = self.with_value.iter().find(attached).is_some();
        (is_known || self.name == "nice" && is_number).then_some(0)
    }
}

fn is_lookup(option: &str) -> bool {
    option == "-v" || option == "-V"
}

fn words<'a>(words: impl IntoIterator<Item = &'a RawWord>) -> Result<(), Change> {
    words.into_iter().try_for_each(|word| read(&word.value).map(drop))
}

/// Judges what the shell executes to make a word of this; what the command sees, as far as it is
/// known.
fn read(raw: &str) -> Result<Word, Change> {
    // A tilde at the beginning is a name's own: the folder does not matter.
    let options =
        ParserOptions { tilde_expansion_at_word_start: false, ..ParserOptions::default() };
    let pieces = parse_word(raw, &options).map_err(|_| Change::Unread)?;
    let mut text = String::new();
    for piece in &pieces {
        if let WordPiece::Text(plain) = &piece.piece {
            // Outside of quotes these would have ended the word.
            if plain.contains([' ', '\t', '\n', ';', '&', '<', '>']) {
                return Err(Change::Unread);
            }
        }
        read_piece(raw, piece, &mut text)?;
    }
    Ok(Word { raw: raw.to_owned(), text })
}

fn read_piece(raw: &str, piece: &WordPieceWithSource, text: &mut String) -> Result<(), Change> {
    match &piece.piece {
        WordPiece::Text(plain) => {
            // What the grammar of words takes for text, since it cannot read it further.
            let behind = raw.get(piece.end_index..).unwrap_or_default();
            let opens = plain.ends_with('$') && behind.starts_with(['(', '{', '[']);
            if opens || plain.contains('`') {
                return Err(Change::Unread);
            }
            text.push_str(plain);
        }
        WordPiece::SingleQuotedText(quoted) => text.push_str(quoted),
        WordPiece::AnsiCQuotedText(quoted) => push_ansi(quoted, text),
        WordPiece::EscapeSequence(escaped) => {
            text.push_str(escaped.strip_prefix('\\').unwrap_or(escaped));
        }
        WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
            inner.iter().try_for_each(|piece| read_piece(raw, piece, text))?;
        }
        WordPiece::TildeExpansion(_) => text.push(UNKNOWN),
        WordPiece::ArithmeticExpression(inner) => {
            arithmetic(&inner.value)?;
            text.push(UNKNOWN);
        }
        WordPiece::CommandSubstitution(inner) => {
            substitution(inner)?;
            text.push(UNKNOWN);
        }
        WordPiece::BackquotedCommandSubstitution(inner) => {
            backquoted(inner)?;
            text.push(UNKNOWN);
        }
        WordPiece::ParameterExpansion(expression) => {
            let source = raw.get(piece.start_index..piece.end_index).ok_or(Change::Unread)?;
            parameter(expression, source)?;
            text.push(UNKNOWN);
        }
    }
    Ok(())
}

/// What `$'...'` stands for, as far as it matters here.
fn push_ansi(quoted: &str, text: &mut String) {
    let mut rest = quoted.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        text.push(match escaped {
            None => c,
            Some('n') => '\n',
            Some('t') => '\t',
            Some(c @ ('\\' | '\'' | '"')) => c,
            Some(_) => UNKNOWN,
        });
    }
}

fn substitution(text: &str) -> Result<(), Change> {
    // The grammar of words knows less of commands than the tokenizer: they have to agree on
    // where it ends.
    let whole = format!("$({text})");
    match tokenize_str(&whole).ok().as_deref() {
        Some([Token::Word(word, _)]) if word.len() == whole.replace("\\\n", "").len() => {
            program(text)
        }
        _ => Err(Change::Unread),
    }
}

fn backquoted(text: &str) -> Result<(), Change> {
    // A substitution may be hidden behind a backslash that the shell takes away first.
    if ["\\$", "\\\\", "\\\""].iter().any(|hidden| text.contains(hidden)) {
        return Err(Change::Unread);
    }
    program(text)
}

/// Judges the words within `${...}`.
fn parameter(expression: &ParameterExpr, source: &str) -> Result<(), Change> {
    let executes = matches!(
        expression,
        ParameterExpr::Transform { op: ParameterTransformOp::PromptExpand, .. }
    );
    let Some(inner) = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else {
        return Ok(());
    };
    if executes || inner.contains("<(") || inner.contains(">(") {
        return Err(Change::Unread);
    }
    between_quotes(inner)
}

/// Judges an expression of numbers.
fn arithmetic(text: &str) -> Result<(), Change> {
    // A parenthesis too many means that these are two subshells.
    let mut depth = 0_i32;
    for c in text.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth < 0 {
            return Err(Change::Unread);
        }
    }
    between_quotes(text)
}

/// Judges the substitutions in a text in which quotes are characters like others. Where they are
/// not, it finds some too many.
fn between_quotes(text: &str) -> Result<(), Change> {
    let pieces = parse_heredoc(text, &ParserOptions::default()).map_err(|_| Change::Unread)?;
    pieces.iter().try_for_each(|piece| read_piece(text, piece, &mut String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::parse::parse;

    fn check(text: &str) -> Result<(), NotRepeatable> {
        check_repeatable(&parse(text).expect("one pipeline"), None)
    }

    /// The texts that are not judged like that.
    fn others<'a>(
        texts: &[&'a str],
        judged: impl Fn(&Result<(), NotRepeatable>) -> bool,
    ) -> Vec<&'a str> {
        texts.iter().copied().filter(|text| !judged(&check(text))).collect()
    }

    fn writes(outcome: &Result<(), NotRepeatable>) -> bool {
        matches!(outcome, Err(NotRepeatable::Writes { .. }))
    }

    fn starts(outcome: &Result<(), NotRepeatable>) -> bool {
        matches!(outcome, Err(NotRepeatable::Changes { .. }))
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn what_only_reads_and_prints_may_run_again() {
        let texts = [
            "cat f | sort 2>/dev/null | uniq -c",
            "awk '$1 > 3' f | grep '>' | sed 's/>/x/'",
            "while read -r l; do echo \"$l > x\"; done <f 2>&1 | wc",
            "python3 -c 'print(1)' | cat",
            "cat rm | grep tee",
            "sed ':a;N;$!ba;s/\\n/ /g' f | sed -n '2p;5q' | sed 's/we/were/g'",
            "find . -name x | sort",
            "gzip -dc f.gz | sort",
            "gzip | wc -c",
            "perl -ne 'print' f",
            "awk -f prog f",
            "uniq -c f",
            "{ echo a; echo b; } | (( x > 3 ))",
            "grep 'a > b' f | sort",
            "awk '$1 > 5' f",
            "awk '{ if (a > b) print }' f",
            "gawk -b -F: -v n=3 -e '{ print $1 }' f",
            "awk \"{ print \\$$n }\" f",
            "[ 3 -gt 2 ]",
            "cat f 2>/dev/null",
            "cmd 2>&1 | cat 2>&- 3<&0 >/dev/fd/2 &>/dev/null",
            "cat <<<x",
            "cat <<E | sort\na > b; tee m\nE\n",
            "cat <<'E' | sort\n$(tee m)\nE\n",
            "for i in 1 2; do echo $i; done",
            "while read x; do (( x > 1 )); echo $((x+1)) ${x:-y} ${#x}; done",
            "[[ a > b && $x =~ ^(tee|rm)$ ]]",
            "echo \"tee\" 'rm x; tee' $'tee\\n' a\\>b \"> f\" \"it's\" | cat",
            "case $x in tee) echo a;; rm|mv) echo b;; esac",
            "sed -n '/new/p'",
            "sed 's/we/ew/' f",
            "sed -e '/x/{' -e 's/[/]/x/g' -e '}' -e 'a we' -e 'y/we/ew/;bw;:w'",
            "sed 's/[[:space:]/]*w f/x/;s|we|we|2p' f",
            "sed 's/a/b/w /dev/stdout' f",
            "sed --expression \"s/$a/$b/\" --quiet -l 5 f",
            "cat <(sort a) <(sort b) | sort",
            "cat $(ls; echo 'a > b') \"$(ls \"$x\")\" `ls` | sort",
            "a > >(sort)",
            "env A=b LC_ALL=C sort f",
            "timeout -k 5 -s KILL 5 nice -n 5 nice -5 stdbuf -oL grep x",
            "command -v tee",
            "busybox awk '{ print $1 }'",
            "eval 'cat f'",
            "x=$(ls) sort f",
            "~/bin/mine -o x",
            "uniq -f 1 in",
            "if [ -f x ]; then cat x; else echo; fi",
            "f() { tr a b; }",
            "xz -dkc f | date +%s",
        ];
        assert_eq!(others(&texts, Result::is_ok), NONE);
    }

    #[test]
    fn a_set_up_that_writes_is_refused() {
        let parsed = parse("a | b").expect("one pipeline");
        for setup in [
            "g() { date >> f; }",
            "touch f",
            "f() { tee x; }",
            "exec 3>log",
            "alias x=tee",
            "alias x='env -i'",
            "trap 'rm f' EXIT",
            "echo \"$(echo a # )\ntee m)\"",
            "x=$(date >> f)",
            ". ./lib",
            "eval \"$x\"",
        ] {
            let refused = check_repeatable(&parsed, Some(setup));
            assert_eq!(refused, Err(NotRepeatable::SetUp), "{setup}");
        }
        for setup in [
            "f() { sed s/a/b/; }; F=x",
            "set -o pipefail",
            "cd /tmp 2>/dev/null",
            "x=(a 'b c' [3]=d); shopt -s extglob; export A=b; ulimit -n 10; umask 022",
            "trap '' PIPE; trap - TERM",
            "exec 3<f",
            "# nothing > f",
        ] {
            assert_eq!(check_repeatable(&parsed, Some(setup)), Ok(()), "{setup}");
        }
    }

    #[test]
    fn a_command_that_writes_by_itself_is_refused() {
        let texts = [
            "sed -i s/a/b/ f",
            "sed -ni.bak p f",
            "sed -E --in-place p f",
            "sed -n 'w F' f",
            "sed 's/a/b/w F' f",
            "sed '1e date' f",
            "sed 's/a/b/e' f",
            "sort f -o f",
            "sort -of f",
            "uniq in out",
            "uniq - out",
            "sort --outp=f",
            "awk '{ print > \"F\" }' f",
            "awk '{ system($0) }' f",
            "find . -delete",
            "find . -exec rm {} +",
            "perl -pi -e 's/a/b/' f",
            "gzip f",
            "a | xz -k f",
            "gawk -i inplace '{print \"x\" $0}' g1",
            "gawk -e '{ print > \"f\" }'",
            "gawk -l filefuncs '{ print }'",
            "gawk '@load \"x\"; { print }'",
            "sed --in s/a/aa/g g2",
            "sed --i p g2",
            "sed -n -i.bak p f",
            "sed -Ei p f",
            "/opt/mine/sed -i p f",
            "./sort -o f f",
            "sed -i \"$x\" f",
            "sed 's/1/b/wouty' h",
            "sed '/x/wout'",
            "sed 's/x/y/e'",
            "sed 's/x/y/ge'",
            "sed '1e date'",
            "sed -e p -e '1~2{p;wout' -e '}'",
            "sed -e 'a x\\\\' -e 'w f'",
            "sed 's/[\\]/x/w f'",
            "sed \"s/$x/y/w f\"",
            "sed -s --expression='w f'",
            "uniq in 7",
            "sort -o \"$f\"",
            "zstd -c -o f",
            "env LC_ALL=C sort -o f",
            "yq -i .a f",
        ];
        assert_eq!(others(&texts, writes), NONE);
    }

    #[test]
    fn a_redirection_to_a_file_is_refused() {
        let texts = [
            "sort f >out",
            "a | b >>out",
            "{ a; } > out | b",
            "a 2>errors | b",
            "a >| f",
            "a >& f",
            "a &>f",
            "a &>>f",
            "a <>f",
            "a >&$x",
            "a >$x",
            "{ echo x >& lg; cat h; } | sort",
            "cat </dev/tcp/host/80",
            "while read x; do (( x > 1 )); echo $((x+1)) >> m; done",
            "(( x > 1 )) 2>f",
            "[[ a ]] >f",
            "[ a > b ]",
            "f() { a; } >f",
            "for x in a; do b >c; done",
            "cat <<E\n$(a >b)\nE\n",
            "cat ${x:-$(a >b)}",
        ];
        assert_eq!(others(&texts, writes), NONE);
    }

    #[test]
    fn a_program_that_may_change_something_is_refused() {
        let texts = [
            "a | tee copy",
            "a | \\tee copy",
            "a | \"te\"e copy",
            "a | 'tee' copy",
            "a | busybox tee copy",
            "a | $T copy",
            "a | xargs rm",
            "a | sudo b",
            "while read -r f; do rm \"$f\"; done",
            "env X=1 tee f",
            "timeout 5 curl x",
            "/usr/bin/tee f",
            "a | (cd x && mv a b)",
            "seq 3 | dash -c \"cat; echo x >>m\"",
            "a | busybox sh -c x",
            "a | zsh -c x",
            "a | unlink f",
            "a | logger",
            "start-stop-daemon x",
            "zypper x | . x y",
            "eval \"$x\"",
            "eval 'tee m'",
            "eval -- 'tee m'",
            "source x",
            ". x",
            "exec tee m",
            "command tee f",
            "command -p tee f",
            "builtin eval 'tee f'",
            "nice -n 5 tee f",
            "nice -5 tee f",
            "env -i A=b tee f",
            "env -S 'tee f'",
            "env $x sort",
            "timeout -k 3 5 tee f",
            "timeout $x tee f",
            "stdbuf -o L tee f",
            "a | /usr/bin/te? f",
            "a | {tee,f}",
            "a | $'te\\x65' f",
            "a | \"$HOME\"/x",
        ];
        assert_eq!(others(&texts, starts), NONE);
    }

    #[test]
    fn it_is_found_wherever_it_stands() {
        let texts = [
            "seq 3 | while read f;do tee -a m <h;done | sort | uniq",
            "{ cat h|tee -a m; } | sort | uniq",
            "cat <(tee -a m <h) | sort | uniq",
            "cat $(tee -a m <h >/dev/null; echo h) | sort",
            "cat `tee -a m <h >/dev/null; echo h` | sort",
            "cat \"$(tee -a m <h)\" | sort",
            "cat \"`tee -a m <h`\" | sort",
            "cat \"${x:-\"$(tee m)\"}\" | sort",
            "a >(tee m)",
            "a > >(tee m)",
            "cat < <(tee m)",
            "cat <<<$(tee m)",
            "cat <<E | sort\n`tee m`\nE\n",
            "x=$(tee m) sort",
            "x[$(tee m)]=1 sort",
            "{ x=(a $(tee m)); } | sort",
            "echo $(( $(tee m) + 1 ))",
            "echo \"$(( '$(tee m)' ))\"",
            "(( x = $(tee m) ))",
            "for ((i = $(tee m); i < 3; i++)); do a; done",
            "for i in $(tee m); do a; done",
            "case $(tee m) in a) b;; esac",
            "case a in a) tee m;; esac",
            "[[ -n $(tee m) ]]",
            "{ read 'x[$(tee m)]'; }",
            "if a; then b; elif c; then tee m; fi",
            "until tee m; do a; done",
            "f() { tee m; }",
            "{ a & tee m & } | b",
            "coproc tee m",
        ];
        assert_eq!(others(&texts, starts), NONE);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let texts = [
            "echo `echo \\$(tee m)`",
            "echo \"$(echo 'a)\" | b",
            "echo ${x@P}",
            "{ cat <<E; echo $(tee m); }\na\nE\n",
            "f() {",
            "echo 'a",
            "echo ${x:-<(tee m)}",
            "echo \\$'\\' >f ''",
        ];
        let parsed = parse("a | b").expect("one pipeline");
        let read =
            |text: &&&str| check_repeatable(&parsed, Some(text)) != Err(NotRepeatable::SetUpUnread);
        assert_eq!(texts.iter().filter(read).collect::<Vec<_>>(), NONE.iter().collect::<Vec<_>>());
        assert!(matches!(check("echo ${x@P} | b"), Err(NotRepeatable::Unread { stage: 1, .. })));
    }
}
