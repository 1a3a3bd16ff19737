//! Property tests: programs that `per_record` or `totals` accepts print the same output over chunks
//! as over the whole input, with every installed awk.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;

use super::Program;
use super::state::per_record;
use super::sums::{Totals, totals};

/// Commands of the installed awks. The first access prints a line to standard error for each awk
/// that is missing.
static AWKS: LazyLock<Vec<&[&str]>> = LazyLock::new(|| {
    let all: [&[&str]; 4] = [&["mawk"], &["gawk"], &["busybox", "awk"], &["original-awk"]];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = |awk: &&[&str]| {
        let here = std::env::split_paths(&path).any(|folder| folder.join(awk[0]).is_file());
        if !here {
            // Bypasses the test harness's capture, so that skipped tests are counted.
            let _ = writeln!(std::io::stderr(), "SKIPPED awk: no {}", awk[0]);
        }
        here
    };
    all.into_iter().filter(is_here).collect()
});

/// Returns whether the awk is busybox's, in which comparisons of missing fields depend on earlier
/// records.
fn is_busybox(awk: &[&str]) -> bool {
    awk[0] == "busybox"
}

/// Runs an awk program over an input, and returns its standard output, standard error and exit
/// code.
fn run(awk: &[&str], program: &str, input: &[u8]) -> Output {
    let mut child = Command::new(awk[0])
        .args(&awk[1..])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The program may exit without reading its input, which fits into a pipe's buffer.
    let _ = child.stdin.take().expect("piped").write_all(input);
    child.wait_with_output().expect("it ends")
}

/// Runs an awk program and returns its output. Panics if the program fails.
fn printed(awk: &[&str], program: &str, input: &[u8]) -> Vec<u8> {
    let output = run(awk, program, input);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{awk:?} {program}: {told}");
    output.stdout
}

/// Splits the input into chunks, of which some may be empty. Each element of `cuts` is the number
/// of lines before a cut, modulo the number of lines plus 1.
fn parts<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
    let mut borders: Vec<usize> = cuts.iter().map(|cut| cut % (lines.len() + 1)).collect();
    borders.sort_unstable();
    borders.push(lines.len());
    let mut from = 0;
    let mut found = Vec::new();
    for border in borders {
        let length: usize = lines[from..border].iter().map(|line| line.len()).sum();
        let start: usize = lines[..from].iter().map(|line| line.len()).sum();
        found.push(&input[start..start + length]);
        from = border;
    }
    found
}

fn in_chunks(awk: &[&str], program: &str, parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().flat_map(|part| printed(awk, program, part)).collect()
}

/// Computes the totals of each chunk in `parts`, and returns the output of the program that
/// combines them. Returns `None` if the totals are inexact.
fn combined(awk: &[&str], totals: &Totals, parts: &[&[u8]]) -> Option<Vec<u8>> {
    let outputs: Vec<_> = parts.iter().map(|part| printed(awk, &totals.part, part)).collect();
    Totals::are_exact(outputs.iter().map(Vec::as_slice))
        .then(|| printed(awk, &totals.combine, &outputs.concat()))
}

fn sorted(output: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = output.split(|b| *b == b'\n').collect();
    lines.sort_unstable();
    lines
}

fn same_totals(program: &str, input: &[u8], cuts: &[usize]) -> bool {
    let read = Program::read(program).unwrap_or_else(|why| panic!("{program}: {why}"));
    let Ok(totals) = totals(&read, &[]) else { return false };
    let mut exact = false;
    for awk in AWKS.iter().filter(|awk| !(totals.compares_fields && is_busybox(awk))) {
        let Some(mut together) = combined(awk, &totals, &parts(input, cuts)) else { continue };
        exact = true;
        let mut whole = printed(awk, program, input);
        if totals.depends_on_array_order {
            (whole, together) = (sorted(&whole).concat(), sorted(&together).concat());
        }
        assert_eq!(
            String::from_utf8_lossy(&together),
            String::from_utf8_lossy(&whole),
            "{:?} {}\n--- part\n{}\n--- combine\n{}",
            awk,
            program,
            totals.part,
            totals.combine
        );
    }
    exact
}

/// Generates lines of up to three words and numbers. The last line may lack its newline.
fn inputs() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        4 => "[a-c]{1,2}",
        3 => "-?[0-9]{1,3}",
        1 => "[0-9]\\.[0-9]",
        1 => Just("9007199254740993".to_owned()),
        1 => Just("\u{e9}\\".to_owned()),
        1 => Just("0x1f".to_owned()),
        1 => Just(String::new()),
    ];
    let line = prop::collection::vec(field, 0..4).prop_map(|fields| fields.join(" "));
    (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(|(lines, ends)| {
        let mut text = lines.join("\n");
        if ends && !text.is_empty() {
            text.push('\n');
        }
        text.into_bytes()
    })
}

/// Generates lines of a word and two integers, so that sums are exact.
fn whole_inputs() -> impl Strategy<Value = Vec<u8>> {
    let line = ("[a-c]{0,2}", -50..50_i32, 0..1000_u32);
    prop::collection::vec(line, 0..12).prop_map(|lines| {
        let lines = lines.into_iter().map(|(word, one, other)| format!("{word} {one} {other}\n"));
        lines.collect::<String>().into_bytes()
    })
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..20_usize, 0..4)
}

