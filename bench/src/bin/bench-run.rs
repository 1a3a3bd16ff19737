//! Measures `contend run` against the shell and other tools, and checks that their outputs are the
//! same. `bench/run/README.md` describes cases, tools and measurements.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use contend_bench::built_program;
use contend_bench::inputs::folder;
use contend_bench::run::cases::{self, Case, listing};
use contend_bench::run::figures::{Figures, of_case, summary};
use contend_bench::run::measure::{Bench, profiled};
use contend_bench::run::pairs::{self, Compared};
use contend_bench::run::report;
use contend_bench::run::tools::{self, Paths, Tool};
use contend_record::Host;

/// Compare contend run with other tools for parallel pipelines.
#[derive(Debug, Parser)]
struct Args {
    /// Folder for the inputs: new, empty, or made by this program.
    #[arg(long, value_name = "FOLDER", required_unless_present_any = ["list", "pairs"])]
    inputs: Option<PathBuf>,
    /// Print the cases, and run nothing.
    #[arg(long)]
    list: bool,
    /// Only inputs of these sizes, such as 1MB,100MB,1GB.
    #[arg(long, value_name = "SIZES")]
    sizes: Option<String>,
    /// Only cases whose theme and name contain this text, such as unix/. A whole name selects that
    /// case only. Separate several with commas.
    #[arg(long, value_name = "TEXTS", value_delimiter = ',')]
    cases: Vec<String>,
    /// Number of runs of each case with each tool; bash and contend run short cases more often.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Skip a tool: contend, pash, parallel, xargs or forkrun.
    #[arg(long, value_name = "TOOL")]
    without: Vec<String>,
    /// Write all figures to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a table in Markdown to this file.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Folder for outputs and temporary files [default: a temporary folder].
    #[arg(long, value_name = "FOLDER")]
    outputs: Option<PathBuf>,
    /// Seed of the inputs, of the order of runs, of the intervals, and of pairs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use another contend than the one built with this program.
    #[arg(long, value_name = "PROGRAM")]
    contend: Option<PathBuf>,
    /// Command that starts `PaSh`.
    #[arg(long, value_name = "PROGRAM", default_value = "pash")]
    pash: PathBuf,
    /// The file of forkrun that defines its function `frun`.
    #[arg(long, value_name = "FILE")]
    forkrun: Option<PathBuf>,
    /// Run this many random pipelines on awkward inputs with bash and contend instead, and shrink
    /// those that differ.
    #[arg(long, value_name = "COUNT")]
    pairs: Option<usize>,
}

/// Largest input on which stages are profiled, in millions of bytes. The stages' shares hardly
/// depend on the size.
const MAX_PROFILED_MEGABYTES: u64 = 100;

fn main() -> Result<()> {
    let args = Args::parse();
    let contend = args.contend.clone().map_or_else(|| built_program("contend"), Ok)?;
    if let Some(count) = args.pairs {
        return run_pairs(&args, &contend, count);
    }
    let mut cases = chosen(listing()?, &args.cases);
    if let Some(sizes) = args.sizes.as_deref().map(cases::sizes).transpose()? {
        for case in &mut cases {
            case.sizes.retain(|size| sizes.contains(size));
        }
        cases.retain(|case| !case.sizes.is_empty());
    }
    ensure!(
        !cases.is_empty(),
        "no case is named like {} and has these sizes: see --list",
        args.cases.join(",")
    );
    match &args.inputs {
        Some(inputs) if !args.list => compare(&args, inputs, contend, &cases),
        _ => {
            cases.iter().for_each(show);
            Ok(())
        }
    }
}

fn show(case: &Case) {
    let sizes: Vec<String> = case.sizes.iter().map(|size| format!("{size}MB")).collect();
    let named = format!("{}/{}", case.theme, case.name);
    println!("{named:<28} {:<12} {:<18} {}", case.input.file, sizes.join(" "), case.text);
}

