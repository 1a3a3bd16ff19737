//! Chapter of the suite `pipeline`: the tables of its source article with the measurements of the
//! run, and whether these confirm the article's conclusions.

mod article;
mod conclusions;
mod judging;
mod meaning;
#[cfg(test)]
mod tests;

use contend_record::lab::{Case, RunRecord, Stage, View};
use contend_record::parameters::names;

use super::super::layout::{cut, paragraph};
use super::super::units::{bytes, nanoseconds, percent, seconds};
use super::chapter::Content;
use super::table::{figure, grid, row};
use super::{Reported, find};

/// Returns the chapter, or `None` if the run has measured nothing that the article reports.
pub fn chapter(record: &RunRecord, width: usize) -> Option<Content> {
    let render = |table: fn(&RunRecord, usize) -> Option<String>| table(record, width);
    let tables: Vec<_> =
        [sed, json, ten, filter, hold, startup].into_iter().filter_map(render).collect();
    if tables.is_empty() {
        return None;
    }
    Some(Content {
        conclusions: &conclusions::CONCLUSIONS,
        note: conclusions::note(record),
        meaning: meaning::sentences(record),
        tables,
        details: render(json_stages).into_iter().collect(),
        ..Content::default()
    })
}

/// Renders a table with a sentence below it, or returns `None` if the table has no rows below the
/// heading.
fn explained(rows: &[Vec<String>], words: usize, text: &str, width: usize) -> Option<String> {
    if rows.len() < 2 {
        return None;
    }
    let mut out = grid(rows, words, width);
    paragraph(&mut out, "", text, width);
    Some(out)
}

/// Returns user time plus system time of a pipeline, or of all its copies, in nanoseconds; 0 if
/// they were not measured.
fn cpu(case: &Case) -> f64 {
    case.metric("user").unwrap_or(0.0) + case.metric("system").unwrap_or(0.0)
}

/// Returns the CPU time of each sample in nanoseconds: user and system time together.
fn cpu_samples(case: &Case) -> Vec<f64> {
    let samples = |name: &str| case.metrics.get(name).map_or(&[][..], |metric| &metric.samples);
    let pairs = samples("user").iter().zip(samples("system"));
    pairs.map(|(user, system)| user + system).collect()
}

/// Returns CPU time in percent of wall time; 200 is two fully used CPUs.
fn cpu_percent(case: &Case) -> f64 {
    100.0 * cpu(case) / real(case).max(1.0)
}

/// Returns the median wall time in nanoseconds; 0 if it was not measured.
fn real(case: &Case) -> f64 {
    case.median.unwrap_or(0.0)
}

/// Returns the throughput of input in bytes per second; 0 if the input's size was not recorded.
fn throughput(case: &Case) -> f64 {
    case.metric("input").unwrap_or(0.0) / (real(case) / 1e9).max(1e-9)
}

fn rate(case: &Case) -> String {
    format!("{}/s", bytes(throughput(case)))
}

/// Returns six cells: the article's wall time and CPU use, empty if it does not report them, and
/// the run's wall, user and system time and CPU use.
fn both(article: Option<&article::Whole>, case: &Case) -> [String; 6] {
    [
        article.map_or_else(String::new, |whole| seconds(whole.real)),
        article.map_or_else(String::new, |whole| format!("{:.0}%", whole.cpu_percent())),
        nanoseconds(real(case)),
        figure(case.metric("user")),
        figure(case.metric("system")),
        percent(cpu(case), real(case)),
    ]
}

const HEADINGS: [&str; 6] = ["article", "cpu", "real", "user", "sys", "cpu"];

/// Returns `title` and the headings of the cells from [`both`].
fn headings(title: &str) -> Vec<String> {
    [title].iter().chain(&HEADINGS).map(|&word| word.to_owned()).collect()
}

fn sed(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![headings("four seds")];
    let room = width.saturating_sub(40);
    for (form, slow, article, stages) in article::SED {
        let Some(case) =
            find(record, View::PipelineSed, &[(names::FORM, form), (names::SLOW, slow)])
        else {
            continue;
        };
        let title = if slow == "yes" { format!("{form}, slow stage") } else { form.to_owned() };
        rows.push([title].into_iter().chain(both(Some(&article), case)).collect());
        rows.extend(stage_rows(&case.stages, stages, 1, room).filter(|_| slow == "yes"));
    }
    let text = "Real time alone misleads: user + sys is its price. Indented: the stages.";
    explained(&rows, 1, text, width)
}

