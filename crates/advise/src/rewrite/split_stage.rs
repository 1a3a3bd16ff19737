//! Splits the bottleneck stage into two stages, which can use two CPUs, if its script consists of
//! two halves that process each line one after the other.

use contend_commands::Simple;
use contend_commands::awk::Awk;
use contend_commands::sed::Sed;
use contend_record::advice::{RewriteId, Safety};
use contend_record::pipe::BottleneckKind;

use super::{Change, Replacement, Situation, Variant};
use crate::rewrite::draft::Stage;

/// Average number of idle CPUs above which a split may pay off.
const MIN_IDLE_CPUS: f64 = 0.3;

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    if !situation.profile.is_none_or(|profile| {
        let used = profile.total.cpu_percent / 100.0;
        profile.bottleneck.kind == BottleneckKind::Stage
            && profile.host.usable_cpus() - used > MIN_IDLE_CPUS
    }) {
        return Vec::new();
    }
    situation.worthwhile(|index, stage| {
        let sets_pace = situation.profile.is_none_or(|profile| {
            profile.bottleneck.stage.is_some_and(|slowest| stage.origin == [slowest - 1])
        });
        let halves = sets_pace.then(|| halves(stage)).flatten()?;
        let stages =
            halves.into_iter().map(|text| Replacement { text, work: vec![(index, 0.6)] }).collect();
        let reasons = vec!["each half of the work can use a CPU of its own".to_owned()];
        let (rewrite, at, safety) = (RewriteId::SplitStage, index..index + 1, Safety::Always);
        Some(vec![Change { rewrite, variant: Variant::Only, at, stages, safety, reasons }])
    })
}

fn halves(stage: &Stage) -> Option<[String; 2]> {
    stage.read(sed_halves).or_else(|| stage.read(awk_halves)).map(|(_, halves)| halves)
}

fn sed_halves(simple: &Simple) -> Option<[String; 2]> {
    let sed = Sed::read(simple)?;
    if !sed.writes_at_most_once() || sed.commands.len() < 2 {
        return None;
    }
    let (first, second) = sed.commands.split_at(sed.commands.len() / 2);
    let arguments = |commands| Sed::arguments(commands, false, sed.extended, sed.null_data);
    let with_files = arguments(first).into_iter().chain(sed.files.iter().cloned()).collect();
    let rest = Simple { input: None, ..simple.with(arguments(second)) };
    Some([simple.with(with_files).text(), rest.text()])
}

/// Splits `{ gsub(…); gsub(…); print }`, where each statement changes the whole record. Returns
/// `None` for other programs.
fn awk_halves(simple: &Simple) -> Option<[String; 2]> {
    let awk = Awk::read(simple)?;
    let body = awk.program.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut statements: Vec<&str> = body.split(';').map(str::trim).collect();
    if statements.pop()? != "print" || statements.len() < 2 {
        return None;
    }
    if !statements.iter().all(|statement| is_substitution(statement)) {
        return None;
    }
    let place = awk.arguments.iter().position(|word| word.text == awk.program)?;
    // Assignments, with `-v` or among the operands, could change the record separator.
    let sets = |word: &contend_commands::Word| word.text.starts_with("-v");
    if awk.arguments[..place].iter().any(sets) || awk.operands.iter().any(|o| o.text.contains('='))
    {
        return None;
    }
    let with = |statements: &[&str], operands: bool| {
        let program = format!("{{ {}; print }}", statements.join("; "));
        let end = if operands { awk.arguments.len() } else { place + 1 };
        let mut arguments = simple.arguments.clone();
        let offset = simple.arguments.len() - awk.arguments.len();
        arguments.truncate(offset + end);
        arguments[offset + place] = contend_commands::Word::new(program);
        simple.with(arguments)
    };
    let (first, second) = statements.split_at(statements.len() / 2);
    let rest = Simple { input: None, ..with(second, false) };
    Some([with(first, true).text(), rest.text()])
}

/// Returns whether a statement is only `gsub(/expression/, "text")` or `sub(/expression/, "text")`.
/// Without a third argument, both change the whole record.
fn is_substitution(statement: &str) -> bool {
    let arguments = statement
        .strip_prefix("gsub(/")
        .or_else(|| statement.strip_prefix("sub(/"))
        .and_then(|rest| rest.strip_suffix("\")"));
    let parts = arguments.and_then(|rest| rest.split_once("/,"));
    parts.is_some_and(|(expression, text)| {
        let text = text.trim_start().strip_prefix('"');
        !expression.contains(['/', '\n', '"', '{', '}'])
            && text.is_some_and(|text| !text.contains(['"', '\n', '\\', '{', '}']))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply;
    use super::*;

    #[test]
    fn a_script_falls_into_two() {
        let changed = |text: &str| apply(RewriteId::SplitStage, text);
        assert_eq!(
            changed("sed -E 's/a+/b/; /x/d; y/c/d/; s/e/f/' f | wc"),
            ["sed -E 's/a+/b/; /x/d' f | sed -E 'y/c/d/; s/e/f/' | wc"]
        );
        assert_eq!(
            changed("mawk '{ gsub(/a/, \"b\"); gsub(/c/,\"d\"); print }' f"),
            ["mawk '{ gsub(/a/, \"b\"); print }' f | mawk '{ gsub(/c/,\"d\"); print }'"]
        );
        for text in [
            "sed s/a/b/ f",
            "sed -n 's/a/b/; /x/p' f",
            "sed '2d; s/a/b/' f",
            "sed 's/a/b/; 5q' f",
            "sed 'N; s/a/b/' f",
            "sed 'h; G' f",
            "awk -v RS=: '{ gsub(/a/, \"b\"); gsub(/c/, \"d\"); print }' f",
            "awk '{ gsub(/a/, \"b\"); gsub(/c/, \"d\"); print }' RS=: f",
            "awk '{ gsub(/a/, \"b\"); n++; print }' f",
            "awk '{ gsub(/a/, \"b\", $1); gsub(/c/, \"d\"); print }' f",
            "awk '{ gsub(/a/, \"b\"); gsub(/c/, \"d\"); print $1 }' f",
            "awk '{ gsub(/a/, \"b\"); gsub(/c/, \"d\"); print } END { print NR }' f",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
