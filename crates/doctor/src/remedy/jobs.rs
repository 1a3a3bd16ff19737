//! The number of jobs on the command lines of `make`, `xargs` and GNU `parallel`.

use std::ffi::OsString;

use super::Count;

/// How a command takes the number of its jobs.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// Names of the program.
    pub programs: &'static [&'static str],
    /// The short options, each a letter. The first one is added to a command without any of them.
    short: &'static [char],
    /// The long options, without dashes.
    long: &'static [&'static str],
    /// Letters of the other short options whose argument may be a word of its own.
    with_argument: &'static str,
    /// Whether the first operand ends the options, as does the command that `xargs` runs.
    ends_at_operand: bool,
}

/// The syntax of `make`.
pub const MAKE: Syntax = Syntax {
    programs: &["make", "gmake"],
    short: &['j'],
    long: &["jobs"],
    with_argument: "CEfIoW",
    ends_at_operand: false,
};
/// The syntax of GNU and BSD `xargs`.
pub const XARGS: Syntax = Syntax {
    programs: &["xargs"],
    short: &['P'],
    long: &["max-procs"],
    with_argument: "adEILnsRJS",
    ends_at_operand: true,
};
/// The syntax of GNU `parallel`.
pub const PARALLEL: Syntax = Syntax {
    programs: &["parallel"],
    short: &['j', 'P'],
    long: &["jobs", "max-procs"],
    with_argument: "aCdEILnNSs",
    ends_at_operand: true,
};

/// The option with the number of jobs.
struct Found {
    /// Indices of its words.
    place: std::ops::Range<usize>,
    /// Its argument; empty without one.
    value: String,
}

impl Syntax {
    /// Returns whether the command is one of this syntax.
    pub fn is_of(&self, words: &[OsString]) -> bool {
        let program = words.first().and_then(|word| word.to_str()).unwrap_or("");
        self.programs.contains(&program.rsplit('/').next().unwrap_or(program))
    }

    /// Returns the number of jobs that the command line gives; `without` if it gives none.
    pub fn count(&self, words: &[OsString], without: Count) -> Count {
        match self.find(words) {
            None => without,
            Some(found) => parse(&found.value),
        }
    }

    /// Returns the command with `jobs` jobs.
    pub fn with_jobs(&self, words: &[OsString], jobs: usize) -> Vec<OsString> {
        let option = OsString::from(format!("-{}{jobs}", self.short[0]));
        let mut words = words.to_vec();
        let place = self.find(&words).map_or(1..1, |found| found.place);
        words.splice(place, [option]);
        words
    }

    /// Returns the last option with a number of jobs, which is the one that counts.
    fn find(&self, words: &[OsString]) -> Option<Found> {
        let mut found = None;
        let mut place = 1;
        while let Some(word) = words.get(place).and_then(|word| word.to_str()) {
            let next = || words.get(place + 1).and_then(|word| word.to_str()).unwrap_or("");
            let mut length = 1;
            if word == "--" || word.starts_with(":::") {
                break;
            } else if let Some(option) = word.strip_prefix("--") {
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                if self.long.contains(&name) {
                    let is_apart = !option.contains('=') && is_count(next());
                    length += usize::from(is_apart);
                    let value = if is_apart { next() } else { value };
                    found = Some(Found { place: place..place + length, value: value.to_owned() });
                }
            } else if let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty())
            {
                let letter = option.chars().next().unwrap_or('-');
                let value = &option[letter.len_utf8()..];
                if self.short.contains(&letter) {
                    let is_apart = value.is_empty() && is_count(next());
                    length += usize::from(is_apart);
                    let value = if is_apart { next() } else { value };
                    found = Some(Found { place: place..place + length, value: value.to_owned() });
                } else if self.with_argument.contains(letter) && value.is_empty() {
                    length += 1;
                }
            } else if self.ends_at_operand {
                break;
            }
            place += length;
        }
        found
    }
}

fn is_count(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Parses the argument of an option. No argument, and 0, mean as many jobs as possible.
fn parse(value: &str) -> Count {
    match value.parse() {
        Ok(0) => Count::Given(usize::MAX),
        Ok(jobs) => Count::Given(jobs),
        Err(_) if value.is_empty() => Count::Given(usize::MAX),
        Err(_) => Count::Unknown, // such as `200%`
    }
}

/// Returns the number of jobs in the value of `MAKEFLAGS`; `without` if it gives none.
pub fn in_makeflags(flags: &str, without: Count) -> Count {
    let words: Vec<OsString> =
        std::iter::once("make").chain(flags.split_whitespace()).map(OsString::from).collect();
    MAKE.count(&words, without)
}

/// Returns the value of `MAKEFLAGS` with `jobs` jobs.
pub fn makeflags_with_jobs(flags: &str, jobs: usize) -> String {
    let words: Vec<OsString> =
        std::iter::once("make").chain(flags.split_whitespace()).map(OsString::from).collect();
    let words = MAKE.with_jobs(&words, jobs);
    let words: Vec<_> = words[1..].iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn changed(syntax: Syntax, text: &str) -> (Count, String) {
        let words = words(text);
        let with_jobs: Vec<_> =
            syntax.with_jobs(&words, 2).iter().map(|w| w.to_string_lossy().into_owned()).collect();
        (syntax.count(&words, Count::Default(1)), with_jobs.join(" "))
    }

    #[test]
    fn jobs_of_make_are_replaced_or_added() {
        let make = |text| changed(MAKE, text);
        let expected = |count, text: &str| (count, text.to_owned());
        assert_eq!(make("make all"), expected(Count::Default(1), "make -j2 all"));
        assert_eq!(make("gmake -s -j8 all"), expected(Count::Given(8), "gmake -s -j2 all"));
        assert_eq!(make("make all -j 8 x"), expected(Count::Given(8), "make all -j2 x"));
        assert_eq!(make("make -j all"), expected(Count::Given(usize::MAX), "make -j2 all"));
        assert_eq!(make("make --jobs=8"), expected(Count::Given(8), "make -j2"));
        let folder = "make -C -j8 all";
        assert_eq!(make(folder), expected(Count::Default(1), "make -j2 -C -j8 all"));
        assert!(MAKE.is_of(&words("/usr/bin/make x")) && !MAKE.is_of(&words("cmake")));
        assert_eq!(in_makeflags("-s -j4", Count::Unknown), Count::Given(4));
        assert_eq!(makeflags_with_jobs("-s -j4", 2), "-s -j2");
        assert_eq!(makeflags_with_jobs("", 2), "-j2");
    }

    #[test]
    fn options_of_the_command_that_xargs_runs_are_not_its_own() {
        let xargs = |text| changed(XARGS, text);
        let expected = |count, text: &str| (count, text.to_owned());
        let plain = expected(Count::Default(1), "xargs -P2 -n 1 grep -P x");
        assert_eq!(xargs("xargs -n 1 grep -P x"), plain);
        let none = expected(Count::Given(usize::MAX), "xargs -0 -P2 cat");
        assert_eq!(xargs("xargs -0 -P0 cat"), none);
        let apart = expected(Count::Given(4), "xargs -P2 -I {} cat {}");
        assert_eq!(xargs("xargs --max-procs 4 -I {} cat {}"), apart);
        let parallel = changed(PARALLEL, "parallel -j 200% echo ::: 1 2");
        assert_eq!(parallel, expected(Count::Unknown, "parallel -j2 echo ::: 1 2"));
    }
}
