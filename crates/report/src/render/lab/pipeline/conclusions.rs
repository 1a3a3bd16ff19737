//! The conclusions of the study, and whether the figures of a run confirm them. Every verdict is
//! computed from the figures; see [`super::judging`].

use std::cmp::Ordering;
use std::fmt::Write as _;

use contend_record::lab::{Case, RunRecord, Stage, View};
use contend_record::parameters::names;

use super::super::super::layout::paragraph;
use super::super::super::units::bytes;
use super::super::find;
use super::super::verdict::{Conclusion, Verdict, is_disturbed, paragraphs};
use super::judging::{against, cpu_time, is_spoiled, real_time};
use super::{cpu, cpu_percent, held, json_pairs, rate, real};

const CONCLUSIONS: [Conclusion; 9] = [
    Conclusion {
        letter: 'A',
        claim: "a bottleneck keeps the other stages from working all the time",
        judge: bottleneck,
    },
    Conclusion {
        letter: 'B',
        claim: "splitting what is not the bottleneck costs real and CPU time",
        judge: wrong_split,
    },
    Conclusion {
        letter: 'C',
        claim: "more commands use up more CPU, which is not the same as using it well",
        judge: used_up,
    },
    Conclusion {
        letter: 'D',
        claim: "which stage is the bottleneck depends on the awk",
        judge: depends,
    },
    Conclusion {
        letter: 'E',
        claim: "splitting the bottleneck shortens real time, and CPU time still grows",
        judge: right_split,
    },
    Conclusion {
        letter: 'F',
        claim: "where no CPU is idle, the split that was faster alone is slower",
        judge: no_idle_cpu,
    },
    Conclusion {
        letter: 'G',
        claim: "with several copies at once, more stages bring nothing",
        judge: several,
    },
    Conclusion {
        letter: 'H',
        claim: "sort and xargs keep what is before and after them from working at once",
        judge: holding,
    },
    Conclusion { letter: 'I', claim: "what filters belongs to the beginning", judge: early },
];

/// Views of the cases from which the conclusions are drawn.
const VIEWS: [View; 5] = [
    View::PipelineJson,
    View::PipelineSed,
    View::PipelineFilter,
    View::PipelineHold,
    View::PipelineStartup,
];

/// Renders all conclusions, a paragraph each.
pub fn part(record: &RunRecord, width: usize) -> Option<String> {
    let known = record.cases.iter().any(|case| VIEWS.contains(&case.view) && case.median.is_some());
    if !known {
        return None;
    }
    let mut out = paragraphs(&CONCLUSIONS, record, width);
    let note = if is_disturbed(record) {
        "Others used the CPUs during this run: figures within 10 % of each other count as equal, and \
         real times that they have stretched by a quarter or more tell nothing."
    } else {
        "Figures within 3 % of each other count as equal, within 5 % with fewer than three samples."
    };
    paragraph(&mut out, "", note, width);
    Some(out)
}

/// Returns the CPU time of the tokenizer, all its commands together, and of the parser, in
/// nanoseconds.
fn parts(case: &Case) -> (f64, f64) {
    match case.stages.split_last() {
        Some((parser, tokenizer)) => (tokenizer.iter().map(Stage::cpu).sum(), parser.cpu()),
        None => (0.0, 0.0),
    }
}

/// Compares the CPU time of the tokenizer with that of the parser; the greater one is the
/// bottleneck.
fn tokenizer_against_parser(case: &Case) -> Ordering {
    let (tokenizer, parser) = parts(case);
    against(tokenizer, parser, 0.05)
}

fn bottleneck(record: &RunRecord) -> (Verdict, String) {
    let pairs = json_pairs(record, "1");
    let cases: Vec<&Case> = pairs.iter().flat_map(|&(_, one, four)| [one, four]).collect();
    let uneven = |case: &&&Case| {
        let busy: Vec<f64> = case.stages.iter().map(Stage::cpu_percent).collect();
        let most = busy.iter().copied().fold(0.0, f64::max);
        busy.iter().copied().fold(f64::INFINITY, f64::min) < 0.95 * most
    };
    let (all, count) = (cases.len(), cases.iter().filter(uneven).count());
    if all == 0 {
        return (Verdict::Open, "No JSON pipeline was measured.".to_owned());
    }
    let text = format!(
        "In {count} of {all} JSON pipelines the idlest stage was on a CPU for less than 95 % of the \
         time of the busiest."
    );
    (Verdict::of(4 * count >= 3 * all), text)
}

