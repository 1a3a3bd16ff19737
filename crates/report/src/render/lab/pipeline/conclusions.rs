//! The conclusions of the article, and whether the measurements of a run confirm them. Every
//! verdict is computed from the measurements; see [`super::judging`].

use std::cmp::Ordering;
use std::fmt::Write as _;

use contend_record::lab::{Case, RunRecord, Stage, View};
use contend_record::parameters::names;

use super::super::super::units::bytes;
use super::super::conclusion::{
    Conclusion, Judgement, Reason, Verdict, compared, is_disturbed, not_measured,
};
use super::super::find;
use super::super::table::ratio_of;
use super::judging::{against, cpu_time, is_spoiled, real_time};
use super::{cpu_percent, cpu_samples, held, json_pairs, rate};

pub const CONCLUSIONS: [Conclusion; 9] = [
    Conclusion {
        letter: 'A',
        claim: "because of a bottleneck, hardly ever can all commands run at full speed",
        judge: bottleneck,
    },
    Conclusion {
        letter: 'B',
        claim: "splitting a stage that is not the bottleneck costs wall time and CPU time",
        judge: wrong_split,
    },
    Conclusion {
        letter: 'C',
        claim: "piping many commands together wastes CPU time rather than using the CPUs well",
        judge: wasted,
    },
    Conclusion {
        letter: 'D',
        claim: "which stage is the bottleneck depends on the implementation of awk",
        judge: depends,
    },
    Conclusion {
        letter: 'E',
        claim: "splitting the bottleneck shortens wall time, but CPU time still grows",
        judge: right_split,
    },
    Conclusion {
        letter: 'F',
        claim: "if no CPU is idle, even splitting the bottleneck makes wall time longer",
        judge: no_idle_cpu,
    },
    Conclusion {
        letter: 'G',
        claim: "with several copies in parallel, more stages are of no use",
        judge: several,
    },
    Conclusion {
        letter: 'H',
        claim: "some commands, as sort and xargs, prevent parallel execution before and after them",
        judge: holding,
    },
    Conclusion {
        letter: 'I',
        claim: "commands that filter belong near the beginning of a pipeline",
        judge: early,
    },
];

/// Returns the rule by which two measurements count as equal, as a note for the user.
pub fn note(record: &RunRecord) -> &'static str {
    if is_disturbed(record) {
        "Equal: within 10 %, as other programs used the CPUs. Wall times that they stretched by a quarter \
         or more are not compared."
    } else {
        "Equal: within 3 %, or within 5 % with fewer than three samples."
    }
}

/// Returns the CPU times of the tokenizer (the sum over its commands) and of the parser, in
/// nanoseconds; 0 if the stages were not measured.
fn parts(case: &Case) -> (f64, f64) {
    match case.stages.split_last() {
        Some((parser, tokenizer)) => (tokenizer.iter().map(Stage::cpu).sum(), parser.cpu()),
        None => (0.0, 0.0),
    }
}

/// Compares the CPU time of the tokenizer with that of the parser. Within 5 %, they count as equal;
/// otherwise, the one with more is the bottleneck.
fn tokenizer_against_parser(case: &Case) -> Ordering {
    let (tokenizer, parser) = parts(case);
    against(tokenizer, parser, 0.05)
}

fn bottleneck(record: &RunRecord) -> Judgement {
    let pairs = json_pairs(record, "1");
    let cases: Vec<&Case> = pairs.iter().flat_map(|&(_, one, four)| [one, four]).collect();
    let uneven = |case: &&&Case| {
        let busy: Vec<f64> = case.stages.iter().map(Stage::cpu_percent).collect();
        let most = busy.iter().copied().fold(0.0, f64::max);
        busy.iter().copied().fold(f64::INFINITY, f64::min) < 0.95 * most
    };
    let (all, count) = (cases.len(), cases.iter().filter(uneven).count());
    if all == 0 {
        return not_measured("No JSON pipeline was measured.");
    }
    let text = format!(
        "In {count} of {all} JSON pipelines the idlest stage used less than 95 % of the CPU time of the \
         busiest."
    );
    (Verdict::of(4 * count >= 3 * all), text)
}

/// Formats the wall and CPU times of `new` as multiples of those of `old`, after `name`, as in
/// `mawk 1.20 [1.18, 1.23] times the wall time, 1.10 [1.08, 1.11] times the CPU time`.
fn ratios(record: &RunRecord, name: &str, old: &Case, new: &Case) -> String {
    let real = ratio_of(&new.samples, &old.samples, record.seed).unwrap_or_default();
    format!("{name} {real} times the wall time, {}", cpu_ratio(record, old, new))
}

/// Formats the CPU time of `new` as a multiple of that of `old`: `1.10 [1.08, 1.11] times the CPU
/// time`.
fn cpu_ratio(record: &RunRecord, old: &Case, new: &Case) -> String {
    let ratio = ratio_of(&cpu_samples(new), &cpu_samples(old), record.seed);
    format!("{} times the CPU time", ratio.unwrap_or_default())
}

