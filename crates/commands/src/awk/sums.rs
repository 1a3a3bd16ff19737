//! Recognizes programs that compute totals and print them at the end, and derives programs that
//! compute them chunk by chunk.
//!
//! ```text
//! chunk 1 ──part──> totals ─┐
//! chunk 2 ──part──> totals ─┼─ concatenated ──> combine ──> output of the original program
//! chunk 3 ──part──> totals ─┘     │
//!                                 └─ Totals::are_exact, or else the original program has to run
//! ```
//!
//! The combining program adds up the totals and runs the original END actions. Additions in another
//! order may round differently, but the output must be identical. So the programs for chunks track
//! the values that they add, and [`Totals::are_exact`] checks that all of them were integers, small
//! enough that no sum was rounded. If not, the totals are useless, and the caller has to run the
//! original program.

use std::collections::BTreeSet;

use super::additions::{EXACT_SUM_LIMIT, additions, mentions, only_added_to, tallies};
use super::ast::{Action, Expression, ItemKind, Place, Program, Statement};
use super::checks;
use super::derived::Generator;
use super::flow::{Flow, LINE_START, Stage};
use super::rejection::Rejection;
use super::state::known;
use super::traits;
use super::values::assigned;
use super::walk::{Node, Walk};

/// A program that computes totals, and the programs derived from it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Variables that are sums.
    pub scalars: Vec<String>,
    /// Arrays whose elements are sums.
    pub arrays: Vec<String>,
    /// Whether END uses the number of records (`NR`).
    pub counts_records: bool,
    /// The source of the END actions.
    pub end: String,
    /// Whether END prints whole lines in an order that depends on how an array was filled. If so,
    /// the output is deterministic only if a sort with a total order follows.
    pub depends_on_array_order: bool,
    /// Whether the program may compare missing fields with numbers. In busybox's awk, the result
    /// depends on earlier records, so the proof does not hold there.
    pub compares_fields: bool,
    /// The program that computes the totals of a chunk. It must run with the options of the
    /// original command.
    pub part: String,
    /// The program that reads the concatenated outputs of `part` and prints the output of the
    /// original program. It must run with the options of the original command.
    pub combine: String,
}

impl Totals {
    /// Returns whether the given outputs of `part` add up to exactly the original's totals, in any
    /// order: all outputs are complete, and nothing was rounded.
    pub fn are_exact<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let amounts = parts.into_iter().map(|part| {
            let first = part.split(|b| *b == b'\n').next()?;
            let complete = part.ends_with(b"\nend\n");
            let amount = std::str::from_utf8(first).ok()?.strip_prefix("exact ")?;
            amount.parse().ok().filter(|amount: &u64| complete && *amount < EXACT_SUM_LIMIT)
        });
        let sum = amounts.into_iter().try_fold(0_u64, |sum, amount| sum.checked_add(amount?));
        sum.is_some_and(|sum| sum < EXACT_SUM_LIMIT)
    }
}

/// Recognizes a program that computes totals. `given` lists the variables that the command's
/// arguments assign.
///
/// # Errors
/// Returns why the totals cannot be computed chunk by chunk:
/// - there is no END action;
/// - `given` has a variable that determines or describes the input, such as `RS` or `NR`;
/// - a BEGIN action has effects, or a function does more than compute a value from its parameters;
/// - a rule prints, or depends on earlier records in any way except by adding to a sum;
/// - the program uses a construct that is forbidden everywhere, such as `getline` or `system()`;
/// - an END action depends on anything but the totals, such as the last record.
pub fn totals(program: &Program, given: &[&str]) -> Result<Totals, Rejection> {
    checks::given(given)?;
    if program.ends().next().is_none() {
        return Err(Rejection::HasNoEnd);
    }
    checks::begins(program)?;
    checks::rules(program)?;
    if prints(program) {
        return Err(Rejection::Prints);
    }
    let sums = sums(program, given);
    let mut later: BTreeSet<_> = program.ends().flat_map(assigned).collect();
    let names = known(program, sums.clone(), true);
    later.extend(names.changing.iter().copied());
    checks::functions(program, &later)?;
    Flow::new(names, Stage::Records).record(program)?;
    checks::ends(program)?;
    let depends_on_array_order = prints_in_order(program, &sums, given)?;
    let arrays = checks::arrays(program);
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (arrays, scalars) = sums.iter().partition::<Vec<&str>, _>(|name| arrays.contains(**name));
    let (arrays, scalars) = (owned(arrays), owned(scalars));
    let mut counted = program.ends().flat_map(mentions);
    let counts_records = counted.any(|(name, _)| name == "NR");
    let generator = Generator::new(program, given);
    Ok(Totals {
        part: generator.part(program, &scalars, &arrays),
        combine: generator.combine(program, &scalars, &arrays, counts_records),
        end: Generator::texts(program, |kind| matches!(kind, ItemKind::End(_))),
        scalars,
        arrays,
        counts_records,
        depends_on_array_order,
        compares_fields: traits::compares_fields(program),
    })
}

