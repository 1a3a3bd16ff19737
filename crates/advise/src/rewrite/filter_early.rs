//! Moves a filter before a stage that changes or orders lines, so that the stage has fewer lines to
//! process.

use std::collections::BTreeSet;

use contend_commands::grep::Grep;
use contend_commands::sed::{Action, Sed};
use contend_commands::sort::Sort;
use contend_commands::tr::Tr;
use contend_commands::{Simple, Word};
use contend_record::advice::{RewriteId, Safety};
use contend_shell::environment::Environment;

use super::{Change, Replacement, Situation, Variant};

/// Largest share of bytes that a filter may pass for the move to pay off.
const MAX_PASSED_SHARE: f64 = 0.9;

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let (filter_command, filter) = second.read(Filter::read)?;
        let (command, work) = first.read(|simple| Work::read(simple, situation.environment))?;
        let (command, input) = command.clone().without_input(&work.files)?;
        let passes = situation.measured(second).and_then(|stage| {
            Some(stage.bytes_out? as f64 / stage.bytes_in.filter(|&bytes| bytes > 0)? as f64)
        });
        if passes.is_some_and(|share| share > MAX_PASSED_SHARE) {
            return None;
        }
        let proved = work.commutes_with(&filter);
        if !proved && work.may_alter_matches(&filter) {
            return None;
        }
        let share = passes.unwrap_or(0.5);
        let stages = vec![
            Replacement {
                text: Simple { input, ..filter_command.clone() }.text(),
                work: vec![(index + 1, 1.0)],
            },
            Replacement { text: command.text(), work: vec![(index, share)] },
        ];
        let mut reasons = vec![format!(
            "{} has fewer lines to process after {}",
            command.name(),
            filter_command.name(),
        )];
        if !proved {
            reasons.push("the output is the same only on some data".to_owned());
        }
        Some(Change {
            rewrite: RewriteId::FilterEarly,
            at: index..index + 2,
            stages,
            // Results may differ even if the two commute: grep words its messages about binary data
            // differently, and a later stage hides grep's exit status when nothing matches.
            safety: Safety::ThisData,
            variant: Variant::Only,
            reasons,
        })
    })
}

/// A filter that passes or drops whole lines.
struct Filter {
    /// Fixed strings that the filter searches for anywhere in a line, or `None` if it searches for
    /// other patterns.
    strings: Option<Vec<String>>,
    /// Whether letters match in either case.
    ignores_case: bool,
}

impl Filter {
    fn read(simple: &Simple) -> Option<Self> {
        if simple.input.is_some() {
            return None;
        }
        if let Some(grep) = Grep::read(simple) {
            let fit = grep.is_plain_filter() && grep.files.is_empty();
            let whole = grep.options.has('x') || grep.options.has('w');
            let strings = grep.plain_strings().filter(|_| !whole);
            return fit.then(|| Self {
                strings: strings.map(|all| all.into_iter().map(str::to_owned).collect()),
                ignores_case: grep.options.has('i') || grep.options.has('y'),
            });
        }
        let sed = Sed::read(simple)?;
        let kept = sed.only_keeps().filter(|_| sed.files.is_empty() && !sed.null_data)?;
        let strings = is_literal(kept).then(|| vec![kept.to_owned()]);
        Some(Self { strings, ignores_case: false })
    }
}

/// The stage before the filter.
struct Work {
    files: Vec<Word>,
    /// Characters that the stage matches or writes, or `None` if unknown.
    touches: Option<BTreeSet<char>>,
    /// Whether the stage only reorders lines or drops equal ones.
    orders: bool,
}

impl Work {
    fn read(simple: &Simple, environment: &Environment) -> Option<Self> {
        if let Some(sort) = Sort::read(simple) {
            // `sort -u` keeps one of several equal lines, and the filter may match a different one.
            let fit = !sort.drops_equal_lines() || sort.compares_whole_lines();
            let work = Self { files: sort.files, touches: None, orders: true };
            return (fit && !sort.options.has('z')).then_some(work);
        }
        if let Some(sed) = Sed::read(simple) {
            let fit = sed.writes_at_most_once() && !sed.null_data;
            return fit.then(|| Self {
                touches: touched_by(&sed),
                files: sed.files,
                orders: false,
            });
        }
        let tr = Tr::read(simple, environment.is_multibyte(simple)).filter(Tr::keeps_lines)?;
        Some(Self { files: Vec::new(), touches: tr.touches(), orders: false })
    }

    fn commutes_with(&self, filter: &Filter) -> bool {
        if self.orders {
            return true;
        }
        let (Some(touched), Some(strings)) = (&self.touches, &filter.strings) else {
            return false;
        };
        let fold = |c: char| if filter.ignores_case { c.to_ascii_lowercase() } else { c };
        let touched: BTreeSet<char> = touched.iter().map(|&c| fold(c)).collect();
        let ascii = strings.iter().all(|string| string.is_ascii() && !string.is_empty());
        ascii && !strings.iter().flat_map(|s| s.chars()).any(|c| touched.contains(&fold(c)))
    }

