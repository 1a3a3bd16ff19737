//! Formats results as text, Markdown and JSON.

use contend_record::Host;
use contend_record::stats::Estimate;
use serde_json::{Value, json};

use super::figures::{Figures, HEAVY_SHARE, HEAVY_TARGET_SPEED, LOSS_SPEED, Summary, ToolFigures};
use super::tools::Tool;

/// Describes the machine, and the version of each tool or the reason why it is missing.
pub fn head(host: &Host, tools: &[Tool]) -> String {
    let mut text = format!(
        "{}, {} of {} CPUs{}, {:.1} GB, {}\n",
        host.cpu_model,
        host.cpus_allowed,
        host.cpus_online,
        host.cpu_quota.map_or(String::new(), |quota| format!(", quota {quota}")),
        host.memory_bytes as f64 / 1e9,
        host.kernel
    );
    for tool in tools {
        match &tool.state {
            Ok(version) => text.push_str(&format!("{:<9} {version}\n", tool.name)),
            Err(why) => text.push_str(&format!("{:<9} MISSING: {why}\n", tool.name)),
        }
    }
    text
}

/// Formats the results of a case at one size, with a line for each tool.
pub fn case(figures: &Figures) -> String {
    let heavy = figures.heaviest.map_or(String::new(), |(stage, part)| {
        format!(", {:.0} % of it in stage {stage}", 100.0 * part)
    });
    let limit = figures.limit.map_or(String::new(), |limit| format!(", limit/wall {limit:.2}"));
    let mut text = format!(
        "{} {}MB: CPU {:.3} s, {:.0} % parallelisable{heavy}{limit}\n",
        figures.name,
        figures.size,
        figures.cpu,
        100.0 * figures.part
    );
    figures.tools.iter().for_each(|of| text.push_str(&tool(of)));
    text
}

fn tool(of: &ToolFigures) -> String {
    let Estimate { median, ci95: [low, high], .. } = &of.ratio;
    let mut text = format!("  {:<9} {:>8.3} s CPU {:>8.3} s", of.tool, of.wall, of.cpu);
    match &of.wrong {
        Some(why) => text.push_str(&format!("  WRONG: {why}")),
        None => text.push_str(&format!(
            "  x{median:.2} [{low:.2}, {high:.2}]  {:>6.1} MB",
            of.peak as f64 / 1e6
        )),
    }
    if let Some(remark) = &of.remark {
        text.push_str(&format!("  ({remark})"));
    }
    text + "\n"
}

/// Formats the summary of all cases.
pub fn summary(all: &Summary) -> String {
    let mut text = String::new();
    let mut line = |what: String| text.push_str(&(what + "\n"));
    let shown = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.2}"));
    line(format!("contend against bash, geometric mean over all cases: {}", shown(all.gain)));
    for (size, gain) in &all.by_size {
        line(format!("  at {size}MB: {gain:.2}"));
    }
    line(format!(
        "limit/wall, geometric mean over the {} cases of at least {:.0} % parallelisable work: {}",
        all.limit.1,
        100.0 * HEAVY_SHARE,
        shown(all.limit.0)
    ));
    line(format!(
        "cases with {:.0} % in one stage: {} of {} at {HEAVY_TARGET_SPEED} or more{}",
        100.0 * HEAVY_SHARE,
        all.heavy.0,
        all.heavy.1,
        listed(&all.heavy.2)
    ));
    line(format!("cases below {LOSS_SPEED}: {}{}", all.losses.len(), listed(&all.losses)));
    line(format!("cases with other output than bash: {}{}", all.wrong.len(), listed(&all.wrong)));
    for comparison in &all.comparisons {
        line(format!(
            "against {}: ahead in {} of {} ({} of these because its output is wrong){}",
            comparison.tool,
            comparison.wins,
            comparison.cases,
            comparison.wrong,
            listed(&comparison.losses)
        ));
    }
    text
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}

/// Formats all cases as a table in Markdown, after a description of the machine and the tools, and
/// before the summary `together`.
pub fn table(host: &Host, tools: &[Tool], all: &[Figures], together: &Summary) -> String {
    let others: Vec<&Tool> =
        tools.iter().filter(|tool| !["bash", "contend"].contains(&tool.name)).collect();
    let cells =
        |texts: Vec<String>| texts.iter().fold(String::new(), |row, text| row + " " + text + " |");
    let names = cells(others.iter().map(|tool| tool.name.to_owned()).collect());
    let rules = "---:|".repeat(others.len());
    let mut text = format!(
        "```text\n{}```\n\n| case | MB | bash, s | contend | limit/wall |{names}\n|---|---:|---:|---|---:|{rules}\n",
        head(host, tools)
    );
    for one in all {
        let of = |name: &str| one.tools.iter().find(|of| of.tool == name);
        let bash = of("bash").map_or(String::new(), |of| format!("{:.3}", of.wall));
        let limit = one.limit.map_or(String::new(), |limit| format!("{limit:.2}"));
        let contend = of("contend").map_or(String::new(), |of| speed(of, true));
        let speed_of = |tool: &&Tool| of(tool.name).map_or(String::new(), |of| speed(of, false));
        let others = cells(others.iter().map(speed_of).collect());
        text.push_str(&format!(
            "| {}/{} | {} | {bash} | {contend} | {limit} |{others}\n",
            one.theme, one.name, one.size
        ));
    }
    text + "\n```text\n" + &summary(together) + "```\n"
}

/// Formats a tool's speed relative to bash, with its interval if `interval` is true. Returns
/// `wrong` if the tool's output is wrong.
fn speed(of: &ToolFigures, interval: bool) -> String {
    let Estimate { median, ci95: [low, high], .. } = &of.ratio;
    match &of.wrong {
        Some(_) => "wrong".to_owned(),
        None if interval => format!("{median:.2} [{low:.2}, {high:.2}]"),
        None => format!("{median:.2}"),
    }
}

/// Returns the machine, the tools and all results as JSON.
pub fn json(host: &Host, tools: &[Tool], all: &[Figures]) -> Value {
    json!({
        "host": host,
        "tools": tools.iter().map(|tool| json!({
            "name": tool.name,
            "version": tool.state.as_ref().ok(),
            "missing": tool.state.as_ref().err(),
        })).collect::<Vec<_>>(),
        "cases": all.iter().map(|one| json!({
            "name": one.name,
            "theme": one.theme,
            "megabytes": one.size,
            "plain_cpu_seconds": one.cpu,
            "parallelisable_part": one.part,
            "heaviest_stage": one.heaviest.map(|(stage, _)| stage),
            "heaviest_part": one.heaviest.map(|(_, part)| part),
            "limit_by_wall": one.limit,
            "tools": one.tools.iter().map(|of| json!({
                "name": of.tool,
                "wall_seconds": of.wall,
                "cpu_seconds": of.cpu,
                "peak_memory_bytes": of.peak,
                "speed_by_bash": of.ratio,
                "wrong": of.wrong,
                "remark": of.remark,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}