/// Returns a row for each stage: the name (truncated to `room` columns), then `empty` empty cells,
/// the article's CPU use (an empty cell if it is not reported), and the run's measurements.
fn stage_rows<'a>(
    stages: &'a [Stage],
    article: &'a [f64],
    empty: usize,
    room: usize,
) -> impl Iterator<Item = Vec<String>> + 'a {
    stages.iter().enumerate().map(move |(index, stage)| {
        let mut row = vec![cut(&format!("  {}", stage.stage), room)];
        row.resize(1 + empty, String::new());
        row.push(article.get(index).map_or_else(String::new, |percent| format!("{percent:.0}%")));
        row.extend(stage_figures(stage));
        row
    })
}

/// Returns the wall, user and system time of a stage and its CPU use, as [`HEADINGS`] name them.
pub fn stage_figures(stage: &Stage) -> [String; 4] {
    let [real, user, system] =
        [&stage.real, &stage.user, &stage.system].map(|one| figure(Some(one.median)));
    [real, user, system, format!("{:.0}%", stage.cpu_percent())]
}

/// Returns the measured case of the JSON pipeline with the given awk, tokenizer and number of
/// copies, or `None` if there is none.
fn json_case<'a>(
    record: &'a RunRecord,
    awk: &str,
    tokenizer: &str,
    copies: &str,
) -> Option<&'a Case> {
    let parameters = [(names::AWK, awk), (names::TOKENIZER, tokenizer), (names::COPIES, copies)];
    find(record, View::PipelineJson, &parameters)
}

/// Returns every awk that was measured with both tokenizers and the given number of copies: its
/// name, and the cases with a tokenizer of one command and of four commands.
fn json_pairs<'a>(record: &'a RunRecord, copies: &str) -> Vec<(&'a str, &'a Case, &'a Case)> {
    let mut names: Vec<&str> = Vec::new();
    for case in record.cases_of(View::PipelineJson) {
        let name = case.parameters.text(names::AWK).unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let pair = |name: &'a str| {
        let of = |tokenizer| json_case(record, name, tokenizer, copies);
        Some((name, of("one")?, of("four")?))
    };
    names.into_iter().filter_map(pair).collect()
}

fn json(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![headings("JSON in awk")];
    for (awk, one, four) in json_pairs(record, "1") {
        for (tokenizer, case) in [("one", one), ("four", four)] {
            let article = article::JSON.iter().find(|known| known.0 == awk && known.1 == tokenizer);
            let figures = both(article.map(|known| &known.2), case);
            rows.push([format!("{awk}, {tokenizer}")].into_iter().chain(figures).collect());
        }
    }
    let inputs = json_pairs(record, "1").into_iter().filter_map(|(_, one, _)| one.metric("input"));
    let text = format!(
        "Input: 24.3 MB in the article, {} here (a tenth of it for busybox). The parser here also \
         checks escapes, numbers and the order of tokens.",
        bytes(inputs.fold(0.0, f64::max))
    );
    explained(&rows, 1, &text, width)
}

fn json_stages(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![row(["stage by stage", "article", "real", "user", "sys", "cpu"])];
    for (awk, one, four) in json_pairs(record, "1") {
        for (tokenizer, case) in [("one", one), ("four", four)] {
            let article = article::JSON.iter().find(|known| known.0 == awk && known.1 == tokenizer);
            let article = article.map_or(&[][..], |known| known.3);
            let title = format!("{awk}, {tokenizer}");
            rows.push([title].into_iter().chain(vec![String::new(); 5]).collect());
            rows.extend(stage_rows(&case.stages, article, 0, width));
        }
    }
    let text = "The stage near 100 % is the bottleneck, unless all stages wait for a CPU.";
    explained(&rows, 1, text, width)
}

