//! What the shell finds under the names of commands, and what else their meaning depends on.

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
/// Programs that some rewrites need.
const HELPERS: &[&str] = &["split", "perl", "lz4", "zstd", "gzip"];
/// Programs that scripts of the system start under another name: `egrep` is `grep`.
const STARTED_BY_OTHERS: &[&str] = &["grep"];
/// Commands whose version tells whether they are GNU's.
const ASKED_FOR_VERSION: &[&str] = &["sort", "split"];

/// Variables that say what the locale is.
const LOCALE: &[&str] = &["LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_NUMERIC", "LANG"];
/// Variables with which commands read their arguments in another way.
const CHANGING_ARGUMENTS: &[&str] = &["POSIXLY_CORRECT", "_POSIX2_VERSION", "GREP_OPTIONS"];

/// What commands mean here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Names that stand for files, as the shell finds them, and the file.
    pub files: BTreeMap<String, Program>,
    /// `LC_ALL`, `LC_CTYPE`, `LC_COLLATE`, `LC_NUMERIC` and `LANG`, those that are set.
    pub locale: BTreeMap<String, String>,
    /// Memory that a program can reasonably use, in bytes.
    pub memory_bytes: u64,
    /// CPUs that can work at the same time.
    pub cpus: usize,
    /// `POSIXLY_CORRECT`, `_POSIX2_VERSION` or `GREP_OPTIONS` is set: commands read their arguments in another way.
    pub reads_arguments_otherwise: bool,
    /// A pipeline fails if any stage does.
    pub pipefail: bool,
    /// `split --filter` runs its commands with a shell that knows pipes as sh does.
    pub splits_with_sh: bool,
}

/// Where programs are, by the names under which `PATH` leads to them.
pub type Paths = BTreeMap<String, PathBuf>;

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The name of the file, links followed.
    pub file_name: String,
    /// Whether it says that it is GNU's; only some are asked.
    pub gnu: bool,
    /// Where it is.
    path: PathBuf,
    /// What the file tells, once somebody has asked.
    marks: OnceLock<Marks>,
}

/// How the bytes of text are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// A character is a byte.
    Bytes,
    /// UTF-8.
    Utf8,
}

impl Environment {
    /// Asks the shell, after the set-up, what the pipeline's commands and those that could
    /// take their place are. `None` if the shell does not answer.
    ///
    /// # Errors
    /// When the shell cannot be started.
    pub fn ask(
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
        Ok(Self::understand(&answer).map(|environment| Self { splits_with_sh, ..environment }))
    }

    /// What commands are if no shell stands between: these files, in the environment of this
    /// process.
    pub fn of_programs(paths: &Paths) -> Self {
        let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        let others = STARTED_BY_OTHERS.iter().filter(|&&name| !paths.contains_key(name));
        let others: Paths =
            others.filter_map(|&name| Some((name.to_owned(), in_path(name)?))).collect();
        let files = paths
            .iter()
            .chain(&others)
            .filter(|(_, path)| path.to_str().is_some_and(is_what_it_says))
            .map(|(name, path)| (name.clone(), Program::at(path)));
        Self {
            files: files.collect(),
            locale: LOCALE.iter().filter_map(variable).collect(),
            reads_arguments_otherwise: CHANGING_ARGUMENTS
                .iter()
                .any(|name| std::env::var_os(name).is_some()),
            ..Self::default()
        }
    }

