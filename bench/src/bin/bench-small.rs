//! Measures the cost of `contend run` where it has little or nothing to gain. Runs short pipelines,
//! alone and hundreds of times in a script, in alternation with bash.

#![expect(clippy::print_stdout, reason = "the program prints its table")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use contend_bench::{built_program, inputs, time_with};
use contend_record::stats::median;
use fastrand::Rng;

/// Time small pipelines, alone and in scripts, with bash and with contend run.
#[derive(Debug, Parser)]
struct Args {
    /// Number of rounds; cases without repetitions run five times in each.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Copies of contend that take turns: copies of one file differ by up to 0.3 ms in their
    /// start-up, depending on their place in the page cache.
    #[arg(long, default_value_t = 6)]
    copies: usize,
    /// Only cases that contain this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Use another contend than the one built with this program.
    #[arg(long, value_name = "PROGRAM")]
    contend: Option<PathBuf>,
}

/// Form in which a script is run.
#[derive(Clone, Copy)]
enum Form {
    /// `bash -c SCRIPT` and `contend run SCRIPT`.
    Text,
    /// As `Form::Text`, with a pipe from `cat` as standard input.
    Piped,
    /// `bash FILE` and `contend run -f FILE`.
    File,
    /// A file with the script in a loop; `$i` is the counter.
    Loop,
    /// A file with the script on [`REPETITIONS`] lines; `N` is the line's number, from 0.
    Lines,
}

/// Number of repetitions of the script in [`Form::Loop`] and [`Form::Lines`].
const REPETITIONS: usize = 300;
/// Number of runs of a case without repetitions in a round.
const SINGLE_RUNS: usize = 5;
const SMALL_BYTES: u64 = 1_300;
const TEXT_BYTES: u64 = 12_000_000;

const CASES: &[(Form, &str)] = &[
    (Form::Text, "echo abc | tr a b"),
    (Form::Text, "x=1; sort small | uniq"),
    (Form::Text, "f=small; sort $f | uniq"),
    (Form::Text, "f=small; sort $f | uniq -c | sort | head"),
    (Form::File, "echo nothing to do"),
    (Form::Text, "sort small"),
    (Form::Text, "tr a b <small | sort"),
    (Form::Piped, "tr a b | sort"),
    (Form::Text, "head -n 1 text"),
    (Form::Text, "grep -m1 the text"),
    (Form::Text, "sort text"),
    (Form::Text, "grep -i the text | wc"),
    (Form::Loop, "echo $i | tr 1 2"),
    (Form::Loop, "echo $i | sed s/1/2/ | cut -c1"),
    (Form::Lines, "sort \"$f\" | uniq -c | sort -rn | head -n 3"),
    (Form::Lines, "echo N | tr 1 2"),
    (Form::Loop, "sort $f | uniq -c | sort -rn | head -n 3"),
];

fn main() -> Result<()> {
    let args = Args::parse();
    let contend = args.contend.clone().map_or_else(|| built_program("contend"), Ok)?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    write_input(&folder.join("small"), SMALL_BYTES)?;
    write_input(&folder.join("text"), TEXT_BYTES)?;
    let copies = (0..args.copies.max(1)).map(|number| copy(&contend, folder, number));
    let copies = copies.collect::<Result<Vec<_>>>()?;
    println!("| | bash, ms | contend, ms | difference | ratio |\n|---|---:|---:|---:|---:|");
    for (form, text) in CASES.iter().filter(|(_, text)| text.contains(&args.only)) {
        let case = Case { form: *form, text, folder };
        case.write_script()?;
        println!("{}", case.measure(&copies, args.rounds)?);
    }
    Ok(())
}

fn write_input(path: &Path, size: u64) -> Result<()> {
    inputs::known("text.txt")?.write(size, 1, &mut fs::File::create(path)?)?;
    Ok(())
}

fn copy(program: &Path, folder: &Path, number: usize) -> Result<PathBuf> {
    let path = folder.join(format!("contend-{number}"));
    fs::copy(program, &path).with_context(|| format!("cannot copy {}", program.display()))?;
    Ok(path)
}