fn ten(record: &RunRecord, width: usize) -> Option<String> {
    let heading = ["ten copies", "article", "real", "a copy", "user", "sys", "cpu", "in all"];
    let mut rows = vec![row(heading)];
    for (awk, one, four) in json_pairs(record, "10") {
        for (tokenizer, case) in [("one", one), ("four", four)] {
            let article = article::TEN.iter().find(|known| known.0 == awk && known.1 == tokenizer);
            rows.push(vec![
                format!("{awk}, {tokenizer}"),
                article.map_or_else(String::new, |(_, _, whole)| seconds(whole.real)),
                nanoseconds(real(case)),
                figure(case.metric("copy_real")),
                figure(case.metric("user")),
                figure(case.metric("system")),
                percent(cpu(case), real(case)),
                rate(case),
            ]);
        }
    }
    let text = "Each copy reads 24.3 MB in the article, but 1/40 of a single copy's input here: compare \
                the rows, not the columns. `a copy` is the median of the ten.";
    explained(&rows, 1, text, width)
}

fn filter(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![headings("filter")];
    for (by, order, article) in article::FILTER {
        let case =
            find(record, View::PipelineFilter, &[(names::FILTER, by), (names::ORDER, order)]);
        let title = format!("{by}, {order}");
        rows.extend(
            case.map(|case| [title].into_iter().chain(both(Some(&article), case)).collect()),
        );
    }
    let text = "Both orders give the same output; `late` filters last, `early` first.";
    explained(&rows, 1, text, width)
}

/// Returns the article's time of the pipeline that a case reproduces; `None` for other pipelines.
pub(super) fn reported(case: &Case) -> Option<Reported> {
    let text = |name: &str| case.parameters.get(name).map(ToString::to_string);
    let is = |name: &str, value: &str| text(name).as_deref() == Some(value);
    let whole = match case.view {
        View::PipelineSed => article::SED
            .iter()
            .find(|known| is(names::FORM, known.0) && is(names::SLOW, known.1))
            .map(|known| known.2),
        View::PipelineJson if is(names::COPIES, "1") => article::JSON
            .iter()
            .find(|known| is(names::AWK, known.0) && is(names::TOKENIZER, known.1))
            .map(|known| known.2),
        View::PipelineFilter => article::FILTER
            .iter()
            .find(|known| is(names::FILTER, known.0) && is(names::ORDER, known.1))
            .map(|known| known.2),
        _ => None,
    };
    whole.map(|whole| Reported { value: 1e9 * whole.real, source: "the article" })
}

fn hold(record: &RunRecord, width: usize) -> Option<String> {
    let heading = ["held for", "article, s", "line 1", "2", "3", "4", "5"];
    let mut rows = vec![row(heading)];
    for (stage, article) in article::HOLD {
        let Some(case) = find(record, View::PipelineHold, &[(names::STAGE, stage)]) else {
            continue;
        };
        let mut row = vec![stage.to_owned(), article.to_owned()];
        row.extend((1..=5).map(|line| held(case, line).map_or_else(String::new, seconds)));
        rows.push(row);
    }
    let text =
        "Delay of each of five lines, produced 1 s apart in the article, at most 0.2 s apart here.";
    explained(&rows, 1, text, width)
}

/// Returns the time from the production of a line to its arrival, in seconds and at least 0, or
/// `None` if the timeline lacks one of these steps.
fn held(case: &Case, line: usize) -> Option<f64> {
    let at = |what: &str| {
        let what = format!("line {line} {what}");
        case.timeline.iter().find(|step| step.what == what).map(|step| step.at_seconds)
    };
    Some((at("arrives")? - at("is produced")?).max(0.0))
}

fn startup(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![row(["starting", "article: about", "elapsed", "CPU self", "CPU children"])];
    for (title, command, article) in article::STARTUP {
        let Some(case) = find(record, View::PipelineStartup, &[(names::COMMAND, command)]) else {
            continue;
        };
        let figures = [case.median, case.metric("cpu_self"), case.metric("cpu_children")];
        let words = [title.to_owned(), article.to_owned()];
        rows.push(words.into_iter().chain(figures.map(figure)).collect());
    }
    let text = "The article gives rough estimates.";
    explained(&rows, 1, text, width)
}
