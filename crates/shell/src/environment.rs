//! Resolves command names as the shell does, and collects the environment that commands depend on.

mod maker;

pub use maker::{Maker, Marks};

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use contend_commands::{SYSTEM_FOLDERS, Simple};
use contend_sys::interrupt::Signals;
use contend_sys::program::is_elf;
use contend_sys::{Pid, Signal, child, spawn};

use crate::parse::Parsed;

/// Implementations of `awk`, by the names under which they are installed.
const AWKS: &[&str] = &["mawk", "gawk", "busybox", "original-awk", "nawk"];
/// Programs that rewrites may add to a pipeline.
const HELPERS: &[&str] = &["split", "perl", "lz4", "zstd", "gzip"];
/// Programs that scripts of their own package start, as `egrep` starts `grep`.
const STARTED_BY_OTHERS: &[&str] = &["grep"];
/// Commands that are run with `--version` to find out whether they are GNU's.
const ASKED_FOR_VERSION: &[&str] = &["sort", "split"];

/// Environment variables that determine the locale.
const LOCALE: &[&str] = &["LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_NUMERIC", "LANG"];
/// Environment variables that change how commands parse their arguments.
const CHANGING_ARGUMENTS: &[&str] = &["POSIXLY_CORRECT", "_POSIX2_VERSION", "GREP_OPTIONS"];

/// The meaning of command names, the locale, and the resources of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The genuine programs (see [`is_genuine`]) that command names refer to, by command name.
    /// Names of functions, builtins and other files are missing.
    pub files: BTreeMap<String, Program>,
    /// Values of `LC_ALL`, `LC_CTYPE`, `LC_COLLATE`, `LC_NUMERIC` and `LANG`, as far as they are
    /// set.
    pub locale: BTreeMap<String, String>,
    /// Memory in bytes that a program can use without displacing others; 0 until the caller sets
    /// it.
    pub memory_bytes: u64,
    /// Number of CPUs that this process may use; 0 until the caller sets it.
    pub cpus: usize,
    /// Whether `POSIXLY_CORRECT`, `_POSIX2_VERSION` or `GREP_OPTIONS` is in the environment, which
    /// changes how commands parse their arguments.
    pub changes_argument_parsing: bool,
    /// Whether the shell option `pipefail` is set, so that a pipeline fails if any stage does.
    pub pipefail: bool,
    /// Whether `split --filter` runs its command in a shell with the syntax of sh.
    pub splits_with_sh: bool,
}

/// Paths of programs, by name, as found in `PATH`.
pub type Paths = BTreeMap<String, PathBuf>;

/// The file of a program, and what is known about its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Name of the file after symbolic links are resolved.
    pub file_name: String,
    /// Whether the output of `--version` names GNU; `false` for programs that are not checked.
    pub gnu: bool,
    /// Path of the file, without symbolic links.
    path: PathBuf,
    /// Facts found in the file's contents, which are read on first use.
    marks: OnceLock<Marks>,
}

/// An encoding of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// A single-byte encoding, in which every byte is a character.
    Bytes,
    /// UTF-8.
    Utf8,
}

impl Environment {
    /// Runs the setup in the shell, and then asks the shell for the locale, the variables that
    /// change how commands parse arguments, the `pipefail` option, and the programs to which names
    /// refer. The names are those of the pipeline's commands, of implementations of awk, of
    /// programs that rewrites may add, and of `grep`. Returns `None` if the shell does not answer
    /// completely.
    ///
    /// # Errors
    /// Returns an error if the shell cannot be started or waited for, or its answer cannot be read.
    pub fn query_shell(
        shell: &str,
        setup: Option<&str>,
        parsed: &Parsed,
        signals: &Signals,
    ) -> io::Result<Option<Self>> {
        let simples = parsed.stages.iter().filter_map(|stage| {
            Simple::read(&parsed.text[stage.span.clone()]).map(|simple| simple.program.text)
        });
        let mut names: Vec<String> = simples.collect();
        let helpers = AWKS.iter().chain(HELPERS).chain(STARTED_BY_OTHERS);
        names.extend(helpers.map(|&name| name.to_owned()));
        names.sort_unstable();
        names.dedup();
        let answer = answer_of(shell, &question(setup, &names), signals)?;
        let user_shell = std::env::var("SHELL").unwrap_or_default();
        let plain = ["", "sh", "bash", "dash", "ksh", "zsh"];
        let splits_with_sh =
            user_shell.rsplit('/').next().is_some_and(|name| plain.contains(&name));
        Ok(Self::parse_answer(&answer).map(|environment| Self { splits_with_sh, ..environment }))
    }