/// Returns the cases of pairs, without their names.
fn sides<'a>(pairs: &[&(&str, &'a Case, &'a Case)]) -> Vec<[&'a Case; 2]> {
    pairs.iter().map(|&&(_, one, other)| [one, other]).collect()
}

/// Returns the verdict if no pair can be judged: `Disturbed` if the wall times of any pair were
/// spoiled, and `DidNotOccur` otherwise.
fn none_left(record: &RunRecord, pairs: &[(&str, &Case, &Case)]) -> Verdict {
    let is_disturbed = pairs.iter().any(|(_, one, four)| real_time(record, four, one).is_none());
    Verdict::Inconclusive(if is_disturbed { Reason::Disturbed } else { Reason::DidNotOccur })
}

/// Judges tokenizers of four commands against those of one command. Calls `verdict` for each awk
/// for which `applies` returns `true`, and combines the verdicts. If there is no such awk, the
/// judgement is inconclusive, with the evidence `otherwise`.
fn splits(
    record: &RunRecord,
    applies: impl Fn(&Case, &Case) -> bool,
    otherwise: &str,
    verdict: impl Fn(&Case, &Case) -> Verdict,
) -> Judgement {
    let pairs = json_pairs(record, "1");
    if pairs.is_empty() {
        return not_measured("No JSON pipeline was measured with both tokenizers.");
    }
    let tested: Vec<_> = pairs.iter().filter(|(_, one, four)| applies(one, four)).collect();
    if tested.is_empty() {
        return (Verdict::Inconclusive(Reason::DidNotOccur), otherwise.to_owned());
    }
    let judge =
        |(_, one, four): &&(&str, &Case, &Case)| verdict(one, four).with_samples_of(&[one, four]);
    let verdicts: Vec<_> = tested.iter().map(judge).collect();
    let figures: Vec<_> =
        tested.iter().map(|&&(name, one, four)| ratios(record, name, one, four)).collect();
    compared(
        Verdict::all(&verdicts),
        format!("Tokenizer of four commands against one: {}.", figures.join("; ")),
        &sides(&tested),
    )
}

fn wrong_split(record: &RunRecord) -> Judgement {
    splits(
        record,
        |one, _| tokenizer_against_parser(one) == Ordering::Less,
        "The parser was the bottleneck with none of the awks.",
        |one, four| {
            Verdict::all(&[
                Verdict::expecting(Ordering::Greater, real_time(record, four, one)),
                Verdict::expecting(Ordering::Greater, cpu_time(record, four, one)),
            ])
        },
    )
}

fn right_split(record: &RunRecord) -> Judgement {
    splits(
        record,
        |one, _| tokenizer_against_parser(one) == Ordering::Greater,
        "The tokenizer was the bottleneck with none of the awks.",
        |one, four| {
            Verdict::all(&[
                Verdict::expecting(Ordering::Less, real_time(record, four, one)),
                Verdict::expecting(Ordering::Greater, cpu_time(record, four, one)),
            ])
        },
    )
}

fn wasted(record: &RunRecord) -> Judgement {
    let pairs = json_pairs(record, "1");
    let not_faster = |one: &Case, four: &Case| {
        matches!(real_time(record, four, one), Some(Ordering::Equal | Ordering::Greater))
    };
    if pairs.is_empty() {
        return not_measured("No JSON pipeline was measured with both tokenizers.");
    }
    let tested: Vec<_> = pairs.iter().filter(|(_, one, four)| not_faster(one, four)).collect();
    if tested.is_empty() {
        let text = "With every awk, four commands may be faster than one.";
        return (none_left(record, &pairs), text.to_owned());
    }
    let judge = |(_, one, four): &&(&str, &Case, &Case)| {
        Verdict::expecting(Ordering::Greater, cpu_time(record, four, one))
            .with_samples_of(&[one, four])
    };
    let figures = tested.iter().map(|(name, one, four)| {
        format!(
            "{name} {} ({:.0} % of a CPU instead of {:.0} %)",
            cpu_ratio(record, one, four),
            cpu_percent(four),
            cpu_percent(one)
        )
    });
    let figures: Vec<_> = figures.collect();
    let verdicts: Vec<_> = tested.iter().map(judge).collect();
    compared(
        Verdict::all(&verdicts),
        format!("Four commands are not faster than one: {}.", figures.join("; ")),
        &sides(&tested),
    )
}

fn depends(record: &RunRecord) -> Judgement {
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
    let text = format!("Bottleneck, and CPU time of tokenizer : parser: {}.", figures.join("; "));
    let is = |wanted| pairs.iter().any(|(_, one, _)| place(one) == wanted);
    let verdict = match (is("tokenizer"), is("parser"), is("neither")) {
        (true, true, _) => Verdict::Confirmed,
        (_, _, true) => Verdict::Inconclusive(Reason::WithinNoise),
        _ if pairs.len() > 1 => Verdict::NotConfirmed,
        _ => return not_measured("Fewer than two awks were measured."),
    };
    let cases: Vec<&Case> = pairs.iter().map(|&(_, one, _)| one).collect();
    (verdict.with_samples_of(&cases), text)
}

