//! Proves that a program processes each record independently.
//!
//! The concatenated outputs of such a program for consecutive chunks of its input, cut after
//! newlines, equal the output of a single run by the same awk with the same options, variables and
//! environment. Runs that fail, as after a division by zero, are excluded; the caller has to
//! discard all output after that of the first failed chunk.
//!
//! A variable is constant if only BEGIN and the command's arguments assign it. Any other variable
//! may be read only where it is definitely assigned: on every path from the start of the same
//! record.

use std::collections::BTreeSet;

use super::ast::Program;
use super::checks;
use super::flow::{Flow, Known, LINE_START, Stage};
use super::rejection::Rejection;
use super::traits;
use super::values::{assigned, touched};

/// Properties of a program that processes each record independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerRecord {
    /// Whether the program certainly prints, for each record, the whole record unchanged or
    /// nothing.
    pub prints_at_most_its_line: bool,
    /// Whether the output for a record, unless it is empty, certainly ends with a newline.
    pub ends_lines: bool,
    /// Whether an awk that works on bytes may split multibyte characters. Assignments in the
    /// command's arguments, including `-F`, are not considered.
    pub may_split_characters: bool,
    /// Whether the program may compare missing fields with numbers. In busybox's awk, the result
    /// depends on earlier records, so the proof does not hold there.
    pub compares_fields: bool,
    /// Whether the program may print NUL bytes that are not in its input.
    pub writes_nul: bool,
}

/// Proves that a program processes each record independently. `given` lists the variables that the
/// command's arguments assign.
///
/// # Errors
///
/// Names a construct that may depend on more than the current record or that is not analyzed, such
/// as an END action.
pub fn per_record(program: &Program, given: &[&str]) -> Result<PerRecord, Rejection> {
    checks::given(given)?;
    if program.ends().next().is_some() {
        return Err(Rejection::HasEnd);
    }
    checks::begins(program)?;
    checks::rules(program)?;
    let print_ends_line = !traits::changes_line_end(program, given);
    let known = known(program, BTreeSet::new(), print_ends_line);
    checks::functions(program, &known.changing)?;
    let mut flow = Flow::new(known, Stage::Records);
    flow.record(program)?;
    Ok(PerRecord {
        prints_at_most_its_line: print_ends_line && traits::prints_at_most_its_line(program),
        ends_lines: flow.at_end.as_ref().is_none_or(|set| set.contains(LINE_START)),
        may_split_characters: traits::may_split_characters(program),
        compares_fields: traits::compares_fields(program),
        writes_nul: traits::writes_nul(program),
    })
}

