//! Prepares shell source so that contend may take over some of its stages.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;

use contend_commands::quote;
use contend_shell::environment::in_path;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};

use super::error::{Context as _, RunError};
use super::program::{can_start, shadowed_by_environment};
use super::records::Records;
use super::settings::Settings;
use super::stage::{SEPARATOR, SHELL_OPTIONS};
use crate::plan::script::{Dialect, Explanation, Rewriter, Rewritten};

/// Maximum length in bytes of an argument that contend passes to the shell; Linux's
/// `MAX_ARG_STRLEN` is 128 KiB.
const MAX_ARGUMENT_BYTES: usize = 120 << 10;

/// The failed operation if there is no memory for a script.
const NO_ROOM: &str = "there is no room for the script";

/// Whether the shell got the rewritten form of a script.
#[derive(Debug)]
pub(super) enum Given {
    /// The shell got it, in the given file, if any, which the caller must keep open until the shell
    /// has started.
    Rewritten(Option<File>),
    /// The shell got nothing: the caller must give it the original.
    NotRewritten,
}

/// Returns a file without a name that has the given content. Its offset is the end of the content.
///
/// # Errors
/// Returns an error if there is no memory for the file.
pub(super) fn unnamed_file(content: &[u8]) -> Result<File, RunError> {
    let file = memfd_create("contend-script", MemfdFlags::CLOEXEC);
    let mut file = File::from(file.context(NO_ROOM)?);
    file.write_all(content).context(NO_ROOM)?;
    Ok(file)
}

/// Shell source, and the shell that runs it.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    original: &'a str,
    shell: &'a str,
    /// The shell's name in messages.
    name: &'a str,
    settings: &'a Settings,
    dialect: Dialect,
    pub(super) rewritten: Rewritten,
    /// Why stages are taken over or not; empty unless the user asked for it.
    pub(super) explanation: Explanation,
}

impl<'a> Prepared<'a> {
    /// Prepares source for the given shell. `script` is the path of the script that contains it, if
    /// any.
    pub(super) fn new(
        original: &'a str,
        shell: &'a str,
        script: Option<&'a Path>,
        settings: &'a Settings,
    ) -> Self {
        let dialect = dialect(shell);
        let name = script.and_then(Path::to_str).unwrap_or(shell);
        let annotations = &settings.annotations;
        let is_program = |name: &str| in_path(name).is_some_and(|path| can_start(&path));
        let rewriter = Rewriter { dialect, annotations, is_program: &is_program };
        let rewritten = rewriter.rewrite(original);
        let explanation =
            if settings.explain { rewriter.explain(original) } else { Explanation::default() };
        let mut prepared =
            Self { original, shell, name, settings, dialect, rewritten, explanation };
        if let (None, Some(why)) = (&prepared.rewritten.refused, refused_by_environment()) {
            prepared.refuse(&why);
        }
        prepared
    }

    /// Leaves the whole source to the shell, for the given reason.
    pub(super) fn refuse(&mut self, why: &str) {
        self.rewritten.refuse(self.original, why);
    }

    /// Returns the source as the argument of `-c`: with prefixes, or the original if the whole
    /// source is left to the shell. Source that would become too long with prefixes is left to the
    /// shell, too.
    ///
    /// # Errors
    /// Returns an error if the path of this program is unknown or not UTF-8.
    pub(super) fn argument(&mut self, records: Option<&Records>) -> Result<String, RunError> {
        if self.rewritten.refused.is_none() {
            let text = self.preamble(records)? + &self.rewritten.text;
            if text.len() <= MAX_ARGUMENT_BYTES {
                return Ok(text);
            }
            self.refuse("it is too long with the text that contend adds");
        }
        Ok(self.original.to_owned())
    }

    /// Adds the rewritten form of the script at `path` to the shell's arguments, if it is rewritten.
    /// Without a path, messages name the shell.
    ///
    /// With `-c`, the source gets the script's name, so that the shell's messages begin with it. A
    /// few features behave differently there (see [`behaves_same_with_c`]). Bash reads scripts that
    /// use them, and long scripts, from a file without a name. Its messages then begin with the
    /// path `/dev/fd/N`, because bash takes the name from `BASH_SOURCE`, which a script cannot set;
    /// `BASH_ARGV0` changes only `$0`. Other shells would use the file's name for `$0`.
    ///
    /// # Errors
    /// Returns an error if there is no memory for the file, or if the path of this program is
    /// unknown or not UTF-8.
    pub(super) fn give_script(
        &mut self,
        shell: &mut Command,
        path: Option<&Path>,
        records: Option<&Records>,
    ) -> Result<Given, RunError> {
        if self.rewritten.refused.is_none() {
            let preamble = self.preamble(records)?;
            let is_long = preamble.len() + self.rewritten.text.len() > MAX_ARGUMENT_BYTES;
            let needs_file = is_long || !behaves_same_with_c(self.original);
            if needs_file && self.dialect == Dialect::Bash && has_descriptor_files() {
                return Ok(Given::Rewritten(Some(self.give_file(shell, &preamble)?)));
            }
            let text = self.argument(records)?;
            if self.rewritten.refused.is_none() {
                shell.arg("-c").arg(text + end_of_argument(self.original));
                shell.arg(path.unwrap_or(Path::new(self.shell)));
                return Ok(Given::Rewritten(None));
            }
        }
        Ok(Given::NotRewritten)
    }

