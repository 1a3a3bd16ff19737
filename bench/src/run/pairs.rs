//! Compares `contend run` with bash on random pipelines with awkward inputs.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use contend_sys::child::ExitStatus;
use fastrand::Rng;

use super::measure::{difference, run_with_limit};
use super::shrink::shrink;
use crate::awkward::parallel::{OTHER, OTHER_TEXT, pairs};
use crate::awkward::{FILE, Pair};
use crate::pipelines::stages;

/// Chunk sizes, in bytes, that divide even small inputs into many chunks.
const CHUNK_SIZES: [usize; 6] = [1, 5, 16, 64, 500, 4000];
/// Approximate maximum number of chunks of an input, each of which may start several processes.
const MAX_CHUNKS: usize = 100;
/// Time after which a run counts as hanging.
const RUN_TIMEOUT: Duration = Duration::from_secs(40);
/// Maximum number of bytes of an input to show.
const MAX_SHOWN_BYTES: usize = 400;
/// Number of runs of bash, with pipes filled in small pieces, that must have the same result as an
/// ordinary run.
const BASH_RUNS: usize = 4;
/// Maximum number of pieces of an input when pipes are filled in small pieces.
const MAX_PIECES: usize = 10_000;

/// Numbers of pairs whose outputs or exit statuses differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Number of pairs for which contend differs from bash, and bash does not differ from itself.
    pub differ: usize,
    /// Number of pairs for which contend differs from bash, but bash also differs from itself if
    /// pipes are filled in other pieces. For example, the output of GNU grep on binary data depends
    /// on these pieces.
    pub uncertain: usize,
}

/// Runs the first `count` pairs of `seed`, and calls `tell` with a report of each pair that
/// differs. Shrinks the pair first, unless bash differs from itself on it. The program `contend`
/// must support `run -j 3 --part-size BYTES PIPELINE`.
///
/// # Errors
/// Returns an error if a program cannot be run, or if contend does not support these options.
pub fn check(contend: &Path, seed: u64, count: usize, tell: impl Fn(&str)) -> Result<Compared> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    knows_its_options(contend)?;
    fs::write(folder.path().join(OTHER), OTHER_TEXT)?;
    let mut random = Rng::with_seed(seed);
    let mut compared = Compared::default();
    for (number, pair) in (1..).zip(pairs(seed, count)) {
        let chunk = CHUNK_SIZES[random.usize(..CHUNK_SIZES.len())];
        let both = Comparison { contend, folder: folder.path(), chunk };
        let Some(what) = both.differ(&pair)? else { continue };
        if !both.bash_is_repeatable(&pair)? {
            compared.uncertain += 1;
            let Pair { pipeline, kind, .. } = &pair;
            tell(&format!(
                "pair {number} ({kind:?}): {pipeline}\n  {what}, but bash differs from itself"
            ));
            continue;
        }
        compared.differ += 1;
        let fails =
            |small: &Pair| Ok(both.differ(small)?.is_some() && both.bash_is_repeatable(small)?);
        let small = shrink(pair.clone(), fails)?;
        let now = both.differ(&small)?.unwrap_or_else(|| format!("{what}, but not every time"));
        tell(&described(number, &pair, &small, &both, &now));
    }
    Ok(compared)
}

fn knows_its_options(contend: &Path) -> Result<()> {
    let both = Comparison { contend, folder: Path::new("."), chunk: 1 };
    let done = both.command("echo works").stdin(Stdio::null()).output();
    let done = done.with_context(|| format!("cannot start {}", contend.display()))?;
    let said = String::from_utf8_lossy(&done.stderr);
    let line = said.lines().next().unwrap_or("printed something else");
    ensure!(done.stdout == b"works\n", "contend run -j 3 --part-size 1 'echo works': {line}");
    Ok(())
}

/// A comparison of bash and contend, in a folder with the files that pipelines read.
struct Comparison<'a> {
    contend: &'a Path,
    folder: &'a Path,
    chunk: usize,
}

