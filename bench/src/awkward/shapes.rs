//! Sequences of stages that rewrites look for, in plain forms and in forms that are slightly off
//! and must stay unchanged.
//!
//! *Plain* means that the shape is present, not that a rewrite is right, which may depend on the
//! input and the locale. *Off* means that the usual rewrite would be wrong on some input.

use fastrand::Rng;

/// A sequence of stages that rewrites look for, and similar sequences that must stay unchanged.
#[derive(Debug)]
pub struct Shape {
    /// Short name, such as `sed | grep`.
    pub name: &'static str,
    plain: &'static [&'static str],
    off: &'static [&'static str],
}

/// Whether a sequence of stages is one that rewrites look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// A sequence that rewrites look for.
    Plain,
    /// A similar sequence, for which the usual rewrite would be wrong on some input.
    Off,
}

impl Shape {
    /// Draws a template in either form, and returns it with its form.
    pub fn draw(&self, random: &mut Rng) -> (&'static str, Form) {
        let (templates, form) =
            if random.bool() { (self.plain, Form::Plain) } else { (self.off, Form::Off) };
        (templates[random.usize(..templates.len())], form)
    }

    /// Returns all templates of the shape.
    #[cfg(test)]
    pub fn templates(&self) -> impl Iterator<Item = &'static str> {
        self.plain.iter().chain(self.off).copied()
    }
}

