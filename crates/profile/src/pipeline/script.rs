//! Writes the script that the shell runs: the user's source text, with a gate before every stage.
//!
//! The shell itself runs the pipeline, so all of its syntax keeps its meaning. Only the parent of a
//! process gets its exit status and resource usage, so contend has to become the parent of the
//! stages: an extra subshell, the *starter*, starts them and is then ended by contend, which
//! inherits them as the nearest subreaper.
//!
//! ```text
//! shell                 starter               stages               contend
//!   │ runs the setup
//!   ├─ options ────────────────────────────────────────── channel ──▶│
//!   ├─ forks ─────────────▶├─ process id ──────────────── channel ──▶│
//!   │                      ├─ forks ────────────▶│ wait at the gate  │
//!   │                      ✗◀──────────────────────────── SIGPIPE ───┤ all stages wait
//!   │                                            │◀────── gate ──────┤ inherits them
//!   │                                            ✗ end ─────────────▶│
//!   │◀─ exit codes ─────────────────────────────────────── end ──────┤
//!   ✗ exits with the pipeline's exit code
//! ```
//!
//! - Each stage is wrapped as `( STAGE ) N<GATE N<&-`: the process of the stage waits at the gate
//!   before it expands or executes anything. Shells execute a simple command in such a subshell
//!   without another fork, so this process becomes the command itself.
//! - If the setup has traps, the script's last command is a pipeline of subshells that end with the
//!   stages' exit codes, so that traps on ERR and EXIT run in the same cases as without contend,
//!   and see the same exit codes.
//! - `-e`, `-x` and a trap on ERR are suspended outside the stages: the starter's death is not a
//!   failure of the user's commands, and contend's lines must not be traced. `command` bypasses
//!   functions named like builtins.

use std::fmt::Write as _;

use contend_shell::parse::Parsed;
use contend_sys::inherited;

/// Shell command that makes bash run the last stage in a separate process, like the others.
const NO_LASTPIPE: &str = "case ${BASH_VERSION-} in ?*) command shopt -u lastpipe;; esac";

/// The paths of files through which the script and contend communicate.
#[derive(Debug)]
pub struct ScriptPaths {
    /// The gate, which contend opens once all stages wait at it.
    pub gate: String,
    /// The pipe to which the script writes the shell's options and the starter's `/proc/self/stat`.
    pub channel: String,
    /// The pipe from which the script reads the exit codes once all stages have ended.
    pub end: String,
}

/// Options of the script.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScriptOptions {
    /// Whether the script sets `pipefail`, if the shell has it.
    pub pipefail: bool,
    /// Whether to silence the shell's report of the starter's death. Shells do not report deaths by
    /// SIGPIPE, so this is needed only if SIGPIPE cannot end the starter.
    pub silent: bool,
}

/// Returns the script that runs `setup` and then the pipeline.
pub fn script(
    setup: Option<&str>,
    parsed: &Parsed,
    options: ScriptOptions,
    paths: &ScriptPaths,
) -> String {
    let ScriptPaths { gate, channel, end } = paths;
    let [fd, spare] = unused_fds(setup, &parsed.text);
    let setup = setup.unwrap_or("");
    let traps_errors = setup.contains("ERR");
    let asks_status = parsed.text.contains("$?");
    let mut script = String::new();
    push_setup(&mut script, setup);
    // All code from here to the user's text is on one line, so that line numbers in the shell's
    // messages count from the beginning of that text.
    push_save(&mut script, asks_status, traps_errors, options.pipefail);
    let _ = write!(script, "command set -o >{channel}; ");
    if options.silent {
        let _ = write!(script, "{{ ( command exec 2>&{spare} {spare}>&-; ");
    } else {
        script.push_str("( ");
    }
    let _ = write!(
        script,
        "command read -r _contend_pid </proc/self/stat; \
         command printf '%s\\n' \"$_contend_pid\" >{channel}; {NO_LASTPIPE}; "
    );
    push_restore(&mut script, asks_status, traps_errors);
    push_stages(&mut script, parsed, gate, fd);
    // The second newline is for text that ends in a backslash. The `:` keeps the shell from
    // executing the last stage in its own process instead of a new one.
    script.push_str("\n\n:\n)");
    if options.silent {
        let _ = write!(script, "; }} {spare}>&2 2>/dev/null");
    }
    if traps_errors {
        script.push_str("\ncommand eval \"${_contend_trap:-:}\"");
    }
    let _ = write!(script, "\n{}\n", ending(setup, parsed, end));
    script
}

