//! Measures `contend run --on` against bash and against `contend run` on one machine: the time of three pipelines, the memory of
//! the driver, and what a part costs. `docs/measurements/clusters.md` has the results.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use contend_bench::inputs::{folder, known};
use contend_bench::simulation::{Cluster, Job, Outcome, simulate};
use contend_bench::{bash_command, built_program, time_with};
use contend_record::run::RunRecord;
use contend_record::stats::median;
use fastrand::Rng;

/// Compare jobs on a cluster with one machine.
#[derive(Debug, Parser)]
struct Args {
    /// Folder for the inputs, the outputs and the work directories: new, empty, or made by this program.
    inputs: PathBuf,
    /// Size of each input in millions of bytes.
    #[arg(long, default_value_t = 5000)]
    megabytes: u64,
    /// Number of runs of each case with each tool.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Engines, separated by commas.
    #[arg(long, value_delimiter = ',', default_values = ["local", "spark"])]
    engines: Vec<String>,
    /// Options of `contend run` for all engines but local, such as --master.
    #[arg(long, allow_hyphen_values = true)]
    option: Vec<String>,
    /// Only cases whose name contains this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Measure the costs of parts instead, with these numbers of parts.
    #[arg(long, value_delimiter = ',')]
    parts: Vec<u64>,
    /// Simulate 100 TB on 1,000 workers instead.
    #[arg(long)]
    simulate: bool,
    /// Compare the simulation with measurements instead. The engines must run two tasks at a time.
    #[arg(long)]
    validate: bool,
}

/// The pipelines.
const CASES: &[Case] = &[
    Case {
        name: "log",
        input: "access.log",
        text: "cat access.log | grep -v bot | cut -d ' ' -f 1 | sort | uniq -c | sort -rn | head -n 20",
    },
    Case {
        name: "join",
        input: "orders.tsv",
        text: "cat orders.tsv | grep -v ^id | cut -f 5-7 | sort -k 3,3 | join -1 3 -2 1 - rates.txt \
               | awk '{ all[$1] += $2 * $3 * $4 } END { for (it in all) print it, all[it] }' | sort",
    },
    Case {
        name: "words",
        input: "text.txt",
        text: "cat text.txt | tr A-Z a-z | tr -cs a-z '\\n' | sort | uniq -c | sort -rn | head -n 20",
    },
];

/// Number of different lines in the input with which the simulation is compared.
const KEYS: u32 = 100_000;
/// Bytes of the output of a part with all of these lines: a count of seven digits, a space, six digits and a line break.
const OUTPUT: f64 = KEYS as f64 * 15.0;

/// A pipeline over an input.
struct Case {
    name: &'static str,
    input: &'static str,
    text: &'static str,
}

/// What runs a pipeline.
enum Tool<'a> {
    Bash,
    Here,
    On(&'a str),
}

impl Tool<'_> {
    fn name(&self) -> String {
        match self {
            Self::Bash => "bash".to_owned(),
            Self::Here => "contend run".to_owned(),
            Self::On(engine) => format!("--on {engine}"),
        }
    }
}

/// Medians of the runs of a case with a tool.
#[derive(Default)]
struct Figures {
    seconds: f64,
    /// Peak memory of contend itself in bytes; `None` for bash.
    memory: Option<f64>,
    /// Parts and combinations; `None` if there were none.
    tasks: Option<(u64, u64)>,
    /// Wall time of all tasks together, in seconds; 0 if there were none.
    work: f64,
    /// Time until the first part began, in seconds; 0 if there were none.
    start: f64,
    /// Time from then until the last part was complete, in seconds; 0 if there were none.
    parts: f64,
}

impl Figures {
    /// Returns the time in seconds in which no part ran, after the first one.
    fn rest(&self) -> f64 {
        self.seconds - self.start - self.parts
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(args.rounds > 0, "--rounds 0 measures nothing");
    if args.simulate {
        on_paper();
        return Ok(());
    }
    folder::claim(&args.inputs, "bench-cluster\n")?;
    let bench = Bench { contend: built_program("contend")?, args: &args };
    if !args.parts.is_empty() {
        return bench.parts();
    }
    if args.validate {
        return args.engines.iter().try_for_each(|engine| bench.validate(engine));
    }
    for case in CASES.iter().filter(|case| case.name.contains(&args.only)) {
        bench.case(case)?;
    }
    Ok(())
}

struct Bench<'a> {
    contend: PathBuf,
    args: &'a Args,
}