    /// Returns whether the stage is known to match or write a character of the strings that the
    /// filter searches for, and so may create or remove matches. Returns `false` if the characters
    /// or the strings are unknown.
    fn may_alter_matches(&self, filter: &Filter) -> bool {
        let (Some(touched), Some(strings)) = (&self.touches, &filter.strings) else {
            return false;
        };
        strings.iter().flat_map(|s| s.chars()).any(|c| touched.contains(&c))
    }
}

/// Returns all characters that a script replaces or writes. If a string contains none of them, the
/// script neither adds nor removes an occurrence of the string in a line that it keeps. Returns
/// `None` if one of the characters is not ASCII, or if the script does anything other than replace
/// fixed strings by non-empty ones, transliterate, or delete lines.
fn touched_by(sed: &Sed) -> Option<BTreeSet<char>> {
    let mut touched = BTreeSet::new();
    for command in &sed.commands {
        match &command.action {
            Action::Substitute { pattern, replacement, flags } => {
                let plain = is_literal(pattern) && !replacement.contains(['&', '\\']);
                if !plain || replacement.is_empty() || flags.contains(['I', 'i']) {
                    return None;
                }
                touched.extend(pattern.chars().chain(replacement.chars()));
            }
            Action::Transliterate { from, to } if !from.contains('\\') && !to.contains('\\') => {
                touched.extend(from.chars().chain(to.chars()));
            }
            Action::Delete => {}
            _ => return None,
        }
    }
    touched.iter().all(char::is_ascii).then_some(touched)
}

/// Returns whether a regular expression, basic or extended, certainly matches only itself.
fn is_literal(expression: &str) -> bool {
    !expression
        .contains(['\\', '.', '[', ']', '*', '^', '$', '+', '?', '(', ')', '{', '}', '|', '/'])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, safety};
    use super::*;
    use contend_commands::testing::simple;

    fn changed(text: &str) -> Vec<String> {
        apply(RewriteId::FilterEarly, text)
    }

    fn proved(first: &str, second: &str) -> bool {
        let work = Work::read(&simple(first), &Environment::for_tests("C")).expect("work");
        work.commutes_with(&Filter::read(&simple(second)).expect("a filter"))
    }

    #[test]
    fn the_filter_comes_first() {
        assert_eq!(
            changed("cat f | sed 's/a/A/g' | grep 00 | wc -c"),
            ["cat f | grep 00 | sed 's/a/A/g' | wc -c"]
        );
        assert_eq!(changed("sed s/a/A/ f | sed -n /00/p"), ["sed -n /00/p <f | sed s/a/A/"]);
        assert_eq!(changed("sort -k2 f | grep -v x"), ["grep -v x <f | sort -k2"]);
        assert_eq!(changed("tr a b <f | grep c"), ["grep c <f | tr a b"]);
        assert_eq!(safety(RewriteId::FilterEarly, "sort f | grep -a x"), Safety::ThisData);
    }

    #[test]
    fn commuting_pairs_are_proved() {
        assert!(proved("sed s/a/A/g", "grep 00"));
        assert!(proved("sed 's/a/A/g; /x/d'", "grep -v -F 0.0"));
        assert!(proved("tr abc xyz", "grep 00"));
        assert!(proved("sort -n", "grep '^x.*y$'"));
        assert!(!proved("sed s/a/A/g", "grep A"));
        assert!(!proved("sed s/a/A/g", "grep -i xa"));
        assert!(!proved("sed s/a//g", "grep 00"), "0a0 becomes 00");
        assert!(!proved("sed s/.0/AB/g", "grep C"), "an expression may eat anything");
        assert!(!proved("sed s/a/b/", "grep ^0"), "an expression may look at the neighbours");
        assert!(!proved("sed s/a/b/", "grep -w 00"), "and so do words");
        assert!(!proved("tr -d a", "grep 00"));
    }

    #[test]
    fn stages_that_affect_the_filter_are_not_moved() {
        for text in [
            "sed s/a/b/ f | grep a",
            "sed s/a/xb/ f | grep -v xy",
            "sed s/a/b/ f | grep -c x",
            "sed s/a/b/ f | grep -m 3 x",
            "sed s/a/b/ f | grep -A1 x",
            "sed s/a/b/ f | grep -B1 x",
            "sed s/a/b/ f | grep -n x",
            "sed s/a/b/ f | grep -o x",
            "sed s/a/b/ f | grep x g",
            "sed 2d f | grep x",
            "sed '$d' f | grep x",
            "sed 5q f | grep x",
            "sed 'N;P;D' f | grep x",
            "sed 'H;g' f | grep x",
            "sed -n p f | grep x",
            "sort -u -k1,1 f | grep x",
            "cut -f1 f | grep x",
            "tr ' ' '\\n' <f | grep x",
            "head -n 5 f | grep x",
            "uniq -c | grep x",
            "sed s/a/b/ f g | grep x",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