fn expressions() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "x",
        "y",
        "z",
        "c",
        "$1",
        "$2",
        "$NF",
        "$0",
        "NF",
        "3",
        "\"b\"",
        "length($1)",
        "a[1]",
        "a[$1]",
        "length()",
        "RSTART",
        "index($0, \"b\")",
        "toupper($1)",
        "f($1)",
    ]);
    atom.prop_map(str::to_owned).prop_recursive(3, 8, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| format!("({a} + {b})")),
            two.clone().prop_map(|(a, b)| format!("({a} {b})")),
            two.clone().prop_map(|(a, b)| format!("({a} && {b})")),
            two.clone().prop_map(|(a, b)| format!("index({a}, {b})")),
            two.clone().prop_map(|(a, b)| format!("({a} < {b})")),
            two.prop_map(|(a, b)| format!("({a} ? {b} : $2)")),
            inner.clone().prop_map(|a| format!("(x = {a})")),
            inner.clone().prop_map(|a| format!("(y += {a})")),
            inner.clone().prop_map(|a| format!("split({a}, a)")),
            inner.clone().prop_map(|a| format!("match({a}, /b/)")),
            inner.clone().prop_map(|a| format!("({a} in a)")),
            inner.prop_map(|a| format!("gsub(/a/, {a}, x)")),
        ]
    })
}

fn simple_statements() -> impl Strategy<Value = String> {
    expressions().prop_flat_map(|e| {
        prop::sample::select(vec![
            format!("x = {e}"),
            format!("y = {e}"),
            format!("z = {e}"),
            "x++".to_owned(),
            format!("a[{e}] = 1"),
            format!("print {e}"),
            format!("print x, {e}"),
            format!("printf \"%s|\", {e}"),
            format!("printf(\"%s\\n\", {e})"),
            format!("split({e}, a)"),
            "delete a".to_owned(),
            format!("$2 = {e}"),
            "next".to_owned(),
            "print".to_owned(),
            "gsub(/a/, \"\")".to_owned(),
            format!("print {e}; next"),
            format!("if ({e}) x = 1; else z = 1"),
        ])
    })
}

/// Generates statements without nested loops, which would share their counters and might never end.
fn statements() -> impl Strategy<Value = String> {
    let turn = (expressions(), simple_statements(), simple_statements());
    let loops = turn.prop_flat_map(|(e, s, t)| {
        prop::sample::select(vec![
            format!("for (i = 1; i <= 2; i++) {{ {s}; x = {e}; {t} }}"),
            format!("j = 0; do {{ {s}; if ({e}) break; {t} }} while (j++ < 2)"),
            format!("k = 2; while (k--) {{ {s}; if ({e}) continue; {t} }}"),
            format!("for (;;) {{ {s}; if ({e}) {{ {t}; break }} break }}"),
        ])
    });
    let leaf = prop_oneof![3 => simple_statements(), 1 => loops];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let turn = (expressions().boxed(), inner.clone());
        prop_oneof![
            turn.clone().prop_map(|(e, s)| format!("if ({e}) {{ {s} }}")),
            turn.prop_map(|(e, s)| format!("if ({e}) {{ {s} }} else z = 1")),
            (inner.clone(), inner).prop_map(|(s, t)| format!("{s}; {t}")),
        ]
    })
}

fn programs() -> impl Strategy<Value = String> {
    let pattern = prop_oneof![
        Just(String::new()),
        Just("/b/".to_owned()),
        Just("NF > 1".to_owned()),
        expressions(),
    ];
    let rule = (pattern, statements()).prop_map(|(p, s)| format!("{p} {{ {s} }}"));
    let begin =
        prop::sample::select(vec!["", "BEGIN { c = 2 } ", "BEGIN { OFS = \"-\"; c = \"b\" } "]);
    (begin, prop::collection::vec(rule, 1..3)).prop_map(|(begin, rules)| {
        let function = "function f(s, t) { t = s \"_\"; return t } ";
        format!("{function}{begin}{}", rules.join("\n"))
    })
}

