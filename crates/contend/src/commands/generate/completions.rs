//! Generates shell completions for the visible command line, including names of experiments and
//! parameters.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::Shell;
use contend_lab::engine::experiment::{Scope, Size};
use contend_lab::experiments::REGISTRY;
use contend_record::parameters::{Parameters, Value};

use crate::cli::Args;
use crate::version::VERSION;

/// Returns the completion script for a shell.
pub(super) fn script(shell: Shell) -> Vec<u8> {
    let mut command = with_names(&visible(&Args::command()));
    // The generators for other shells ignore values of positional arguments.
    if !matches!(shell, Shell::Bash | Shell::Zsh) {
        command = values_as_subcommands(&command);
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "contend", &mut script);
    script
}

/// Returns the command without hidden subcommands and options, which clap's generators would
/// include.
fn visible(command: &Command) -> Command {
    let subcommands = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(visible);
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let about = command.get_about().cloned().unwrap_or_default();
    let shown = Command::new(command.get_name().to_owned()).about(about);
    shown.version(VERSION).propagate_version(true).args(arguments).subcommands(subcommands)
}

/// Returns the command with the names of experiments, suites and parameters as possible values.
fn with_names(command: &Command) -> Command {
    let experiments =
        || PossibleValuesParser::new(REGISTRY.experiments.iter().map(|experiment| experiment.name));
    let suites = || PossibleValuesParser::new(REGISTRY.suites.iter().map(|suite| suite.name));
    // This hint prevents a space after `name=`.
    let listed = |argument: Arg, values: Vec<String>| {
        argument.value_hint(ValueHint::Other).value_parser(PossibleValuesParser::new(values))
    };
    let parameters = |verb: Command| {
        let verb = verb.mut_arg("only", |only| listed(only, occurring()));
        verb.mut_arg("set", |set| listed(set, choosable()))
    };
    command.clone().mut_subcommand("lab", |lab| {
        let run = |run: Command| run.mut_arg("names", |names| names.value_parser(experiments()));
        let suite = |suite: Command| suite.mut_arg("name", |name| name.value_parser(suites()));
        let lab = lab.mut_subcommand("run", |verb| parameters(run(verb)));
        lab.mut_subcommand("suite", |verb| parameters(suite(verb)))
    })
}

/// Returns every `name=value` that `--set` accepts, and `name=` for parameters that are numbers.
fn choosable() -> Vec<String> {
    let settings = REGISTRY.experiments.iter().flat_map(|experiment| experiment.settings);
    let words = settings.flat_map(|setting| match setting.names() {
        names if names.is_empty() => vec![format!("{}=", setting.name)],
        names => names.iter().map(|value| format!("{}={value}", setting.name)).collect(),
    });
    sorted(words)
}

/// Returns every `name=value` without white space that occurs in a case, and `name=` for parameters
/// whose value is not text.
fn occurring() -> Vec<String> {
    let scope = Scope::of(Size::Full);
    let cases = REGISTRY.experiments.iter().flat_map(|experiment| (experiment.cases)(&scope));
    let words = |case: Parameters| -> Vec<String> {
        let word = |(name, value): (&str, &Value)| match value {
            Value::Text(text) => format!("{name}={text}"),
            _ => format!("{name}="),
        };
        case.iter().map(word).collect()
    };
    // Shells split completions at spaces.
    sorted(cases.flat_map(words).filter(|word| !word.contains(char::is_whitespace)))
}