fn prints(program: &Program) -> bool {
    let mut prints = program.rules().any(|rule| rule.action.is_none());
    for rule in program.rules() {
        rule.walk(&mut |node| {
            if let Node::Statement(statement) = node {
                prints |= matches!(statement.action, Action::Print(_));
            }
        });
    }
    prints
}

/// Returns the names to which rules only add, that start at zero, and that functions do not use.
/// Excludes the names in `given`, which the command's arguments assign.
fn sums<'a>(program: &'a Program, given: &[&str]) -> BTreeSet<&'a str> {
    let rules: Vec<_> = program.items.iter().collect();
    let in_rules = |kind: &ItemKind| matches!(kind, ItemKind::Rule(_));
    let mut sums = BTreeSet::new();
    for item in rules.iter().filter(|item| in_rules(&item.kind)) {
        sums.extend(additions(*item).into_iter().map(|(_, addition)| addition.name));
    }
    sums.retain(|name| {
        rules.iter().all(|item| match &item.kind {
            ItemKind::Rule(_) => {
                only_added_to(*item).contains(name) || !mentions(*item).contains_key(name)
            }
            ItemKind::Function(_) => !mentions(*item).contains_key(name),
            ItemKind::Begin(body) => starts_at_zero(body, name),
            ItemKind::End(_) => true,
        }) && !given.contains(name)
    });
    sums
}

/// Returns whether the BEGIN action `body` uses `name` only to assign zero to that variable, or not
/// at all.
fn starts_at_zero(body: &[Statement], name: &str) -> bool {
    let zero = |statement: &Statement| match &statement.action {
        Action::Value(Expression::Assign(assignment)) => {
            assignment.target == Place::Variable(name.to_owned())
                && assignment.operator == "="
                && assignment.value == Expression::Number("0".to_owned())
        }
        _ => false,
    };
    let count = mentions(body).get(name).copied().unwrap_or(0);
    body.iter().filter(|statement| zero(statement)).count() == count
}