    /// Returns the environment of commands that are started without a shell, with the locale and
    /// variables of this process. `files` contains the genuine programs in `paths` (see
    /// [`is_genuine`]). If `paths` has no `grep`, the one in `PATH` is considered as well.
    /// [`Self::is_gnu`] returns `false` for all programs.
    pub fn of_programs(paths: &Paths) -> Self {
        let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        let others = STARTED_BY_OTHERS.iter().filter(|&&name| !paths.contains_key(name));
        let others: Paths =
            others.filter_map(|&name| Some((name.to_owned(), in_path(name)?))).collect();
        let files = paths
            .iter()
            .chain(&others)
            .filter(|(_, path)| path.to_str().is_some_and(is_genuine))
            .map(|(name, path)| (name.clone(), Program::at(path)));
        Self {
            files: files.collect(),
            locale: LOCALE.iter().filter_map(variable).collect(),
            changes_argument_parsing: CHANGING_ARGUMENTS
                .iter()
                .any(|name| std::env::var_os(name).is_some()),
            ..Self::default()
        }
    }

    fn parse_answer(answer: &str) -> Option<Self> {
        let mut environment = Self::default();
        let mut complete = false;
        for line in answer.lines() {
            let mut fields = line.splitn(3, '\t');
            match (fields.next()?, fields.next(), fields.next()) {
                ("end", ..) => complete = true,
                ("pipefail", ..) => environment.pipefail = true,
                ("otherwise", ..) => environment.changes_argument_parsing = true,
                ("variable", Some(name), Some(value)) => {
                    environment.locale.insert(name.to_owned(), value.to_owned());
                }
                ("file", Some(name), Some(path))
                    if path.contains('/') && !path.contains(' ') && is_genuine(path) =>
                {
                    environment.files.insert(name.to_owned(), Program::at(Path::new(path)));
                }
                ("version", Some(name), Some(version)) => {
                    if let Some(program) = environment.files.get_mut(name) {
                        program.gnu = version.contains("GNU");
                    }
                }
                _ => {}
            }
        }
        complete.then_some(environment)
    }

