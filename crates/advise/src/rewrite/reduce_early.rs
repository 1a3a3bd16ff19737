//! Moves a stage that changes each line on its own behind a `tail`, so that it has fewer lines to
//! process, and drops such a stage or a `sort` before `wc -l`.

use contend_commands::cut::Cut;
use contend_commands::sed::Sed;
use contend_commands::sort::Sort;
use contend_commands::tr::Tr;
use contend_commands::{Simple, Word, head, wc};
use contend_record::advice::{RewriteId, Safety};
use contend_shell::environment::Environment;

use super::{Change, Replacement, Situation, Variant};

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let (_, mapping) = first.read(|simple| mapping(simple, situation.environment))?;
        let reducer = second.simple.as_ref().filter(|simple| simple.input.is_none())?;
        if wc::counts_lines(reducer) {
            return Some(left_out(index, &mapping, reducer));
        }
        let tail = head::tail(reducer).filter(|tail| tail.files.is_empty())?;
        (!mapping.reorders).then(|| moved(index, &mapping, reducer, tail.count))
    })
}

/// A stage that writes one line for each input line.
struct Mapping {
    /// The command without its input.
    command: Simple,
    /// The input, if the command names a file.
    input: Option<Word>,
    /// Whether the output ends with a newline even if the input does not.
    completes_last_line: bool,
    /// Whether the stage writes lines in another order.
    reorders: bool,
    /// Whether the stage may turn a line into an empty one. If an input without a final newline
    /// ends with such a line, the stage writes nothing for it, and so one line fewer than it reads.
    may_empty: bool,
}

fn mapping(simple: &Simple, environment: &Environment) -> Option<Mapping> {
    let (files, completes_last_line, reorders, may_empty) = if let Some(sed) = Sed::read(simple) {
        let fit = sed.is_one_to_one() && !sed.null_data;
        (fit.then_some(sed.files)?, false, false, true)
    } else if let Some(cut) = Cut::read(simple) {
        (cut.files, true, false, false)
    } else if let Some(sort) = Sort::read(simple) {
        let fit = !sort.drops_equal_lines() && !sort.options.has('z');
        (fit.then_some(sort.files)?, true, true, false)
    } else {
        Tr::read(simple, environment.is_multibyte(simple)).filter(Tr::keeps_lines)?;
        (Vec::new(), false, false, false)
    };
    let (command, input) = simple.clone().without_input(&files)?;
    Some(Mapping { command, input, completes_last_line, reorders, may_empty })
}

fn moved(index: usize, mapping: &Mapping, reducer: &Simple, count: u64) -> Change {
    let first = Simple { input: mapping.input.clone(), ..reducer.clone() };
    let stages = vec![
        Replacement { text: first.text(), work: vec![(index + 1, 1.0)] },
        Replacement { text: mapping.command.text(), work: vec![(index, 0.0)] },
    ];
    Change {
        rewrite: RewriteId::ReduceEarly,
        at: index..index + 2,
        stages,
        safety: if mapping.may_empty { Safety::ThisData } else { Safety::Always },
        variant: Variant::Only,
        reasons: vec![format!(
            "{} processes each line on its own, so {count} lines are enough",
            mapping.command.name()
        )],
    }
}

fn left_out(index: usize, mapping: &Mapping, reducer: &Simple) -> Change {
    let counter = Simple { input: mapping.input.clone(), ..reducer.clone() };
    Change {
        rewrite: RewriteId::ReduceEarly,
        at: index..index + 2,
        stages: vec![Replacement::of(counter.text(), [index + 1])],
        // A last line without a newline counts only if the stage adds the newline.
        safety: if mapping.completes_last_line { Safety::ThisData } else { Safety::Always },
        variant: Variant::Only,
        reasons: vec![format!("{} does not change the number of lines", mapping.command.name())],
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, apply_in, safety};
    use super::*;

    fn changed(text: &str) -> Vec<String> {
        apply(RewriteId::ReduceEarly, text)
    }

    #[test]
    fn a_map_goes_behind_a_tail() {
        assert_eq!(
            changed("sed 's/a/b/' f | tail -n 3 | wc -c"),
            ["tail -n 3 <f | sed 's/a/b/' | wc -c"]
        );
        assert_eq!(changed("cut -d: -f1 | tail -1"), ["tail -1 | cut -d: -f1"]);
        assert_eq!(changed("tr a b <f | tail"), ["tail <f | tr a b"]);
        assert_eq!(safety(RewriteId::ReduceEarly, "tr a b <f | tail"), Safety::Always);
        assert_eq!(safety(RewriteId::ReduceEarly, "cut -c1 <f | tail"), Safety::Always);
        // `a` without a newline becomes empty output.
        assert_eq!(safety(RewriteId::ReduceEarly, "sed s/a// <f | tail"), Safety::ThisData);
    }

    #[test]
    fn before_a_count_of_lines_it_is_left_out() {
        assert_eq!(changed("sed 's/a/b/' f | wc -l"), ["wc -l <f"]);
        assert_eq!(changed("grep x f | sort -n | wc -l"), ["grep x f | wc -l"]);
        assert_eq!(safety(RewriteId::ReduceEarly, "tr a b <f | wc -l"), Safety::Always);
        assert_eq!(safety(RewriteId::ReduceEarly, "sort f | wc -l"), Safety::ThisData);
        assert_eq!(safety(RewriteId::ReduceEarly, "cut -c1 f | wc -l"), Safety::ThisData);
    }

    #[test]
    fn stages_that_change_line_count_or_order_are_kept() {
        for text in [
            "sed /x/d f | wc -l",
            "sed -n /x/p f | tail",
            "sed 2q f | tail",
            "sort -u f | wc -l",
            "sort f | tail",
            "tr -d '\\n' <f | wc -l",
            "tr ' ' '\\n' <f | tail",
            "cut -s -f1 f | wc -l",
            "sed s/a/b/ f | tail -c 5",
            "sed s/a/b/ f | tail -n +3",
            "sed s/a/b/ f | tail -f",
            "sed s/a/b/ f | wc",
            "sed s/a/b/ f | wc -c",
            "sed s/a/b/ f | wc -l g",
            "sed s/a/b/ f | head -n 3",
            "sed s/a/b/ f g | tail",
            "uniq | wc -l",
            "sed 'N;s/a/b/' f | wc -l",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
        let utf8 = Environment::for_tests("C.UTF-8");
        assert_eq!(apply_in(RewriteId::ReduceEarly, "tr a-z b <f | wc -l", &utf8), [""; 0]);
    }
}
