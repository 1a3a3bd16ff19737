//! The page of a comparison of pipelines.

use contend_record::stats::Estimate;
use contend_record::versus::{Variant, VersusRecord};
use maud::{Markup, html};

use super::chart::rows::{self, Row};
use super::chart::{Colour, Format};
use super::frame::{Figure, Page, made_with};
use super::table::{Cell, Table};
use super::{command, label, machine, number_of, origin, pipe, prose};
use crate::render::text::printable;
use crate::render::units::{bytes, ratio, seconds};
use crate::render::versus;

/// Returns the page of a comparison.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &VersusRecord) -> serde_json::Result<String> {
    let commands: Vec<&str> = record.variants.iter().map(|one| one.command.as_str()).collect();
    let subject = commands.join(" vs ");
    let mut facts = vec![
        number_of(record.variants.len(), "pipeline"),
        if record.in_turn { "in turn" } else { "at different times" }.to_owned(),
    ];
    if record.in_turn {
        facts.insert(1, number_of(record.rounds, "round"));
    }
    if record.interrupted {
        facts.push("interrupted".to_owned());
    }
    let mut times = vec![wall(record)];
    times.extend(ratios(record));
    let visible = versus::visible(record);
    let mut sections = vec![
        ("Pipelines".to_owned(), pipelines(&visible)),
        ("Times".to_owned(), html! { @for figure in &times { (figure.markup()) } }),
    ];
    let reasons = versus::reasons_for(&visible, usize::MAX);
    if !reasons.is_empty() {
        let list = html! { ul { @for reason in &reasons { li { (prose(reason)) } } } };
        sections.push(("Bottlenecks and stages that differ".to_owned(), list));
    }
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
        kind: if record.in_turn { "pipe --vs" } else { "compare" },
        facts,
        result: result(record),
        sections,
        warnings: record.warnings.iter().map(|warning| warning.message.clone()).collect(),
        origin: origin_of(record),
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

/// Returns where the figures come from, for the end of the page. Saved runs have their starts in the list of
/// pipelines, and also their machines if these differ.
fn origin_of(record: &VersusRecord) -> Vec<(&'static str, String)> {
    if record.in_turn {
        return origin(&record.host, record.contend.as_ref(), &record.started_at);
    }
    let mut origin = Vec::new();
    if !machines_differ(record) {
        origin.push(("Machine", machine(&record.host)));
    }
    origin.extend(record.contend.as_ref().map(|writer| ("Compared with", writer.to_string())));
    origin
}

/// Returns whether the pipelines ran on different machines.
fn machines_differ(record: &VersusRecord) -> bool {
    let machine = |variant: &Variant| machine(&variant.profile.host);
    !record.in_turn && record.variants.windows(2).any(|pair| machine(&pair[0]) != machine(&pair[1]))
}

/// Lists the pipelines by the names that the rest of the page uses.
fn pipelines(record: &VersusRecord) -> Markup {
    let has_machine = machines_differ(record);
    let facts = |variant: &Variant| {
        let parameters = variant.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let mut facts: Vec<String> = parameters.collect();
        if !record.in_turn {
            facts.extend(variant.origin.clone());
            facts.push(number_of(variant.wall_seconds.samples.len(), "run"));
        }
        facts.extend(has_machine.then(|| machine(&variant.profile.host)));
        facts.join("; ")
    };
    html! {
        ul {
            @for variant in &record.variants {
                @let facts = facts(variant);
                li {
                    strong { (variant.name) } " " code { (variant.command) }
                    @if !facts.is_empty() { " (" (facts) ")" }
                }
            }
        }
    }
}

/// Says how the pipelines compare and whether their outputs differ, as the report in the terminal does.
fn result(record: &VersusRecord) -> Markup {
    let Some((clause, figures)) = versus::result(record) else { return html! {} };
    let visible = versus::visible(record);
    html! {
        p { strong { (printable(&clause)) } (printable(&figures)) "." }
        @if let Some(same) = versus::same_outputs(&visible) { p { (same) } }
        @for difference in versus::output_differences(&visible) { p.warning { (prose(&difference)) } }
        @if let Some(command) = command::of_versus(record) { (made_with(&command)) }
    }
}

