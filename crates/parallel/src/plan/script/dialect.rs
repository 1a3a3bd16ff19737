//! Generates the words inserted into a script, in the dialect of the shell that runs it.

use std::fmt::Write as _;

use contend_commands::quote;

/// A family of shells that run the same scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// GNU bash.
    Bash,
    /// A POSIX shell without extensions, such as dash.
    Posix,
}

/// The position of a stage in its run, which consists of neighbouring stages that contend can take
/// over together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The only stage of its run.
    Alone,
    /// The first of several stages.
    First,
    /// A stage between two others of its run.
    Middle,
    /// The last of several stages.
    Last,
}

impl Position {
    /// All positions, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Alone, Self::First, Self::Middle, Self::Last];

    /// Returns the position of stage `index` in a run of `count` stages.
    pub fn of(index: usize, count: usize) -> Self {
        match (index == 0, index + 1 == count) {
            (true, true) => Self::Alone,
            (true, false) => Self::First,
            (false, false) => Self::Middle,
            (false, true) => Self::Last,
        }
    }

    /// Returns the letter that stands for the position in the arguments of [`STAGE_VERB`].
    pub fn letter(self) -> &'static str {
        match self {
            Self::Alone => "a",
            Self::First => "f",
            Self::Middle => "m",
            Self::Last => "l",
        }
    }

    /// Returns the position that a letter stands for, or `None` for any other string.
    pub fn from_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|position| position.letter() == letter)
    }

    /// Returns whether the run contains the stage before this one.
    pub fn has_previous(self) -> bool {
        matches!(self, Self::Middle | Self::Last)
    }

    /// Returns whether the run contains the stage after this one.
    pub fn has_next(self) -> bool {
        matches!(self, Self::First | Self::Middle)
    }
}

/// The hidden subcommand that executes a stage.
pub const STAGE_VERB: &str = "run-stage";

/// Time from the start of one execution of a pipeline to the next, in milliseconds, below which an
/// execution is too short to gain from contend.
const SHORT_MS: u32 = 30;
/// Number of consecutive short executions after which the shell runs the pipeline without contend.
const MAX_SHORT_EXECUTIONS: u32 = 3;

impl Dialect {
    /// Returns the source to insert at the beginning of the script. It defines the variables from
    /// which [`Self::prefix`] builds the words that start `program`, with `options` as one
    /// argument, and `slots` slots for measured times.
    ///
    /// In bash, the variables with these words are arrays, because arrays are never exported: even
    /// under `set -a`, commands do not find them in their environment. In other shells, `set -a`
    /// exports the variables.
    pub(super) fn preamble(self, program: &str, options: &str, slots: usize) -> String {
        let (program, options) = (quote(program), quote(options));
        let mut text = String::new();
        match self {
            Self::Bash => {
                for position in Position::ALL.map(Position::letter) {
                    let _ = write!(
                        text,
                        "__contend_{position}=({program} {STAGE_VERB} {position} {options});"
                    );
                }
            }
            Self::Posix => {
                let _ = write!(text, "__contend={program};__contend_o={options};");
            }
        }
        if slots > 0 {
            text += &self.clock(slots);
        }
        text
    }

    /// Returns the definitions of the functions and variables that [`Self::tick`] needs.
    fn clock(self, slots: usize) -> String {
        match self {
            Self::Bash => {
                let zeros = vec!["0"; slots + 1].join(" ");
                format!(
                    "__contend_n=({zeros});__contend_s=({zeros});\
                     [[ ${{EPOCHREALTIME-}} ]]||EPOCHREALTIME=;"
                )
            }
            Self::Posix => {
                let hundredths = SHORT_MS / 10;
                let slots = (1..=slots).map(|slot| {
                    format!("__contend_n{slot}=0;__contend_s{slot}=0;__contend_k{slot}=;")
                });
                let slots: String = slots.collect();
                format!(
                    "{slots}__contend_tick(){{ __contend_t=0.00;\
                     {{ IFS=' ' read -r __contend_t __contend_u </proc/uptime; }} 2>/dev/null||:;\
                     __contend_t=${{__contend_t%.*}}${{__contend_t#*.}};\
                     eval \"__contend_n=\\$((__contend_t-__contend_s$1<{hundredths}\
                     ?__contend_n$1+1:0))\";\
                     eval \"__contend_s$1=\\$__contend_t;__contend_n$1=\\$__contend_n\";\
                     if [ \"$__contend_n\" -lt {MAX_SHORT_EXECUTIONS} ];then eval \"__contend_k$1=\";\
                     else unset \"__contend_k$1\";fi;}};"
                )
            }
        }
    }

    /// Returns a command that measures how soon a pipeline is executed again. `slot` is the number
    /// of the slot for its times, from 1. The command's exit code is 0, so that it triggers neither
    /// `set -e` nor a trap.
    pub(super) fn tick(self, slot: usize) -> String {
        match self {
            Self::Bash => format!(
                " ((__contend_s[0]=${{EPOCHREALTIME//[!0123456789]/}}+0,\
                 __contend_n[{slot}]=__contend_s[0]&&__contend_s[0]-__contend_s[{slot}]<{}\
                 ?__contend_n[{slot}]+1:0,__contend_s[{slot}]=__contend_s[0],1)); ",
                SHORT_MS * 1000
            ),
            Self::Posix => format!(" __contend_tick {slot}; "),
        }
    }

    /// Returns the prefix of a stage's command: words that start contend. With a `slot`, they
    /// expand to nothing if the last executions measured there were too short. The prefix does not
    /// depend on `IFS`, `set -f` or `set -u`.
    ///
    /// With `options`, which only bash supports, the last word is the current value of the shell's
    /// options.
    pub(super) fn prefix(self, position: Position, slot: Option<usize>, options: bool) -> String {
        let name = position.letter();
        match (self, slot) {
            (Self::Bash, None) => {
                let options = if options { "\"$SHELLOPTS\" " } else { "" };
                format!("\"${{__contend_{name}[@]}}\" {options}")
            }
            // Indexing past the end of an array yields no words.
            (Self::Bash, Some(slot)) => {
                let place = format!("[@]:__contend_n[{slot}]<{MAX_SHORT_EXECUTIONS}?0:9}}\" ");
                let words = format!("\"${{__contend_{name}{place}");
                if options { words + "\"${SHELLOPTS" + &place } else { words }
            }
            (Self::Posix, None) => {
                format!("\"$__contend\" {STAGE_VERB} {name} \"$__contend_o\" ")
            }
            (Self::Posix, Some(slot)) => {
                let words = ["$__contend", STAGE_VERB, name, "$__contend_o"];
                let words = words.map(|word| format!("${{__contend_k{slot}+\"{word}\"}} "));
                words.concat()
            }
        }
    }

    /// Returns whether prefixes must pass on the shell's options, because the script may set
    /// `pipefail`.
    pub(super) fn needs_options(self, text: &str) -> bool {
        // Other shells have no `pipefail`.
        self == Self::Bash && text.contains("pipefail")
    }
}
