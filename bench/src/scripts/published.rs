//! Runs published benchmark scripts from a checkout, with bash and with `contend run -f`.
//!
//! The scripts are not part of this project. This module has the paths of their folders, and makes
//! their inputs.

use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use fastrand::Rng;

use super::compare::{Difference, compare, repeats};
use super::files::INPUT;
use super::generate::{Setting, Stdin, Stdout};
use super::run::{Job, Outcome, Runner};
use crate::inputs;

/// A folder of scripts with the same input and the same arguments.
#[derive(Debug)]
pub struct Suite {
    /// Path of the folder in the checkout.
    pub folder: &'static str,
    /// Name of the input, a file or a folder in the folder of inputs.
    input: &'static str,
    /// Arguments of every script; the argument `IN` stands for the path of the input.
    arguments: &'static [&'static str],
}

const IN: &str = "IN";

/// The suites of `PaSh` and of Koala that process text.
pub const SUITES: &[Suite] = &[
    Suite { folder: "evaluation/benchmarks/oneliners", input: "text.txt", arguments: &[] },
    Suite { folder: "evaluation/benchmarks/unix50", input: "text.txt", arguments: &[] },
    Suite { folder: "evaluation/benchmarks/nlp", input: "books", arguments: &[] },
    Suite { folder: "evaluation/benchmarks/analytics-mts", input: "buses.csv", arguments: &[] },
    Suite { folder: "evaluation/benchmarks/max-temp", input: "weather.txt", arguments: &[] },
    Suite { folder: "evaluation/benchmarks/web-index", input: "text.txt", arguments: &[] },
    Suite { folder: "evaluation/benchmarks/posh", input: "text.txt", arguments: &[] },
    Suite { folder: "evaluation/benchmarks/analysis-logs", input: "logs", arguments: &[IN, "out"] },
    Suite { folder: "oneliners/scripts", input: "text.txt", arguments: &[IN] },
    Suite { folder: "unixfun/scripts", input: "text.txt", arguments: &[IN] },
    Suite { folder: "nlp/scripts", input: "books", arguments: &["out"] },
    Suite { folder: "covid/scripts", input: "buses.csv", arguments: &[IN] },
    Suite { folder: "weather/scripts", input: "weather.txt", arguments: &[IN] },
    Suite { folder: "analytics/scripts", input: "logs", arguments: &[IN, "out"] },
];

/// Commands that need a network or do not process text. A script with one of them is skipped.
const OUT_OF_SCOPE: [&str; 14] = [
    "curl",
    "wget",
    "node",
    "npm",
    "tcpdump",
    "zannotate",
    "ffmpeg",
    "convert",
    "samtools",
    "pandoc",
    "python3",
    "docker",
    "git",
    "stem-words.js",
];

const BOOKS: u64 = 4;
const LOGS: u64 = 2;

/// Makes those inputs of the suites that do not exist yet, with about `size` bytes for each script.
///
/// # Errors
/// Returns an error if an input cannot be written.
pub fn make_inputs(folder: &Path, size: u64, seed: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    for name in ["text.txt", "weather.txt", "words.txt"] {
        generate(&folder.join(name), name, size, seed)?;
    }
    for number in 0..BOOKS {
        let path = folder.join(format!("books/pg{number}.txt"));
        generate(&path, "text.txt", size / BOOKS, seed + number)?;
    }
    for number in 0..LOGS {
        let path = folder.join(format!("logs/access{number}.log"));
        generate(&path, "access.log", size / LOGS, seed + number)?;
    }
    let buses = folder.join("buses.csv");
    if !buses.exists() {
        write_buses(&buses, size, seed)?;
    }
    for number in 1..=12 {
        link(&folder.join("text.txt"), &folder.join(format!("numbered/{number}.txt")))?;
        for part in 1..=9 {
            let name = format!("numbered/{number}.{part}.txt");
            link(&folder.join("text.txt"), &folder.join(name))?;
        }
    }
    Ok(())
}

fn generate(path: &Path, input: &str, size: u64, seed: u64) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut out = BufWriter::new(fs::File::create(path)?);
    inputs::known(input)?.write(size, seed, &mut out)?;
    Ok(out.flush()?)
}

/// Writes at least `size` bytes of bus positions as comma-separated values, similar to those that
/// cities publish: time, line, vehicle and another number.
fn write_buses(path: &Path, size: u64, seed: u64) -> Result<()> {
    let mut random = Rng::with_seed(seed);
    let mut out = BufWriter::new(fs::File::create(path)?);
    let mut written = 0;
    while written < size {
        let (day, hour) = (random.u8(1..29), random.u8(..24));
        let line = format!(
            "2020-05-{day:02}T{hour:02}:{:02}:{:02},{},{},{}\n",
            random.u8(..60),
            random.u8(..60),
            random.u16(1..400),
            random.u16(10_000..12_000),
            random.u32(..1_000_000),
        );
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    Ok(out.flush()?)
}

fn link(target: &Path, path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match symlink(target, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// A published script, which belongs to a suite.
#[derive(Debug)]
pub struct Published {
    /// The suite in whose folder the script is.
    pub suite: &'static Suite,
    /// Path of the script in the checkout.
    pub name: String,
    text: String,
}

/// Returns the scripts in a checkout that belong to a suite, sorted by name within each suite.
/// Suites without a folder in the checkout are skipped.
///
/// # Errors
/// Returns an error if a folder or script cannot be read.
pub fn scripts(checkout: &Path) -> Result<Vec<Published>> {
    let mut found = Vec::new();
    for suite in SUITES {
        let folder = checkout.join(suite.folder);
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "sh"));
        paths.sort_unstable();
        for path in paths {
            let name = path.strip_prefix(checkout).unwrap_or(&path).display().to_string();
            found.push(Published { suite, name, text: fs::read_to_string(path)? });
        }
    }
    Ok(found)
}

/// The result of a comparison of contend with bash.
#[derive(Debug)]
pub enum Verdict {
    /// contend did the same as bash; only the messages may differ.
    Same {
        /// Wall time of bash, in seconds.
        bash: f64,
        /// Wall time of contend, in seconds.
        contend: f64,
        /// Whether the messages are the same.
        messages: bool,
    },
    /// contend differs from bash in these respects.
    Differs(Vec<Difference>),
    /// The script was not run, or its result is meaningless, for this reason.
    Skipped(String),
}

/// What all runs of scripts have in common: programs, inputs, limits and locale.
#[derive(Debug)]
pub struct Bench<'a> {
    /// Path of contend.
    pub contend: &'a Path,
    /// Path of the checkout.
    pub checkout: &'a Path,
    /// Folder that [`make_inputs`] has filled.
    pub inputs: &'a Path,
    /// Runs scripts, each within [`Runner::limit`].
    pub runner: Runner,
    /// Value of `LC_ALL`.
    pub locale: String,
}