/// Collects the facts about names that the data-flow analysis of rules needs. `sums` are the names
/// to which additions are allowed anywhere.
pub(super) fn known<'a>(
    program: &'a Program,
    sums: BTreeSet<&'a str>,
    print_ends_line: bool,
) -> Known<'a> {
    let mut changing: BTreeSet<_> = program.rules().flat_map(assigned).collect();
    changing.retain(|name| !sums.contains(name));
    let functions = program.functions().map(|function| touched(function.body.as_slice()));
    let touched = program.rules().map(touched).chain(functions).flatten().collect();
    let arrays = checks::arrays(program);
    Known {
        changing,
        left: BTreeSet::new(),
        touched,
        arrays,
        sums,
        tallies: BTreeSet::new(),
        print_ends_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(text: &str) -> Result<PerRecord, Rejection> {
        per_record(&Program::read(text).unwrap_or_else(|why| panic!("{text}: {why}")), &["given"])
    }

    #[test]
    fn programs_with_independent_records_are_proved() {
        for text in [
            "{ print $1 }",
            "/a/",
            "!/a/ && $3 > 5",
            "BEGIN { FS = \":\"; OFS = \"-\"; n = 3; m[\"a\"] = 1 } $1 > n { print m[$2], given, never }",
            "BEGIN { split(\"a b\", w); for (i = 1; i < 3; i++) is[w[i]] } $1 in is",
            "{ x = $1; y = x + 1; print x, y }",
            "{ if ($1) x = 1; else x = 2; print x }",
            "{ if ($1) { x = 1 } else next; print x }",
            "{ x = $1 } /a/ { print x }",
            "/a/ { next } { x = 1 } { print x }",
            "{ n = split($0, a, \",\"); for (i = 1; i <= n; i++) print a[i], (a[i] in a), length(a) }",
            "{ s = \"\"; for (i = NF; i; i--) s = s $i; print s }",
            "match($0, /b+/) { print RSTART, RLENGTH }",
            "{ if ((x = $1) && x > 3) print x }",
            "{ $3 = \"\"; NF = 2; $0 = $0; print; gsub(/a/, \"b\"); sub(/c/, \"d\", $1) }",
            "{ do { x = $1; if (x) break } while (0); print x }",
            "{ delete a; a[$1] = 1; if (\"b\" in a) print }",
            "{ last = $0 }",
            "{ seen[$0] = 1 }",
            "function up(s) { return toupper(s) ENVIRON[\"X\"] } { print up($1) }",
            "{ while (1) { x = 1; break } print x }",
            "BEGIN { RS = \"\\n\" } { print }",
        ] {
            let found = proof(text);
            assert!(found.is_ok(), "{text}: {:?}", found.err());
        }
    }

    #[test]
    fn dependence_on_other_records_is_rejected_with_a_reason() {
        for (text, why) in [
            ("NR % 2", "`NR` counts lines"),
            ("FNR == 1", "`FNR` counts lines"),
            ("!seen[$0]++", "`seen` keeps its value from line to line"),
            ("{ print x; x = $1 }", "`x` keeps its value from line to line"),
            ("{ print (x = $1) x }", "`x` keeps its value from line to line"),
            ("{ n += $1; print n }", "`n` keeps its value from line to line"),
            ("/a/ { x = $1 } { print x }", "`x` keeps its value from line to line"),
            ("{ if ($1) x = 1; print x }", "`x` keeps its value from line to line"),
            ("{ $1 && (x = 1); print x }", "`x` keeps its value from line to line"),
            ("{ while ($1) { x = 1 } print x }", "`x` keeps its value from line to line"),
            ("{ for (; i < 3; i++) print i }", "`i` keeps its value from line to line"),
            ("{ a[1] = $1; print a[1] }", "`a` keeps its value from line to line"),
            ("{ print a[$1] } $1 in a", "`a` keeps its value from line to line"),
            ("{ print RSTART } match($0, /a/)", "`RSTART` keeps its value from line to line"),
            ("{ print given; given = $1 }", "`given` keeps its value from line to line"),
            ("BEGIN { x = 1 } { print x; x = 2 }", "`x` keeps its value from line to line"),
            ("{ gsub(/a/, \"\", x); print x }", "`x` keeps its value from line to line"),
            ("{ print } END { print }", "it has an END action"),
            ("/a/, /b/ { print }", "`/a/, /b/` is a range of lines"),
            ("{ getline; print }", "`getline` reads lines itself"),
            ("{ \"date\" | getline x; print x }", "`getline` reads lines itself"),
            ("$1 == 3 { exit }", "`exit` ends the program early"),
            ("{ print rand() }", "`rand()` differs from run to run"),
            ("{ system($1) }", "`system()` has side effects"),
            ("{ print FILENAME }", "`FILENAME` describes more than the line"),
            ("{ print > \"/dev/stderr\" }", "it prints to files or commands"),
            ("{ print | \"sort\" }", "it prints to files or commands"),
            (
                "BEGIN { print \"x\" } { print }",
                "`print` in the BEGIN action has to run exactly once",
            ),
            ("BEGIN { exit } { print }", "`exit` in the BEGIN action has to run exactly once"),
            ("BEGIN { RS = \"\" } { print }", "`RS` is assigned, so records may not be lines"),
            ("{ FS = \":\" } { print $1 }", "`FS` is assigned and affects later lines"),
            (
                "{ split($0, a); for (k in a) print k }",
                "`for (… in a)` iterates in an unspecified order",
            ),
            ("function f() { n++ } { f(); print }", "function `f` does more than compute a value"),
            ("{ print RT }", "`RT` describes more than the line"),
        ] {
            let found = proof(text).map_err(|reason| reason.to_string());
            assert_eq!(found, Err(why.to_owned()), "{text}");
        }
        let plain = Program::read("{ print }").expect("plain");
        assert_eq!(per_record(&plain, &["RS"]), Err(Rejection::Separator));
    }

    #[test]
    fn printed_lines_are_classified() {
        let traits = |text: &str| {
            let found = proof(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            (found.prints_at_most_its_line, found.ends_lines)
        };
        for text in ["/a/", "{ if ($1) print; else if ($2) print $0 }", "/a/ { print; next } /b/"] {
            assert_eq!(traits(text), (true, true), "{text}");
        }
        for text in [
            "/a/ { print } /b/",
            "{ print $1 }",
            "{ $1 = \"\"; print }",
            "{ printf \"%s\\n\", $1 }",
            "{ for (i = 0; i < 2; i++) print }",
            "{ for (i = 0; i < NF; i++) printf \"%s \", $i; print \"\" }",
        ] {
            assert_eq!(traits(text), (false, true), "{text}");
        }
        for text in [
            "{ printf \"%s\", $1 }",
            "{ printf $0 }",
            "BEGIN { ORS = \"\" } { print }",
            "{ printf \"a\"; if ($1) print }",
            "{ if ($1) { printf \"a\"; next } print }",
        ] {
            assert!(!traits(text).1, "{text}");
        }
    }

    #[test]
    fn comparisons_of_fields_are_detected() {
        let compares = |text: &str| proof(text).expect("for itself").compares_fields;
        for text in
            ["$2 == 0", "$1 > $2", "{ x = $3; if (x < 1) print }", "{ print ($2 != given) }"]
        {
            assert!(compares(text), "{text}");
        }
        for text in
            ["$2 == \"a\"", "NF > 2", "$2 + 0 < 3", "length($3) > 1", "$1 ~ $2", "$1 \"\" == $2"]
        {
            assert!(!compares(text), "{text}");
        }
    }

    #[test]
    fn split_characters_and_nul_are_detected() {
        let splits = |text: &str| proof(text).expect("for itself").may_split_characters;
        for text in [
            "{ print substr($1, 2) }",
            "{ printf \"%c\", $1 }",
            "{ printf \"%.3s\\n\", $1 }",
            "{ printf $1 \"\\n\" }",
            "{ gsub(/./, \"x\"); print }",
            "{ gsub(\".\", \"x\"); print }",
            "{ gsub(/b*/, \"x\"); print }",
            "{ gsub(/[^a]/, \"x\"); print }",
            "{ n = split($0, a, \"\"); print a[1] }",
            "BEGIN { FS = \"é\" } { print $1 }",
        ] {
            assert!(splits(text), "{text}");
        }
        for text in [
            "{ print $1, toupper($2) }",
            "BEGIN { FS = \":\" } { printf \"%-5s %.2f\\n\", $1, $2 }",
            "{ gsub(/[a-z]+ \\./, \"é\"); print }",
            "{ sub(/,$/, \"\"); n = split($0, a, /[,;]/); print a[n] }",
        ] {
            assert!(!splits(text), "{text}");
        }
        let nul = |text: &str| proof(text).expect("for itself").writes_nul;
        assert!(nul("{ print \"\\000\" }") && nul("{ printf \"%c\", 0 }") && nul("{ printf $1 }"));
        assert!(!nul("{ printf \"%s\\n\", $1 }") && !nul("{ print \"a\\tb\" }"));
    }
}