fn no_idle_cpu(record: &RunRecord) -> Judgement {
    let alone = json_pairs(record, "1");
    let faster_alone = |name: &str| {
        alone.iter().any(|(other, one, four)| {
            *other == name && real_time(record, four, one) == Some(Ordering::Less)
        })
    };
    let ten = json_pairs(record, "10");
    if ten.is_empty() {
        return not_measured("Ten copies at once were not measured.");
    }
    let tested: Vec<_> = ten.iter().filter(|pair| faster_alone(pair.0)).collect();
    let judge = |(_, one, four): &&(&str, &Case, &Case)| {
        Verdict::expecting(Ordering::Greater, real_time(record, four, one))
            .with_samples_of(&[one, four])
    };
    let verdicts: Vec<_> = tested.iter().map(judge).collect();
    let figures: Vec<_> =
        ten.iter().map(|&(name, one, four)| ratios(record, name, one, four)).collect();
    let mut text = format!("Ten copies, four commands against one: {}.", figures.join("; "));
    let names: Vec<_> = tested.iter().map(|pair| pair.0).collect();
    if names.is_empty() {
        text.push_str(" No single copy is known to be faster with four commands.");
        return (none_left(record, &alone), text);
    }
    let _ = write!(text, " A single copy was faster with four under {}.", names.join(", "));
    compared(Verdict::all(&verdicts), text, &sides(&tested))
}

fn several(record: &RunRecord) -> Judgement {
    let ten = json_pairs(record, "10");
    let judge = |(_, one, four): &(&str, &Case, &Case)| match real_time(record, four, one) {
        None => Verdict::Inconclusive(Reason::Disturbed),
        order => Verdict::of(order != Some(Ordering::Less)).with_samples_of(&[one, four]),
    };
    let verdicts: Vec<_> = ten.iter().map(judge).collect();
    let figures = ten.iter().map(|(name, one, four)| {
        format!("{name} {} with two stages, {} with five", rate(one), rate(four))
    });
    let figures: Vec<_> = figures.collect();
    match figures.as_slice() {
        [] => not_measured("Ten copies at once were not measured."),
        some => compared(
            Verdict::all(&verdicts),
            format!("Throughput of ten copies: {}.", some.join("; ")),
            &sides(&ten.iter().collect::<Vec<_>>()),
        ),
    }
}

/// Returns whether a stage is a barrier: line 1 does not arrive before line 5 is produced. Returns
/// `None` if the timeline lacks one of these steps.
fn holds_output(case: &Case) -> Option<bool> {
    let at = |what: &str| {
        case.timeline.iter().find(|step| step.what == what).map(|step| step.at_seconds)
    };
    Some(at("line 1 arrives")? >= at("line 5 is produced")?)
}

fn holding(record: &RunRecord) -> Judgement {
    let mut verdicts = Vec::new();
    let mut figures = Vec::new();
    for (stage, should_hold) in
        [("sort", true), ("xargs echo", true), ("cat", false), ("xargs -n 1 echo", false)]
    {
        let Some(case) = find(record, View::PipelineHold, &[(names::STAGE, stage)]) else {
            continue;
        };
        let (Some(delay), Some(holds)) = (held(case, 1), holds_output(case)) else { continue };
        verdicts.push(Verdict::of(holds == should_hold));
        figures.push(format!("{stage} {:.0} ms", 1e3 * delay));
    }
    match figures.as_slice() {
        [] => not_measured("No stage that holds its output was measured."),
        some => (Verdict::all(&verdicts), format!("Delay of the first line: {}.", some.join(", "))),
    }
}

fn early(record: &RunRecord) -> Judgement {
    let case = |filter, order| {
        find(record, View::PipelineFilter, &[(names::FILTER, filter), (names::ORDER, order)])
    };
    let pairs: Vec<_> = ["grep", "sed"]
        .into_iter()
        .filter_map(|filter| Some((filter, case(filter, "late")?, case(filter, "early")?)))
        .collect();
    // A pipeline whose wall time was disturbed is judged by its CPU time alone.
    let judge = |(_, late, early): &(&str, &Case, &Case)| {
        let cpu = Verdict::expecting(Ordering::Less, cpu_time(record, early, late))
            .with_samples_of(&[late, early]);
        if is_spoiled(record, late) || is_spoiled(record, early) {
            return cpu;
        }
        let real = Verdict::expecting(Ordering::Less, real_time(record, early, late));
        Verdict::all(&[real, cpu])
    };
    let verdicts: Vec<_> = pairs.iter().map(judge).collect();
    let figures: Vec<_> =
        pairs.iter().map(|&(filter, late, early)| ratios(record, filter, late, early)).collect();
    let Some((_, late, _)) = pairs.first() else {
        return not_measured("No filter was measured.");
    };
    let size = bytes(late.metric("input").unwrap_or(0.0));
    compared(
        Verdict::all(&verdicts),
        format!("Filtering {size} first instead of last: {}.", figures.join("; ")),
        &sides(&pairs.iter().collect::<Vec<_>>()),
    )
}
