use super::*;

fn rewritten_for(dialect: Dialect, text: &str) -> Rewritten {
    let is_program = |name: &str| name != "absent";
    Rewriter { dialect, annotations: &[], is_program: &is_program }.rewrite(text)
}

/// Rewrites a script for bash, and returns it with clocks shortened to `@@`. Prefixes are shortened
/// to `@` and the letter of their position, with `?` if a clock decides whether they apply.
fn rewritten(text: &str) -> String {
    let mut text = rewritten_for(Dialect::Bash, text).text;
    for slot in 0..4 {
        text = text.replace(Dialect::Bash.tick(slot).as_str(), "@@");
        for position in Position::ALL {
            let name = position.letter();
            text = text
                .replace(&Dialect::Bash.prefix(position, Some(slot), false), &format!("@{name}?"));
            text = text.replace(&Dialect::Bash.prefix(position, None, false), &format!("@{name} "));
        }
    }
    text
}

#[test]
fn stages_get_prefixes_and_nothing_else_changes() {
    for (text, wanted) in [
        ("cat $IN | tr A-Z a-z | sort >out", "@f cat $IN | @m tr A-Z a-z | @l sort >out"),
        ("x=1\nsort \"$f\"; echo done", "x=1\n@a sort \"$f\"; echo done"),
        ("LC_ALL=C sort <$f | uniq -c", "LC_ALL=C @f sort <$f | @l uniq -c"),
        ("<$f sort -r 2>err | uniq -c", "<$f @a sort -r 2>err | @a uniq -c"),
        ("sort x$y | uniq <other", "@a sort x$y | @a uniq <other"),
        ("cut -f1 >a$b | uniq", "@a cut -f1 >a$b | @a uniq"),
        ("sort x$y |\n\n  # why\n  uniq", "@f sort x$y |\n\n  # why\n  @l uniq"),
        ("sort $a | grep $(cat) | uniq", "@a sort $a | @f grep $(cat) | @l uniq"),
        ("sort $a | head -n $(nproc) | uniq", "@f sort $a | @m head -n $(nproc) | @l uniq"),
        ("sort x$(sort y) |& uniq", "@a sort x$(sort y) |& @a uniq"),
        (
            "seq 9 | sort | while read -r l; do :; done",
            "@f seq 9 | @l sort | while read -r l; do :; done",
        ),
        ("grep $x é; é | sort é$é", "@a grep $x é; @f é | @l sort é$é"),
        ("(sort $a &) && ! cut -f1 $b", "(@a sort $a &) && ! @a cut -f1 $b"),
        ("sort $a & wait", "@a sort $a & wait"),
        ("sort $a | absent | uniq", "@a sort $a | absent | @a uniq"),
        ("{ sort $a; } >out", "{ @a sort $a; } >out"),
    ] {
        // Names that are not ASCII are left alone.
        let wanted = wanted.replace("@f é | @l sort", "é | @a sort");
        assert_eq!(rewritten(text), wanted, "{text}");
    }
}

#[test]
fn stages_in_loops_and_functions_read_the_clock() {
    for (text, wanted) in [
        ("for i in a b; do sort $i; done", "for i in a b; do @@@a?sort $i; done"),
        ("f() { sort $1 | uniq; }", "f() { @@@f?sort $1 | @l?uniq; }"),
        (
            "while ! sort $a | grep -q b; do :; done",
            "while @@! @f?sort $a | @l?grep -q b; do :; done",
        ),
        ("for i in a; do x && sort $i & done", "for i in a; do @@x && @a?sort $i & done"),
        ("for i in a; do time sort $i; done", "for i in a; do @@time @a?sort $i; done"),
        ("for i in a; do (sort $i); done", "for i in a; do (@@@a?sort $i); done"),
        (
            "for i in a; do { read x; } | sort $i; done",
            "for i in a; do @@{ read x; } | @a?sort $i; done",
        ),
        // Code that the clock would change, or positions where it is not allowed.
        (
            "for i in a; do x; grep \"$?\" $i | sort; done",
            "for i in a; do x; grep \"$?\" $i | sort; done",
        ),
        ("for i in a; do <$i sort; done", "for i in a; do <$i sort; done"),
    ] {
        assert_eq!(rewritten(text), wanted, "{text}");
    }
}