    /// Returns whether the name certainly refers to a genuine program (see [`is_genuine`]), not to
    /// a function, an alias, a builtin or a script outside of the system's directories.
    pub fn is_file(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Returns whether the name refers to a program whose `--version` names GNU. Only `sort` and
    /// `split` are asked for their version.
    pub fn is_gnu(&self, name: &str) -> bool {
        self.files.get(name).is_some_and(|program| program.gnu)
    }

    /// Returns the project that the named program comes from, or [`Maker::Other`] if it is unknown.
    /// A script that runs GNU `grep`, as `egrep` does, counts as GNU's. Reads the program's file on
    /// the first call.
    pub fn maker(&self, name: &str) -> Maker {
        let Some(program) = self.files.get(name) else { return Maker::Other };
        match program.marks().maker {
            Maker::GrepScript if self.maker("grep") == Maker::Gnu => Maker::Gnu,
            maker => maker,
        }
    }

    /// Returns whether the named program may convert the case of multibyte characters, and
    /// recognize multibyte blanks, rather than only those of ASCII. Returns `true` for unknown
    /// programs. Programs of upstream coreutils cannot; some distributions patch them so that they
    /// can.
    pub fn knows_characters(&self, name: &str) -> bool {
        self.files.get(name).is_none_or(|program| program.marks().knows_characters)
    }

    /// Returns the encoding in which a command reads its input, or `None` if the encoding is
    /// unknown.
    pub fn encoding(&self, simple: &Simple) -> Option<Encoding> {
        let locale = self.ctype(simple);
        let name = locale.split_once('@').map_or(locale, |(name, _)| name);
        let code_set = name.rsplit_once('.').map(|(_, set)| set.to_ascii_lowercase());
        match code_set.as_deref() {
            _ if is_byte_locale(locale) => Some(Encoding::Bytes),
            Some("utf-8" | "utf8") => Some(Encoding::Utf8),
            _ => None,
        }
    }

    /// Returns whether a command certainly treats ASCII letters and their case as in the C locale.
    /// In Turkish locales, for example, the capital of `i` is not `I`.
    pub fn has_plain_letters(&self, simple: &Simple) -> bool {
        let locale = self.ctype(simple);
        let plain = |locale: &str| locale.starts_with("C.") || locale.starts_with("en_");
        is_byte_locale(locale) || self.encoding(simple).is_some() && plain(locale)
    }

    /// Returns the name of the locale for character types (`LC_CTYPE`) in which a command runs: `C`
    /// if no variable sets it.
    pub fn ctype<'a>(&'a self, simple: &'a Simple) -> &'a str {
        self.category(simple, "LC_CTYPE")
    }

    /// Returns whether a character may be several bytes long in the locale of a command. Returns
    /// `true` for all locales but C and POSIX.
    pub fn is_multibyte(&self, simple: &Simple) -> bool {
        !is_byte_locale(self.ctype(simple))
    }

    /// Returns whether a command certainly orders lines by their bytes. glibc's C.UTF-8 orders by
    /// code point, which is the same order in UTF-8.
    pub fn orders_by_bytes(&self, simple: &Simple) -> bool {
        let locale = self.category(simple, "LC_COLLATE");
        is_byte_locale(locale) || ["C.UTF-8", "C.utf8"].contains(&locale)
    }

    /// Returns whether a command certainly reads and writes numbers as in the C locale.
    pub fn has_plain_numbers(&self, simple: &Simple) -> bool {
        let locale = self.category(simple, "LC_NUMERIC");
        is_byte_locale(locale) || ["C.UTF-8", "C.utf8"].contains(&locale)
    }

    /// Returns whether `LC_CTYPE` and `LC_COLLATE` are C or POSIX for a command.
    pub fn is_byte_locale(&self, simple: &Simple) -> bool {
        ["LC_CTYPE", "LC_COLLATE"]
            .iter()
            .all(|category| is_byte_locale(self.category(simple, category)))
    }

    fn category<'a>(&'a self, simple: &'a Simple, category: &str) -> &'a str {
        let value = |name: &str| {
            let inherited = self.locale.get(name).map(String::as_str);
            simple.variable(name).or(inherited).filter(|value| !value.is_empty())
        };
        value("LC_ALL").or_else(|| value(category)).or_else(|| value("LANG")).unwrap_or("C")
    }

    /// Returns the names of installed implementations of awk other than the one that the command
    /// runs, each implementation once. The name of `BusyBox`'s is `busybox awk`.
    pub fn other_awks(&self, simple: &Simple) -> Vec<&'static str> {
        let used = self.files.get(&simple.program.text).map(|program| program.file_name.as_str());
        let mut seen: Vec<&str> = used.into_iter().collect();
        let mut others = Vec::new();
        for name in AWKS {
            if let Some(program) = self.files.get(*name)
                && !seen.contains(&program.file_name.as_str())
            {
                seen.push(&program.file_name);
                others.push(if *name == "busybox" { "busybox awk" } else { *name });
            }
        }
        others
    }

    /// Returns the environment of a machine with 2 CPUs, 8 GiB of memory and common programs, for
    /// tests. `locale` is the value of `LANG`. [`Self::maker`] is GNU for all programs but `rev`,
    /// `col`, `iconv` and `jq`, and [`Self::is_gnu`] returns `true` for all of them.
    #[cfg(any(test, feature = "testing"))]
    pub fn for_tests(locale: &str) -> Self {
        let names = "cat grep egrep fgrep sed tr cut sort uniq head tail wc awk mawk gawk busybox \
                     rev split perl lz4 python3 zstd nl col iconv jq fold expand unexpand comm join xargs";
        let program = |name: &str| {
            let file_name = if name == "awk" { "mawk" } else { name }.to_owned();
            let maker = match name {
                "rev" | "col" => Maker::UtilLinux,
                "iconv" => Maker::Glibc,
                "jq" => Maker::Jq,
                _ => Maker::Gnu,
            };
            let marks = OnceLock::from(Marks { maker, knows_characters: false });
            (name.to_owned(), Program { file_name, gnu: true, path: PathBuf::new(), marks })
        };
        Self {
            files: names.split_whitespace().map(program).collect(),
            locale: BTreeMap::from([("LANG".to_owned(), locale.to_owned())]),
            memory_bytes: 8 << 30,
            cpus: 2,
            changes_argument_parsing: false,
            pipefail: false,
            splits_with_sh: true,
        }
    }

