//! The page of a comparison of pipelines.

use contend_record::stats::Estimate;
use contend_record::versus::{Variant, VersusRecord};
use maud::{Markup, html};

use super::chart::rows::{self, Row};
use super::chart::{Colour, Format};
use super::frame::{Figure, Page};
use super::table::{Cell, Table};
use super::{label, number_of, origin, pipe};
use crate::render::advice::change_with_interval;
use crate::render::text::printable;
use crate::render::units::{bytes, counted, ratio, seconds};
use crate::render::versus;

/// Smallest number of samples whose interval is shown.
const MIN_SAMPLES: usize = 6;

/// Returns the page of a comparison.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &VersusRecord) -> serde_json::Result<String> {
    let commands: Vec<&str> = record.variants.iter().map(|one| one.command.as_str()).collect();
    let subject = commands.join(" vs ");
    let mut facts = vec![
        number_of(record.variants.len(), "pipeline"),
        number_of(record.rounds, "round"),
        if record.in_turn { "in turn" } else { "at different times" }.to_owned(),
    ];
    if record.interrupted {
        facts.push("interrupted".to_owned());
    }
    let mut times = vec![wall(record)];
    times.extend(ratios(record));
    let mut sections =
        vec![("Times".to_owned(), html! { @for figure in &times { (figure.markup()) } })];
    let conditions = record.conditions.iter().filter(|tested| !tested.holds_for.is_empty());
    let failed: Vec<String> = conditions
        .map(|tested| format!("{}: {}", tested.condition, tested.holds_for.join(", ")))
        .collect();
    if !failed.is_empty() {
        let list = html! { ul { @for one in &failed { li { (printable(one)) } } } };
        sections.push(("Conditions that hold".to_owned(), list));
    }
    for variant in record.variants.iter().filter(|variant| !variant.profile.stages.is_empty()) {
        let figure = pipe::stages(&variant.profile);
        sections.push((format!("Stages of {}", printable(&variant.name)), figure.markup()));
    }
    let page = Page {
        subject: &subject,
        kind: "pipe --vs",
        facts,
        result: result(record),
        sections,
        warnings: record.warnings.iter().map(|warning| warning.message.clone()).collect(),
        origin: origin(&record.host, record.contend.as_ref(), &record.started_at),
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

/// Says how the pipelines compare, as the report in the terminal does.
fn result(record: &VersusRecord) -> Markup {
    let Some((clause, figures)) = versus::result(record) else { return html! {} };
    let differing = record.variants.iter().filter(|one| one.output_equal == Some(false)).count();
    html! {
        p { strong { (printable(&clause)) } (printable(&figures)) "." }
        @if differing > 0 {
            p { "The output of " (counted(differing as u64, "pipeline")) " differs from that of the first." }
        }
    }
}

/// The wall time of each pipeline.
fn wall(record: &VersusRecord) -> Figure {
    let headings =
        ["name", "command", "#wall", "#CPU", "#memory", "#samples", "output", "parameters"];
    let mut table = Table::new(&headings);
    let mut bars = Vec::new();
    for (number, variant) in record.variants.iter().enumerate() {
        let output = match variant.output_equal {
            Some(true) => "identical",
            Some(false) => "differs",
            None => "",
        };
        let parameters: Vec<String> =
            variant.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        table.push(vec![
            printable(&variant.name).into(),
            printable(&variant.command).into(),
            Cell::number(estimate(&variant.wall_seconds, seconds), variant.wall_seconds.median),
            Cell::number(estimate(&variant.cpu_seconds, seconds), variant.cpu_seconds.median),
            Cell::number(estimate(&variant.max_rss_bytes, bytes), variant.max_rss_bytes.median),
            Cell::number(
                variant.wall_seconds.samples.len().to_string(),
                variant.wall_seconds.samples.len() as f64,
            ),
            output.into(),
            printable(&parameters.join(" ")).into(),
        ]);
        bars.push(bar(variant, &variant.wall_seconds, Colour(number), seconds));
    }
    let shortest = record
        .variants
        .iter()
        .min_by(|a, b| a.wall_seconds.median.total_cmp(&b.wall_seconds.median));
    let alternative = shortest.map_or_else(String::new, |variant| {
        format!(
            "Bars of the median wall time of each pipeline. The shortest is that of {}, {}.",
            printable(&variant.name),
            seconds(variant.wall_seconds.median)
        )
    });
    let scale = rows::scale(&bars);
    Figure {
        title: "Wall time".to_owned(),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: "Medians; a thin line is the 95 % interval (percentile bootstrap).".to_owned(),
    }
}

/// Wall times as ratios to those of the first pipeline; `None` without ratios.
fn ratios(record: &VersusRecord) -> Option<Figure> {
    let mut table = Table::new(&["name", "#wall", "#CPU", "#memory"]);
    let mut bars = Vec::new();
    for (number, variant) in record.variants.iter().enumerate() {
        let Some(found) = &variant.ratios else { continue };
        let cell = |ratio: &Estimate| Cell::number(change_with_interval(ratio), ratio.median);
        table.push(vec![
            printable(&variant.name).into(),
            cell(&found.wall),
            cell(&found.cpu),
            cell(&found.memory),
        ]);
        let row = bar(variant, &found.wall, Colour(number), ratio);
        bars.push(Row { value: change_with_interval(&found.wall), ..row });
    }
    if bars.is_empty() {
        return None;
    }
    let first = record.variants.first().map(|variant| printable(&variant.name)).unwrap_or_default();
    let alternative =
        format!("Bars of wall times as ratios to that of {first}, which is the line at 1.");
    let scale = rows::scale(&bars);
    let method = if record.in_turn {
        "Ratios of two runs of the same round: the median and its 95 % interval."
    } else {
        "Ratios of runs at different times: the median and its 95 % interval."
    };
    Some(Figure {
        title: format!("Wall time compared with {first}"),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, ratio, &[1.0], &alternative),
        table,
        method: method.to_owned(),
    })
}

fn bar(variant: &Variant, figure: &Estimate, colour: Colour, format: Format) -> Row {
    Row {
        interval: (figure.samples.len() >= MIN_SAMPLES).then_some(figure.ci95),
        ..Row::bar(label(&variant.name), figure.median, estimate(figure, format), colour)
    }
}

fn estimate(figure: &Estimate, format: Format) -> String {
    let [low, high] = figure.ci95;
    if figure.samples.len() < MIN_SAMPLES {
        return format(figure.median);
    }
    format!("{} [{}, {}]", format(figure.median), format(low), format(high))
}
