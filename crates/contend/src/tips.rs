//! Tips for mistakes on the command line: adds tips that clap lacks, and removes misleading ones.
//!
//! | mistake | tip |
//! |---|---|
//! | `contend 'a \| b'` | `contend pipe 'a \| b'`, `contend run 'a \| b'` |
//! | `contend build.sh` | `contend run --file build.sh` |
//! | `contend run a -x \| b` | quote the whole pipeline |
//! | `contend run build.sh x` | `contend run --file build.sh -- x` |
//! | `contend pipe --tyr` | a similar option |
//! | `contend pipe -f build.sh` | `contend run --stats --file build.sh` |
//! | `contend lba` | a similar verb |
//! | `contend profile` | the verb for that purpose |
//! | `contend lab units/create` | `contend lab run units/create` |
//! | `contend lab run units/create --kind fork` | `--only kind=fork` |
//! | `contend history 7` | `contend history show 7` |
//! | `contend history list`, `remove 7` | `contend history`, `contend history rm 7` |

use std::path::Path;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use contend_lab::engine::experiment::{Experiment, Scope, Size};
use contend_lab::experiments::REGISTRY;
use contend_parallel::run::is_shell_script;
use contend_record::shell::quote;

use crate::cli::Args;
use crate::suggest;

/// Adds tips to the error, or removes misleading ones. `words` is the command line without the name
/// of the program.
pub fn add(error: &mut clap::Error, words: &[String]) {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = error.get(ContextKind::InvalidArg);
            let tip = quote_tip(words).filter(|_| matches!(word, Some(ContextValue::String(_))));
            let option = word.and_then(|word| match word {
                ContextValue::String(word) => Some(word.clone()),
                _ => None,
            });
            let tip = tip.or_else(|| file_tip(option.as_deref()?, words));
            let tip = tip.or_else(|| parameter_tip(option.as_deref()?, words));
            // clap's own tip is to pass the option as the pipeline.
            error.insert(ContextKind::Suggested, tip.map_or(ContextValue::None, |tip| tips([tip])));
            if error.get(ContextKind::SuggestedArg).is_none()
                && let Some(near) = option.and_then(|option| similar_option(&option, words))
            {
                error.insert(ContextKind::SuggestedArg, ContextValue::String(near));
            }
        }
        ErrorKind::InvalidSubcommand => {
            let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
                return;
            };
            let word = word.clone();
            if let Some(commands) = intended(&word, words) {
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

/// Returns the tip to quote a pipeline, or to use `--file` for a script with arguments. Returns
/// `None` if the words cannot be an unquoted pipeline or script. The options of commands in an
/// unquoted pipeline look like unknown options of contend.
fn quote_tip(words: &[String]) -> Option<String> {
    let [verb, first, rest @ ..] = words else { return None };
    if !["pipe", "run"].contains(&verb.as_str()) || first.starts_with('-') {
        return None;
    }
    if verb == "run" && is_shell_script(Path::new(first)) {
        let arguments: Vec<_> = rest.iter().map(|word| quote(word)).collect();
        let (script, arguments) = (quote(first), arguments.join(" "));
        return Some(format!("to run this script: contend run --file {script} -- {arguments}"));
    }
    Some(format!("quote the whole pipeline: contend {verb} 'A | B | C'"))
}

/// Returns the tip for a script that is given to `contend pipe` with `--file` or `-f`, which only
/// `contend run` has, or `None` for other mistakes. `option` is the unknown option.
fn file_tip(option: &str, words: &[String]) -> Option<String> {
    let is_meant = words.first().is_some_and(|verb| verb == "pipe");
    (is_meant && ["-f", "--file"].contains(&option)).then(|| {
        "to run a script, with statistics on each pipeline: contend run --stats --file SCRIPT"
            .to_owned()
    })
}

/// Returns the tip for a parameter of an experiment that is given as an option, or `None` if no
/// experiment has it. `option` is the unknown option.
fn parameter_tip(option: &str, words: &[String]) -> Option<String> {
    let name = option.strip_prefix("--").filter(|_| words.first().is_some_and(|w| w == "lab"))?;
    let name = name.split('=').next().unwrap_or(name);
    let typed = format!("--{name}");
    let value = words.iter().zip(words.iter().skip(1).map(Some).chain([None]));
    let value =
        value.into_iter().find_map(|(word, next)| match word.strip_prefix(typed.as_str())? {
            "" => next.map(String::as_str).filter(|next| !next.starts_with('-')),
            rest => rest.strip_prefix('='),
        });
    let experiments = || REGISTRY.experiments.iter();
    let is_selected = |experiment: &&&Experiment| {
        (experiment.cases)(&Scope::of(Size::Full)).iter().any(|case| case.get(name).is_some())
    };
    let is_set =
        |experiment: &&&Experiment| experiment.settings.iter().any(|setting| setting.name == name);
    let value = quote(value.unwrap_or("VALUE"));
    if experiments().any(|experiment| is_selected(&experiment)) {
        Some(format!("to select cases: --only {name}={value}"))
    } else if experiments().any(|experiment| is_set(&experiment)) {
        Some(format!("to set a parameter: --set {name}={value}"))
    } else {
        None
    }
}

/// Returns the visible long option that is most similar to `option`, of the subcommand that `words`
/// name. Returns `None` if there is no similar one, or if `option` is a short option.
fn similar_option(option: &str, words: &[String]) -> Option<String> {
    let typed = option.strip_prefix("--")?;
    let mut command = &Args::command();
    for word in words {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let names = visible.filter_map(clap::Arg::get_long);
    suggest::nearest(typed, names).map(|name| format!("--{name}"))
}

/// Verbs of contend, each with the verbs that other programs have for the same purpose.
const FOREIGN_VERBS: [(&str, &[&str]); 4] = [
    ("pipe", &["profile", "prof", "trace", "perf", "stat", "top", "time", "analyze", "analyse"]),
    ("run", &["exec", "execute", "parallel", "sh", "start"]),
    ("lab", &["bench", "benchmark", "measure", "test", "experiment", "suite", "list"]),
    ("compare", &["diff", "cmp"]),
];

/// Returns contend's verb for a verb of another program, or `None` for other words.
fn verb_for(word: &str) -> Option<&'static str> {
    let known = FOREIGN_VERBS.iter().find(|(_, foreign)| foreign.contains(&word))?;
    Some(known.0)
}

/// Returns tips for a word that is in the place of a verb but is clearly something else, such as a
/// pipeline or the name of an experiment. Returns `None` for other words.
fn intended(word: &str, words: &[String]) -> Option<Vec<String>> {
    match parent(word, words) {
        None if word.contains(|c: char| c.is_whitespace() || c == '|') => Some(vec![
            format!("to profile this pipeline: contend pipe {}", quote(word)),
            format!("to run it in parallel: contend run {}", quote(word)),
        ]),
        None if is_shell_script(Path::new(word)) => {
            Some(vec![format!("to run this script: contend run --file {}", quote(word))])
        }
        Some("history") if word.parse::<i64>().is_ok() => {
            Some(vec![format!("to show run {word}: contend history show {word}")])
        }
        Some("history") if ["list", "ls"].contains(&word) => {
            let options = after(word, words);
            Some(vec![format!("to list saved runs: contend history{options}")])
        }
        Some("history") if ["remove", "delete", "del"].contains(&word) => {
            let numbers = after(word, words);
            Some(vec![format!("to remove saved runs: contend history rm{numbers}")])
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

/// Returns the words after `word`, each quoted and after a space.
fn after(word: &str, words: &[String]) -> String {
    let rest = words.iter().skip_while(|other| *other != word).skip(1);
    rest.flat_map(|other| [" ".to_owned(), quote(other)]).collect()
}

/// Returns the first visible verb among the words before `word`. Returns `None` if there is none:
/// then `word` is in the place of the verb.
fn parent<'a>(word: &str, words: &'a [String]) -> Option<&'a str> {
    let before = words.iter().map(String::as_str).take_while(|other| *other != word);
    let verbs = visible_verbs(None);
    before.into_iter().find(|other| verbs.iter().any(|verb| verb == other))
}

/// Replaces clap's suggestions with visible subcommands. If `word` is in the place of contend's
/// verb and is a verb of another program, suggests only contend's verb for it. Otherwise, suggests
/// first those that `word` is a typo of, because clap does not detect typos in short words, then
/// the others that clap suggested. If there are no such subcommands, only removes clap's
/// suggestions.
fn suggest_verbs(error: &mut clap::Error, word: &str, words: &[String]) {
    let found = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(verbs)) => verbs,
        Some(ContextValue::String(verb)) => vec![verb],
        _ => Vec::new(),
    };
    let parent = parent(word, words);
    let meant = if parent.is_none() { verb_for(word) } else { None };
    let visible = visible_verbs(parent);
    let (mut near, others): (Vec<_>, Vec<_>) =
        visible.into_iter().partition(|verb| is_typo(word, verb));
    near.extend(others.into_iter().filter(|verb| found.contains(verb)));
    if let Some(verb) = meant {
        near = vec![verb.to_owned()];
    }
    if !near.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
}