impl Comparison<'_> {
    fn command(&self, pipeline: &str) -> Command {
        let mut command = Command::new(self.contend);
        command.args(["run", "-j", "3", "--part-size", &self.chunk.to_string()]).arg(pipeline);
        command
    }

    /// Writes the input of `pair` to the folder, and runs the pipeline with bash and contend.
    /// Returns how contend differs from bash, or `None` if it does not, or if bash does not end in
    /// time.
    fn differ(&self, pair: &Pair) -> Result<Option<String>> {
        fs::write(self.folder.join(FILE), &pair.input)?;
        let least = pair.input.len() / MAX_CHUNKS;
        let with = Comparison { chunk: self.chunk.max(least), ..*self };
        let expected = self.run(crate::bash_command(&pair.pipeline), pair, "expected")?;
        let found = self.run(with.command(&pair.pipeline), pair, "found")?;
        let place = difference(&self.folder.join("found"), &self.folder.join("expected"))?;
        let what = match (place, expected, found) {
            // A pair on which bash does not end shows nothing.
            (_, None, _) => return Ok(None),
            (_, Some(_), None) => "hangs".to_owned(),
            (Some(place), ..) => format!("other output from byte {place} on"),
            (None, Some(expected), Some(found)) if expected != found => {
                format!("ends with {found:?}, bash with {expected:?}")
            }
            _ => return Ok(None),
        };
        Ok(Some(what))
    }

    /// Returns whether bash gives the result of an ordinary run again in several runs in which
    /// pipes are filled in small pieces. The input must be in the folder.
    fn bash_is_repeatable(&self, pair: &Pair) -> Result<bool> {
        let size = pair.input.len().div_ceil(MAX_PIECES).max(1);
        let between = format!(" | dd bs={size} status=none | ");
        let pieces = stages(&pair.pipeline).join(&between);
        let expected = self.run(crate::bash_command(&pair.pipeline), pair, "expected")?;
        for _ in 0..BASH_RUNS {
            let found = self.run(crate::bash_command(&pieces), pair, "found")?;
            let place = difference(&self.folder.join("found"), &self.folder.join("expected"))?;
            if place.is_some() || expected != found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs a command with its output in the file `to`. Returns the exit status, or `None` if the
    /// command was killed at the limit.
    fn run(&self, mut command: Command, pair: &Pair, to: &str) -> Result<Option<ExitStatus>> {
        let stdin: Stdio = if pair.from_stdin {
            File::open(self.folder.join(FILE))?.into()
        } else {
            Stdio::null()
        };
        command.current_dir(self.folder).env("LC_ALL", pair.locale);
        command.stdin(stdin).stdout(File::create(self.folder.join(to))?).stderr(Stdio::null());
        Ok(run_with_limit(&mut command, Some(RUN_TIMEOUT))?.1)
    }
}

/// Formats a difference with the command that reproduces it.
fn described(
    number: usize,
    pair: &Pair,
    small: &Pair,
    both: &Comparison<'_>,
    what: &str,
) -> String {
    let shown = small.input[..small.input.len().min(MAX_SHOWN_BYTES)].escape_ascii();
    let more = if small.input.len() > MAX_SHOWN_BYTES { " and more" } else { "" };
    format!(
        "pair {number} ({:?}): {}\n  shrunk: LC_ALL={} contend run -j 3 --part-size {} '{}'{}\n  \
         on {} bytes{more}: {shown}\n  {what}",
        pair.kind,
        pair.pipeline,
        small.locale,
        both.chunk.max(small.input.len() / MAX_CHUNKS),
        small.pipeline,
        if small.from_stdin { " <input" } else { "" },
        small.input.len(),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Mutex;

    use super::*;

    /// Writes a stand-in for contend, a bash script with the commands `body`, and returns its path.
    fn stand_in(folder: &Path, body: &str) -> std::path::PathBuf {
        let path = folder.join("contend");
        fs::write(&path, format!("#!/bin/bash\n{body}\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }

    #[test]
    fn bash_does_not_differ_from_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let same = stand_in(folder.path(), "exec bash -c \"${@: -1}\"");
        let failures = check(&same, 1, 48, |failure| panic!("{failure}"));
        assert_eq!(failures.expect("all is there"), Compared::default());
    }

    #[test]
    fn pairs_that_bash_does_not_repeat_are_not_differences() {
        let folder = tempfile::tempdir().expect("a folder");
        let both = Comparison { contend: Path::new("contend"), folder: folder.path(), chunk: 1 };
        let pair = |pipeline: &str, input: &[u8]| Pair {
            pipeline: pipeline.to_owned(),
            from_stdin: true,
            locale: "C",
            shape: None,
            kind: crate::awkward::Kind::Plain,
            input: input.to_vec(),
        };
        let bash_is_repeatable = |pipeline: &str, input: &[u8]| {
            fs::write(folder.path().join(FILE), input).expect("it is ours");
            both.bash_is_repeatable(&pair(pipeline, input)).expect("bash runs")
        };
        assert!(bash_is_repeatable("cat | grep -a -c o", b"one\ntwo\0\nthree\n"));
        let late = [b"one\n".repeat(20_000), b"\0".to_vec()].concat();
        assert!(!bash_is_repeatable("cat | grep o", &late), "a NUL byte is seen late or soon");
    }

    /// Uses a stand-in for contend that runs `wc -c` in place of `wc -l`.
    #[test]
    fn a_difference_is_found_and_shrunk() {
        let folder = tempfile::tempdir().expect("a folder");
        let body = "text=${@: -1}; exec bash -c \"${text//wc -l/wc -c}\"";
        let wrong = stand_in(folder.path(), body);
        let told = Mutex::new(Vec::new());
        let failures = check(&wrong, 1, 96, |failure| {
            told.lock().expect("one thread").push(failure.to_owned());
        });
        let told = told.into_inner().expect("one thread");
        let Compared { differ, uncertain } = failures.expect("all is there");
        assert_eq!(differ + uncertain, told.len());
        assert!(!told.is_empty() && told.iter().all(|told| told.contains("wc -l")), "{told:?}");
        assert!(told.iter().any(|told| told.contains("--part-size") && told.contains("'wc -l")));
    }
}
