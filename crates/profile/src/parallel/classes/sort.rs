//! `sort`: sorted parts are merged in the same order.

use contend_record::run::{Combine, Cut, LineOrder, Merge, Records};

use super::{Class, Combinable, Finding, Output, PerRecord, Subject, is_number};
use crate::commands::options::Options;
use crate::commands::sort::{COMPRESS, PARALLEL, Sort, TABLE};
use crate::rewrite::environment::Maker;

const CHECKS: &str = "it checks the order of all its input";
const REFUSED: &[(char, &str)] = &[
    ('c', CHECKS),
    ('C', CHECKS),
    ('m', "`-m` merges files that are sorted already"),
    ('o', "`-o` writes to a file"),
    ('R', "`-R` puts all its input into a random order"),
    ('V', "`-V` is not in every version an order by which parts can be merged"),
    ('\u{3}', "`--debug` writes remarks"),
    ('\u{5}', "it reads files that it finds itself"),
    ('\u{6}', "`--random-source` puts all its input into a random order"),
];

/// What a key is compared by, as letters after its places.
const KEY_OPTIONS: &str = "bdfgiMhnr";

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let options = subject.options(&TABLE, REFUSED)?;
    subject.reads_standard_input(&options.operands)?;
    let sort = Sort::read(subject.simple).ok_or("not all of its options are known")?;
    if options.values('k').any(|key| key.contains(['R', 'V'])) {
        return Err("the order of a key is not one by which parts can be merged".into());
    }
    let separators = options.values('t').all(|text| text.len() == 1 || text == "\\0");
    if !separators || !options.values('k').all(is_key) {
        return Err("its keys are not understood".into());
    }
    let by_bytes = subject.orders_by_bytes().is_ok();
    let whole = sort.compares_whole_lines();
    let numeric = options.has('n');
    let plain_number = options.has_only("nrSTz\u{1}\u{2}\u{4}") && subject.has_plain_numbers();
    let whole_order = whole || numeric && plain_number;
    // Lines that compare equal are then equal: the bytes decide where keys do not.
    let total = by_bytes && (whole || !(options.has('s') || options.has('u')));
    let records = if options.has('z') { Records::Nul } else { Records::Lines };
    let each = PerRecord {
        cut: Cut::between(records),
        // The order of a language may not know some bytes.
        may_fail: !by_bytes,
        output: Output::of(records),
        ..PerRecord::new(records)
    };
    let merge = Merge {
        command: subject.command(&subject.simple.program.text, merging(&options)),
        lines: (whole_order && by_bytes).then(|| LineOrder {
            numeric,
            reverse: options.has('r'),
            unique: options.has('u'),
            separator: records.separator(),
        }),
        first: None,
        folder: folder(subject, &options),
    };
    let class = Combinable::ordered(each, Combine::Merge(merge));
    Ok(Class::Combinable(Combinable { any_order: total, ignores_order: total, ..class }))
}

/// The arguments of a merge by the same order. How much memory and how many threads the sorting
/// takes is of no interest to it.
fn merging(options: &Options) -> Vec<String> {
    let mut arguments = vec!["-m".to_owned()];
    for (letter, value) in &options.given {
        match (*letter, value) {
            ('S' | PARALLEL, _) => {}
            (COMPRESS, Some(program)) => arguments.push(format!("--compress-program={program}")),
            ('\u{4}', Some(count)) => arguments.push(format!("--batch-size={count}")),
            (letter, Some(value)) => arguments.extend([format!("-{letter}"), value.clone()]),
            (letter, None) => arguments.push(format!("-{letter}")),
        }
    }
    arguments
}

/// Where it is told to keep what does not fit into memory. Of several folders, between which it
/// would change, the first one.
fn folder(subject: &Subject<'_>, options: &Options) -> Option<String> {
    let variable = || {
        let mut variables = subject.simple.variables.iter();
        let (_, value) = variables.rfind(|(name, _)| name == "TMPDIR")?;
        Some(value.text.as_str()).filter(|folder| !folder.is_empty())
    };
    options.values('T').next().or_else(variable).map(str::to_owned)
}