impl Bench<'_> {
    /// Makes the input of a case, and the rates that orders are joined with.
    fn make(&self, case: &Case) -> Result<PathBuf> {
        let folder = self.args.inputs.join(format!("{}MB", self.args.megabytes));
        let input = known(case.input)?;
        let size = self.args.megabytes * 1_000_000;
        folder::make(&folder.join(case.input), |out| folder::repeated(input, size, 1, out))?;
        let rates = [
            "BR 0.18",
            "CA 0.72",
            "DE 1.1",
            "FR 1.1",
            "GB 1.3",
            "IN 0.012",
            "IT 1.1",
            "JP 0.0067",
            "NL 1.1",
            "NZ 0.6",
            "SE 0.095",
            "US 1",
        ];
        fs::write(folder.join("rates.txt"), rates.map(|rate| format!("{rate}\n")).concat())?;
        Ok(folder)
    }

    /// Measures a case with all tools in turn, and prints a table.
    fn case(&self, case: &Case) -> Result<()> {
        let folder = self.make(case)?;
        let mut tools = vec![Tool::Bash, Tool::Here];
        tools.extend(self.args.engines.iter().map(|engine| Tool::On(engine)));
        let mut runs: Vec<Vec<Figures>> = tools.iter().map(|_| Vec::new()).collect();
        for round in 0..self.args.rounds {
            for (tool, runs) in tools.iter().zip(&mut runs) {
                runs.push(self.run(&folder, case.text, tool, &[])?);
                let output = fs::read(folder.join("output"))?;
                if let (0, Tool::Bash) = (round, tool) {
                    ensure!(!output.is_empty(), "{}: there is no output", case.name);
                    fs::write(folder.join("expected"), output)?;
                } else {
                    let expected = fs::read(folder.join("expected"))?;
                    ensure!(output == expected, "{}: {} differs from bash", case.name, tool.name());
                }
            }
        }
        println!("\n{}, {} MB: {}", case.name, self.args.megabytes, case.text);
        println!("| tool | seconds | speed-up | parts + combinations | memory of contend |");
        println!("|---|---:|---:|---:|---:|");
        let of_bash = medians(&runs[0]).seconds;
        for (tool, runs) in tools.iter().zip(&runs) {
            let Figures { seconds, memory, tasks, .. } = medians(runs);
            let tasks = tasks.map_or(String::new(), |(parts, more)| format!("{parts} + {more}"));
            let memory = memory.map_or(String::new(), |bytes| format!("{:.0} MB", bytes / 1e6));
            let ratio = of_bash / seconds;
            println!("| {} | {seconds:.1} | {ratio:.2} | {tasks} | {memory} |", tool.name());
        }
        std::io::stdout().flush()?;
        Ok(())
    }

    /// Measures how the wall time of a job grows with the number of its parts, over a small input.
    fn parts(&self) -> Result<()> {
        let folder = self.args.inputs.join("parts");
        let lines: Vec<String> = (0..200_000).map(|line| format!("{}\n", line % 1000)).collect();
        let lines = lines.concat();
        folder::make(&folder.join("input"), |out| {
            out.write_all(lines.as_bytes())?;
            Ok(lines.len() as u64)
        })?;
        println!(
            "| engine | parts | combinations | seconds | for each further part | memory of contend |"
        );
        println!("|---|---:|---:|---:|---:|---:|");
        for engine in &self.args.engines {
            let mut first: Option<(u64, f64)> = None;
            for &count in &self.args.parts {
                let words = ["--parts", &count.to_string()].map(str::to_owned);
                let tool = Tool::On(engine);
                let run = |_| self.run(&folder, "cat input | sort | uniq -c", &tool, &words);
                let runs = (0..self.args.rounds).map(run).collect::<Result<Vec<_>>>()?;
                let Figures { seconds, memory, tasks, .. } = medians(&runs);
                let (parts, combinations) = tasks.context("it was not divided")?;
                let (from, base) = *first.get_or_insert((parts, seconds));
                let each = match parts.saturating_sub(from) {
                    0 => String::new(),
                    more => format!("{:.1} ms", 1e3 * (seconds - base) / more as f64),
                };
                let memory = memory.unwrap_or_default() / 1e6;
                println!(
                    "| {engine} | {parts} | {combinations} | {seconds:.2} | {each} | {memory:.0} MB |"
                );
            }
        }
        Ok(())
    }

    /// Compares the simulation with measurements. Its parameters follow from four other jobs.
    fn validate(&self, engine: &str) -> Result<()> {
        let folder = self.args.inputs.join("keys");
        let size = self.args.megabytes * 1_000_000;
        let mut random = Rng::with_seed(1);
        folder::make(&folder.join("keys"), |out| {
            let lines = size / 7;
            for _ in 0..lines {
                writeln!(out, "{:06}", random.u32(..KEYS))?;
            }
            Ok(7 * lines)
        })?;
        fs::write(folder.join("few"), "1\n".repeat(1000))?;
        let bytes = folder.join("keys").metadata()?.len() as f64;
        let measure = |input: &str, parts, fan_in| self.counted(engine, input, parts, fan_in);
        let cluster = calibrated(bytes, measure)?;
        println!(
            "\n{engine}, {} MB: start {:.2} s, task {:.1} ms, {:.1} MB/s, makes {:.1} MB/s, \
             merges {:.1} MB/s",
            self.args.megabytes,
            cluster.start,
            1e3 * cluster.task,
            cluster.rate / 1e6,
            cluster.output_rate / 1e6,
            cluster.merge_rate / 1e6
        );
        println!("| parts | fan-in | tasks | simulated | measured | ratio |");
        println!("|---:|---:|---:|---:|---:|---:|");
        for (parts, fan_in) in [(16, 64), (32, 64), (32, 8), (128, 128), (128, 16), (256, 16)] {
            let outcome = simulated(&cluster, bytes, parts, fan_in);
            let seconds = outcome.seconds + outcome.driver_bytes / cluster.merge_rate;
            let measured = measure("keys", parts, fan_in)?.seconds;
            let tasks: Vec<String> = outcome.levels.iter().map(u64::to_string).collect();
            let (tasks, ratio) = (tasks.join(" + "), seconds / measured);
            println!(
                "| {parts} | {fan_in} | {tasks} | {seconds:.1} s | {measured:.1} s | {ratio:.2} |"
            );
        }
        Ok(())
    }

    /// Returns the medians of a job that counts the lines of an input.
    fn counted(&self, engine: &str, input: &str, parts: u64, fan_in: u64) -> Result<Figures> {
        let words = format!("--parts {parts} --fan-in {fan_in}");
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let (folder, text) =
            (self.args.inputs.join("keys"), format!("cat {input} | sort | uniq -c"));
        let run = |_| self.run(&folder, &text, &Tool::On(engine), &words);
        let runs = (0..self.args.rounds).map(run).collect::<Result<Vec<_>>>()?;
        let figures = medians(&runs);
        ensure!(figures.tasks.is_some_and(|(found, _)| found == parts), "there are other parts");
        Ok(figures)
    }

    /// Runs a pipeline in a folder, with its output in the file `output`.
    fn run(&self, folder: &Path, text: &str, tool: &Tool<'_>, more: &[String]) -> Result<Figures> {
        let json = tempfile::NamedTempFile::new()?;
        let mut command = match tool {
            Tool::Bash => bash_command(text),
            Tool::Here | Tool::On(_) => {
                let mut command = Command::new(&self.contend);
                command.args(["run", "--no-store", "--no-progress", "--json"]).arg(json.path());
                if let Tool::On(engine) = tool {
                    command.args(["--on", engine]).args(more);
                    if *engine != "local" {
                        command.args(&self.args.option);
                    }
                }
                command.arg(text);
                command
            }
        };
        command.current_dir(folder).env("LC_ALL", "C");
        let output = File::create(folder.join("output"))?;
        let timed = time_with(&mut command, Stdio::null(), output.into())?;
        let seconds = timed.wall.as_secs_f64();
        let mut figures = Figures { seconds, ..Figures::default() };
        if !matches!(tool, Tool::Bash) {
            let record = fs::read_to_string(json.path())?;
            let record: RunRecord = serde_json::from_str(&record)
                .with_context(|| format!("{} left no record of {text}", tool.name()))?;
            let outcome = record.outcome.context("the record has no outcome")?;
            ensure!(outcome.exit_code == 0, "{} failed: {text}", tool.name());
            figures.memory = Some(outcome.own_max_rss_bytes as f64);
            figures.tasks = record.division.map(|it| (it.parts, it.combinations));
            if let Some(divided) = outcome.divided {
                figures.work = divided.hosts.iter().map(|host| host.wall_seconds).sum();
                figures.start = divided.start_seconds.unwrap_or_default();
                figures.parts = divided.parts_seconds.unwrap_or_default();
            }
        }
        Ok(figures)
    }
}