impl Bench<'_> {
    /// Runs a script with bash and with contend, on standard input of the kind `stdin`, and
    /// compares the outcomes.
    ///
    /// # Errors
    /// Returns an error if the script cannot be run.
    pub fn compare(&self, script: &Published, stdin: Stdin) -> Result<Verdict> {
        if let Some(reason) = script.reason_to_skip() {
            return Ok(Verdict::Skipped(reason));
        }
        let contend = [&self.contend.display().to_string(), "run", "-f"].map(str::to_owned);
        let expected = self.run(&["bash".to_owned()], script, stdin)?;
        if expected.status.is_none() {
            return Ok(Verdict::Skipped("bash does not end in time".to_owned()));
        }
        let found = self.run(&contend, script, stdin)?;
        let mut kinds = compare(&expected, &found);
        let before = kinds.len();
        kinds.retain(|kind| *kind != Difference::Stderr);
        if kinds.is_empty() {
            let [bash, contend] = [expected.wall, found.wall].map(|wall| wall.as_secs_f64());
            return Ok(Verdict::Same { bash, contend, messages: before == 0 });
        }
        if !repeats(&expected, &self.run(&["bash".to_owned()], script, stdin)?) {
            return Ok(Verdict::Skipped("bash differs from itself".to_owned()));
        }
        Ok(Verdict::Differs(kinds))
    }

    fn run(&self, shell: &[String], script: &Published, stdin: Stdin) -> Result<Outcome> {
        let input = self.inputs.join(script.suite.input).display().to_string();
        let name = script.name.rsplit('/').next().unwrap_or("script.sh").to_owned();
        let place = |argument: &&str| {
            if *argument == IN { input.clone() } else { (*argument).to_owned() }
        };
        let arguments = script.suite.arguments.iter().map(place);
        let command: Vec<String> =
            shell.iter().cloned().chain([format!("./{name}")]).chain(arguments).collect();
        let setting = Setting {
            stdin,
            stdout: Stdout::File,
            locale: self.locale.clone(),
            bash_env: false,
            forced: Vec::new(),
            arguments: &[],
        };
        let variables = self.variables(&input);
        let job = Job { command: &command, setting: &setting, input: &[], variables: &variables };
        self.runner.run_job(&job, |work| self.copy(script, work))
    }

    fn variables(&self, input: &str) -> Vec<(String, String)> {
        let path = |name: &str| self.inputs.join(name).display().to_string();
        let variables = [
            ("IN", input.to_owned()),
            ("IN_PRE", path("numbered")),
            ("INPUT2", path("text.txt")),
            ("dict", path("words.txt")),
            ("OUT", "out".to_owned()),
            ("ENTRIES", BOOKS.to_string()),
            ("PASH_TOP", self.checkout.display().to_string()),
            ("SUITE_DIR", path("")),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// Copies the files in the suite's folder to `work`, because some scripts source others, and
    /// writes a file for standard input. The copy of `script` lacks the lines that remove its
    /// outputs.
    fn copy(&self, script: &Published, work: &Path) -> io::Result<()> {
        let name = script.name.rsplit('/').next().unwrap_or("script.sh");
        for entry in fs::read_dir(self.checkout.join(script.suite.folder))? {
            let path = entry?.path();
            if path.is_file()
                && let Some(name) = path.file_name()
            {
                fs::copy(&path, work.join(name))?;
            }
        }
        fs::write(work.join(name), script.without_cleanup())?;
        fs::write(work.join(INPUT), "a line on standard input\nand another line\n")
    }
}

impl Published {
    /// Returns why the script is skipped: it uses a command in `OUT_OF_SCOPE`, which the reason
    /// names. Returns `None` if it uses none of them.
    fn reason_to_skip(&self) -> Option<String> {
        let code = self.text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let words: Vec<&str> = code
            .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)))
            .collect();
        let outside = OUT_OF_SCOPE.iter().find(|command| words.contains(command));
        outside.map(|command| format!("needs {command}"))
    }

    /// Returns the script without lines that begin with `rm -rf`, which remove the outputs.
    fn without_cleanup(&self) -> String {
        let lines = self.text.lines().filter(|line| !line.trim_start().starts_with("rm -rf"));
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }
}

/// Checks that `found`, the scripts of a checkout, is not empty.
///
/// # Errors
/// Returns an error that names the expected repositories if `found` is empty.
pub fn ensure_any(found: &[Published], checkout: &Path) -> Result<()> {
    found.first().map(|_| ()).with_context(|| {
        format!("{}: no scripts of binpash/pash or kbensh/koala in it", checkout.display())
    })
}
