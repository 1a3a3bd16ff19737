//! Parses bracket expressions as far as needed to find the end of a regular expression.

/// Returns the number of bytes before the first delimiter that is not escaped, or `None` if there
/// is none before the first newline that is not escaped. With `shielded`, a delimiter within a
/// bracket expression does not count, and an unclosed bracket expression also yields `None`.
pub(super) fn length(text: &str, delimiter: char, shielded: bool) -> Option<usize> {
    let mut rest = text.chars();
    loop {
        let place = text.len() - rest.as_str().len();
        match rest.next()? {
            c if c == delimiter => return Some(place),
            '\n' => return None,
            '\\' => drop(rest.next()?),
            '[' if shielded => rest = bracket(rest.as_str())?.1.chars(),
            _ => {}
        }
    }
}

/// Splits the source after an opening bracket into the contents of the bracket expression and the
/// rest after the closing bracket. Returns `None` if the expression is not closed on its line.
pub(super) fn bracket(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('^').unwrap_or(text);
    // A `]` in the first position is literal.
    let mut rest = rest.strip_prefix(']').unwrap_or(rest);
    loop {
        let mut characters = rest.chars();
        match characters.next()? {
            ']' => {
                let inner = &text[..text.len() - rest.len()];
                return Some((inner, characters.as_str()));
            }
            '\n' => return None,
            '[' if characters.as_str().starts_with([':', '.', '=']) => {
                let (kind, behind) = characters.as_str().split_at(1);
                rest = &behind[behind.find(&format!("{kind}]"))? + 2..];
            }
            _ => rest = characters.as_str(),
        }
    }
}

/// Returns whether a bracket expression within the regular expression contains a backslash, `[.` or
/// `[=`, or is not closed.
pub(super) fn has_odd_brackets(expression: &str) -> bool {
    let mut rest = expression.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '[' => match bracket(rest.as_str()) {
                Some((inner, _)) if inner.contains('\\') => return true,
                Some((inner, _)) if inner.contains("[.") || inner.contains("[=") => return true,
                Some((_, behind)) => rest = behind.chars(),
                None => return true,
            },
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_shield_delimiters() {
        for (text, shielded, everywhere) in [
            ("a/", Some(1), Some(1)),
            ("[/]/", Some(3), Some(1)),
            ("[]/]/", Some(4), Some(2)),
            ("[^]/]/", Some(5), Some(3)),
            ("[\\]/", Some(3), Some(3)),
            ("[[:alpha:]/]/", Some(12), Some(10)),
            ("[a[/]/", Some(5), Some(3)),
            ("\\[/", Some(2), Some(2)),
            ("[/", None, Some(1)),
            ("[[:/", None, Some(3)),
            ("a\\/", None, None),
            ("a\n/", None, None),
            ("a\\\n/", Some(3), Some(3)),
        ] {
            assert_eq!(length(text, '/', true), shielded, "{text}");
            assert_eq!(length(text, '/', false), everywhere, "{text}");
        }
        assert_eq!(length("[[:x:]]:", ':', true), Some(7));
    }

    #[test]
    fn brackets_that_seds_read_differently_are_known() {
        for odd in ["[\\n]", "a[[.-.]]", "[[=e=]]", "[a"] {
            assert!(has_odd_brackets(odd), "{odd}");
        }
        for plain in ["\\[a\\]", "[a-z]\\n", "[[:digit:].]", "[]]*"] {
            assert!(!has_odd_brackets(plain), "{plain}");
        }
    }
}