/// Simulates a job whose parts all have the same [`KEYS`].
fn simulated(cluster: &Cluster, bytes: f64, parts: u64, fan_in: u64) -> Outcome {
    simulate(cluster, &Job { bytes, parts, output: OUTPUT, fan_in }, &mut Rng::with_seed(1))
}

/// Returns the parameters of a cluster with two slots. `measure` returns the figures of a job over an input, with a number of parts and a fan-in. `bytes` is the size of the input `keys`.
fn calibrated(bytes: f64, measure: impl Fn(&str, u64, u64) -> Result<Figures>) -> Result<Cluster> {
    const MOST: u64 = 512;
    let (few, many) = (measure("few", 2, MOST)?, measure("few", 66, MOST)?);
    let task = (many.parts - few.parts) / 32.0;
    let start = few.start;
    // Two sizes of parts: a task takes a time for each byte of its input, and one for its output.
    let (large, small) = (measure("keys", 8, MOST)?, measure("keys", 256, MOST)?);
    let of_one = [large.work / 8.0, small.work / 256.0];
    let rate = (bytes / 8.0 - bytes / 256.0) / (of_one[0] - of_one[1]);
    let made = of_one[1] - bytes / 256.0 / rate;
    let driver = 256.0 * OUTPUT / (small.rest() - few.rest());
    let rates = [task, rate, made, driver];
    ensure!(
        rates.iter().all(|&rate| rate > 0.0),
        "the times contradict each other, so that more --rounds are needed: {rates:?}"
    );
    Ok(Cluster {
        slots: 2,
        start,
        task,
        rate,
        output_rate: OUTPUT / made,
        merge_rate: driver, // both run the same code
        storage: f64::INFINITY,
        lost: 0.0,
        spread: 1.0,
    })
}

