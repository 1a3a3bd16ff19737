//! The text that the shell is given: the user's, with a gate before every stage.
//!
//! The shell itself runs the pipeline, so everything in it means what it always means.
//! To be the parent of the stages, and so to get what the kernel tells a parent alone,
//! contend has an extra subshell start them and then ends it; as the nearest subreaper
//! it inherits them. The parts, in order:
//!
//! 1. The shell runs the set-up text and writes its options to `channel`.
//! 2. A subshell, the *starter*, writes its process id to `channel` and starts the stages.
//!    Each stage is wrapped as `( STAGE ) N<GATE N<&-`: the process that will be the stage
//!    waits at the gate before it expands or executes anything. Shells execute a simple
//!    command in such a subshell without a further fork, so the stage's process becomes
//!    the command itself.
//! 3. contend sees all stages waiting, ends the starter, inherits them, opens the gate.
//! 4. The shell reads the statuses from `end`, where contend writes them when all is over, and
//!    exits with the pipeline's. If the set-up text has traps, its last command is a pipeline
//!    of subshells that end as the stages did, so that traps on ERR and EXIT run when they
//!    would without contend, and see the same.
//!
//! `-e`, `-x` and a trap on ERR are put off outside the stages: the starter's end is no
//! failure of the user's, and our lines are not to be traced. `command` goes past functions
//! that the user may have given the names of builtins.

use std::fmt::Write as _;

use contend_shell::parse::Parsed;
use contend_sys::inherited;

/// In bash, the last stage too shall be a process of its own.
const NO_LASTPIPE: &str = "case ${BASH_VERSION-} in ?*) command shopt -u lastpipe;; esac";

/// Where the parts of the script meet contend.
#[derive(Debug)]
pub struct Meeting {
    /// Opens when all stages are known.
    pub gate: String,
    /// Takes the shell's options and the starter's `/proc/self/stat`.
    pub channel: String,
    /// Has the statuses when all stages have ended.
    pub end: String,
}

/// What else decides how the script is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// Ask the shell for `pipefail`.
    pub pipefail: bool,
    /// The starter cannot be ended by SIGPIPE, the one signal whose deaths shells do not
    /// report: silence the shell's report of another.
    pub silent: bool,
}

/// Writes the script.
pub fn script(setup: Option<&str>, parsed: &Parsed, manner: Manner, meeting: &Meeting) -> String {
    let Meeting { gate, channel, end } = meeting;
    let [fd, spare] = unused_fds(setup, &parsed.text);
    let setup = setup.unwrap_or("");
    let traps_errors = setup.contains("ERR");
    let mut script = String::new();
    if !setup.is_empty() {
        script.push_str(setup);
        script.push('\n');
        if setup.ends_with('\\') {
            script.push('\n');
        }
    }
    // Everything up to the user's text stands on one line, so that the shell's own
    // messages count lines as if the text stood alone.
    let asks_status = parsed.text.contains("$?");
    let status = if asks_status { "_contend_status=$?; " } else { "" };
    let _ = write!(script, "{{ {status}_contend=$-; command set +ex; }} 2>/dev/null; ");
    if manner.pipefail {
        script.push_str("(set -o pipefail) 2>/dev/null && command set -o pipefail; ");
    }
    if traps_errors {
        script.push_str("_contend_trap=$(command trap -p ERR); command trap - ERR; ");
    }
    let _ = write!(script, "command set -o >{channel}; ");
    if manner.silent {
        let _ = write!(script, "{{ ( command exec 2>&{spare} {spare}>&-; ");
    } else {
        script.push_str("( ");
    }
    let _ = write!(
        script,
        "command read -r _contend_pid </proc/self/stat; \
         command printf '%s\\n' \"$_contend_pid\" >{channel}; {NO_LASTPIPE}; "
    );
    if traps_errors {
        script.push_str("case $_contend in *E*) command eval \"$_contend_trap\";; esac; ");
    }
    let forget = "command unset _contend _contend_pid _contend_trap _contend_status";
    let last = if asks_status {
        // What the set-up's last command left, unless -e or -x would make something of it.
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
    push_stages(&mut script, parsed, gate, fd);
    // The second newline is for a text that ends in a backslash. The `:` keeps the shell
    // from becoming the last stage instead of starting it.
    script.push_str("\n\n:\n)");
    if manner.silent {
        let _ = write!(script, "; }} {spare}>&2 2>/dev/null");
    }
    if traps_errors {
        script.push_str("\ncommand eval \"${_contend_trap:-:}\"");
    }
    let _ = write!(script, "\n{}\n", ending(setup, parsed, end));
    script
}

/// Has the shell end as it would after the pipeline itself: with the status that it is
/// given at `end` or, where there are traps, after a pipeline of the statuses given there.
fn ending(setup: &str, parsed: &Parsed, end: &str) -> String {
    if !setup.contains("trap") {
        return format!(
            "IFS=' ' command read -r _contend _contend_rest <{end}; command exit \"$_contend\""
        );
    }
    let names: Vec<_> = (1..=parsed.stages.len()).map(|n| format!("_contend_{n}")).collect();
    // The last stage as a subshell would set off bash's trap on ERR twice, and a single
    // one that is none would end the shell.
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

/// What the shell reads at its end: the pipeline's status, and the stages'.
pub fn last_words(status: i32, stages: &[i32]) -> String {
    let mut words = vec![status];
    words.extend(stages);
    words.iter().map(i32::to_string).collect::<Vec<_>>().join(" ") + "\n"
}

/// The user's text, with every stage behind the gate.
fn push_stages(script: &mut String, parsed: &Parsed, gate: &str, fd: char) {
    let mut copied = 0;
    for (index, stage) in parsed.stages.iter().enumerate() {
        // A `!` before a single command is left out: it is for contend to invert.
        if parsed.stages.len() > 1 || index > 0 {
            script.push_str(&parsed.text[copied..stage.span.start]);
        }
        let command = &parsed.text[stage.span.clone()];
        // After `|` it is a command, after `(` it would be the reserved word.
        let is_time = command.split_whitespace().next() == Some("time");
        let escape = if is_time { "\\" } else { "" };
        let _ = write!(script, "( {escape}{command} ) {fd}<{gate} {fd}<&-");
        copied = stage.span.end;
    }
    script.push_str(&parsed.text[copied..]);
}

/// Two one-digit descriptors (all that dash can name) that the user's text does not use and
/// that were not open when contend was started.
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
        let meeting = Meeting { gate: "GATE".into(), channel: "CHANNEL".into(), end: "END".into() };
        script(setup, &parse(text).expect("one pipeline"), Manner::default(), &meeting)
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
    fn the_text_stands_on_the_first_line_after_the_set_up() {
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
    fn a_reserved_word_stays_the_command_that_it_is_after_a_pipe() {
        let script = script_of(None, "a | time b | timed c");
        assert!(script.contains("( \\time b )") && script.contains("( timed c )"), "{script}");
    }

    #[test]
    fn a_descriptor_of_the_user_is_left_alone() {
        assert_eq!(unused_fds(Some("exec 9<x 8>&1"), "cat <&7 /dev/fd/5"), ['6', '4']);
        let [first, second] = unused_fds(None, "cat");
        assert_ne!(first, second);
    }
}