#[test]
fn many_straight_line_pipelines_share_a_clock() {
    let text = "sort $f\n".repeat(MAX_UNTIMED_PIPELINES + 3);
    let text = rewritten(&text);
    assert_eq!(text.matches("@a sort $f\n").count(), MAX_UNTIMED_PIPELINES);
    assert!(text.ends_with("\n@@@a?sort $f\n@@@a?sort $f\n@@@a?sort $f\n"), "{text}");
}

#[test]
fn ambiguous_stages_stay_with_the_shell() {
    for text in [
        "sort() { :; }\nsort $f | uniq() { :; }",
        "sort $a | uniq; echo ${PIPESTATUS[0]}",
        "set -x\nsort $a",
        "alias sort=x\nsort $a",
        "hash -p /bin/true sort; sort $a",
        "echo a; sort $f; echo $_",
        "f() { sort $a; }\ndeclare -f f",
        "f() { sort $a; }\nssh host \"$(typeset -f f); f\"",
        "f() { sort $a; }; export -f f",
        "f() { sort $a; }; if type f; then f; fi",
        "f() { sort $a; }; set",
        "sort $a; declare -p",
        "sort $a; for v in \"${!__@}\"; do :; done",
        "sort $a; . other",
        "set -m; sort $a & wait",
        "unset PATH; sort $a",
        "PATH=/nonexistent; sort $a",
        "PATH= sort $a",
        "sort <(cut $f)",
        "echo $a",
        "cat $a",
        "sort $a | | b",
    ] {
        let found = rewritten_for(Dialect::Bash, text);
        assert_eq!((found.text.as_str(), found.taken.len()), (text, 0));
        assert!(found.refused.is_some(), "{text}");
    }
    let exported = rewritten_for(Dialect::Posix, "set -a; sort $f");
    assert!(exported.refused.is_some(), "the variables of prefixes would be exported");
}

#[test]
fn stages_with_little_input_stay_with_the_shell() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let small = format!("sort {own} | uniq -c");
    let written = format!("make >{own}; sort {own} | uniq -c");
    for (text, stays) in [
        ("echo $x | tr a b | sort", true),
        ("printf '%s\\n' $x | sort", true),
        ("sort <<<$x | uniq", true),
        ("sort <<E | uniq\n$x\nE", true),
        (small.as_str(), true),
        (written.as_str(), false),
        ("make $x | sort", false),
        ("sort missing | uniq", false),
    ] {
        assert_eq!(rewritten_for(Dialect::Bash, text).taken.is_empty(), stays, "{text}");
    }
}

#[test]
fn similar_words_do_not_count_as_showing_functions() {
    for text in [
        "PATH=$HOME/x:$PATH",
        "PATH=/usr/bin:/bin",
        "declare -A f=1",
        "find . -type f",
        "type -P sort",
        "set -e",
        "export f=1",
    ] {
        let result = rewritten_for(Dialect::Bash, &format!("{text}\nsort $a"));
        assert_eq!(result.taken.len(), 1, "{text}: {:?}", result.refused);
    }
}

#[test]
fn lines_stay_lines() {
    let text = "a\nsort $x |\n\n  tr a b |\n  cut -f1\nb\n";
    for dialect in [Dialect::Bash, Dialect::Posix] {
        let result = rewritten_for(dialect, text);
        assert_eq!(result.text.matches('\n').count(), text.matches('\n').count());
        let text = "sort $x | tr a b | cut -f1".to_owned();
        assert_eq!(result.taken, [TakenOver { line: 2, text, stages: Vec::new() }]);
        let preamble = result.preamble(dialect, "/a b", "");
        assert!(!preamble.contains('\n'), "{preamble}");
    }
}