/// Analyzes END, and returns whether it prints in the order of an array. Fails if END depends on
/// more than totals.
fn prints_in_order(
    program: &Program,
    sums: &BTreeSet<&str>,
    given: &[&str],
) -> Result<bool, Rejection> {
    let mut names = known(program, sums.clone(), !traits::changes_line_end(program, given));
    names.left = std::mem::take(&mut names.changing);
    let all = mentions(program).into_keys().chain(["RSTART", "RLENGTH"]);
    names.changing = all.collect();
    names.tallies = tallies(program, sums, given);
    let mut defined = names.changing.clone();
    defined.retain(|name| !names.left.contains(name));
    defined.insert(LINE_START);
    let mut flow = Flow::new(names, Stage::End);
    let mut defined = Some(defined);
    for end in program.ends() {
        defined = flow.statements(end, defined)?;
    }
    Ok(flow.prints_in_order_of_array)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<Totals, Rejection> {
        totals(&Program::read(text).unwrap_or_else(|why| panic!("{text}: {why}")), &["given"])
    }

    #[test]
    fn totals_are_recognised() {
        for (text, scalars, arrays, counts, order) in [
            ("{ n++ } END { print n }", "n", "", false, false),
            ("END { print NR }", "", "", true, false),
            ("{ s += $1; n++ } END { print s / n, NR }", "n s", "", true, false),
            ("/a/ { ++n; next } { m -= $2 * 2 } END { print n - m }", "m n", "", false, false),
            ("BEGIN { n = 0 } { n++ } END { print n + given }", "n", "", false, false),
            ("{ a[$1]++ } END { for (k in a) print k, a[k] }", "", "a", false, true),
            ("{ c[$1, $2] += $3 } END { print c[\"a\", \"b\"] }", "", "c", false, false),
            ("{ a[$1]++ } END { for (k in a) n++; print n }", "", "a", false, false),
            (
                "{ a[$1] += $2 } END { for (k in a) if (a[k] > 2) s += a[k]; print s }",
                "",
                "a",
                false,
                false,
            ),
            (
                "{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print n[w], w }",
                "",
                "n",
                false,
                true,
            ),
            (
                "{ n[substr($1, 1, 4)]++ } END { for (k in n) { x = k; print x } for (k in n) print k }",
                "",
                "n",
                false,
                true,
            ),
        ] {
            let totals = found(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(totals.scalars.join(" "), scalars, "{text}");
            assert_eq!(totals.arrays.join(" "), arrays, "{text}");
            assert_eq!(totals.counts_records, counts, "{text}");
            assert_eq!(totals.depends_on_array_order, order, "{text}");
            for derived in [&totals.part, &totals.combine] {
                assert!(Program::read(derived).is_ok(), "{derived}");
            }
        }
    }

    #[test]
    fn programs_beyond_totals_are_rejected_with_a_reason() {
        for (text, why) in [
            ("{ n++ }", "it has no END action"),
            ("{ n++; print } END { print n }", "it prints before its END action"),
            ("/a/; END { print NR }", "it prints before its END action"),
            ("{ n++; x = n } END { print n }", "`n` keeps its value from line to line"),
            ("{ n += $1; n *= 2 } END { print n }", "`n` keeps its value from line to line"),
            ("{ given++ } END { print given }", "`given` keeps its value from line to line"),
            ("BEGIN { n = 5 } { n++ } END { print n }", "`n` keeps its value from line to line"),
            ("$1 > m { m = $1 } END { print m }", "`m` keeps its value from line to line"),
            ("!seen[$1]++ { n++ } END { print n }", "`seen` keeps its value from line to line"),
            ("{ n += i++ } END { print n }", "`i` keeps its value from line to line"),
            ("NR > 1 { n++ } END { print n }", "`NR` counts lines"),
            ("BEGIN { NR = 3 } END { print NR }", "`NR` counts lines"),
            ("{ x = $1 } END { print x }", "`x` in the END action depends on the last line"),
            ("{ n++ } END { print }", "`$0` in the END action depends on the last line"),
            ("{ n++ } END { print n, $1 }", "`$0` in the END action depends on the last line"),
            ("{ n++ } END { if (/a/) print n }", "`$0` in the END action depends on the last line"),
            ("{ n++ } END { print n, NF }", "`NF` in the END action depends on the last line"),
            ("{ n++ } END { print n, length }", "`$0` in the END action depends on the last line"),
            (
                "function f() { return $1 } { n++ } END { print f() }",
                "`$0` in the END action depends on the last line",
            ),
            (
                "match($0, /a/) { n++ } END { print RSTART }",
                "`RSTART` in the END action depends on the last line",
            ),
            (
                "{ n++; x = c[$1] } END { for (k in c) print k }",
                "`c` in the END action depends on the last line",
            ),
            ("{ n++ } END { while (getline > 0) n++; print n }", "`getline` reads lines itself"),
            ("{ n++ } END { print n | \"cat\" }", "it prints to files or commands"),
        ] {
            let found = found(text).map(drop).map_err(|reason| reason.to_string());
            assert_eq!(found, Err(why.to_owned()), "{text}");
        }
        for end in [
            "for (k in a) { s = s k }; print s",
            "for (k in a) if (a[k] > m) { m = a[k]; w = k } print w",
            "for (k in a) { print k; if (n++ > 3) break }",
            "for (k in a) { print k; exit }",
            "for (k in a) printf \"%s \", k",
            "for (k in a) s += a[k] * 0.1; print s",
            "for (k in a) keys[n++] = k; print keys[0]",
            "for (k in a); print k",
            "for (k in a) k++; print k",
            "for (k in a) n += a[k]; k += 2; print k",
            "for (k in a) { n++; k = 3; k++ } print n, k; for (k in a) k--; print k",
            "printf \"x\"; for (k in a) print k",
            "ORS = \" \"; for (k in a) print k",
            "for (k in a) { print s; s = k }",
            "for (k in a) delete a[k]; print length(a)",
        ] {
            let text = format!("{{ a[$1]++ }} END {{ {end} }}");
            assert_eq!(
                found(&text).map(drop),
                Err(Rejection::UnspecifiedOrder("a".to_owned())),
                "{text}"
            );
        }
    }
}