fn sorted(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<_> = words.collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns the command with the possible values of its positional argument converted into
/// subcommands, each with the same options. If the command has no such argument, does the same for
/// each of its subcommands.
fn values_as_subcommands(command: &Command) -> Command {
    let positional = command.get_positionals().find(|one| !one.get_possible_values().is_empty());
    let Some(positional) = positional else {
        let below = command.get_subcommands().map(values_as_subcommands).collect::<Vec<_>>();
        return below.into_iter().fold(command.clone(), |command, verb| {
            let name = verb.get_name().to_owned();
            command.mut_subcommand(name, |_| verb)
        });
    };
    let options: Vec<Arg> =
        command.get_arguments().filter(|one| !one.is_positional()).cloned().collect();
    let about = |name: &str| {
        let experiments = REGISTRY.experiments.iter().map(|one| (one.name, one.summary));
        let suites = REGISTRY.suites.iter().map(|one| (one.name, one.summary));
        experiments.chain(suites).find(|(known, _)| *known == name).map(|(_, summary)| summary)
    };
    let values = positional.get_possible_values().into_iter().map(|value| {
        let name = value.get_name().to_owned();
        let help = value.get_help().map(ToString::to_string);
        let about = help.or_else(|| about(&name).map(str::to_owned)).unwrap_or_default();
        Command::new(name).about(about).args(options.clone())
    });
    let about = command.get_about().cloned().unwrap_or_default();
    let shown = Command::new(command.get_name().to_owned()).about(about).args(options.clone());
    shown.version(VERSION).disable_help_subcommand(true).subcommands(values)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    /// Returns the names of all hidden subcommands and options, at any depth.
    fn hidden(command: &Command) -> Vec<String> {
        let verbs = command.get_subcommands().filter(|verb| verb.is_hide_set());
        let options = command.get_arguments().filter(|one| one.is_hide_set());
        let mut names: Vec<String> = verbs.map(|verb| verb.get_name().to_owned()).collect();
        names.extend(options.filter_map(|one| Some(format!("--{}", one.get_long()?))));
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        names.extend(shown.flat_map(hidden));
        names
    }

    fn of(shell: Shell) -> String {
        String::from_utf8(script(shell)).expect("text")
    }

    /// Returns whether a verb, or an option with its dashes, is a word of a script. fish has `-l` before an option's name.
    fn mentions(script: &str, name: &str) -> bool {
        let words = script.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)));
        let words: Vec<&str> = words.collect();
        let in_fish = |pair: &[&str]| pair[0] == "-l" && name.strip_prefix("--") == Some(pair[1]);
        words.contains(&name) || words.windows(2).any(in_fish)
    }

    #[test]
    fn hidden_verbs_and_options_are_not_completed() {
        let names = hidden(&Args::command());
        for known in ["lab-case", "lab-probe", "lab-server", "--smallest"] {
            assert!(names.iter().any(|name| name == known), "{known}: {names:?}");
        }
        assert!(names.len() >= 5, "{names:?}");
        for known in ["pipe", "--json"] {
            let shells = Shell::value_variants().iter();
            assert!(shells.clone().all(|shell| mentions(&of(*shell), known)), "{known}");
        }
        for shell in Shell::value_variants() {
            let script = of(*shell);
            for name in &names {
                assert!(!mentions(&script, name), "{shell} has {name}");
            }
        }
    }

    #[test]
    fn every_shell_completes_the_names_of_experiments_and_suites() {
        let names = REGISTRY
            .experiments
            .iter()
            .map(|one| one.name)
            .chain(REGISTRY.suites.iter().map(|one| one.name));
        let names: Vec<_> = names.collect();
        assert!(names.len() > 20);
        for shell in Shell::value_variants() {
            let script = of(*shell);
            for name in &names {
                assert!(script.contains(name), "{shell} lacks {name}");
            }
            for verb in ["history", "compare", "pipefail", "max-units"] {
                assert!(script.contains(verb), "{shell} lacks {verb}");
            }
        }
    }

    #[test]
    fn parameters_are_completed_for_set_and_only() {
        let (set, only) = (choosable(), occurring());
        let settings = || REGISTRY.experiments.iter().flat_map(|experiment| experiment.settings);
        for setting in settings() {
            let prefix = format!("{}=", setting.name);
            assert!(set.iter().any(|word| word.starts_with(&prefix)), "{prefix}");
        }
        for word in &set {
            let (name, value) = word.split_once('=').expect("a parameter and its value");
            // Several experiments have parameters of the same name.
            let mut of_name = settings().filter(|setting| setting.name == name);
            assert!(value.is_empty() || of_name.any(|one| one.parse(value).is_ok()), "{word}");
        }
        for word in ["kind=fork", "kind=thread", "n=", "mechanism=futex"] {
            assert!(only.iter().any(|known| known == word), "{word}: {only:?}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = of(shell);
            assert!(
                script.contains("kind=fork") && script.contains("placement=same-cpu"),
                "{shell}"
            );
        }
    }
}