/// Returns the visible subcommands of the verb `parent`, or the visible verbs if it is `None`.
/// Returns an empty list if there is no verb `parent`.
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

/// Returns whether the words differ by one extra, missing or wrong letter, or by two adjacent
/// letters that are transposed.
fn is_typo(one: &str, other: &str) -> bool {
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

    /// Returns the error message for a command line.
    fn message(words: &[&str]) -> String {
        let line = [&["contend"], words].concat();
        let mut error = Args::try_parse_from(line).expect_err("a mistake");
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        add(&mut error, &words);
        error.render().to_string()
    }

    #[test]
    fn a_pipeline_without_a_verb_names_the_verbs_for_pipelines() {
        for text in ["cat x | sort", "sort x", "a|b"] {
            let message = message(&[text]);
            for verb in ["pipe", "run"] {
                assert!(message.contains(&format!("contend {verb} '{text}'")), "{message}");
            }
        }
        assert!(!message(&["sort"]).contains("contend pipe"));
        assert!(!message(&["history", "a b"]).contains("contend pipe"));
    }

    #[test]
    fn a_script_with_arguments_gets_the_option_for_scripts() {
        let folder = tempfile::tempdir().expect("a directory");
        let script = folder.path().join("a.sh").display().to_string();
        std::fs::write(&script, "ls\n").expect("a file");
        let error = message(&["run", &script, "-v", "a b"]);
        assert!(error.contains(&format!("contend run --file {script} -- -v 'a b'")), "{error}");
        assert!(message(&["pipe", &script, "-q"]).contains("quote the whole pipeline"));
    }

    #[test]
    fn typos_in_short_verbs_are_recognized() {
        for (typo, verb) in [("lba", "lab"), ("lb", "lab"), ("rn", "run"), ("jsno", "json")] {
            let message = message(&[typo]);
            assert!(message.contains(&format!("similar subcommand exists: '{verb}'")), "{message}");
        }
        let message = message(&["history", "mr"]);
        assert!(message.contains("similar subcommand exists: 'rm'"), "{message}");
    }

    #[test]
    fn global_options_before_the_verb_do_not_hide_it() {
        let error = message(&["--color", "never", "generate", "mna"]);
        assert!(error.contains("similar subcommand exists: 'man'"), "{error}");
        assert!(message(&["--color=never", "lba"]).contains("'lab'"));
    }

    #[test]
    fn verbs_of_other_programs_are_translated() {
        for (word, verb) in [("profile", "pipe"), ("exec", "run"), ("bench", "lab")] {
            let message = message(&[word, "x"]);
            assert!(message.contains(&format!("similar subcommand exists: '{verb}'")), "{message}");
        }
        let verbs = visible_verbs(None);
        for (verb, foreign) in FOREIGN_VERBS {
            assert!(verbs.iter().any(|known| known == verb), "{verb}");
            assert!(foreign.iter().all(|word| !verbs.iter().any(|known| known == word)), "{verb}");
        }
    }

    #[test]
    fn a_similar_option_is_suggested_even_if_it_is_short() {
        for (typo, option) in
            [("--tyr", "--try"), ("--stden", "--stdin"), ("--verbos", "--verbose")]
        {
            let message = message(&["pipe", typo, "x"]);
            assert!(message.contains(&format!("'{option}'")), "{message}");
        }
        let message = message(&["lab", "run", "--quikc", "x"]);
        assert!(message.contains("'--quick'"), "{message}");
    }

    #[test]
    fn a_script_for_pipe_gets_the_command_that_runs_scripts() {
        for option in ["-f", "--file"] {
            let message = message(&["pipe", option, "x.sh"]);
            assert!(message.contains("contend run --stats --file SCRIPT"), "{message}");
        }
        assert!(!message(&["run", "-w", "x"]).contains("--file"));
    }

    #[test]
    fn hidden_verbs_are_not_suggested() {
        assert!(!message(&["xyzzy"]).contains("tip:"));
        for word in ["lab-cas", "lab-serve", "run-stag"] {
            let message = message(&[word]);
            for hidden in ["'lab-case'", "'lab-server'", "'run-stage'"] {
                assert!(!message.contains(hidden), "{message}");
            }
        }
    }

    #[test]
    fn a_missing_subcommand_is_suggested() {
        assert!(message(&["history", "999"]).contains("contend history show 999"));
        assert!(message(&["history", "--last", "3", "7"]).contains("contend history show 7"));
        let list = message(&["history", "list", "--label", "a b"]);
        assert!(list.contains("to list saved runs: contend history --label 'a b'"), "{list}");
        let remove = message(&["history", "remove", "3", "7"]);
        assert!(remove.contains("to remove saved runs: contend history rm 3 7"), "{remove}");
        let experiment = REGISTRY.experiments[0].name;
        let tip = format!("contend lab run {experiment}");
        assert!(message(&["lab", experiment]).contains(&tip));
        let suite = REGISTRY.suites[0].name;
        assert!(message(&["lab", suite]).contains(&format!("contend lab suite {suite}")));
    }

    #[test]
    fn an_unquoted_pipeline_gets_a_tip() {
        let tip = "quote the whole pipeline: contend run 'A | B | C'";
        assert!(message(&["run", "sort", "-z9"]).contains(tip));
        assert!(!message(&["run", "-z9", "sort"]).contains("tip:"));
    }

    #[test]
    fn a_typo_is_one_letter_or_two_transposed_ones() {
        for typo in ["lba", "lb", "labb", "lav", "ab", "alb"] {
            assert!(is_typo(typo, "lab"), "{typo}");
        }
        for other in ["lab", "bal", "l", "labour", "ba", ""] {
            assert!(!is_typo(other, "lab"), "{other}");
        }
    }
}