/// Appends the user's setup on lines of its own.
fn push_setup(script: &mut String, setup: &str) {
    if setup.is_empty() {
        return;
    }
    script.push_str(setup);
    script.push('\n');
    if setup.ends_with('\\') {
        script.push('\n');
    }
}

/// Appends the commands that save the shell's options, and on request `$?` and the ERR trap, in
/// variables. They also suspend `-e`, `-x` and the trap, which would react to the script's own
/// commands, and on request set `pipefail`.
fn push_save(script: &mut String, asks_status: bool, traps_errors: bool, pipefail: bool) {
    let status = if asks_status { "_contend_status=$?; " } else { "" };
    let _ = write!(script, "{{ {status}_contend=$-; command set +ex; }} 2>/dev/null; ");
    if pipefail {
        script.push_str("(set -o pipefail) 2>/dev/null && command set -o pipefail; ");
    }
    if traps_errors {
        script.push_str("_contend_trap=$(command trap -p ERR); command trap - ERR; ");
    }
}

/// Appends the commands that restore what [`push_save`] has saved, and unset the variables.
fn push_restore(script: &mut String, asks_status: bool, traps_errors: bool) {
    if traps_errors {
        script.push_str("case $_contend in *E*) command eval \"$_contend_trap\";; esac; ");
    }
    let forget = "command unset _contend _contend_pid _contend_trap _contend_status";
    let last = if asks_status {
        // This restores `$?` of the setup's last command, unless -e or -x would react to it.
        format!(
            "*[eE]*) {forget};; \
             *) _contend() {{ return \"$1\"; }}; \
             command eval \"{forget}; _contend $_contend_status\""
        )
    } else {
        format!("*) {forget}")
    };
    let _ = write!(
        script,
        "case $_contend in *e*) command set -e;; esac; \
         case $_contend in *x*) {forget}; command set -x;; {last};; esac; "
    );
}

/// Returns the last lines of the script, which end the shell as the pipeline itself would. The
/// shell exits with the exit code that it reads from `end` or, if there are traps, runs a pipeline
/// of subshells that end with the exit codes read there.
fn ending(setup: &str, parsed: &Parsed, end: &str) -> String {
    if !setup.contains("trap") {
        return format!(
            "IFS=' ' command read -r _contend _contend_rest <{end}; command exit \"$_contend\""
        );
    }
    let names: Vec<_> = (1..=parsed.stages.len()).map(|n| format!("_contend_{n}")).collect();
    // A subshell as the last stage would trigger bash's trap on ERR twice, and a single stage that
    // is not a subshell would end the shell.
    let stages: Vec<_> = names.iter().map(|name| format!("command exit ${name}")).collect();
    let pipeline = match stages.as_slice() {
        [one] => format!("( {one} )"),
        several => several.join(" | "),
    };
    format!(
        "IFS=' ' command read -r _contend {} <{end}; {NO_LASTPIPE}\n{}{pipeline}",
        names.join(" "),
        if parsed.inverted { "! " } else { "" },
    )
}

/// Formats the exit codes that the shell reads at its end, as one line: that of the pipeline, then
/// those of the stages.
pub fn format_exit_codes(status: i32, stages: &[i32]) -> String {
    let mut words = vec![status];
    words.extend(stages);
    words.iter().map(i32::to_string).collect::<Vec<_>>().join(" ") + "\n"
}

