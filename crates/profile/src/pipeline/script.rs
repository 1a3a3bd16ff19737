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
//! 4. The shell waits at `end_gate` until all is over, so that an EXIT trap of the set-up
//!    text runs when it would without contend.
//!
//! `-e` and `-x` are put off outside the stages: the starter's end is no failure of the
//! user's, and our lines are not to be traced.

use std::fmt::Write as _;

use super::parse::Parsed;

/// Where the parts of the script meet contend.
#[derive(Debug)]
pub struct Meeting {
    /// Opens when all stages are known.
    pub gate: String,
    /// Takes the shell's options and the starter's `/proc/self/stat`.
    pub channel: String,
    /// Opens when all stages have ended.
    pub end_gate: String,
}

/// Writes the script.
pub fn script(setup: Option<&str>, parsed: &Parsed, pipefail: bool, meeting: &Meeting) -> String {
    let Meeting { gate, channel, end_gate } = meeting;
    let fd = unused_fd(setup, &parsed.text);
    let mut script = String::new();
    if let Some(setup) = setup {
        script.push_str(setup);
        script.push('\n');
    }
    // Everything up to the user's text stands on one line, so that the shell's own
    // messages count lines as if the text stood alone.
    script.push_str("{ _contend=$-; set +ex; } 2>/dev/null; ");
    if pipefail {
        script.push_str("(set -o pipefail) 2>/dev/null && set -o pipefail; ");
    }
    let _ = write!(
        script,
        "set -o >{channel}; \
         ( read -r _contend_pid </proc/self/stat; echo \"$_contend_pid\" >{channel}; \
         case ${{BASH_VERSION-}} in ?*) shopt -u lastpipe;; esac; \
         case $_contend in *e*) set -e;; esac; \
         case $_contend in *x*) unset _contend _contend_pid; set -x;; \
         *) unset _contend _contend_pid;; esac; "
    );
    let mut copied = 0;
    for stage in &parsed.stages {
        if parsed.stages.len() > 1 || copied > 0 {
            script.push_str(&parsed.text[copied..stage.span.start]);
        }
        let command = &parsed.text[stage.span.clone()];
        let _ = write!(script, "( {command} ) {fd}<{gate} {fd}<&-");
        copied = stage.span.end;
    }
    script.push_str(&parsed.text[copied..]);
    // The second newline is for a text that ends in a backslash. The `:` keeps the shell
    // from becoming the last stage instead of starting it.
    let _ = write!(script, "\n\n:\n)\ncommand : <{end_gate}\n");
    script
}

/// A one-digit descriptor (all that dash can name) that the user's text does not use.
fn unused_fd(setup: Option<&str>, text: &str) -> char {
    let mentioned = |digit: char| {
        [text, setup.unwrap_or("")].iter().any(|text| {
            ["<", ">"].iter().any(|sign| text.contains(&format!("{digit}{sign}")))
                || text.contains(&format!("&{digit}"))
        })
    };
    ('3'..='9').rev().find(|&digit| !mentioned(digit)).unwrap_or('9')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::parse::parse;

    fn script_of(setup: Option<&str>, text: &str) -> String {
        let meeting =
            Meeting { gate: "GATE".into(), channel: "CHANNEL".into(), end_gate: "END".into() };
        script(setup, &parse(text).expect("one pipeline"), false, &meeting)
    }

    #[test]
    fn every_stage_waits_at_the_gate() {
        let script = script_of(None, "a \"$(c | d)\" |& b <<E | e # f\n1\nE\n");
        assert!(
            script.contains(
                "( a \"$(c | d)\" ) 9<GATE 9<&- |& ( b <<E ) 9<GATE 9<&- | \
                 ( e ) 9<GATE 9<&- # f\n1\nE\n"
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
        assert!(script.contains("; ( true ) 9<GATE"), "{script}");
    }

    #[test]
    fn a_descriptor_of_the_user_is_left_alone() {
        assert_eq!(unused_fd(Some("exec 9<x 8>&1"), "cat <&7"), '6');
        assert_eq!(unused_fd(None, "cat"), '9');
    }
}