/// The wall time of each pipeline.
fn wall(record: &VersusRecord) -> Figure {
    let headings =
        ["name", "command", "#wall", "#CPU", "#memory", "#samples", "output", "parameters"];
    let mut table = Table::new(&headings);
    let mut bars = Vec::new();
    let of = |estimate: &Estimate, format: Format| {
        let ends = versus::ends(estimate, record.rounds);
        Cell::number(versus::with_ends(estimate.median, ends, format), estimate.median)
    };
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
            of(&variant.wall_seconds, seconds),
            of(&variant.cpu_seconds, seconds),
            of(&variant.max_rss_bytes, bytes),
            Cell::number(
                variant.wall_seconds.samples.len().to_string(),
                variant.wall_seconds.samples.len() as f64,
            ),
            output.into(),
            printable(&parameters.join(" ")).into(),
        ]);
        let ends = versus::ends(&variant.wall_seconds, record.rounds);
        bars.push(bar(&variant.name, &variant.wall_seconds, ends, Colour(number), seconds));
    }
    let shortest = record
        .variants
        .iter()
        .min_by(|a, b| a.wall_seconds.median.total_cmp(&b.wall_seconds.median));
    let alternative = shortest.map_or_else(String::new, |variant| {
        let is_other = variant.ratios.is_some() && variant.output_equal == Some(false);
        format!(
            "Bars of the median wall time of each pipeline. The shortest is that of {}, {}{}.",
            printable(&variant.name),
            seconds(variant.wall_seconds.median),
            if is_other { ", whose output differs" } else { "" }
        )
    });
    let scale = rows::scale(&bars);
    Figure {
        title: "Wall time".to_owned(),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: method(record, "Wall times of the runs of each pipeline"),
    }
}

/// Wall times as ratios to those of the first pipeline; `None` without ratios.
fn ratios(record: &VersusRecord) -> Option<Figure> {
    let mut table = Table::new(&["name", "#wall", "#CPU", "#memory"]);
    let mut bars = Vec::new();
    for (number, variant) in record.variants.iter().enumerate() {
        let Some(found) = &variant.ratios else { continue };
        let ends = |of: &Estimate| versus::ratio_ends(of, record);
        let cell =
            |of: &Estimate| Cell::number(versus::with_ends(of.median, ends(of), ratio), of.median);
        table.push(vec![
            printable(&variant.name).into(),
            cell(&found.wall),
            cell(&found.cpu),
            cell(&found.memory),
        ]);
        bars.push(bar(&variant.name, &found.wall, ends(&found.wall), Colour(number), ratio));
    }
    if bars.is_empty() {
        return None;
    }
    let first = record.variants.first().map(|variant| printable(&variant.name)).unwrap_or_default();
    let alternative =
        format!("Bars of wall times as ratios to that of {first}, which is the line at 1.");
    let scale = rows::scale_with(&bars, &[1.0]);
    let of_what = if record.in_turn {
        "Ratios of two runs of the same round"
    } else {
        "Ratios of runs at different times"
    };
    Some(Figure {
        title: format!("Wall time compared with {first}"),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, ratio, &[1.0], &alternative),
        table,
        method: method(record, of_what),
    })
}

/// Says what the bars of a chart are, and what the lines at their ends are, as the report in the terminal does.
fn method(record: &VersusRecord, bars: &str) -> String {
    let lines = versus::brackets(record).map(|words| {
        let how = if words.contains('%') { " (percentile bootstrap)" } else { "" };
        format!(": medians; thin lines show the {words}{how}")
    });
    format!("{bars}{}.", lines.unwrap_or_default())
}