/// `mawk 1.20 times the real time, 1.10 times the CPU time`.
fn ratios(name: &str, old: &Case, new: &Case) -> String {
    format!(
        "{name} {:.2} times the real time, {:.2} times the CPU time",
        real(new) / real(old).max(1.0),
        cpu(new) / cpu(old).max(1.0)
    )
}

/// Judges four commands against one under each of these awks.
fn splits(
    record: &RunRecord,
    asked: impl Fn(&Case, &Case) -> bool,
    nobody: &str,
    verdict: impl Fn(&Case, &Case) -> Verdict,
) -> (Verdict, String) {
    let pairs = json_pairs(record, "1");
    let asked: Vec<_> = pairs.iter().filter(|(_, one, four)| asked(one, four)).collect();
    if asked.is_empty() {
        return (Verdict::Open, nobody.to_owned());
    }
    let verdicts: Vec<_> = asked.iter().map(|(_, one, four)| verdict(one, four)).collect();
    let figures: Vec<_> = asked.iter().map(|&&(name, one, four)| ratios(name, one, four)).collect();
    (Verdict::all(&verdicts), format!("Four commands against one: {}.", figures.join("; ")))
}

fn wrong_split(record: &RunRecord) -> (Verdict, String) {
    splits(
        record,
        |one, _| tokenizer_against_parser(one) == Ordering::Less,
        "Under no awk was the parser the bottleneck.",
        |one, four| {
            Verdict::all(&[
                Verdict::expecting(Ordering::Greater, real_time(record, four, one)),
                Verdict::expecting(Ordering::Greater, cpu_time(record, four, one)),
            ])
        },
    )
}

fn right_split(record: &RunRecord) -> (Verdict, String) {
    splits(
        record,
        |one, _| tokenizer_against_parser(one) == Ordering::Greater,
        "Under no awk was the tokenizer the bottleneck.",
        |one, four| {
            Verdict::all(&[
                Verdict::expecting(Ordering::Less, real_time(record, four, one)),
                Verdict::expecting(Ordering::Greater, cpu_time(record, four, one)),
            ])
        },
    )
}

fn used_up(record: &RunRecord) -> (Verdict, String) {
    let pairs = json_pairs(record, "1");
    let not_faster = |one: &Case, four: &Case| {
        matches!(real_time(record, four, one), Some(Ordering::Equal | Ordering::Greater))
    };
    let asked: Vec<_> = pairs.iter().filter(|(_, one, four)| not_faster(one, four)).collect();
    if asked.is_empty() {
        let text = "Under no awk are four commands known not to be faster.";
        return (Verdict::Open, text.to_owned());
    }
    let told = |(_, one, four): &&(&str, &Case, &Case)| {
        Verdict::expecting(Ordering::Greater, cpu_time(record, four, one))
    };
    let figures = asked.iter().map(|(name, one, four)| {
        format!(
            "{name} {:.2} times the CPU time ({:.0} % of a CPU instead of {:.0} %)",
            cpu(four) / cpu(one).max(1.0),
            cpu_percent(four),
            cpu_percent(one)
        )
    });
    let figures: Vec<_> = figures.collect();
    let verdicts: Vec<_> = asked.iter().map(told).collect();
    (Verdict::all(&verdicts), format!("Not faster with four commands: {}.", figures.join("; ")))
}

fn depends(record: &RunRecord) -> (Verdict, String) {
    let pairs = json_pairs(record, "1");
    let place = |one: &Case| match tokenizer_against_parser(one) {
        Ordering::Greater => "tokenizer",
        Ordering::Less => "parser",
        Ordering::Equal => "neither",
    };
    let figures: Vec<_> = pairs
        .iter()
        .map(|(name, one, _)| {
            let (tokenizer, parser) = parts(one);
            format!("{name} {} ({:.2} : 1)", place(one), tokenizer / parser.max(1.0))
        })
        .collect();
    let text = format!("The slower one, and tokenizer : parser: {}.", figures.join("; "));
    let is = |wanted| pairs.iter().any(|(_, one, _)| place(one) == wanted);
    match (is("tokenizer"), is("parser"), is("neither")) {
        (true, true, _) => (Verdict::Holds, text),
        (_, _, true) => (Verdict::Open, text),
        _ if pairs.len() > 1 => (Verdict::DoesNot, text),
        _ => (Verdict::Open, "Too few awks were measured.".to_owned()),
    }
}

