//! Classifies `sort`: sorted chunks are merged in the same order.

use std::ops::RangeInclusive;

use contend_commands::Simple;
use contend_commands::options::Options;
use contend_commands::sort::{COMPRESS, PARALLEL, Sort, TABLE};
use contend_shell::environment::Maker;

use super::{Class, Combinable, Finding, Output, PerRecord, Subject, is_number};
use crate::plan::ir::{Combine, Cut, FieldPlace, LineOrder, Merge, Records, SortKey};

const CHECKS: &str = "it checks the order of the whole input";
const REFUSED: &[(char, &str)] = &[
    ('c', CHECKS),
    ('C', CHECKS),
    ('m', "`-m` merges sorted files"),
    ('o', "`-o` writes to a file"),
    ('R', "`-R` shuffles the whole input"),
    ('V', "the order of `-V` differs between versions of sort"),
    ('\u{3}', "`--debug` writes remarks"),
    ('\u{5}', "it searches for files to read"),
    ('\u{6}', "`--random-source` shuffles the whole input"),
];

/// Suffixes of memory sizes, each with the maximum number of digits before it. These limits keep
/// every accepted size within 64 bits, because GNU sort rejects larger ones.
const SUFFIXES: &[(&str, usize)] = &[
    ("", 9),
    ("%", 3),
    ("b", 9),
    ("k", 9),
    ("K", 9),
    ("m", 9),
    ("M", 9),
    ("g", 9),
    ("G", 9),
    ("t", 6),
    ("T", 6),
];
/// Maximum accepted `--batch-size`, which common limits on open files permit.
const MAX_BATCH_SIZE: u32 = 16;

/// Letters that may follow the positions of a key.
const KEY_OPTIONS: &str = "bdfgiMhnr";

/// Orders of which GNU sort accepts at most one for a key; `-d` and `-i` count as one.
const ORDERS: &[&str] = &["n", "g", "h", "M", "di"];

/// Options that only describe the lines and their order. If a `sort` has no other options, whether
/// it accepts its command line does not depend on the machine.
const ONLY_ORDER: &str = "bdfgiMhnrstzuk";

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let options = subject.options(&TABLE, REFUSED)?;
    subject.reads_standard_input(&options.operands)?;
    let sort = Sort::read(subject.simple).ok_or("one of its options is not supported")?;
    if options.values('k').any(|key| key.contains(['R', 'V'])) {
        return Err("sorted chunks cannot be merged by the order of a key".into());
    }
    if let Some(why) = objection(&options) {
        return Err(why.into());
    }
    let by_bytes = subject.orders_by_bytes().is_ok();
    let whole = sort.compares_whole_lines();
    // Lines that compare equal are then identical, because bytes decide between lines with equal
    // keys.
    let total = by_bytes && (whole || !(options.has('s') || options.has('u')));
    let records = if options.has('z') { Records::Nul } else { Records::Lines };
    let each = PerRecord {
        cut: Cut::between(records),
        // The locale's collation may not know some bytes.
        may_fail: !by_bytes,
        output: Output::of(records),
        ..PerRecord::new(records)
    };
    let merge = Merge {
        command: subject.command(&subject.simple.program.text, merging(&options)),
        // The program that compresses temporary files may be missing, which only the command
        // reports.
        lines: if by_bytes && !options.has(COMPRESS) {
            order(subject, &options, whole, records)
        } else {
            None
        },
        first: None,
        folder: folder(subject, &options),
    };
    let class = Combinable::ordered(each, Combine::Merge(merge));
    Ok(Class::Combinable(Combinable { any_order: total, ignores_order: total, ..class }))
}

/// Returns the order of the lines, or `None` if contend cannot sort by it without the command.
fn order(
    subject: &Subject<'_>,
    options: &Options,
    whole: bool,
    records: Records,
) -> Option<LineOrder> {
    let reverse = options.has('r');
    let mut keys = if whole { Vec::new() } else { keys(subject, options)? };
    if keys == [SortKey { reverse, ..key("1", "")? }] {
        keys.clear(); // the key is the whole line
    }
    let field_separator = match options.value('t') {
        Some("\\0") => Some(0),
        text => text.and_then(|text| text.bytes().next()),
    };
    Some(LineOrder {
        keys,
        field_separator,
        reverse,
        unique: options.has('u'),
        separator: records.separator(),
    })
}

