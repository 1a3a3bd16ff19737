//! Expands templates: a rule in guillemets is replaced by one of its alternatives, recursively.

use fastrand::Rng;

use super::features::{Feature, Syntax, all};

/// Maximum depth of nested commands.
const MAX_DEPTH: usize = 2;

/// A rule and its alternatives; an alternative that is listed twice is twice as likely.
type Rule = (&'static str, &'static [&'static str]);

const RULES: &[Rule] = &[
    (
        "pipeline",
        &[
            "«source» | «filter»",
            "«source» | «filter»",
            "«source» | «filter» | «filter»",
            "«source» | «filter» | «filter» | «filter»",
            "«filter» «file» | «filter»",
            "«filter» <«file» | «pipe»",
            "«filter» «file»",
            "cat «file» | «pipe»",
        ],
    ),
    ("pipe", &["«filter»", "«filter» | «filter»", "«filter» | «filter» | «filter»"]),
    (
        "source",
        &[
            "cat a",
            "cat a b",
            "cat input",
            "printf 'b\\na\\nc\\n'",
            "printf '%s\\n' c b a",
            "printf '1\\n3\\n2\\n'",
            "echo «word»",
            "seq 12",
            "seq 3 -1 1",
            "cat <b",
            "grep a a",
            "sort b",
            "yes ab | head -n 20",
            "head -n 4 a",
        ],
    ),
    ("filter", &["«lines»", "«lines»", "«lines»", "«whole»", "«whole»", "«opaque»"]),
    (
        "lines",
        &[
            "tr a b",
            "tr a-z A-Z",
            "tr -d 'aeiou'",
            "tr -s ' '",
            "tr ' ' '\\n'",
            "tr -cs A-Za-z '\\n'",
            "grep a",
            "grep -v b",
            "grep -i A",
            "grep -a '[a-c]'",
            "grep -aF a",
            "grep -o '[a-z]*'",
            "sed 's/a/[&]/'",
            "sed 's/b*/x/g'",
            "sed -n 's/a/A/p'",
            "sed '/b/d'",
            "sed -E 's/(.)(.)/\\2\\1/'",
            "cut -c 1-3",
            "cut -d ' ' -f 1",
            "cut -f 2",
            "awk '{ print $1 }'",
            "awk '{ print NF, $0 }'",
            "awk '/a/'",
            "awk -v x=1 '{ print x, $NF }'",
            "rev",
            "fold -w 5",
            "expand",
            "LC_ALL=C tr a b",
            "iconv -f UTF-8 -t UTF-8",
            "jq -R .",
            "cat",
            "xargs -n 1 echo",
            "xargs -d '\\n' -n 1 echo",
            "sed -u 's/a/b/'",
            "grep --line-buffered .",
        ],
    ),
    // Commands that keep printing lines as long as their input continues.
    (
        "flow",
        &[
            "tr a b",
            "tr a-z A-Z",
            "grep -v nothing-there",
            "grep .",
            "grep -a ''",
            "sed 's/a/[&]/'",
            "sed -E 's/(.)(.)/\\2\\1/'",
            "cut -c 1-3",
            "cut -d ' ' -f 1",
            "awk '{ print $1 }'",
            "awk '{ print NF, $0 }'",
            "rev",
            "fold -w 5",
            "jq -R .",
            "cat",
            "nl",
            "sed -u 's/a/b/'",
            "grep --line-buffered .",
            "perl -pe 's/a/b/'",
        ],
    ),
    (
        "whole",
        &[
            "sort",
            "sort -r",
            "sort -n",
            "sort -u",
            "sort -rn",
            "sort -k 2",
            "sort -t , -k 2,2n",
            "sort -f",
            "sort -h",
            "sort -V",
            "sort | uniq",
            "sort | uniq -c",
            "sort | uniq -c | sort -rn",
            "uniq",
            "uniq -c",
            "uniq -d",
            "wc",
            "wc -l",
            "wc -c",
            "grep -c a",
            "head -n 3",
            "head -c 20",
            "tail -n 2",
            "tail -n +2",
            "awk '{ s += $1 } END { print s + 0 }'",
            "awk 'END { print NR }'",
            "comm -12 - c",
            "LC_ALL=C sort",
            "sort - c",
            "grep -m 2 a",
        ],
    ),
    (
        "opaque",
        &[
            "sed -n 2p",
            "sed 2q",
            "awk 'NR % 2'",
            "awk '!s[$0]++'",
            "nl",
            "tac",
            "cat -n",
            "paste -s -d ,",
            "paste - -",
            "perl -pe 's/a/b/'",
            "od -c",
            "base64",
            "md5sum",
            "xargs",
            "tee o9",
            "dd status=none",
        ],
    ),
    (
        "file",
        &[
            "a",
            "a",
            "a",
            "b",
            "b",
            "c",
            "input",
            "input",
            "empty",
            "./a",
            "\"a\"",
            "$PWD/b",
            "nofile",
            "/dev/null",
        ],
    ),
    ("odd", &["nonl", "nul", "bad", "crlf", "blanks", "newlines", "meta", "empty", "input"]),
    ("word", &["x", "'a b'", "abc", "\"c  d\"", "7", "é", "a,b", "-n", "''"]),
    (
        "bare",
        &[
            "sort a | head -n 2",
            "cat a | tr a b | sort",
            "grep a a | wc -l",
            "cut -c 1-2 b | sort -u",
            "cat nofile | sort",
        ],
    ),
    (
        "slow",
        &[
            "for i in c b a; do echo $i; sleep 0.02; done",
            "(echo one; sleep 0.05; echo two; sleep 0.01; echo three)",
            "while read -r l; do echo \"$l\"; sleep 0.01; done <c",
            "{ printf on; sleep 0.03; printf 'e\\ntw'; sleep 0.03; printf 'o\\n'; }",
            "{ sleep 0.05; cat a; }",
            "{ cat a; sleep 0.05; }",
        ],
    ),
    (
        "endless",
        &[
            "yes",
            "yes ab",
            "yes 'a b c' ",
            "seq 1000000000",
            "cat /dev/zero | tr '\\0' '\\n' | cat -n",
            "while :; do echo a; done 2>/dev/null",
            "yes | cat -n",
        ],
    ),
    ("bigs", &["cat big", "cat <big", "cat big a big", "sort -r big", "head -c 300000 big"]),
];

/// Expands a template. `«locale»` is replaced by one of `locales`.
///
/// # Panics
/// Panics if `locales` is empty and a locale is needed.
pub fn expand(template: &str, locales: &[String], random: &mut Rng) -> String {
    Expansion { locales, files: Vec::new() }.text(template, 0, random)
}

/// An expanded fragment and the files that it and nested fragments need.
#[derive(Debug)]
pub struct Fragment {
    /// Source of the fragment.
    pub text: String,
    /// Names of files, possibly repeated.
    pub files: Vec<&'static str>,
}

/// Draws one of a feature's fragments, and expands it.
///
/// # Panics
/// Panics if `locales` is empty and a locale is needed.
pub fn fragment(feature: &Feature, locales: &[String], random: &mut Rng) -> Fragment {
    let template = feature.fragments[random.usize(..feature.fragments.len())];
    let mut expansion = Expansion { locales, files: feature.files.to_vec() };
    let text = expansion.text(template, 0, random);
    Fragment { text, files: expansion.files }
}

/// Draws one of the features for which `fits` returns true, with probabilities proportional to
/// their weights.
///
/// # Panics
/// Panics if there is no such feature.
pub fn draw(random: &mut Rng, fits: impl Fn(&Feature) -> bool) -> &'static Feature {
    let candidates: Vec<&'static Feature> = all().filter(|feature| fits(feature)).collect();
    let total: u32 = candidates.iter().map(|feature| feature.weight).sum();
    let mut left = random.u32(..total);
    for feature in &candidates {
        match left.checked_sub(feature.weight) {
            Some(rest) => left = rest,
            None => return feature,
        }
    }
    candidates[0]
}

struct Expansion<'a> {
    locales: &'a [String],
    files: Vec<&'static str>,
}