fn no_idle_cpu(record: &RunRecord) -> (Verdict, String) {
    let alone = json_pairs(record, "1");
    let faster_alone = |name: &str| {
        alone.iter().any(|(other, one, four)| {
            *other == name && real_time(record, four, one) == Some(Ordering::Less)
        })
    };
    let ten = json_pairs(record, "10");
    let asked: Vec<_> = ten.iter().filter(|pair| faster_alone(pair.0)).collect();
    let told = |(_, one, four): &&(&str, &Case, &Case)| {
        Verdict::expecting(Ordering::Greater, real_time(record, four, one))
    };
    let verdicts: Vec<_> = asked.iter().map(told).collect();
    let figures: Vec<_> = ten.iter().map(|&(name, one, four)| ratios(name, one, four)).collect();
    let mut text = format!("Ten copies, four commands against one: {}.", figures.join("; "));
    let names: Vec<_> = asked.iter().map(|pair| pair.0).collect();
    let _ = match names.as_slice() {
        [] => write!(text, " Alone the split is known to be faster under none of them."),
        some => write!(text, " Alone the split was faster under {}.", some.join(", ")),
    };
    (Verdict::all(&verdicts), text)
}

fn several(record: &RunRecord) -> (Verdict, String) {
    let ten = json_pairs(record, "10");
    let told = |(_, one, four): &(&str, &Case, &Case)| match real_time(record, four, one) {
        None => Verdict::Open,
        told => Verdict::of(told != Some(Ordering::Less)),
    };
    let verdicts: Vec<_> = ten.iter().map(told).collect();
    let figures = ten.iter().map(|(name, one, four)| {
        format!("{name} {} with two stages, {} with five", rate(one), rate(four))
    });
    let figures: Vec<_> = figures.collect();
    match figures.as_slice() {
        [] => (Verdict::Open, "No ten copies were measured.".to_owned()),
        some => (Verdict::all(&verdicts), format!("Ten copies in all: {}.", some.join("; "))),
    }
}

fn holding(record: &RunRecord) -> (Verdict, String) {
    let first = |stage: &str| held(find(record, View::PipelineHold, &[(names::STAGE, stage)])?, 1);
    let last = |stage: &str| held(find(record, View::PipelineHold, &[(names::STAGE, stage)])?, 5);
    let mut verdicts = Vec::new();
    let mut figures = Vec::new();
    for (stage, holds) in
        [("sort", true), ("xargs echo", true), ("cat", false), ("xargs -n 1 echo", false)]
    {
        let (Some(first), Some(last)) = (first(stage), last(stage)) else { continue };
        // A stage that holds lines back releases all of them at the last line, so the first is
        // delayed by far the longest.
        let was_held = first > 2.0 * last.max(0.005);
        verdicts.push(Verdict::of(was_held == holds));
        figures.push(format!("{stage} {:.0} ms", 1e3 * first));
    }
    match figures.as_slice() {
        [] => (Verdict::Open, "None of them was measured.".to_owned()),
        some => (Verdict::all(&verdicts), format!("The first line was held: {}.", some.join(", "))),
    }
}

fn early(record: &RunRecord) -> (Verdict, String) {
    let case = |filter, order| {
        find(record, View::PipelineFilter, &[(names::FILTER, filter), (names::ORDER, order)])
    };
    let pairs: Vec<_> = ["grep", "sed"]
        .into_iter()
        .filter_map(|filter| Some((filter, case(filter, "late")?, case(filter, "early")?)))
        .collect();
    // A pipeline whose wall time others have spoiled is judged by its CPU time alone.
    let told = |(_, late, early): &(&str, &Case, &Case)| {
        let cpu = Verdict::expecting(Ordering::Less, cpu_time(record, early, late));
        if is_spoiled(record, late) || is_spoiled(record, early) {
            return cpu;
        }
        let real = Verdict::expecting(Ordering::Less, real_time(record, early, late));
        Verdict::all(&[real, cpu])
    };
    let verdicts: Vec<_> = pairs.iter().map(told).collect();
    let figures: Vec<_> =
        pairs.iter().map(|&(filter, late, early)| ratios(filter, late, early)).collect();
    let Some((_, late, _)) = pairs.first() else {
        return (Verdict::Open, "No filter was measured.".to_owned());
    };
    let size = bytes(late.metric("input").unwrap_or(0.0));
    (Verdict::all(&verdicts), format!("First instead of last, on {size}: {}.", figures.join("; ")))
}