    fn understand(answer: &str) -> Option<Self> {
        let mut environment = Self::default();
        let mut complete = false;
        for line in answer.lines() {
            let mut fields = line.splitn(3, '\t');
            match (fields.next()?, fields.next(), fields.next()) {
                ("end", ..) => complete = true,
                ("pipefail", ..) => environment.pipefail = true,
                ("otherwise", ..) => environment.reads_arguments_otherwise = true,
                ("variable", Some(name), Some(value)) => {
                    environment.locale.insert(name.to_owned(), value.to_owned());
                }
                ("file", Some(name), Some(path))
                    if path.contains('/') && !path.contains(' ') && is_what_it_says(path) =>
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

    /// Whether the name stands for a file, not for a function, an alias or a built-in command.
    pub fn is_file(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Whether the name stands for GNU's program.
    pub fn is_gnu(&self, name: &str) -> bool {
        self.files.get(name).is_some_and(|program| program.gnu)
    }

    /// Whose program stands behind the name: the file is looked into, at most once.
    pub fn maker(&self, name: &str) -> Maker {
        let Some(program) = self.files.get(name) else { return Maker::Other };
        match program.marks().maker {
            Maker::GrepScript if self.maker("grep") == Maker::Gnu => Maker::Gnu,
            maker => maker,
        }
    }

    /// Whether the program behind the name can tell capitals of characters, not only of bytes: some
    /// systems teach that to their programs.
    pub fn knows_characters(&self, name: &str) -> bool {
        self.files.get(name).is_none_or(|program| program.marks().knows_characters)
    }

    /// How the bytes of text are characters to this command; `None` if that is not known.
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

    /// Whether the letters of ASCII, and their cases, are to this command what they are in C.
    /// There are languages with other capitals.
    pub fn has_plain_letters(&self, simple: &Simple) -> bool {
        let locale = self.ctype(simple);
        let plain = |locale: &str| locale.starts_with("C.") || locale.starts_with("en_");
        is_byte_locale(locale) || self.encoding(simple).is_some() && plain(locale)
    }

    /// The locale for letters in which a command runs.
    pub fn ctype<'a>(&'a self, simple: &'a Simple) -> &'a str {
        self.category(simple, "LC_CTYPE")
    }

    /// Whether characters may have several bytes to this command.
    pub fn is_multibyte(&self, simple: &Simple) -> bool {
        !is_byte_locale(self.ctype(simple))
    }

    /// Whether lines are in order to this command if their bytes are. glibc's C.UTF-8 orders by
    /// code point, which in UTF-8 is the same.
    pub fn orders_by_bytes(&self, simple: &Simple) -> bool {
        let locale = self.category(simple, "LC_COLLATE");
        is_byte_locale(locale) || ["C.UTF-8", "C.utf8"].contains(&locale)
    }

    /// Whether numbers are written as in C to this command.
    pub fn has_plain_numbers(&self, simple: &Simple) -> bool {
        let locale = self.category(simple, "LC_NUMERIC");
        is_byte_locale(locale) || ["C.UTF-8", "C.utf8"].contains(&locale)
    }

    /// Whether the command runs in the C locale in every respect.
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

    /// The other implementations of awk that are installed, as they are called.
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

    /// A machine that has everything, for tests.
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
            reads_arguments_otherwise: false,
            pipefail: false,
            splits_with_sh: true,
        }
    }

    /// This machine, in a locale, as far as these programs are concerned.
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

/// The program that a shell would find under a name.
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

/// Returns the shell to use if none is named: bash if `PATH` has it, else sh.
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

/// Whether a program does what its name says: a script under a known name may do anything, unless
/// it is the system's own, as egrep is.
pub fn is_what_it_says(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    SYSTEM_FOLDERS.contains(&folder) || is_elf(Path::new(path))
}

fn is_byte_locale(name: &str) -> bool {
    ["", "C", "POSIX"].contains(&name)
}

/// What the shell is to execute to answer. The set-up cannot spoil the answer, which goes to
/// another descriptor.
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
    // Shells without this option do not list it.
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
    drop(command); // and with it our writing end
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
        let environment = Environment::understand(answer).expect("complete");
        assert!(environment.is_file("sort") && environment.is_gnu("sort"));
        for name in ["grep", "ls", "none"] {
            assert!(!environment.is_file(name), "{name}");
        }
        assert_eq!(environment.ctype(&simple("sort")), "C.UTF-8");
        assert!(!environment.reads_arguments_otherwise);
        let otherwise = Environment::understand("otherwise\nend\n").expect("complete");
        assert!(otherwise.reads_arguments_otherwise);
        assert_eq!(Environment::understand("file\tsort\t/usr/bin/sort\n"), None);
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
            let asked = Environment::ask("bash", setup, &parsed, &signals).expect("bash starts");
            assert_eq!(asked.expect("an answer").pipefail, pipefail, "{setup:?}");
        }
        let asked = Environment::ask("sh", None, &parsed, &signals).expect("sh starts");
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
    fn what_is_not_found_is_nobodys() {
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
