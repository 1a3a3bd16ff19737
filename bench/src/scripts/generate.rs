//! Generates a script, its input and its setting from a seed and a number.

use fastrand::Rng;

use super::files::KINDS;
use super::grammar::{draw, fragment};

/// A random script, with everything that it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Number of the script, which identifies it together with the seed.
    pub number: u64,
    /// Fragments of the script, in order.
    pub parts: Vec<Part>,
    /// Files that the script needs in addition to the basic ones.
    pub files: Vec<&'static str>,
    /// Content of the file `input`.
    pub input: Vec<u8>,
    /// Streams, locale and options for the script's run.
    pub setting: Setting,
}

/// A fragment of a script, with the feature that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Name of the feature.
    pub feature: &'static str,
    /// Source of the fragment: one or more lines.
    pub text: String,
}

/// Streams, locale and options for a script's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Source of standard input.
    pub stdin: Stdin,
    /// Target of standard output.
    pub stdout: Stdout,
    /// Value of `LC_ALL`.
    pub locale: String,
    /// Whether `BASH_ENV` names the file `env.sh`; without effect if standard input is closed.
    pub bash_env: bool,
    /// Options of `contend run` that force the use of chunks.
    pub forced: Vec<String>,
    /// Arguments of the script, if it runs as a file.
    pub arguments: &'static [&'static str],
}

/// A kind of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// The file `input`.
    File,
    /// A pipe that is filled at full speed.
    Pipe,
    /// A pipe into which the first ten lines are written at intervals of 10 ms.
    SlowPipe,
    /// A closed descriptor.
    Closed,
}

/// A kind of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    /// A regular file.
    File,
    /// A pipe, read at full speed.
    Pipe,
}

impl Stdin {
    const DRAWN: [Self; 10] = [
        Self::Null,
        Self::Null,
        Self::File,
        Self::File,
        Self::File,
        Self::Pipe,
        Self::Pipe,
        Self::Pipe,
        Self::SlowPipe,
        Self::Closed,
    ];

    /// Returns the name of this kind among the features in a summary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "stdin/null",
            Self::File => "stdin/file",
            Self::Pipe => "stdin/pipe",
            Self::SlowPipe => "stdin/slow pipe",
            Self::Closed => "stdin/closed",
        }
    }
}

const MAX_PARTS: usize = 4;
const PART_SIZES: [&str; 7] = ["1", "3", "7", "16", "100", "1k", "64k"];
const LARGE_PART_SIZES: [&str; 4] = ["4k", "16k", "33k", "64k"];
const ARGUMENTS: [&[&str]; 4] = [&[], &[], &["b", "a"], &["a b", "-x", ""]];
/// Reciprocal of the probability that a script has a `BASH_ENV`, and of the probability that its
/// locale is drawn from all locales.
const RARE_ODDS: u8 = 12;

impl Script {
    /// Generates the script with the given number. Draws locales from `locales`.
    ///
    /// # Panics
    /// May panic if `locales` is empty.
    pub fn new(seed: u64, number: u64, locales: &[String]) -> Self {
        let mut random = Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let random = &mut random;
        let mut files = Vec::new();
        let parts: Vec<Part> = (0..random.usize(1..=MAX_PARTS))
            .map(|_| {
                let feature = draw(random, |_| true);
                let fragment = fragment(feature, locales, random);
                files.extend(fragment.files);
                Part { feature: feature.name, text: fragment.text }
            })
            .collect();
        let long = parts.iter().any(|part: &Part| is_long(&part.text));
        let setting = Setting::new(locales, long, random);
        if setting.bash_env {
            files.push("env.sh");
        }
        let input = KINDS[random.usize(..KINDS.len())].bytes(random);
        Self { number, parts, files, input, setting }
    }

    /// Returns the source that a shell runs.
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Returns the names of the script's features, of its standard input and of unusual settings,
    /// sorted and without duplicates.
    pub fn features(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self.parts.iter().map(|part| part.feature).collect();
        names.push(self.setting.stdin.name());
        names.extend(self.setting.bash_env.then_some("setting/BASH_ENV"));
        let usual = ["C", "C.UTF-8"].contains(&self.setting.locale.as_str());
        names.extend((!usual).then_some("setting/locale"));
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Setting {
    fn new(locales: &[String], long: bool, random: &mut Rng) -> Self {
        let locale = match random.u8(..RARE_ODDS) {
            0 => locales[random.usize(..locales.len())].clone(),
            1..=4 => "C".to_owned(),
            _ => "C.UTF-8".to_owned(),
        };
        Self {
            stdin: Stdin::DRAWN[random.usize(..Stdin::DRAWN.len())],
            stdout: if random.bool() { Stdout::File } else { Stdout::Pipe },
            locale,
            bash_env: random.u8(..RARE_ODDS) == 0,
            forced: forced(long, random),
            arguments: ARGUMENTS[random.usize(..ARGUMENTS.len())],
        }
    }
}

/// Returns whether a script may process too much data for chunks of a few bytes.
fn is_long(text: &str) -> bool {
    ["big", "yes", "zero", "0000", "while :", "while printf"].iter().any(|long| text.contains(long))
}

fn forced(long: bool, random: &mut Rng) -> Vec<String> {
    let sizes = if long { &LARGE_PART_SIZES[..] } else { &PART_SIZES };
    let size = sizes[random.usize(..sizes.len())];
    let jobs = random.u8(1..=7).to_string();
    let mut options = vec!["--part-size".to_owned(), size.to_owned(), "-j".to_owned(), jobs];
    if random.u8(..4) == 0 {
        let memory = ["1M", "8M", "100M"][random.usize(..3)];
        options.extend(["--memory".to_owned(), memory.to_owned()]);
    }
    options
}