/// Whether it is `F[.C][OPTIONS][,F[.C][OPTIONS]]`.
fn is_key(text: &str) -> bool {
    let is_place = |place: &str| {
        let place = place.trim_end_matches(|c| KEY_OPTIONS.contains(c));
        let (field, character) = place.split_once('.').unwrap_or((place, "1"));
        is_number(field) && is_number(character) && !field.starts_with('0')
    };
    text.splitn(2, ',').all(is_place)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, class_in, combinable};
    use super::*;

    fn merge(text: &str) -> Merge {
        match combinable(text).combine {
            Combine::Merge(merge) => merge,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn parts_are_merged_in_the_same_order() {
        let arguments = |text: &str| merge(text).command.arguments.join(" ");
        assert_eq!(arguments("sort"), "-m");
        assert_eq!(arguments("sort -rn -k2,2 -t, -u -"), "-m -r -n -k 2,2 -t , -u");
        assert_eq!(arguments("sort -S1G --parallel=4 -T /tmp -z"), "-m -T /tmp -z");
        assert_eq!(arguments("sort --batch-size=8"), "-m --batch-size=8");
        assert_eq!(combinable("sort -z").each.cut.records, Records::Nul);
    }

    #[test]
    fn whole_lines_are_in_the_order_of_their_bytes() {
        let order = |text: &str| merge(text).lines;
        let plain = LineOrder { numeric: false, reverse: false, unique: false, separator: b'\n' };
        assert_eq!(order("sort"), Some(plain));
        assert_eq!(order("sort -s"), Some(plain));
        assert_eq!(
            order("sort -ruz"),
            Some(LineOrder { numeric: false, reverse: true, unique: true, separator: 0 })
        );
        assert_eq!(order("sort -n"), Some(LineOrder { numeric: true, ..plain }));
        for text in ["sort -nu", "sort -ns", "sort -nb", "LC_NUMERIC=de_DE.UTF-8 sort -n"] {
            assert_eq!(order(text), None, "{text}");
        }
        assert_eq!(order("sort -k1"), None);
        let german = class_in("sort", "de_DE.UTF-8");
        let Class::Combinable(german) = german else { panic!("{german:?}") };
        let Combine::Merge(merge) = &german.combine else { panic!("{german:?}") };
        assert!(merge.lines.is_none() && !german.any_order && german.each.may_fail);
    }

    #[test]
    fn what_does_not_fit_into_memory_goes_where_the_user_says() {
        let folder = |text: &str| merge(text).folder;
        assert_eq!(folder("sort"), None);
        assert_eq!(folder("sort -T /a --temporary-directory=/b").as_deref(), Some("/a"));
        assert_eq!(folder("TMPDIR=/c sort").as_deref(), Some("/c"));
        assert_eq!(folder("TMPDIR=/c sort -T/a").as_deref(), Some("/a"));
    }

    #[test]
    fn only_a_total_order_forgets_where_lines_came_from() {
        for text in ["sort", "sort -u", "sort -su", "sort -n", "sort -k2,2nr", "sort -f"] {
            assert!(combinable(text).any_order && combinable(text).ignores_order, "{text}");
        }
        for text in ["sort -sn", "sort -nu", "sort -uk1,1", "sort -sf"] {
            assert!(!combinable(text).any_order && !combinable(text).ignores_order, "{text}");
        }
    }

    #[test]
    fn the_rest_is_refused_for_a_reason() {
        all_opaque(&[
            ("sort -c", "checks"),
            ("sort -C", "checks"),
            ("sort -m", "sorted already"),
            ("sort -o f", "`-o`"),
            ("sort -R", "random"),
            ("sort -V", "`-V`"),
            ("sort -k1V", "order of a key"),
            ("sort -k0", "keys"),
            ("sort -kx", "keys"),
            ("sort -tab", "keys"),
            ("sort --debug", "remarks"),
            ("sort --files0-from=f", "finds itself"),
            ("sort a b", "names itself"),
            ("sort +1", "names itself"),
        ]);
    }
}
