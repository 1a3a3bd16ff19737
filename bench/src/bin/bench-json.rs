//! Measures the speed and memory of `contend json`.
//!
//! Runs contend and, if they are installed, jq, jaq, gron and a parser in awk, in alternation on
//! the same document. Checks that their outputs are the same, except that of the parser in awk,
//! which has another format.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use contend_bench::{Timed, built_program, time};
use contend_record::stats::median;

/// Compare programs that extract values from JSON.
#[derive(Debug, Parser)]
struct Args {
    /// Number of copies of the menu, which is 241 bytes long, or 231 with --lines.
    #[arg(long, default_value_t = 100_000)]
    copies: u32,
    /// Write each menu on a line of its own instead of all into one array.
    #[arg(long)]
    lines: bool,
    /// Rounds, each of which runs every program once.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Skip these programs, for instance where memory does not suffice for them.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Do not compare what the programs print.
    #[arg(long)]
    no_check: bool,
}

/// The repeated document: a menu, the usual example on pages about JSON, with its usual
/// indentation.
const MENU: &str = r#"{"menu": {
  "id": "file",
  "value": "File",
  "popup": {
    "menuitem": [
      {"value": "New", "onclick": "CreateNewDoc()"},
      {"value": "Open", "onclick": "OpenDoc()"},
      {"value": "Close", "onclick": "CloseDoc()"}
    ]
  }
}}"#;

/// A question, with the command lines of the programs that answer it. In these, `IN` stands for the
/// document, `PATH` for a path in it, `CONTEND` for contend, and `AWK` for the folder of the awk
/// programs.
struct Question {
    name: &'static str,
    /// Programs and their command lines; the first is contend.
    rivals: &'static [(&'static str, &'static str)],
    /// Whether the order of lines may differ.
    sorted: bool,
}

/// Name of the rival that consists of the lab's tokenizer and parser. Its output has another
/// format, so it is not compared.
const AWK_PAIR: &str = "mawk";

const QUESTIONS: [Question; 3] = [
    Question {
        name: "one path",
        rivals: &[
            ("contend", "CONTEND json --format jsonl PATH IN"),
            ("jq", "jq -c PATH IN"),
            ("jaq", "jaq -c PATH IN"),
        ],
        sorted: false,
    },
    Question {
        name: "everything, compact",
        rivals: &[
            ("contend", "CONTEND json --format jsonl . IN"),
            ("jq", "jq -c . IN"),
            ("jaq", "jaq -c . IN"),
        ],
        sorted: false,
    },
    Question {
        name: "everything, flat",
        rivals: &[
            ("contend", "CONTEND json --format gron . IN"),
            ("gron", "gron --no-sort --monochrome IN"),
            (
                AWK_PAIR,
                "mawk -f AWK/tokenizer.awk <IN | mawk -f AWK/parser.awk -f AWK/callbacks.awk",
            ),
        ],
        sorted: true,
    },
];

fn main() -> Result<()> {
    let args = Args::parse();
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("input.json");
    write_input(&input, &args)?;
    write_awk(folder.path())?;
    let bytes = input.metadata()?.len();
    println!("{:.1} MB, {} rounds", bytes as f64 / 1e6, args.rounds);
    for question in &QUESTIONS {
        // gron reads one JSON document, not a sequence of documents.
        if !(question.sorted && args.lines) {
            compare(question, &input, bytes, &args)?;
        }
    }
    Ok(())
}

fn write_input(path: &Path, args: &Args) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let menu = if args.lines { MENU.replace('\n', "") } else { MENU.to_owned() };
    let [before, between, after] = if args.lines { ["", "\n", "\n"] } else { ["[", ",\n", "]\n"] };
    for number in 0..args.copies {
        write!(file, "{}{menu}", if number == 0 { before } else { between })?;
    }
    file.write_all(after.as_bytes())?;
    file.flush().context("cannot write the document")
}