fn run_pairs(args: &Args, contend: &Path, count: usize) -> Result<()> {
    let Compared { differ, uncertain } =
        pairs::check(contend, args.seed, count, |failure| println!("{failure}"))?;
    println!("{count} pairs of seed {}, {differ} differ", args.seed);
    if uncertain > 0 {
        println!("{uncertain} left out: bash differs from itself");
    }
    ensure!(differ == 0, "contend run differs from bash");
    Ok(())
}

/// Returns the cases that `texts` select, or all cases if `texts` is empty. A text that is the
/// theme and name of a case selects only that case. Any other text selects all cases whose theme
/// and name contain it.
fn chosen(mut cases: Vec<Case>, texts: &[String]) -> Vec<Case> {
    let name = |case: &Case| format!("{}/{}", case.theme, case.name);
    let names: Vec<String> = cases.iter().map(name).collect();
    let is_meant = |name: &String, text: &String| {
        if names.contains(text) { name == text } else { name.contains(text.as_str()) }
    };
    cases.retain(|case| texts.is_empty() || texts.iter().any(|text| is_meant(&name(case), text)));
    cases
}

fn compare(args: &Args, inputs: &Path, contend: PathBuf, cases: &[Case]) -> Result<()> {
    folder::claim(inputs, &format!("bench-run seed {}\n", args.seed))?;
    let inputs = &inputs.canonicalize()?;
    let outputs = match &args.outputs {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    }
    .context("cannot make a folder for the outputs")?;
    let host = machine(&contend)?;
    let paths = Paths {
        contend,
        pash: args.pash.clone(),
        frun: args.forkrun.as_ref().map(|file| file.canonicalize()).transpose()?,
    };
    let tools = tools::all(&paths, &args.without);
    print!("{}", report::head(&host, &tools));
    let bench = Bench {
        paths: &paths,
        tools: tools.iter().filter(|tool| tool.state.is_ok()).collect(),
        inputs,
        outputs: outputs.path(),
        cpus: host.cpus_allowed,
        rounds: args.rounds.max(1),
        seed: args.seed,
    };
    let mut all = Vec::new();
    for (case, size) in cases.iter().flat_map(|case| case.sizes.iter().map(move |&s| (case, s))) {
        all.push(one(&bench, case, size, &host)?);
        save(args, &host, &tools, &all)?;
    }
    print!("\n{}", report::summary(&summary(&all)));
    Ok(())
}

/// Returns contend's description of this machine.
fn machine(contend: &Path) -> Result<Host> {
    Ok(contend_bench::profile(contend, "true")?.host)
}

fn one(bench: &Bench<'_>, case: &Case, size: u64, host: &Host) -> Result<Figures> {
    for path in case.make(bench.inputs, size, bench.seed)? {
        println!("made {}", path.display());
    }
    let record = if case.script {
        None
    } else {
        let size = size.min(MAX_PROFILED_MEGABYTES);
        case.make(bench.inputs, size, bench.seed)?;
        Some(profiled(&bench.paths.contend, case, bench.inputs, size)?)
    };
    let runs = bench.case(case, size)?;
    let figures = of_case(case, size, record.as_ref(), runs, host.usable_cpus(), bench.seed)?;
    print!("{}", report::case(&figures));
    std::io::stdout().flush()?;
    Ok(figures)
}

/// Writes all results so far to the files that the arguments name, so that they are not lost if a
/// later case fails.
fn save(args: &Args, host: &Host, tools: &[Tool], all: &[Figures]) -> Result<()> {
    let json = args.json.as_ref().map(|path| {
        let text = serde_json::to_string_pretty(&report::json(host, tools, all));
        (path, text.map(|text| text + "\n"))
    });
    let table =
        args.table.as_ref().map(|path| (path, Ok(report::table(host, tools, all, &summary(all)))));
    for (path, text) in json.into_iter().chain(table) {
        std::fs::write(path, text?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
