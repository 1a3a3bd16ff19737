//! Random stages, made from templates: a name such as `@word@` is replaced by a value from a list.
//!
//! No regular expression here may take time quadratic in the length of a line, as some lines are
//! 10 MB or longer. So `.*` occurs only at the end of an expression, and no hold space grows with
//! each line.

use fastrand::Rng;

/// Values for each name that templates contain between two `@`. No value contains an `@` or a
/// quotation mark.
const VALUES: &[(&str, &[&str])] = &[
    ("word", &["a", "a", "b", "o", "the", "foo", "bar", "x", "7", "é", "Error", "end", "o b"]),
    (
        "regex",
        &[
            "a",
            "^a",
            "b$",
            "[0-9]",
            "^$",
            ".",
            "[[:upper:]]",
            "o\\{2\\}",
            "[^a-z]",
            "é",
            "foo",
            "[[:space:]]$",
            "^[[:blank:]]*",
            "foo\\|bar",
            "\\.",
            "^.$",
            ",$",
            "\\<a",
            "e\\b",
        ],
    ),
    ("extended", &["a|b", "(foo|bar)", "[0-9]+", "^(a|T)", "o{2}", "x?y", "\\.|,", "^.{3}$"]),
    ("fixed", &["a", ".", "*", "[", "^a", "$", "\\", "foo bar", "é", ".*"]),
    ("n", &["0", "1", "2", "3", "4", "5", "7", "10", "20", "100"]),
    ("flags", &["", "g", "2", "I", "gI", "3g"]),
    ("set", &["a-z", "A-Z", "0-9", "[:lower:]", "[:punct:]", "abc", "\\n", " ", "é", "a-fx"]),
    ("pair", &["a-z A-Z", "A-Z a-z", "abc xyz", "0-9 a-j", ", :", "é e", "a-c b", "\\n ,"]),
    ("fields", &["1", "2", "1,3", "2-", "-2", "3,1", "2-3"]),
    ("comma", &[",", ":", "=", "-"]),
    (
        "key",
        &["", "-n", "-r", "-rn", "-u", "-nu", "-k 2", "-k 2,2n", "-t , -k 2", "-f", "-s -k 1,1"],
    ),
];

/// Templates of stages, with an equal chance for each program. `COUNTING` has those of `wc`.
const COMMANDS: &[&[&str]] = &[
    &["cat", "cat", "cat -n", "cat -s"],
    &[
        "grep '@regex@'",
        "grep -v '@regex@'",
        "grep -i '@word@'",
        "grep -c '@regex@'",
        "grep -F '@fixed@'",
        "grep -E '@extended@'",
        "grep -o '@regex@'",
        "grep -n '@regex@'",
        "grep -w '@word@'",
        "grep -x '@regex@'",
        "grep -m @n@ '@regex@'",
        "grep -v -i -E '@extended@'",
        "grep -a '@regex@'",
        "grep -e '@word@' -e '@regex@'",
        "grep -A 1 '@word@'",
        "LC_ALL=C grep '@regex@'",
    ],
    &[
        "sed 's/@regex@/@word@/@flags@'",
        "sed 's|@word@|/|@flags@'",
        "sed 's,@word@,&&,@flags@'",
        "sed 's#@word@##@flags@'",
        "sed -E 's/(@word@)/<\\1>/@flags@'",
        "sed 'y/abc/xyz/'",
        "sed '/@regex@/d'",
        "sed -n '/@regex@/p'",
        "sed '/@regex@/s/@word@/-/'",
        "sed 3q",
        "sed '2,5d'",
        "sed '$d'",
        "sed -n '2p'",
        "sed -n '2~3p'",
        "sed 'N;s/\\n/+/'",
        "sed '$!N;P;D'",
        "sed 'x;G'",
        "sed -n 'h;n;G;p'",
        "sed 's/@word@/@word@/;t;s/$/!/'",
        "sed -e 's/@word@/@word@/' -e '/@regex@/d'",
        "sed '1i head'",
        "sed =",
        "sed 's/@word@/\\n/'",
    ],
    &[
        "tr @pair@",
        "tr '[:lower:]' '[:upper:]'",
        "tr -d '@set@'",
        "tr -s '@set@'",
        "tr -cd '@set@\\n'",
        "tr -cs A-Za-z '\\n'",
        "tr -c '@set@' '\\n'",
        "tr '\\000-\\037' ' '",
    ],
    &[
        "cut -d '@comma@' -f @fields@",
        "cut -d ' ' -f @fields@",
        "cut -f @fields@",
        "cut -c @fields@",
        "cut -b @fields@",
        "cut -s -d , -f @fields@",
        "cut --complement -d , -f @fields@",
        "cut -d , -f @fields@ --output-delimiter=:",
    ],
    &["sort @key@", "sort @key@", "LC_ALL=C sort @key@", "sort -S 10M", "sort -z"],
    &["uniq", "uniq -c", "uniq -d", "uniq -u", "uniq -i", "uniq -f 1"],
    &["head", "head -n @n@", "head -n -@n@", "head -c 50", "head -@n@"],
    &["tail", "tail -n @n@", "tail -n +@n@", "tail -c 50"],
    &[
        "awk '{ print $1 }'",
        "awk '{ print $NF }'",
        "awk -F , '{ print $2 }'",
        "awk -F , -v OFS=: '{ $1 = $1 } 1'",
        "awk '/@word@/'",
        "awk '!/@word@/ { n++ } END { print n + 0 }'",
        "awk '{ s += $1 } END { print s }'",
        "awk 'NR == 2'",
        "awk 'NR % 2'",
        "awk 'NF'",
        "awk 'length > 5'",
        "awk '!seen[$0]++'",
        "awk '{ print toupper($0) }'",
        "awk '{ n[$1]++ } END { for (w in n) print n[w], w }'",
        "awk '{ gsub(/@word@/, \"-\") } 1'",
        "awk '{ print substr($0, 2, 3) }'",
    ],
    &["rev"],
    &["nl", "nl -b a", "nl -s :"],
];

/// Stages whose output is too small for a further stage.
const COUNTING: &[&str] = &["wc", "wc -l", "wc -c", "wc -w", "wc -m", "wc -L"];

/// Draws any stage, including counting ones.
pub fn any(random: &mut Rng) -> String {
    if random.usize(..=COMMANDS.len()) == 0 {
        COUNTING[random.usize(..COUNTING.len())].to_owned()
    } else {
        flowing(random)
    }
}

/// Draws a stage that further stages may follow.
pub fn flowing(random: &mut Rng) -> String {
    let templates = COMMANDS[random.usize(..COMMANDS.len())];
    fill(templates[random.usize(..templates.len())], random)
}

/// Replaces each name in a template by a random value, and `@any@` by a random stage.
pub fn fill(template: &str, random: &mut Rng) -> String {
    let mut text = String::new();
    for (place, part) in template.split('@').enumerate() {
        if place % 2 == 0 {
            text.push_str(part);
        } else if part == "any" {
            text.push_str(&any(random));
        } else {
            text.push_str(value(part, random));
        }
    }
    text.trim_end().to_owned()
}

/// Draws a value for `name`. A name without values is replaced by `@`; a test ensures that there is
/// no such name.
fn value(name: &str, random: &mut Rng) -> &'static str {
    VALUES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or("@", |(_, values)| values[random.usize(..values.len())])
}