/// Writes the lab's awk programs (tokenizer, parser and callbacks) to `folder`.
fn write_awk(folder: &Path) -> Result<()> {
    let contend = built_program("contend")?;
    for name in ["tokenizer", "parser", "callbacks"] {
        let output = Command::new(&contend).args(["generate", "awk", name]).output()?;
        ensure!(output.status.success(), "contend generate awk {name}: {}", output.status);
        std::fs::write(folder.join(name).with_extension("awk"), output.stdout)?;
    }
    Ok(())
}

fn compare(question: &Question, input: &Path, bytes: u64, args: &Args) -> Result<()> {
    let path = if args.lines { ".menu.id" } else { "'.[].menu.id'" };
    let contend = built_program("contend")?;
    let folder = input.parent().context("the input is in a folder")?;
    let line = |form: &str| {
        form.replace("CONTEND", &quoted(&contend))
            .replace("AWK", &quoted(folder))
            .replace("PATH", path)
            .replace("IN", &quoted(input))
    };
    let (there, missing): (Vec<_>, Vec<_>) = question
        .rivals
        .iter()
        .filter(|(name, _)| !args.without.iter().any(|without| without == name))
        .partition(|(name, _)| *name == "contend" || is_installed(name));
    for (name, _) in missing {
        println!("SKIPPED {name}: it is not installed");
    }
    let lines: Vec<_> = there.iter().map(|(name, form)| (*name, line(form))).collect();
    if !args.no_check {
        check_agreement(question, &lines)?;
    }
    let runs = rounds(&lines, args.rounds)?;
    println!(
        "\n{:<22} {:>9} {:>9} {:>10} {:>10} {:>10}",
        question.name, "wall", "CPU", "rate", "of ours", "memory"
    );
    for ((name, _), own) in lines.iter().zip(&runs) {
        show(name, own, &runs[0], bytes);
    }
    Ok(())
}

/// Runs every program once in each round, starting with another program each time. Returns each
/// program's runs.
fn rounds(lines: &[(&str, String)], rounds: usize) -> Result<Vec<Vec<Timed>>> {
    let mut runs = vec![Vec::new(); lines.len()];
    for round in 0..rounds {
        for turn in 0..lines.len() {
            let index = (round + turn) % lines.len();
            runs[index].push(time(&mut shell(&lines[index].1))?);
        }
    }
    Ok(runs)
}

fn show(name: &str, own: &[Timed], ours: &[Timed], bytes: u64) {
    let middle = |values: Vec<f64>| median(&values).unwrap_or(f64::NAN);
    let wall = middle(own.iter().map(|run| run.wall.as_secs_f64()).collect());
    let cpu = middle(own.iter().map(|run| run.cpu().as_secs_f64()).collect());
    let pairs = own.iter().zip(ours);
    let ratio = middle(pairs.map(|(a, b)| a.wall.as_secs_f64() / b.wall.as_secs_f64()).collect());
    let memory = own.iter().map(|run| run.usage.max_rss).max().unwrap_or(0);
    println!(
        "  {name:<20} {wall:>8.3}s {cpu:>8.3}s {:>6.0}MB/s {ratio:>9.1}x {:>8.1}MB",
        bytes as f64 / 1e6 / wall,
        memory as f64 / 1e6
    );
}

fn check_agreement(question: &Question, lines: &[(&str, String)]) -> Result<()> {
    let sort = if question.sorted { "| LC_ALL=C sort" } else { "" };
    let mut sums = Vec::new();
    for (name, line) in lines.iter().filter(|(name, _)| *name != AWK_PAIR) {
        let output = shell(&format!("{line} {sort} | cksum")).output()?;
        ensure!(output.status.success(), "{line}: {}", output.status);
        sums.push((*name, String::from_utf8_lossy(&output.stdout).trim().to_owned()));
    }
    if sums.iter().any(|(_, sum)| *sum != sums[0].1) {
        bail!("{}: the outputs of the programs differ: {sums:?}", question.name);
    }
    Ok(())
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