fn adding_programs() -> impl Strategy<Value = String> {
    let amount = prop::sample::select(vec![
        "$2",
        "$3",
        "$2 * $3",
        "NF",
        "1",
        "5000",
        "length($0)",
        "$1",
        "-$2",
        "t",
    ]);
    let sum =
        prop::sample::select(vec!["n", "m", "a[$1]", "b[$1, $2]", "a[$1 \"\\n\" $2]", "b[t]"]);
    let add = (sum, amount).prop_flat_map(|(sum, amount)| {
        prop::sample::select(vec![
            format!("{sum}++"),
            format!("++{sum}"),
            format!("{sum} += {amount}"),
            format!("{sum} -= {amount}"),
            format!("t = $1; {sum} += {amount}"),
            format!("if ($2 > 3) {sum} += {amount}; else {sum}++"),
            format!("for (i = 1; i < 3; i++) {sum} += $i"),
        ])
    });
    let pattern = prop::sample::select(vec!["", "/a/ ", "$2 > 0 ", "NF && $1 != \"b\" "]);
    let rule = (pattern, add).prop_map(|(p, s)| format!("{p}{{ t = $3; {s} }}"));
    let end = prop::sample::select(vec![
        "print n",
        "print n, m, NR",
        "print n + 0; printf \"%d %s\\n\", m, m",
        "for (k in a) print k, a[k]",
        "for (k in b) printf \"%s=%d\\n\", k, b[k]; print NR",
        "for (k in a) s += a[k]; print s",
        "s = 0; for (k in a) { s += a[k]; c++ } print s, c, length(a)",
        "for (k in b) { split(k, p, SUBSEP); if (p[1] in a) print p[1], b[k] }",
        "for (k in a) if (a[k] > 2) print a[k] / 3 + 0.1, k",
        "if (n > 3) print \"many\"; else print \"few\"; exit",
        "if (NR) print n / NR, (\"a\" in a), a[\"b\"]",
    ]);
    let begin = prop::sample::select(vec![
        "",
        "BEGIN { n = 0 } ",
        "BEGIN { OFS = \":\"; ORS = \"!\\n\" } ",
    ]);
    (begin, prop::collection::vec(rule, 0..3), end)
        .prop_map(|(begin, rules, end)| format!("{begin}{} END {{ {end} }}", rules.join("\n")))
}

/// Returns a configuration with a fixed seed, so that every run tests the same programs and inputs.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(5),
        max_global_rejects: 100_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn proved_programs_print_the_same_in_chunks(
        program in programs().prop_filter("is refused", |text| {
            Program::read(text).is_ok_and(|program| per_record(&program, &[]).is_ok())
        }),
        input in inputs(),
        cuts in cuts(),
    ) {
        let read = Program::read(&program).expect("read before");
        let known = per_record(&read, &[]).expect("proved before");
        for awk in AWKS.iter().filter(|awk| !(known.compares_fields && is_busybox(awk))) {
            let whole = printed(awk, &program, &input);
            let pieces = in_chunks(awk, &program, &parts(&input, &cuts));
            prop_assert_eq!(&pieces, &whole, "{:?} {}", awk, program);
            prop_assert!(!known.ends_lines || whole.is_empty() || whole.ends_with(b"\n"));
        }
    }

    #[test]
    fn exact_totals_are_the_same_in_chunks(
        program in adding_programs(),
        input in inputs(),
        cuts in cuts(),
    ) {
        same_totals(&program, &input, &cuts);
    }

    #[test]
    fn totals_of_integers_are_the_same_in_chunks(
        program in adding_programs().prop_filter("is refused", |text| {
            Program::read(text).is_ok_and(|program| totals(&program, &[]).is_ok())
        }),
        input in whole_inputs(),
        cuts in cuts(),
    ) {
        same_totals(&program, &input, &cuts);
    }
}

#[test]
fn totals_of_empty_chunks_combine() {
    for program in ["/x/ { n++ } END { print n }", "BEGIN { n = 0 } /x/ { n++ } END { print n }"] {
        assert!(same_totals(program, b"a 1\nb 2\n", &[1]), "{program}");
        assert!(same_totals(program, b"", &[0, 0]), "{program}");
        assert!(same_totals(program, b"a\nb\nx\nx", &[3]), "{program}");
    }
}

#[test]
fn rounded_totals_are_not_combined() {
    for input in [
        "1\n0.5\n0.5\n",
        "0.5\n0.25\n",
        "1e15\n1e15\n",
        "9007199254740993\n1\n",
        "1\n1e300\n",
        "0.1\n",
    ] {
        let found = same_totals("{ s += $1 } END { print s }", input.as_bytes(), &[1]);
        assert!(!found, "{input}");
    }
    assert!(!Totals::are_exact([&b"exact 5\n1\n"[..]]));
    assert!(!Totals::are_exact([&b"inexact\n1\nend\n"[..]]));
    assert!(!Totals::are_exact([&b"exact 1e+16\n1\nend\n"[..]]));
}

#[test]
fn values_that_are_no_numbers_add_up_as_in_the_original() {
    for input in ["nan\n1\n", "+nan\n1\n", "inf\n-inf\n", "0x10\n1\n", "1e3\n-0\n", "x\n \n"] {
        same_totals("{ s += $1; n -= $1 } END { print s, n, -s }", input.as_bytes(), &[1]);
    }
}

#[test]
fn keys_may_be_anything() {
    for input in [&b"a\xff\xfeb 1\n\xc3 2\n\\n 3\n 4\n"[..], b"1 1\n01 1\n1.0 1\n+1 1\n0x1 1\n"] {
        for program in [
            "{ a[$1]++; b[$1 \"\\n\\n\" $2 \"\\n\"] += $2 } END { for (k in b) print k, b[k] }",
            "{ a[$0]++ } END { for (k in a) print a[k], k }",
            "{ a[$1 * 0.3]++; a[$1, $2]++; a[NF] += 2 } END { for (k in a) print a[k], k }",
        ] {
            assert!(same_totals(program, input, &[1, 3]), "{program}");
        }
    }
}