/// Returns the keys, or `None` if contend cannot compare them. Bytes must decide between lines with
/// equal keys, because contend's sort is not stable.
fn keys(subject: &Subject<'_>, options: &Options) -> Option<Vec<SortKey>> {
    if !options.has_only("bfknrtSTz\u{1}\u{2}\u{4}") || subject.knows_characters() {
        return None;
    }
    let general: String = "bfnr".chars().filter(|&letter| options.has(letter)).collect();
    let mut keys: Vec<SortKey> =
        options.values('k').map(|text| key(text, &general)).collect::<Option<_>>()?;
    if keys.is_empty() {
        keys.push(key("1", &general)?);
    }
    let numbers = !keys.iter().any(|key| key.numeric) || subject.has_plain_numbers();
    let letters = subject.environment.has_plain_letters(subject.simple)
        || subject.encoding().is_ok() && !keys.iter().any(|key| key.fold);
    (numbers && letters).then_some(keys)
}

/// Parses a key, or returns `None` if contend cannot compare it. If neither position has option
/// letters, those in `general` apply, which are given for the whole command.
fn key(text: &str, general: &str) -> Option<SortKey> {
    let mut ends = text.splitn(2, ',').map(place);
    let from = ends.next()??;
    let to = match ends.next() {
        Some(to) => Some(to?),
        None => None,
    };
    let own = [from.letters, to.as_ref().map_or("", |to| to.letters)];
    let letters = if own == ["", ""] { [general; 2] } else { own };
    let has = |letter| letters.iter().any(|letters| letters.contains(letter));
    let field_place = |place: &Place<'_>, bytes, letters: &str| FieldPlace {
        field: place.field,
        bytes,
        skips_blanks: letters.contains('b'),
    };
    let known = letters.iter().all(|letters| letters.chars().all(|c| "bfnr".contains(c)));
    known.then_some(SortKey {
        from: field_place(&from, from.bytes.unwrap_or(1).checked_sub(1)?, letters[0]),
        to: to.map(|to| field_place(&to, to.bytes.unwrap_or(0), letters[1])),
        numeric: has('n'),
        fold: has('f'),
        reverse: has('r'),
    })
}

/// A position of a key: `F[.C][OPTIONS]`.
struct Place<'t> {
    /// Index of the field, from 0.
    field: usize,
    /// Position of the byte within the field, from 1. 0 means the end of the field, and is only
    /// valid in the second position of a key. `None` if it is not given.
    bytes: Option<usize>,
    /// Option letters of the position.
    letters: &'t str,
}

fn place(text: &str) -> Option<Place<'_>> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (place, letters) = text.split_at(end);
    // A number larger than any memory means the end of the line.
    let number = |text: &str| {
        let number = text.parse::<usize>().ok().filter(|number| isize::try_from(*number).is_ok());
        number.filter(|_| is_number(text))
    };
    let (field, bytes) = match place.split_once('.') {
        Some((field, bytes)) => (field, Some(number(bytes)?)),
        None => (place, None),
    };
    Some(Place { field: number(field)?.checked_sub(1)?, bytes, letters })
}

/// Returns the arguments with which `sort` merges sorted files in the same order. The options for
/// memory and threads are omitted.
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

/// Returns the directory for temporary files that the command names with `-T` or, failing that,
/// with `TMPDIR`. If it names several with `-T`, among which sort would alternate, returns the
/// first.
fn folder(subject: &Subject<'_>, options: &Options) -> Option<String> {
    let variable = || {
        let mut variables = subject.simple.variables.iter();
        let (_, value) = variables.rfind(|(name, _)| name == "TMPDIR")?;
        Some(value.text.as_str()).filter(|folder| !folder.is_empty())
    };
    options.values('T').next().or_else(variable).map(str::to_owned)
}