    /// Returns the environment of [`Self::for_tests`], but with the programs of this machine, for
    /// tests: those of `names` that are in `PATH`. [`Self::is_gnu`] returns `false` for all of
    /// them.
    #[cfg(any(test, feature = "testing"))]
    pub fn of_this_machine(names: &[&str], locale: &str) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let find = |name: &str| {
            let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
            places.find(|place| place.is_file())
        };
        let found =
            names.iter().filter_map(|name| Some(((*name).to_owned(), Program::at(&find(name)?))));
        Self { files: found.collect(), ..Self::for_tests(locale) }
    }
}

/// Returns the first executable file of the given name in `PATH`, or `None` if there is none. A
/// name with a slash is a path.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(is_program)
}

/// Returns the name of the default shell: bash if it is in `PATH`, else sh.
pub fn default_shell() -> &'static str {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let has_bash = std::env::split_paths(&folders).any(|folder| folder.join("bash").is_file());
    if has_bash { "bash" } else { "sh" }
}

impl Program {
    fn at(path: &Path) -> Self {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = real.file_name().map(|name| name.to_string_lossy().into_owned());
        let file_name = name.unwrap_or_default();
        Self { file_name, path: real, ..Self::default() }
    }

    fn marks(&self) -> Marks {
        *self.marks.get_or_init(|| Marks::of_file(&self.path))
    }
}

/// Returns whether a path is directly in one of [`SYSTEM_FOLDERS`] or names an ELF file, and so may
/// be trusted to be the program that its name suggests. A script elsewhere may do anything under a
/// well-known name.
pub fn is_genuine(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    SYSTEM_FOLDERS.contains(&folder) || is_elf(Path::new(path))
}

fn is_byte_locale(name: &str) -> bool {
    ["", "C", "POSIX"].contains(&name)
}

/// Returns the script with which the shell runs the setup, and then reports the locale, the
/// variables that change how commands parse arguments, the `pipefail` option, the programs that
/// `names` refer to, and some of their versions. The script writes these to a separate descriptor,
/// so that output of the setup does not mix with them.
fn question(setup: Option<&str>, names: &[String]) -> String {
    let mut text = String::from("exec 7>&1 >/dev/null 2>&1 </dev/null\n");
    if let Some(setup) = setup {
        text.push_str(setup);
        text.push('\n');
    }
    for name in LOCALE {
        text.push_str(&format!(
            "command printf 'variable\\t{name}\\t%s\\n' \"$(command printenv {name})\" >&7\n"
        ));
    }
    let set: Vec<String> = CHANGING_ARGUMENTS.iter().map(|name| format!("*{name}=*")).collect();
    text.push_str(&format!(
        "case \"$(export -p)\" in {}) command printf 'otherwise\\n' >&7;; esac\n",
        set.join("|")
    ));
    // Shells without the option do not list it.
    text.push_str("case \"$(command set +o)\" in *'set -o pipefail'*) ");
    text.push_str("command printf 'pipefail\\n' >&7;; esac\n");
    for name in names {
        let word = contend_commands::quote(name);
        text.push_str(&format!(
            "command printf 'file\\t%s\\t%s\\n' {word} \"$(command -v -- {word})\" >&7\n"
        ));
        if ASKED_FOR_VERSION.contains(&name.as_str()) {
            text.push_str(&format!(
                "command printf 'version\\t%s\\t%s\\n' {word} \
                 \"$(command {word} --version 2>/dev/null | command head -n 1)\" >&7\n"
            ));
        }
    }
    text.push_str("command printf 'end\\n' >&7\n");
    text
}