    fn give_file(&self, shell: &mut Command, preamble: &str) -> Result<File, RunError> {
        let mut file = unnamed_file(b"")?;
        let fd = file.as_raw_fd();
        let name = format!("BASH_ARGV0={};exec {fd}<&-;", quote(self.name));
        let text = name + preamble + &self.rewritten.text;
        file.write_all(text.as_bytes()).context(NO_ROOM)?;
        fcntl_setfd(&file, FdFlags::empty()).context("cannot pass the script to the shell")?;
        shell.arg(format!("/dev/fd/{fd}"));
        Ok(file)
    }

    /// Returns the code to insert before the script, on its first line.
    fn preamble(&self, records: Option<&Records>) -> Result<String, RunError> {
        let own = std::env::current_exe().context("cannot find this program's own path")?;
        let own = own.to_str().ok_or(RunError::NotText("the path of this program"))?;
        let options = self.options(records).join(&SEPARATOR.to_string());
        Ok(self.rewritten.preamble(self.dialect, own, &options))
    }

    /// Returns the options that prefixes pass to stages.
    fn options(&self, records: Option<&Records>) -> Vec<String> {
        let mut options = self.settings.stage_options.clone();
        // The script may change `PATH`, so stages receive the path of the shell.
        let shell = in_path(self.shell).and_then(|path| path.into_os_string().into_string().ok());
        options.extend([
            "--no-progress".to_owned(),
            format!("--shell={}", shell.as_deref().unwrap_or(self.shell)),
            format!("--name={}", self.name),
        ]);
        // The shell may have inherited `pipefail` from its environment.
        let is_in_environment = std::env::var("SHELLOPTS")
            .is_ok_and(|options| options.split(':').any(|option| option == "pipefail"));
        options.extend(
            (is_in_environment && !self.settings.pipefail).then(|| "--pipefail".to_owned()),
        );
        let has_options = self.rewritten.has_shell_options;
        options.extend(has_options.then(|| SHELL_OPTIONS.to_owned()));
        options.extend(self.settings.stats.then(|| "--stats".to_owned()));
        options.extend(records.map(|records| format!("--records-to={}", records.path())));
        options
    }
}

/// Returns whether bash certainly runs a script with `-c` as it runs it from a file. With `-c`,
/// bash differs in these ways:
///
/// - It exits with 127 instead of 1 for an unset variable.
/// - It has one more letter in `$-`.
/// - It has no entry for the script in `FUNCNAME` and `BASH_LINENO`.
/// - It abandons the whole script after an invalid integer.
/// - After a redirected loop, it leaves an asynchronous list its standard input.
///
/// In messages from a function, it names `environment` instead of the script. From a file, bash
/// would not name the script in any message, so this does not count as a difference.
fn behaves_same_with_c(script: &str) -> bool {
    let signs = [
        "nounset",
        "?",
        "$-",
        "${-",
        "FUNCNAME",
        "BASH_LINENO",
        "BASH_ARG",
        "declare",
        "typeset",
        "local -",
    ];
    let has_options = script
        .lines()
        .next()
        .is_some_and(|line| line.strip_prefix("#!").is_some_and(|line| line.contains(" -")));
    let others = ["&&", ">&", "<&", "&>"]
        .iter()
        .fold(script.to_owned(), |script, sign| script.replace(sign, ""));
    let is_asynchronous = others.contains('&');
    !has_options
        && !is_asynchronous
        && !signs.iter().any(|sign| script.replace("$?", "").contains(sign))
        && script.match_indices("set").all(|(at, set)| {
            let after = &script[at + set.len()..];
            !after.starts_with([' ', '\t']) || is_plain_set(after)
        })
}