struct Case<'a> {
    form: Form,
    text: &'a str,
    folder: &'a Path,
}

impl Case<'_> {
    fn script(&self) -> PathBuf {
        self.folder.join("script.sh")
    }

    fn write_script(&self) -> Result<()> {
        let text = match self.form {
            Form::Text | Form::Piped => return Ok(()),
            Form::File => format!("{}\n", self.text),
            Form::Loop => {
                format!("f=small\nfor ((i = 0; i < {REPETITIONS}; i++)); do {}; done\n", self.text)
            }
            Form::Lines => {
                let line = |number: usize| self.text.replace('N', &number.to_string()) + "\n";
                "f=small\n".to_owned() + &(0..REPETITIONS).map(line).collect::<String>()
            }
        };
        Ok(fs::write(self.script(), text)?)
    }

    /// Runs the case, and returns its row of the table: median wall times of bash and contend in
    /// milliseconds, and medians of the differences and ratios within pairs of runs.
    fn measure(&self, copies: &[PathBuf], rounds: usize) -> Result<String> {
        let runs = match self.form {
            Form::Loop | Form::Lines => rounds,
            Form::Text | Form::Piped | Form::File => rounds * SINGLE_RUNS,
        };
        let mut pairs = Vec::new();
        // The uncounted first pair reads the programs and the input into the page cache.
        for run in 0..=runs {
            let contend = &copies[run % copies.len()];
            let pair = if Rng::with_seed(run as u64).bool() {
                let bash = self.time(None)?;
                (bash, self.time(Some(contend))?)
            } else {
                let contend = self.time(Some(contend))?;
                (self.time(None)?, contend)
            };
            pairs.extend((run > 0).then_some(pair));
        }
        let of = |figure: fn(&(f64, f64)) -> f64| {
            median(&pairs.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let text = self.text.replace('|', "\\|");
        Ok(format!(
            "| {}`{text}` | {:.2} | {:.2} | {:+.2} | {:.3} |",
            self.form.heading(),
            of(|pair| pair.0),
            of(|pair| pair.1),
            of(|pair| pair.1 - pair.0),
            of(|pair| pair.1 / pair.0),
        ))
    }

    /// Runs the case once, with `contend`, or with bash if `contend` is `None`. Returns the wall
    /// time in milliseconds.
    fn time(&self, contend: Option<&Path>) -> Result<f64> {
        let mut command = Command::new(contend.unwrap_or(Path::new("bash")));
        let is_file = !matches!(self.form, Form::Text | Form::Piped);
        command.args(contend.map(|_| "run"));
        match (is_file, contend) {
            (true, Some(_)) => command.arg("-f").arg(self.script()),
            (true, None) => command.arg(self.script()),
            (false, Some(_)) => command.arg(self.text),
            (false, None) => command.args(["-c", self.text]),
        };
        command.current_dir(self.folder).stderr(Stdio::inherit());
        let mut writer = None;
        let stdin = if matches!(self.form, Form::Piped) {
            let mut cat = Command::new("cat");
            cat.arg("small").current_dir(self.folder).stdout(Stdio::piped());
            let cat = writer.insert(cat.spawn()?);
            cat.stdout.take().map_or_else(Stdio::null, Stdio::from)
        } else {
            Stdio::null()
        };
        // GNU grep stops at the first match if its output is /dev/null.
        let stdout = fs::File::create(self.folder.join("output"))?;
        let timed = time_with(&mut command, stdin, stdout.into())?;
        if let Some(mut writer) = writer {
            ensure!(writer.wait()?.success(), "cat has failed");
        }
        Ok(timed.wall.as_secs_f64() * 1e3)
    }
}

impl Form {
    fn heading(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::Piped => "from a pipe: ",
            Self::File => "`-f`, no pipeline: ",
            Self::Loop => "`-f`, 300 times in a loop: ",
            Self::Lines => "`-f`, 300 lines: ",
        }
    }
}
