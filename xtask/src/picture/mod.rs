//! `cargo xtask picture`: draws a picture of a real session of `contend pipe`.

mod screen;
mod svg;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, output, print_status, run as run_command, target_dir};
use crate::random::SplitMix64;

/// Path of the committed picture.
const PICTURE: &str = "docs/images/pipe.svg";

/// Width of the terminal in characters.
const COLUMNS: usize = 88;

/// The profiled pipeline, which counts requests by status and ignores those of bots.
const PIPELINE: &str = "cat web.log | grep -v bot | cut -d' ' -f9 | sort | uniq -c | sort -rn";

/// Number of lines of the input, with which the pipeline takes about a second.
const REQUESTS: usize = 800_000;

/// Runs contend over a generated log, and draws the terminal's contents as `PICTURE`. Builds
/// contend, unless the arguments name another executable.
///
/// # Errors
/// Returns an error if:
/// - there are several arguments,
/// - contend cannot be built, or the named executable does not exist,
/// - `script` of util-linux is missing, or the session fails, or
/// - a file cannot be written.
pub fn run(arguments: &[String]) -> Result<()> {
    let program = match arguments {
        [] => {
            run_command(cargo().args("build --release --locked -p contend".split(' ')))?;
            target_dir().join("release/contend")
        }
        [program] => program.into(),
        _ => bail!("expected at most one argument, the executable of contend"),
    };
    let program =
        fs::canonicalize(&program).with_context(|| format!("cannot find {}", program.display()))?;
    let folder = std::env::temp_dir().join(format!("contend-picture-{}", std::process::id()));
    fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let drawn = session(&program, &folder);
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    let lines = screen::lines(&format!("$ contend pipe \"{PIPELINE}\"\r\n{}", drawn?));
    let path = Path::new(PICTURE);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, svg::draw(&lines, COLUMNS))
        .with_context(|| format!("cannot write {PICTURE}"))?;
    print_status(&format!("wrote {PICTURE}"));
    Ok(())
}

/// Runs contend in `folder`, on a pseudo-terminal. Returns the text written to the terminal,
/// including control sequences. Fails if the text is blank.
fn session(program: &Path, folder: &Path) -> Result<String> {
    fs::write(folder.join("web.log"), requests(REQUESTS)).context("cannot write the input")?;
    let program = program.to_str().context("the path of contend is not UTF-8")?;
    let line = format!("stty cols {COLUMNS} rows 50; exec '{program}' pipe \"$PIPELINE\"");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(folder).stdin(Stdio::null());
    command.env("PIPELINE", PIPELINE).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
    // Do not read the user's store and configuration.
    command.env("HOME", folder).env("XDG_CONFIG_HOME", folder).env("XDG_DATA_HOME", folder);
    command.env_remove("NO_COLOR").env_remove("COLUMNS");
    let drawn = String::from_utf8_lossy(&output(&mut command)?).into_owned();
    if drawn.trim().is_empty() {
        bail!("contend printed nothing on the terminal");
    }
    Ok(drawn)
}

/// Returns `count` pseudorandom lines of a web server's log in the combined format.
fn requests(count: usize) -> String {
    let mut random = SplitMix64(1);
    let mut log = String::new();
    for _ in 0..count {
        let host = random.below(200);
        let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
        let (page, bytes) = (random.below(5_000), random.below(50_000));
        let status = pick(&["200", "200", "200", "200", "304", "404", "301", "500"], &mut random);
        let agent =
            pick(&["Firefox/145.0", "Chrome/142.0", "Safari/18.6", "Googlebot/2.1"], &mut random);
        // Writing to a string cannot fail.
        let _ = writeln!(
            log,
            "10.0.0.{host} - - [02/Mar/2026:{hour:02}:{minute:02}:{second:02} +0000] \
             \"GET /page/{page} HTTP/1.1\" {status} {bytes} \"-\" \"{agent}\""
        );
    }
    log
}

fn pick<'a>(words: &[&'a str], random: &mut SplitMix64) -> &'a str {
    words[random.below(words.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_fits_the_picture() {
        assert!(format!("$ contend pipe \"{PIPELINE}\"").len() <= COLUMNS);
    }

    #[test]
    fn the_ninth_field_of_a_request_is_its_status() {
        let log = requests(50);
        let statuses = log.lines().map(|line| line.split(' ').nth(8).expect("a ninth field"));
        assert!(statuses.into_iter().all(|status| status.len() == 3), "{log}");
        assert_eq!(log, requests(50));
    }
}
