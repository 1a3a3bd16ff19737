//! Patterns for experiment names.

/// Returns whether `pattern` matches the whole of `name`. `*` matches any string, including the
/// empty one.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len())
                .filter(|&i| name.is_char_boundary(i))
                .any(|i| matches(rest, &name[i..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_anything() {
        assert!(matches("colours/*", "colours/green") && matches("*", "colours/green"));
        assert!(matches("*/g*n", "colours/green") && !matches("colours", "colours/green"));
        assert!(!matches("colours/g*", "colours/red") && matches("é*", "éa"));
    }
}