impl Expansion<'_> {
    fn text(&mut self, template: &str, depth: usize, random: &mut Rng) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('«') {
            let (rule, behind) = after.split_once('»').unwrap_or((after, ""));
            text.push_str(before);
            text.push_str(&self.rule(rule, depth, random));
            rest = behind;
        }
        text.push_str(rest);
        text
    }

    /// Expands the rule with the name `rule`. An unknown rule expands to nothing; a test ensures
    /// that there is none.
    fn rule(&mut self, rule: &str, depth: usize, random: &mut Rng) -> String {
        match rule {
            "command" => self.command(depth, random),
            "locale" => self.locales[random.usize(..self.locales.len())].clone(),
            _ => {
                let alternatives = alternatives(rule).unwrap_or(&[""]);
                self.text(alternatives[random.usize(..alternatives.len())], depth, random)
            }
        }
    }

    /// Expands a random fragment that is syntactically valid, or a pipeline at [`MAX_DEPTH`].
    fn command(&mut self, depth: usize, random: &mut Rng) -> String {
        if depth == MAX_DEPTH {
            return self.rule("pipeline", depth, random);
        }
        let feature = draw(random, |feature| feature.syntax == Syntax::Valid);
        self.files.extend(feature.files);
        let template = feature.fragments[random.usize(..feature.fragments.len())];
        self.text(template, depth + 1, random)
    }
}

/// Returns the alternatives of a rule, or `None` if there is no such rule.
pub fn alternatives(rule: &str) -> Option<&'static [&'static str]> {
    RULES.iter().find(|(name, _)| *name == rule).map(|(_, alternatives)| *alternatives)
}