/// Returns why GNU sort may reject its options, or why the meaning of an option's value is unknown.
/// Returns `None` if all options are supported.
fn objection(options: &Options) -> Option<&'static str> {
    let mut separators = options.values('t');
    let first = separators.next();
    let one = first.is_none_or(|text| text.len() == 1 || text == "\\0");
    if !one || !options.values('k').all(is_key) || separators.any(|other| Some(other) != first) {
        return Some("its keys cannot be parsed");
    }
    let is_size = |text: &str| {
        let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = text.len() - suffix.len();
        SUFFIXES.iter().any(|&(known, most)| known == suffix && (1..=most).contains(&digits))
    };
    let is_within = |text: &str, range: RangeInclusive<u32>| {
        is_number(text) && text.parse().is_ok_and(|it| range.contains(&it))
    };
    let accepted = options.values('S').all(is_size)
        && options.values(PARALLEL).all(|text| is_within(text, 1..=u32::MAX))
        && options.values('\u{4}').all(|text| is_within(text, 2..=MAX_BATCH_SIZE))
        && options.values('T').all(takes_files);
    if !accepted {
        return Some("it may reject its options");
    }
    let general: String = options.given.iter().map(|(letter, _)| *letter).collect();
    // A key without letters uses those of the whole command.
    let keys = options.values('k').chain([general.as_str()]);
    (!keys.into_iter().all(has_one_order)).then_some("it rejects incompatible orders")
}

/// Returns whether this process can create files in the given directory.
fn takes_files(folder: &str) -> bool {
    use rustix::fs::{Access, access};
    std::fs::metadata(folder).is_ok_and(|data| data.is_dir())
        && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Returns whether the letters of a key, or of the whole command, name at most one order.
fn has_one_order(letters: &str) -> bool {
    let is_given = |order: &&&str| order.chars().any(|letter| letters.contains(letter));
    ORDERS.iter().filter(is_given).count() <= 1
}

/// Returns whether `text` is a key that `-k` accepts: one or two positions, with known option
/// letters. Field numbers start at 1, and so does the byte offset in the first position. In the
/// second position, offset 0 means the end of the field.
fn is_key(text: &str) -> bool {
    let mut places = text.splitn(2, ',').map(place);
    let is_known = |place: &Option<Place<'_>>| {
        place.as_ref().is_some_and(|it| it.letters.chars().all(|c| KEY_OPTIONS.contains(c)))
    };
    let first = places.next().flatten();
    first.as_ref().is_some_and(|first| first.bytes != Some(0))
        && is_known(&first)
        && places.all(|place| is_known(&place))
}

