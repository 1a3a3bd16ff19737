//! Parses a pipeline, and distinguishes plain commands from source that needs a shell.

use contend_commands::Simple;
use contend_shell::parse;

/// The result of parsing a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// One pipeline of plain commands.
    Commands {
        /// The commands, first to last.
        stages: Vec<Simple>,
        /// Whether the exit code is inverted, as after `!`.
        inverted: bool,
    },
    /// Source that only a shell can run, and the reason.
    Shell(String),
}

/// Builtins and reserved words of shells. Some, such as `test`, also exist as programs, but a shell
/// does not start those.
const BUILT_IN: &[&str] = &[
    ".",
    ":",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Returns whether a shell runs a command of the given name itself.
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name)
}

/// Parses a pipeline. Anything but plain commands joined by `|`, with an optional `!` before them
/// and `;` after them, needs a shell, and so do shell builtins.
pub fn read(text: &str) -> Reading {
    let parsed = match parse::parse(text) {
        Ok(parsed) => parsed,
        // The rest of the message concerns `contend pipe`.
        Err(error) => {
            let (problem, _) = error.problem.split_once(": ").unwrap_or((&error.problem, ""));
            let why = match problem {
                "more than one pipeline" => "it has more than one pipeline",
                "cannot find the boundaries of the stages here" => {
                    "contend cannot find the boundaries of its stages"
                }
                why => why,
            };
            return Reading::Shell(why.to_owned());
        }
    };
    let Some(texts) = parsed.plain_stages() else {
        return Reading::Shell("it contains more than stages joined by `|`".to_owned());
    };
    let mut stages = Vec::new();
    for text in texts {
        match Simple::read(text) {
            Some(simple) if is_built_in(&simple.program.text) => {
                let why = format!("`{}` is a shell builtin", simple.program.text);
                return Reading::Shell(why);
            }
            Some(simple) => stages.push(simple),
            None => return Reading::Shell(format!("`{text}` is not a plain command")),
        }
    }
    Reading::Commands { stages, inverted: parsed.inverted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_are_told_from_what_needs_a_shell() {
        let Reading::Commands { stages, inverted } = read("! LC_ALL=C sort <f |\n uniq -c") else {
            panic!("plain commands")
        };
        assert!(inverted);
        assert_eq!(stages.iter().map(Simple::name).collect::<Vec<_>>(), ["sort", "uniq"]);
        assert!(matches!(read("/bin/echo a"), Reading::Commands { .. }), "a file is none");
        let several = Reading::Shell("it has more than one pipeline".to_owned());
        assert_eq!(read("sort; uniq"), several);
        for text in [
            "echo a | sort",
            "sort $x",
            "sort | while read -r a; do :; done",
            "sort; uniq",
            "sort >f",
            "sort |& uniq",
            "sort | # all\n uniq",
            "sort &",
            "a &&",
            "",
        ] {
            assert!(matches!(read(text), Reading::Shell(_)), "{text}");
        }
    }
}