/// Returns whether `set`, with the given text after it, changes only options that have the same
/// effect with `-c` and in a file. A first word that the shell expands may be any option.
fn is_plain_set(arguments: &str) -> bool {
    const OPTIONS: [&str; 6] =
        ["allexport", "errexit", "errtrace", "noclobber", "noglob", "pipefail"];
    let command = arguments.split(['\n', ';', '&', '|', ')', '}']).next().unwrap_or("");
    let mut words = command.split_whitespace().peekable();
    while let Some(word) = words.next_if(|word| word.starts_with(['-', '+']) && *word != "--") {
        let letters = &word[1..];
        let is_known = letters.chars().all(|letter| "aefBCEo".contains(letter));
        if !is_known
            || (letters.contains('o') && !words.next().is_some_and(|o| OPTIONS.contains(&o)))
        {
            return false;
        }
    }
    !words.next().is_some_and(|word| word.starts_with(['$', '`', '"', '\'']))
}

/// Returns the lines to append to a script that is passed as an argument.
///
/// Bash executes the last command of an argument in place of itself. With a script, it waits for
/// the command, and reports a signal that ended it. Empty lines hide the end of the argument.
/// Nothing is appended where they would become part of a command: in an open here-document, or
/// after a backslash.
fn end_of_argument(script: &str) -> &'static str {
    let ends_document = |(place, _): (usize, &str)| {
        let (begin, below) = script[place + 2..].split_once('\n').unwrap_or_default();
        let word = begin.trim_start_matches(['-', ' ', '\t', '\'', '"', '\\']);
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let word = &word[..word.find(|c| !is_part(c)).unwrap_or(word.len())];
        !word.is_empty() && below.lines().any(|line| line.trim_start_matches('\t') == word)
    };
    let documents = script.replace("<<<", "   ");
    let is_open = documents.match_indices("<<").any(|document| !ends_document(document));
    if is_open || script.ends_with('\\') { "" } else { "\n\n" }
}

/// Returns whether file descriptors have names that can be opened, such as `/dev/fd/0`.
fn has_descriptor_files() -> bool {
    Path::new("/dev/fd/0").symlink_metadata().is_ok()
        || Path::new("/dev/fd").read_dir().is_ok_and(|mut files| files.next().is_some())
}

/// Returns the dialect of the shell with the given name or path. It is that of bash only if the
/// program is certainly bash.
fn dialect(shell: &str) -> Dialect {
    let path = in_path(shell).and_then(|path| path.canonicalize().ok());
    let name = path.as_ref().and_then(|path| path.file_name()).and_then(OsStr::to_str);
    if name == Some("bash") { Dialect::Bash } else { Dialect::Posix }
}

/// Returns why the names of commands might refer to something other than programs in this
/// environment, or `None` if the environment rules that out.
fn refused_by_environment() -> Option<String> {
    if std::env::var_os("PATH").is_none() {
        return Some("`PATH` is not set, and the shell's default is unknown".to_owned());
    }
    shadowed_by_environment()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_behind_a_script_becomes_part_of_nothing() {
        for script in
            ["sort", "sort\n", "cat <<X\na\nX\n", "cat <<-'E'\n\tE\nsort <<<x", "wc <<< a"]
        {
            assert_eq!(end_of_argument(script), "\n\n", "{script}");
        }
        for script in ["cat <<X\na", "cat <<X\nX\ncat <<Y\nX", "cat <<", "sort \\", "cat <<$x\n"] {
            assert_eq!(end_of_argument(script), "", "{script}");
        }
    }

    #[test]
    fn scripts_that_an_argument_would_change_are_known() {
        for script in [
            "sort $f 2>&1 && :; echo $?",
            "#!/bin/bash\nset=1; sort $f",
            "#! /bin/sh -\n:",
            "f() { sort $1; }",
            "function f { local x=$1; sort $x; }",
            "set -e -o pipefail; sort $f",
            "set -eo pipefail\nsort $f | (set +e; tail)",
            "set -- -u; sort $f",
        ] {
            let has_options = script.contains(" -\n");
            assert_eq!(behaves_same_with_c(script), !has_options, "{script}");
        }
        for script in [
            "set -u; sort $f",
            "set -eu; sort $f",
            "#!/bin/bash -u\nsort $f",
            "sort ${f?none}",
            "sort ${f:?none}",
            "echo $-",
            "set -e -u; sort $f",
            "set -e -o nounset; sort $f",
            "set -o posix; sort $f",
            "set\t-u; sort $f",
            "set \"$x\" -o",
            "f() { echo ${FUNCNAME[1]}; sort $1; }",
            "f() { local -i n; n=1/0; sort $1; }",
            "declare -i n; n=1/0; sort $f",
            "sort $f & wait",
            "sort $f 2>&1 &",
        ] {
            assert!(!behaves_same_with_c(script), "{script}");
        }
    }
}