/// Returns whether a `sort` that has been classified certainly succeeds: it accepts its command
/// line, which refers to nothing that may be missing on the machine.
pub fn surely_succeeds(simple: &Simple) -> bool {
    Options::read(&simple.arguments, &TABLE)
        .is_some_and(|options| options.has_only(ONLY_ORDER) && objection(&options).is_none())
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
        let plain = LineOrder { separator: b'\n', ..LineOrder::default() };
        for text in ["sort", "sort -s", "sort -k1"] {
            assert_eq!(order(text), Some(plain.clone()), "{text}");
        }
        let separated = LineOrder { field_separator: Some(b':'), ..plain.clone() };
        assert_eq!(order("sort -t :"), Some(separated));
        assert_eq!(
            order("sort -ruz"),
            Some(LineOrder { reverse: true, unique: true, separator: 0, ..plain.clone() })
        );
        assert_eq!(order("sort -rk1"), Some(LineOrder { reverse: true, ..plain }));
        let german = class_in("sort", "de_DE.UTF-8");
        let Class::Combinable(german) = german else { panic!("{german:?}") };
        let Combine::Merge(merge) = &german.combine else { panic!("{german:?}") };
        assert!(merge.lines.is_none() && !german.any_order && german.each.may_fail);
    }

    /// Returns the keys by which contend sorts in place of the command, in short form: the field
    /// and byte of both ends, `b` after an end that skips blanks, and the options. Returns `None`
    /// if only the command can sort.
    fn keys_of(text: &str) -> Option<String> {
        let place = |place: &FieldPlace| {
            let blanks = if place.skips_blanks { "b" } else { "" };
            format!("{}.{}{blanks}", place.field, place.bytes)
        };
        let by = |key: &SortKey| {
            let letters = [(key.numeric, 'n'), (key.fold, 'f'), (key.reverse, 'r')];
            letters.iter().filter(|(is, _)| *is).map(|(_, letter)| *letter).collect::<String>()
        };
        let key = |key: &SortKey| {
            let to = key.to.as_ref().map_or(String::new(), place);
            format!("{}-{to}{}", place(&key.from), by(key))
        };
        let order = merge(text).lines?;
        Some(order.keys.iter().map(key).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn keys_are_what_sort_makes_of_them() {
        for (text, wanted) in [
            ("sort -n", "0.0-n"),
            ("sort -bf", "0.0b-f"),
            ("sort -rn", "0.0-nr"),
            ("sort -k2,2n -k1,1", "1.0-1.0n 0.0-0.0"),
            ("sort -k1.2,3.4", "0.1-2.4"),
            ("sort -k1,1.0", "0.0-0.0"),
            ("sort -rk2", "1.0-r"),
            ("sort -n -k2r -k3", "1.0-r 2.0-n"),
            ("sort -k2b,3", "1.0b-2.0"),
            ("sort -k2,3b", "1.0-2.0b"),
            ("sort -b -k2,3", "1.0b-2.0b"),
            ("sort -k1r", "0.0-r"),
        ] {
            assert_eq!(keys_of(text).as_deref(), Some(wanted), "{text}");
        }
        for text in [
            "sort -nu",
            "sort -ns",
            "sort -k1,1 -s",
            "sort -d",
            "sort -k1,1i",
            "sort -k1g",
            "sort -M",
            "LC_NUMERIC=de_DE.UTF-8 sort -n",
            "LC_NUMERIC=de_DE.UTF-8 sort -k1n",
            "LC_CTYPE=tr_TR.UTF-8 sort -f",
        ] {
            assert_eq!(keys_of(text), None, "{text}");
        }
    }

    #[test]
    fn the_folder_for_spilling_is_the_given_one() {
        let folder = |text: &str| merge(text).folder;
        assert_eq!(folder("sort"), None);
        assert_eq!(folder("sort -T /tmp --temporary-directory=.").as_deref(), Some("/tmp"));
        assert_eq!(folder("TMPDIR=/c sort").as_deref(), Some("/c"));
        assert_eq!(folder("TMPDIR=/c sort -T/tmp").as_deref(), Some("/tmp"));
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
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("sort -c", "checks"),
            ("sort -C", "checks"),
            ("sort -m", "`-m` merges sorted files"),
            ("sort -o f", "`-o`"),
            ("sort -R", "shuffles"),
            ("sort -V", "`-V`"),
            ("sort -k1V", "order of a key"),
            ("sort -k0", "keys"),
            ("sort -kx", "keys"),
            ("sort -tab", "keys"),
            ("sort -t a -t b", "keys"),
            ("sort -k99999999999999999999", "keys"),
            ("sort -S x", "it may reject its options"),
            ("sort -S 1Q", "it may reject its options"),
            ("sort -S 99E", "it may reject its options"),
            ("sort -S 9999999T", "it may reject its options"),
            ("sort -T /no/such/folder", "it may reject its options"),
            ("sort --batch-size=1000000", "it may reject its options"),
            ("sort -gi", "it rejects incompatible orders"),
            ("sort -dn", "it rejects incompatible orders"),
            ("sort -hn", "it rejects incompatible orders"),
            ("sort -gM", "it rejects incompatible orders"),
            ("sort -k1g,1n", "it rejects incompatible orders"),
            ("sort -k1i,1g", "it rejects incompatible orders"),
            ("sort -k1 -gi", "it rejects incompatible orders"),
            ("sort -k1.0", "keys"),
            ("sort -k1,0", "keys"),
            ("sort --parallel=0", "it may reject its options"),
            ("sort --batch-size=1", "it may reject its options"),
            ("sort --debug", "remarks"),
            ("sort --files0-from=f", "it searches for files to read"),
            ("sort a b", "it reads files named in its arguments"),
            ("sort +1", "it reads files named in its arguments"),
        ]);
    }
}
