//! Guesses the values of a script's variables.
//!
//! A guess only decides whether taking over a stage is worth its cost: the shell still expands the
//! variables.

/// Returns a stage of the script `text` with variables replaced by their values. Replaces only
/// variables that the script assigns once, or that come from the environment alone, and whose value
/// needs no quotes.
pub(super) fn insert(stage: &str, text: &str) -> String {
    let mut out = String::with_capacity(stage.len());
    let mut rest = stage;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let is_braced = after.starts_with('{');
        let after_brace = after.strip_prefix('{').unwrap_or(after);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = after_brace.find(|c| !is_name(c)).unwrap_or(after_brace.len());
        let (name, after_name) = after_brace.split_at(end);
        let after_variable =
            if is_braced { after_name.strip_prefix('}') } else { Some(after_name) };
        if let (Some(value), Some(after_variable)) = (value(name, text), after_variable) {
            out.push_str(&value);
            rest = after_variable;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out + rest
}

/// Returns the value of a variable. Returns `None` if it may have several values, is not set, or
/// has a value that needs quotes.
fn value(name: &str, text: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let is_part = |c: char| c.is_alphanumeric() || "_$".contains(c);
    let mentions = text.match_indices(name).filter(|(at, _)| !text[..*at].ends_with(is_part));
    let mut assignments = mentions
        .filter_map(|(at, _)| text[at + name.len()..].strip_prefix('='))
        .map(|value| value.split([' ', '\t', '\n', ';', '&', '|', ')']).next().unwrap_or(""));
    let plain = |value: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-+,".contains(c);
        (!value.is_empty() && value.chars().all(is_plain)).then(|| value.to_owned())
    };
    match (assignments.next(), assignments.next()) {
        (Some(value), None) => plain(unquoted(value)),
        (None, None) if !is_set_otherwise(name, text) => plain(&std::env::var(name).ok()?),
        _ => None,
    }
}

/// Removes matching quotes around a word, if any.
fn unquoted(word: &str) -> &str {
    let quoted = |quote| word.strip_prefix(quote).and_then(|word| word.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(word)
}

/// Returns whether a loop or a command such as `read` may set the variable.
fn is_set_otherwise(name: &str, text: &str) -> bool {
    let words = || text.split_whitespace().map(|word| word.trim_end_matches(';'));
    let setters = ["for", "read", "-r", "local", "declare", "mapfile", "readarray", "getopts"];
    words().zip(words().skip(1)).any(|(before, word)| word == name && setters.contains(&before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_variables_are_inserted() {
        let text = "f=a/b; g='x y'\nh=1 h=2\nfor i in a; do :; done; file=c";
        for (stage, wanted) in [
            ("sort $f", "sort a/b"),
            ("sort \"$f\" ${f}c", "sort \"a/b\" a/bc"),
            ("sort $file", "sort c"),
            ("sort $g $h $i ${f%b} $1 $? $", "sort $g $h $i ${f%b} $1 $? $"),
            ("sort $f$f", "sort a/ba/b"),
        ] {
            assert_eq!(insert(stage, text), wanted);
        }
    }
}