/// Simulates a word count over 100 TB on 1,000 workers, and prints a table.
fn on_paper() {
    let cluster = Cluster {
        slots: 1000,
        start: 10.0,
        task: 0.2,
        rate: 50e6,
        output_rate: 100e6,
        merge_rate: 100e6,
        storage: 100e9,
        lost: 0.001,
        spread: 1.5,
    };
    println!(
        "| parts | output of a part | tasks | batches | lost | parts | all | files | driver reads |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (parts, output) in
        [(1_000, 10e6), (10_000, 10e6), (100_000, 10e6), (10_000, 1e9), (100_000, 100e6)]
    {
        for fan_in in [u64::MAX, 64] {
            let job = Job { bytes: 100e12, parts, output, fan_in };
            let outcome = simulate(&cluster, &job, &mut Rng::with_seed(1));
            let tasks: Vec<String> = outcome.levels.iter().map(u64::to_string).collect();
            println!(
                "| {parts} | {:.0} MB | {} | {} | {} | {:.1} h | {:.1} h | {} | {:.1} GB |",
                output / 1e6,
                tasks.join(" + "),
                outcome.batches,
                outcome.lost,
                outcome.of_parts / 3600.0,
                outcome.seconds / 3600.0,
                outcome.files,
                outcome.driver_bytes / 1e9
            );
        }
    }
}

/// Returns the medians of runs with the same tool, of which there is at least one.
fn medians(runs: &[Figures]) -> Figures {
    let of = |value: fn(&Figures) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(value).collect();
        median(&values)
    };
    Figures {
        seconds: of(|run| Some(run.seconds)).unwrap_or_default(),
        memory: of(|run| run.memory),
        tasks: runs.first().and_then(|run| run.tasks),
        work: of(|run| Some(run.work)).unwrap_or_default(),
        start: of(|run| Some(run.start)).unwrap_or_default(),
        parts: of(|run| Some(run.parts)).unwrap_or_default(),
    }
}