fn bar(
    name: &str,
    figure: &Estimate,
    ends: Option<[f64; 2]>,
    colour: Colour,
    format: Format,
) -> Row {
    let value = versus::with_ends(figure.median, ends, format);
    Row { interval: ends, ..Row::bar(label(name), figure.median, value, colour) }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::VERSUS;
    use super::*;

    /// Returns a record with this number of rounds.
    fn record(rounds: usize) -> VersusRecord {
        let mut record: VersusRecord = serde_json::from_str(VERSUS).expect("a record");
        let shorten = |estimate: &mut Estimate| {
            let samples = estimate.samples[..rounds].to_vec();
            *estimate = Estimate::from_samples(samples, 1).expect("there are samples");
        };
        record.rounds = rounds;
        for variant in &mut record.variants {
            shorten(&mut variant.wall_seconds);
            shorten(&mut variant.cpu_seconds);
            shorten(&mut variant.max_rss_bytes);
            if let Some(ratios) = &mut variant.ratios {
                shorten(&mut ratios.wall);
                shorten(&mut ratios.cpu);
                shorten(&mut ratios.memory);
            }
        }
        record
    }

    #[test]
    fn a_few_rounds_have_no_interval() {
        for (rounds, words) in [
            (1, None),
            (3, Some("minimum and maximum")),
            (5, Some("minimum and maximum")),
            (6, Some("95 % interval (percentile bootstrap)")),
        ] {
            let record = record(rounds);
            let page = page(&record).expect("JSON");
            let markup = page.split_once("<script").expect("the record comes last").0;
            let lines = markup.matches("class=\"interval\"").count();
            assert_eq!(
                lines,
                if rounds > 1 { 3 } else { 0 },
                "two wall times and a ratio: {rounds}"
            );
            let method = words
                .map_or(String::new(), |words| format!(": medians; thin lines show the {words}"));
            let method = format!("Ratios of two runs of the same round{method}.");
            assert!(markup.contains(&method), "{rounds}: {method}");
            assert_eq!(markup.contains("95 %"), rounds == 6, "{rounds}");
            let ratio = &record.variants[1].ratios.as_ref().expect("a ratio").wall;
            let value =
                versus::with_ends(ratio.median, versus::ratio_ends(ratio, &record), super::ratio);
            assert!(markup.contains(&value), "{rounds}: {value}");
        }
    }

    #[test]
    fn a_pipeline_with_another_output_is_not_praised() {
        let mut record = record(6);
        let praised = |record: &VersusRecord| wall(record).chart.into_string();
        assert!(
            praised(&record).contains("The shortest is that of B, 191ms, whose output differs.")
        );
        record.variants[1].output_equal = Some(true);
        assert!(praised(&record).contains("The shortest is that of B, 191ms.\""));
    }

    #[test]
    fn the_command_that_compares_again_is_near_the_head() {
        let page = page(&record(6)).expect("JSON");
        assert!(page.contains("<code>contend pipe --runs 6 --seed 564203 --vs "), "{page}");
    }

    /// Returns the page of a record, without its record.
    fn markup(record: &VersusRecord) -> String {
        let page = page(record).expect("JSON");
        page.split_once("<script").expect("the record comes last").0.to_owned()
    }

    #[test]
    fn the_line_of_equal_times_is_at_its_proportional_place() {
        let mut record = record(1);
        let ratios = record.variants[1].ratios.as_mut().expect("ratios");
        ratios.wall = Estimate::from_samples(vec![0.62], 1).expect("a sample");
        let text = ratios_of(&record);
        assert!(text.contains(r#"x="0%" width="62%""#), "{text}");
        assert!(text.contains(r#"<line class="divider" x1="100%" x2="100%""#), "{text}");
    }

    fn ratios_of(record: &VersusRecord) -> String {
        ratios(record).expect("a figure").chart.into_string()
    }

    #[test]
    fn the_pipelines_their_outputs_and_the_reasons_are_on_the_page() {
        let mut record = record(6);
        record.variants[0].parameters = [("n".to_owned(), "<1>".to_owned())].into();
        for variant in &mut record.variants {
            (variant.output_equal, variant.difference) = (Some(true), None);
        }
        let text = markup(&record);
        let (before, _) = text.split_once("<h2>Times</h2>").expect("a heading");
        for expected in [
            "<strong>A</strong> <code>sort numbers.txt | tail -n 1</code> (n=&lt;1&gt;)</li>",
            "<strong>B</strong> <code>sort -n numbers.txt | tail -n 1</code></li>",
            "<p>All outputs are the same, byte for byte.</p>",
        ] {
            assert!(before.contains(expected), "{expected}: {before}");
        }
        for reason in versus::reasons_for(&record, 1) {
            let reason = prose(&reason).into_string();
            assert!(text.contains(&format!("<li>{reason}</li>")), "{reason}: {text}");
        }
        assert!(
            text.contains("<li>Stage 1 of A <code>sort numbers.txt</code> became stage 1 of B "),
            "{text}"
        );
        record.variants[1].output_equal = Some(false);
        record.variants[1].difference = Some("line 1, byte 1: `9` instead of `<`".to_owned());
        let text = markup(&record);
        let expected = "The output of B differs: line 1, byte 1: <code>9</code> instead of <code>&lt;</code>.</p>";
        assert!(text.contains(expected) && !text.contains("byte for byte"), "{text}");
    }

    #[test]
    fn saved_runs_have_their_origins_and_numbers_of_runs() {
        let mut record = record(6);
        record.in_turn = false;
        for (variant, number) in record.variants.iter_mut().zip(1..) {
            variant.origin = Some(format!("run {number}, 2026-01-02 03:04:05"));
            (variant.output_equal, variant.difference) = (None, None);
        }
        record.variants[1].wall_seconds.samples.truncate(1);
        record.rounds = 1;
        let text = markup(&record);
        assert!(text.contains("<p class=\"kind\">contend compare</p>"), "{text}");
        assert!(text.contains("(run 1, 2026-01-02 03:04:05; 6 runs)</li>"), "{text}");
        assert!(text.contains("(run 2, 2026-01-02 03:04:05; 1 run)</li>"), "{text}");
        assert!(!text.contains("1 round") && !text.contains("byte for byte"), "{text}");
        assert!(text.contains("Command: <code>contend compare 1 2</code></p>"), "{text}");
        record.variants[1].profile.host.cpu_model = "another processor".to_owned();
        let text = markup(&record);
        assert!(text.contains("05; 1 run; ") && text.contains("another processor"), "{text}");
        assert!(!text.contains("<dt>Machine</dt>"), "{text}");
    }
}