/// Shapes that random pipelines contain.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "cat f | x",
        plain: &["cat input | @any@", "cat -- input | @any@", "cat <input | @any@"],
        off: &[
            "cat -n input | @any@",
            "cat input input | @any@",
            "cat input - | @any@",
            "cat -s input | @any@",
            "cat -A input | @any@",
            "cat input | wc",
            "cat input | grep -c '@regex@'",
        ],
    },
    Shape {
        name: "sort | uniq",
        plain: &[
            "sort | uniq",
            "sort -r | uniq",
            "LC_ALL=C sort | LC_ALL=C uniq",
            "sort | sort -u",
        ],
        off: &[
            "sort | uniq -c",
            "sort | uniq -d",
            "sort | uniq -u",
            "sort | uniq -i",
            "sort | uniq -f 1",
            "sort | uniq -w 2",
            "sort -n | uniq",
            "sort -f | uniq",
            "sort -b | uniq",
            "sort -d | uniq",
            "sort -V | uniq",
            "sort -k 2,2 | uniq",
            "sort -s -k 1,1 | uniq",
            "sort -t , -k 2n | uniq",
            "sort -k 2,2nr -k 1,1 | uniq",
            "sort -t , -k 2b,2.3 -k 1r | uniq",
            "sort -bf -k 2 -k 1n | uniq",
            "sort -z | uniq",
            "LC_ALL=C sort | uniq",
            "uniq | sort",
        ],
    },
    Shape {
        name: "uniq -c | sort -rn | head",
        plain: &["sort | uniq -c | sort -rn | head -n @n@", "sort | uniq -c | sort -nr"],
        off: &[
            "uniq -c | sort -rn | head -n @n@",
            "sort | uniq -c | sort -k 2 | head -n @n@",
            "sort -u | uniq -c | sort -rn",
        ],
    },
    Shape {
        name: "grep | wc -l",
        plain: &[
            "grep '@regex@' | wc -l",
            "grep -v '@regex@' | wc -l",
            "grep -i '@word@' | wc -l",
            "grep -F '@fixed@' | wc -l",
            "grep -E '@extended@' | wc -l",
            "grep -w '@word@' | wc -l",
            "grep -x '@regex@' | wc -l",
        ],
        off: &[
            "grep -o '@regex@' | wc -l",
            "grep -c '@regex@' | wc -l",
            "grep -m @n@ '@regex@' | wc -l",
            "grep -A 1 '@regex@' | wc -l",
            "grep -B 1 '@word@' | wc -l",
            "grep -q '@regex@' | wc -l",
            "grep -l '@regex@' | wc -l",
            "grep -n '@regex@' | wc -c",
            "grep '@regex@' | wc",
            "grep -z '@regex@' | wc -l",
        ],
    },
    Shape {
        name: "grep -v | grep -v",
        plain: &[
            "grep -v '@regex@' | grep -v '@regex@'",
            "grep -v -F '@fixed@' | grep -v -F '@fixed@'",
            "grep -v -i '@word@' | grep -v -i '@word@'",
            "grep -v '@word@' | grep -v '@word@' | grep -v '@word@'",
        ],
        off: &[
            "grep -v '@word@' | grep -v -i '@word@'",
            "grep -v -E '@extended@' | grep -v -F '@fixed@'",
            "grep -v -w '@word@' | grep -v '@word@'",
            "grep -v -x '@regex@' | grep -v '@regex@'",
            "grep -v -n '@word@' | grep -v 1:",
            "grep -v -c '@word@' | grep -v 1",
            "grep -v '@word@' | grep -m 3 -v '@word@'",
            "grep -v '@word@' | grep '@word@'",
            "LC_ALL=C grep -v '@regex@' | grep -v '@regex@'",
            "grep -a -v '@regex@' | grep -v '@regex@'",
        ],
    },
    Shape {
        name: "sed | sed",
        plain: &[
            "sed 's/@regex@/@word@/@flags@' | sed 's/@regex@/@word@/@flags@'",
            "sed 's|@word@|/|g' | sed 's#/#@word@#'",
            "sed '/@regex@/d' | sed 's/@word@/-/g'",
            "sed 's/@word@/-/' | sed '/@regex@/d'",
            "sed -e 's/@word@/b/' -e 's/b/c/' | sed 'y/abc/xyz/'",
            "sed 's/^ *//' | sed 's/ *$//' | sed 's/,/ /g'",
            "sed -E 's/(@word@)/\\1\\1/g' | sed -E 's/@extended@/x/'",
        ],
        off: &[
            "sed 2d | sed 1d",
            "sed -n '/@regex@/p' | sed 2q",
            "sed '$d' | sed '1!s/a/b/'",
            "sed 'N;s/\\n/ /' | sed 's/ /+/'",
            "sed = | sed 'N;s/\\n/:/'",
            "sed 5q | sed 's/a/b/'",
            "sed 's/a/b\\n/' | sed 's/^$/x/'",
            "sed 's/a/b/;t;s/b/c/' | sed 's/c/d/'",
            "sed 's/a/b/p' | sed 's/b/c/'",
            "sed -n 's/a/b/p' | sed 's/b/c/'",
            "sed -E 's/(a)/\\1\\1/' | sed 's/(a)/x/'",
            "sed '1i head' | sed 's/head/x/'",
            "sed '$a end' | sed '$d'",
            "sed '/a/c changed' | sed 's/changed/a/'",
            "sed -z 's/\\n/,/g' | sed 's/,/;/'",
            "sed x | sed 1d",
            "sed 'y/ab/\\n\\n/' | sed '/^$/d'",
            "sed 's/a/#/;s/#//;T;d' | sed 's/b/a/'",
            "LC_ALL=C sed 's/./-/g' | sed 's/-/x/'",
        ],
    },
    Shape {
        name: "sed | grep",
        plain: &[
            "sed 's/@word@/-/g' | grep '@word@'",
            "sed 's/@regex@/@word@/@flags@' | grep -v '@word@'",
            "sed 's/,/ /g' | grep '^a'",
        ],
        off: &[
            "sed 's/a/b/' | grep b",
            "sed 's/^/ /' | grep '^a'",
            "sed 2d | grep '@regex@'",
            "sed 's/a/\\n/' | grep '^$'",
            "sed -n '2~2p' | grep '@regex@'",
            "sed 'y/ab/ba/' | grep a",
            "sed 's/a.*//' | grep -c '@regex@'",
            "sed = | grep 1",
            "sed 10q | grep '@regex@'",
            "sed 's/é/e/g' | grep e",
            "sed 's/\\r$//' | grep '@word@$'",
        ],
    },
    Shape {
        name: "tr | tr",
        plain: &[
            "tr a-z A-Z | tr -d 0-9",
            "tr A-Z a-z | tr , ' '",
            "tr -d '@set@' | tr -d '@set@'",
            "tr @pair@ | tr @pair@",
            "tr -d '\\r' | tr '\\t' ' '",
        ],
        off: &[
            "tr -s ' ' | tr ' ' '\\n'",
            "tr ' ' '\\n' | tr -s '\\n'",
            "tr -cd 'a-z\\n' | tr a-z A-Z",
            "tr -d '\\n' | tr a b",
            "tr é e | tr a-z A-Z",
            "tr a-c b-d | tr b-d c-e",
            "tr '[:lower:]' '[:upper:]' | tr -d '[:upper:]'",
            "tr -c a-z x | tr -s x",
            "tr '\\000' '\\n' | tr -d '\\n'",
            "tr -t abc xy | tr x z",
            "tr -s a-z A-Z | tr A-Z a-z",
        ],
    },
    Shape {
        name: "cut | cut",
        plain: &[
            "cut -d , -f 1-3 | cut -d , -f 2",
            "cut -d ' ' -f 2- | cut -d ' ' -f -2",
            "cut -c 1-10 | cut -c 2-4",
            "cut -b 2- | cut -b -3",
            "cut -f 1,2 | cut -f 2",
        ],
        off: &[
            "cut -d , -f 2 | cut -d ' ' -f 1",
            "cut -d , -f 3,1 | cut -d , -f 1",
            "cut -s -d , -f 2- | cut -d , -f 1",
            "cut -d , -f 2-3 | cut -s -d , -f 2",
            "cut --complement -d , -f 2 | cut -d , -f 1",
            "cut -d , -f 1,2 --output-delimiter=: | cut -d : -f 2",
            "cut -c 3-5,1 | cut -c 1",
            "cut -f 2 | cut -c 1-3",
            "cut -d , -f 2 | cut -d , -f 2",
            "cut -z -d , -f 1 | cut -d , -f 1",
        ],
    },
    Shape {
        name: "rev | cut | rev",
        plain: &["rev | cut -d ' ' -f 1 | rev", "rev | cut -d , -f 1 | rev"],
        off: &["rev | cut -c 1-3 | rev", "rev | cut -d ' ' -f 2- | rev", "rev | cut -b 1-3 | rev"],
    },
    Shape {
        name: "head | head",
        plain: &[
            "head -n @n@ | head -n @n@",
            "head | head -n 3",
            "head -n 5 | head",
            "tail -n 5 | tail -n 2",
        ],
        off: &[
            "head -n -3 | head -n 5",
            "head -c 100 | head -n 3",
            "head -n 5 | head -c 20",
            "head -n 10 | tail -n 3",
            "tail -n +3 | head -n 2",
            "tail -n +2 | tail -n +3",
            "head -n 5 | head -n -1",
            "head -z -n 2 | head -n 1",
        ],
    },
    Shape {
        name: "sort | head",
        plain: &[
            "sort | head -n @n@",
            "sort -n | head",
            "sort -rn | head -n 3",
            "sort -k 2 | head -n @n@",
            "LC_ALL=C sort | head -n 5",
        ],
        off: &[
            "sort | head -n -2",
            "sort -u | head -n 3",
            "sort | head -c 50",
            "sort | tail -n 2",
            "sort -s -k 1,1 | head -n 3",
            "sort -z | head -n 2",
            "sort | head -n 0",
            "sort -k 2,2 | sed 3q",
            "sort | uniq | head -n @n@",
        ],
    },
    Shape {
        name: "awk | sort",
        plain: &[
            "awk '{ print $1 }' | sort | uniq",
            "awk -F , '{ print $2 }' | sort | head -n @n@",
            "grep '@word@' | awk '{ print $1 }'",
        ],
        off: &[
            "awk '{ n[$0]++ } END { for (l in n) print n[l], l }' | head -n 3",
            "awk 'NR > 1' | sort",
            "sort | awk 'NR == 1'",
            "awk '{ print length }' | sort -n",
            "awk '{ print toupper($0) }' | sort -u",
            "awk -v RS= '{ print NF }' | sort",
            "grep '@word@' | awk '{ print NR, $0 }'",
        ],
    },
];