/// Appends the source text of the pipeline to the script, with a gate before every stage. `fd` is
/// the descriptor through which a stage opens the gate.
fn push_stages(script: &mut String, parsed: &Parsed, gate: &str, fd: char) {
    let mut copied = 0;
    for (index, stage) in parsed.stages.iter().enumerate() {
        // Leave out a `!` before a single command: contend inverts the exit code.
        if parsed.stages.len() > 1 || index > 0 {
            script.push_str(&parsed.text[copied..stage.span.start]);
        }
        let command = &parsed.text[stage.span.clone()];
        // `time` is an ordinary command after `|`, but would be a reserved word after `(`.
        let is_time = command.split_whitespace().next() == Some("time");
        let escape = if is_time { "\\" } else { "" };
        let _ = write!(script, "( {escape}{command} ) {fd}<{gate} {fd}<&-");
        copied = stage.span.end;
    }
    script.push_str(&parsed.text[copied..]);
}

/// Returns two descriptors from 3 to 9 (dash supports only single digits) that the user's text does
/// not use, and that were not open when contend started. If there are fewer than two, uses 9 for a
/// missing first one and 8 for a missing second one.
fn unused_fds(setup: Option<&str>, text: &str) -> [char; 2] {
    let mentioned = |digit: char| {
        [text, setup.unwrap_or("")].iter().any(|text| {
            ["<", ">"].iter().any(|sign| text.contains(&format!("{digit}{sign}")))
                || text.contains(&format!("&{digit}"))
                || text.contains(&format!("/dev/fd/{digit}"))
        })
    };
    let was_open = |digit: char| {
        digit.to_digit(10).and_then(|d| u8::try_from(d).ok()).is_some_and(inherited::was_open)
    };
    let mut unused = ('3'..='9').rev().filter(|&digit| !mentioned(digit) && !was_open(digit));
    [unused.next().unwrap_or('9'), unused.next().unwrap_or('8')]
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_shell::parse::parse;

    fn script_of(setup: Option<&str>, text: &str) -> String {
        let paths =
            ScriptPaths { gate: "GATE".into(), channel: "CHANNEL".into(), end: "END".into() };
        script(setup, &parse(text).expect("one pipeline"), ScriptOptions::default(), &paths)
    }

    #[test]
    fn every_stage_waits_at_the_gate() {
        let script = script_of(None, "a \"$(c | d)\" |& b <<E | e # f\n1\nE\n");
        assert!(
            script.contains(
                &"( a \"$(c | d)\" ) 9<GATE 9<&- |& ( b <<E ) 9<GATE 9<&- | \
                 ( e ) 9<GATE 9<&- # f\n1\nE\n"
                    .replace('9', &unused_fds(None, "")[0].to_string())
            ),
            "{script}"
        );
    }

    #[test]
    fn the_pipeline_begins_on_the_line_after_the_setup() {
        let script = script_of(Some("set -eu\nf() { :; }"), "f | cat");
        let line = script.lines().position(|line| line.contains("( f )"));
        assert_eq!(line, Some(2));
    }

    #[test]
    fn an_exclamation_mark_before_a_single_command_stays_outside() {
        let script = script_of(None, "! true");
        assert!(script.contains("; ( true ) "), "{script}");
    }

    #[test]
    fn a_reserved_word_after_a_pipe_remains_a_command() {
        let script = script_of(None, "a | time b | timed c");
        assert!(script.contains("( \\time b )") && script.contains("( timed c )"), "{script}");
    }

    #[test]
    fn descriptors_used_by_the_script_are_avoided() {
        assert_eq!(unused_fds(Some("exec 9<x 8>&1"), "cat <&7 /dev/fd/5"), ['6', '4']);
        let [first, second] = unused_fds(None, "cat");
        assert_ne!(first, second);
    }
}
