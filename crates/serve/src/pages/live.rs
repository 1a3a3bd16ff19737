//! The page of a run that is taking place. Its script adds charts, and updates the figures.

use contend_record::live::{Chart, Unit};
use contend_report::render::text::printable;
use contend_report::render::units::{bytes, seconds as time_span};
use maud::{Markup, html};

use super::{bar, document, time};
use crate::live::Running;

/// Number of colours of the style sheet that tell lines apart.
const COLOURS: usize = 8;

/// Renders the page.
pub fn page(root: &str, run: &Running) -> String {
    let subject = printable(&run.head.subject);
    let head = html! {
        link rel="stylesheet" href={ (root) "uPlot.css" };
        script src={ (root) "uPlot.js" } defer {}
        script src={ (root) "live.js" } defer {}
    };
    let main = html! {
        div #live data-events={ (root) "live/" (run.pid) "/events" } data-runs={ (root) "run/" } {
            p.kind { "contend " (printable(&run.head.verb)) }
            h1 { code dir="auto" { (subject) } }
            ul.facts {
                li { "process " (run.pid) }
                li { "started at " (time(&run.head.started_at)) " UTC" }
                li { span #seconds { (seconds(run.latest.seconds)) } }
            }
            p.result #state role="status" { "The figures are those of the moment when this page was loaded." }
            noscript { p { "Reload the page for newer figures. Charts need scripts." } }
            p #note { (printable(&run.latest.note)) }
            @for (index, chart) in run.head.charts.iter().enumerate() {
                (figure(chart, run.latest.values.get(index).map_or(&[], Vec::as_slice)))
            }
        }
    };
    document(root, &subject, &head, &bar(root, &html! {}), &main)
}

fn figure(chart: &Chart, values: &[Option<f64>]) -> Markup {
    let title = printable(&chart.title);
    html! {
        figure.live data-unit=(unit(chart.unit)) {
            figcaption { (title) }
            div.chart aria-hidden="true" {}
            div.scroll tabindex="0" {
                table {
                    caption { (title) ", now" }
                    thead { tr { th scope="col" { "line" } th.number scope="col" { "now" } } }
                    tbody {
                        @for (index, name) in chart.series.iter().enumerate() {
                            tr {
                                td { span class={ "key c" (index % COLOURS) } {} (printable(name)) }
                                td.number { (figure_text(chart.unit, values.get(index).copied().flatten())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Seconds => "seconds",
        Unit::BytesPerSecond => "bytes-per-second",
        Unit::Percent => "percent",
    }
}

/// Formats a figure, as the script does.
fn figure_text(unit: Unit, value: Option<f64>) -> String {
    match (unit, value) {
        (_, None) => "–".to_owned(),
        (Unit::Count, Some(value)) => format!("{value:.2}"),
        (Unit::Seconds, Some(value)) => time_span(value),
        (Unit::BytesPerSecond, Some(value)) => format!("{}/s", bytes(value)),
        (Unit::Percent, Some(value)) => format!("{value:.0} %"),
    }
}

fn seconds(value: f64) -> String {
    format!("{value:.0} s")
}

#[cfg(test)]
mod tests {
    use contend_record::live::{Head, Update};

    use super::*;

    #[test]
    fn the_latest_figures_are_on_the_page_and_nothing_is_markup() {
        let hostile = "<script>alert(1)</script>".to_owned();
        let chart = |unit| Chart { title: hostile.clone(), unit, series: vec![hostile.clone()] };
        let head = Head {
            verb: hostile.clone(),
            subject: hostile.clone(),
            started_at: hostile.clone(),
            charts: [Unit::Count, Unit::Seconds, Unit::BytesPerSecond, Unit::Percent]
                .map(chart)
                .to_vec(),
            ..Head::default()
        };
        let values = vec![vec![Some(0.5)], vec![Some(0.013)], vec![Some(2e6)]];
        let latest = Update { seconds: 12.3, note: hostile.clone(), values };
        let page = page("/t/", &Running { pid: 7, head, latest });
        assert_eq!(page.matches("<script").count(), 2, "{page}");
        for expected in
            ["0.50", "13ms", "2.00MB/s", "–", "12 s", "data-events=\"/t/live/7/events\""]
        {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }
}
