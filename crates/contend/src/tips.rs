//! Tips beside a mistake on the command line, where clap has none or a misleading one.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use contend_lab::experiments::REGISTRY;
use contend_record::shell::quote;

use crate::cli::Args;

/// Adds tips to the error, or takes clap's own away where it misleads. `words` are the command line
/// without the program's name.
pub fn add(error: &mut clap::Error, words: &[String]) {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = error.get(ContextKind::InvalidArg);
            let tip = unquoted(words).filter(|_| matches!(word, Some(ContextValue::String(_))));
            // clap would propose to take an option as the pipeline.
            error.insert(ContextKind::Suggested, tip.map_or(ContextValue::None, |tip| tips([tip])));
        }
        ErrorKind::InvalidSubcommand => {
            let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
                return;
            };
            let word = word.clone();
            if let Some(commands) = meant(&word, words) {
                error.insert(ContextKind::Suggested, tips(commands));
            } else {
                suggest_verbs(error, &word, words);
            }
        }
        _ => {}
    }
}

fn tips(texts: impl IntoIterator<Item = String>) -> ContextValue {
    ContextValue::StyledStrs(texts.into_iter().map(Into::into).collect())
}

/// The tip for words after a pipeline, as when its text was not quoted: options of contend cannot
/// be told from those of its commands.
fn unquoted(words: &[String]) -> Option<String> {
    let [verb, first, ..] = words else { return None };
    let is_pipeline = ["pipe", "run"].contains(&verb.as_str()) && !first.starts_with('-');
    is_pipeline.then(|| format!("quote the whole pipeline: contend {verb} 'A | B | C'"))
}

/// The tips for a word in the place of a verb that is clearly something else.
fn meant(word: &str, words: &[String]) -> Option<Vec<String>> {
    match parent(word, words) {
        None if word.contains(|c: char| c.is_whitespace() || c == '|') => Some(vec![
            format!("to profile this pipeline: contend pipe {}", quote(word)),
            format!("to run it in parallel: contend run {}", quote(word)),
        ]),
        Some("history") if word.parse::<i64>().is_ok() => {
            Some(vec![format!("to show run {word}: contend history show {word}")])
        }
        Some("lab") if REGISTRY.experiments.iter().any(|known| known.name == word) => {
            Some(vec![format!("to run this experiment: contend lab run {word}")])
        }
        Some("lab") if REGISTRY.suite(word).is_some() => {
            Some(vec![format!("to run this suite: contend lab suite {word}")])
        }
        _ => None,
    }
}

/// The verb that the word follows, if it is not in the place of the first verb itself.
fn parent<'a>(word: &str, words: &'a [String]) -> Option<&'a str> {
    words.first().map(String::as_str).filter(|first| *first != word)
}

/// Suggests the verbs that the word may stand for: those for which it is a slip, which clap misses in
/// short words, and those that clap has found, without the hidden ones.
fn suggest_verbs(error: &mut clap::Error, word: &str, words: &[String]) {
    let found = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(verbs)) => verbs,
        Some(ContextValue::String(verb)) => vec![verb],
        _ => Vec::new(),
    };
    let visible = visible_verbs(parent(word, words));
    let (mut near, others): (Vec<_>, Vec<_>) =
        visible.into_iter().partition(|verb| is_slip(word, verb));
    near.extend(others.into_iter().filter(|verb| found.contains(verb)));
    if !near.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
}

/// The verbs after this one, or the first verbs, that help shows.
fn visible_verbs(parent: Option<&str>) -> Vec<String> {
    let command = Args::command();
    let command = match parent {
        Some(parent) => command.find_subcommand(parent),
        None => Some(&command),
    };
    let verbs = command.into_iter().flat_map(clap::Command::get_subcommands);
    let visible = verbs.filter(|verb| !verb.is_hide_set());
    visible.map(|verb| verb.get_name().to_owned()).collect()
}

/// Whether the words differ by one letter too many, missing or wrong, or by two that are swapped.
fn is_slip(one: &str, other: &str) -> bool {
    let [mut one, mut other] = [one, other].map(|word| word.chars().collect::<Vec<_>>());
    for _ in 0..2 {
        let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
        one.drain(..same);
        other.drain(..same);
        one.reverse();
        other.reverse();
    }
    match (one.as_slice(), other.as_slice()) {
        ([_], [] | [_]) | ([], [_]) => true,
        ([a, b], [c, d]) => (a, b) == (d, c),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// What is said of this command line.
    fn said(words: &[&str]) -> String {
        let line = [&["contend"], words].concat();
        let mut error = Args::try_parse_from(line).expect_err("a mistake");
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        add(&mut error, &words);
        error.render().to_string()
    }

    #[test]
    fn a_pipeline_without_a_verb_names_the_verbs_for_pipelines() {
        for text in ["cat x | sort", "sort x", "a|b"] {
            let said = said(&[text]);
            for verb in ["pipe", "run"] {
                assert!(said.contains(&format!("contend {verb} '{text}'")), "{said}");
            }
        }
        assert!(!said(&["sort"]).contains("contend pipe"));
        assert!(!said(&["history", "a b"]).contains("contend pipe"));
    }

    #[test]
    fn slips_in_short_verbs_are_recognized() {
        for (slip, verb) in [("lba", "lab"), ("lb", "lab"), ("rn", "run"), ("jsno", "json")] {
            let said = said(&[slip]);
            assert!(said.contains(&format!("similar subcommand exists: '{verb}'")), "{said}");
        }
        let said = said(&["history", "mr"]);
        assert!(said.contains("similar subcommand exists: 'rm'"), "{said}");
    }

    #[test]
    fn hidden_verbs_are_not_suggested() {
        assert!(!said(&["xyzzy"]).contains("tip:"));
        for word in ["lab-cas", "lab-serve", "run-stag"] {
            let said = said(&[word]);
            for hidden in ["'lab-case'", "'lab-server'", "'run-stage'"] {
                assert!(!said.contains(hidden), "{said}");
            }
        }
    }

    #[test]
    fn what_a_verb_expects_after_another_word_is_said() {
        assert!(said(&["history", "999"]).contains("contend history show 999"));
        assert!(said(&["history", "--last", "3", "7"]).contains("contend history show 7"));
        let experiment = REGISTRY.experiments[0].name;
        let tip = format!("contend lab run {experiment}");
        assert!(said(&["lab", experiment]).contains(&tip));
        let suite = REGISTRY.suites[0].name;
        assert!(said(&["lab", suite]).contains(&format!("contend lab suite {suite}")));
    }

    #[test]
    fn an_unquoted_pipeline_is_to_be_quoted() {
        let tip = "quote the whole pipeline: contend run 'A | B | C'";
        assert!(said(&["run", "sort", "-z9"]).contains(tip));
        assert!(!said(&["run", "-z9", "sort"]).contains("tip:"));
    }

    #[test]
    fn a_slip_is_one_letter_or_two_that_are_swapped() {
        for slip in ["lba", "lb", "labb", "lav", "ab", "alb"] {
            assert!(is_slip(slip, "lab"), "{slip}");
        }
        for other in ["lab", "bal", "l", "labour", "ba", ""] {
            assert!(!is_slip(other, "lab"), "{other}");
        }
    }
}