fn answer_of(shell: &str, question: &str, signals: &Signals) -> io::Result<String> {
    let mut command = Command::new(shell);
    if shell.rsplit('/').next() == Some("busybox") {
        command.arg("sh");
    }
    let (mut reader, writer) = io::pipe()?;
    command.arg("-c").arg(question).stdin(File::open("/dev/null")?).stdout(writer);
    command.stderr(Stdio::null());
    let started = spawn::spawn(&mut command, &[0, 1, 2], signals.mask_before(), Signal::KILL)?;
    drop(command); // closes this process's write end of the pipe
    let mut answer = Vec::new();
    let read = reader.read_to_end(&mut answer);
    child::reap(Pid::from_child(&started))?;
    read?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_commands::testing::simple;

    #[test]
    fn the_answer_tells_files_from_functions_and_aliases() {
        let answer = "variable\tLANG\tC.UTF-8\nfile\tsort\t/usr/bin/env\nfile\tgrep\tgrep\n\
                      file\tls\talias ls='ls --color'\nversion\tsort\tsort (GNU coreutils) 9\n\
                      file\tnone\t\nend\n";
        let environment = Environment::parse_answer(answer).expect("complete");
        assert!(environment.is_file("sort") && environment.is_gnu("sort"));
        for name in ["grep", "ls", "none"] {
            assert!(!environment.is_file(name), "{name}");
        }
        assert_eq!(environment.ctype(&simple("sort")), "C.UTF-8");
        assert!(!environment.changes_argument_parsing);
        let otherwise = Environment::parse_answer("otherwise\nend\n").expect("complete");
        assert!(otherwise.changes_argument_parsing);
        assert_eq!(Environment::parse_answer("file\tsort\t/usr/bin/sort\n"), None);
    }

    #[test]
    fn the_shell_itself_says_whether_a_pipeline_fails_with_any_stage() {
        let parsed = crate::parse::parse("true | cat").expect("a pipeline");
        let signals = Signals::block().expect("signals");
        for (setup, pipefail) in [
            (None, false),
            (Some("set -o pipefail"), true),
            (Some("set -euo pipefail"), true),
            (Some("set -o pipefail; set +o pipefail"), false),
            (Some("echo pipefail; set -x"), false),
        ] {
            let asked =
                Environment::query_shell("bash", setup, &parsed, &signals).expect("bash starts");
            assert_eq!(asked.expect("an answer").pipefail, pipefail, "{setup:?}");
        }
        let asked = Environment::query_shell("sh", None, &parsed, &signals).expect("sh starts");
        assert!(!asked.expect("an answer").pipefail);
    }

    #[test]
    fn the_locale_is_found_as_setlocale_finds_it() {
        let mut environment = Environment::for_tests("de_DE.UTF-8");
        assert!(environment.is_multibyte(&simple("sort")));
        assert!(!environment.orders_by_bytes(&simple("sort")));
        assert!(!environment.is_multibyte(&simple("LC_ALL=C sort")));
        environment.locale.insert("LC_CTYPE".into(), "C".into());
        assert!(!environment.is_multibyte(&simple("sort")));
        assert!(!environment.is_byte_locale(&simple("sort")), "LC_COLLATE is German still");
        environment.locale.insert("LC_ALL".into(), "C.UTF-8".into());
        assert!(environment.is_multibyte(&simple("sort")));
        assert!(environment.orders_by_bytes(&simple("sort")));
    }

    #[test]
    fn missing_programs_have_no_known_maker() {
        assert_eq!(Environment::for_tests("C").maker("unheard-of"), Maker::Other);
        assert_eq!(Environment::for_tests("C").maker("rev"), Maker::UtilLinux);
    }

    #[test]
    fn text_is_bytes_or_utf8_or_unknown() {
        let encoding = |locale: &str| Environment::for_tests(locale).encoding(&simple("sort"));
        for locale in ["C", "POSIX", ""] {
            assert_eq!(encoding(locale), Some(Encoding::Bytes), "{locale}");
        }
        for locale in ["C.UTF-8", "C.utf8", "de_DE.UTF-8", "ca_ES.utf8@valencia"] {
            assert_eq!(encoding(locale), Some(Encoding::Utf8), "{locale}");
        }
        for locale in ["de_DE", "ja_JP.eucJP", "de_DE@euro", "C.x"] {
            assert_eq!(encoding(locale), None, "{locale}");
        }
        let plain = |locale: &str| Environment::for_tests(locale).has_plain_letters(&simple("tr"));
        assert!(plain("C.UTF-8") && plain("en_US.UTF-8") && plain("C"));
        assert!(!plain("tr_TR.UTF-8") && !plain("en_US"));
    }

    #[test]
    fn other_awks_are_those_with_another_file() {
        let environment = Environment::for_tests("C");
        assert_eq!(environment.other_awks(&simple("awk 1")), ["gawk", "busybox awk"]);
        assert_eq!(environment.other_awks(&simple("gawk 1")), ["mawk", "busybox awk"]);
    }
}
