//! "Did you mean": finds the valid name nearest to one that a user has mistyped.

/// Returns the name most similar to `typed`, or `None` if none is similar enough for a typo.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // One wrong character in three, as rustc allows for identifiers; transpositions count as one.
    let limit = (typed.chars().count() / 3).max(1);
    let distance = |name: &str| strsim::damerau_levenshtein(typed, name);
    let nearest = names.into_iter().map(|name| (distance(name), name)).min()?;
    (nearest.0 <= limit).then_some(nearest.1)
}

/// Returns the names that contain `typed`, joined by `' or '` to be put between quotes, or `None`
/// if there are none, or more than three.
pub fn containing<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let found: Vec<_> = names.into_iter().filter(|name| name.contains(typed)).collect();
    (1..=3).contains(&found.len()).then(|| found.join("' or '"))
}

/// Returns the end of an error message that suggests the nearest name; empty if none is similar.
pub fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, names).map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

/// Returns the end of an error message: the name nearest to `typed`, or else a list of all names;
/// empty if there are no names. If `typed` is a number, returns the list in any case. `kind` is the
/// plural noun for the names.
pub fn hint(typed: &str, kind: &str, mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    // Numbers get no suggestion, because all of them are similar.
    let nearest =
        if typed.parse::<f64>().is_ok() { None } else { nearest(typed, names.iter().copied()) };
    match nearest {
        Some(name) => format!("; did you mean '{name}'?"),
        None if names.is_empty() => String::new(),
        None => format!("; {kind}: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_suggested_for_a_typo_but_not_for_another_word() {
        let names = ["units/create", "units/limit", "kind", "n"];
        let near = |typed| nearest(typed, names);
        assert_eq!(near("units/creat"), Some("units/create"));
        assert_eq!(near("units/craete"), Some("units/create"));
        assert_eq!(near("knd"), Some("kind"));
        assert_eq!(near("server"), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn a_part_of_a_few_names_is_completed() {
        let names = ["units/create", "units/limit", "units/memory", "units/pool"];
        assert_eq!(containing("create", names).as_deref(), Some("units/create"));
        assert_eq!(containing("m", names).as_deref(), Some("units/limit' or 'units/memory"));
        assert_eq!(containing("units", names), None);
        assert_eq!(containing("fork", names), None);
    }

    #[test]
    fn a_hint_lists_the_names_if_none_is_similar() {
        assert_eq!(hint("frok", "kinds", vec!["vfork", "fork", "fork"]), "; did you mean 'fork'?");
        assert_eq!(hint("thing", "kinds", vec!["vfork", "fork"]), "; kinds: fork, vfork");
        assert_eq!(hint("-1", "values of n", vec!["1", "10"]), "; values of n: 1, 10");
        assert_eq!(hint("thing", "kinds", Vec::new()), "");
    }
}
