//! Random pipelines to run in parallel. They consist of stages that work line by line, stages whose
//! results can be combined, stages of `stages.rs`, and traps, which resemble one of these kinds but
//! are of another.
//!
//! As in `stages.rs`, no stage takes time quadratic in the length of a line, and none writes a
//! file.

use fastrand::Rng;

use super::stages::{fill, flowing};
use super::{FILE, Kind, Pair};

/// Name of a second file that some pipelines read; its lines are sorted by bytes. Callers must
/// write it.
pub const OTHER: &str = "other";
/// Content of the file [`OTHER`].
pub const OTHER_TEXT: &str = "\n-3\n42\n7\nError\na\naa\nb\nend\nfoo\nfoo bar\nthe\nx,y,z\n";

const MAX_STAGES: usize = 6;
/// Reciprocal of the probability with which [`Kind::HugeLine`] replaces [`Kind::LongLine`].
const HUGE_LINE_ODDS: u8 = 10;

/// Stages without state, which map each line to zero or more lines.
const PER_LINE: &[&str] = &[
    "grep '@regex@'",
    "grep -v '@regex@'",
    "grep -i '@word@'",
    "grep -o '@regex@'",
    "grep -o -i -E '@extended@'",
    "grep -F -x '@fixed@'",
    "grep -a '@regex@'",
    "grep -e '@word@' -e '@regex@'",
    "LC_ALL=C grep '@regex@'",
    "sed 's/@regex@/@word@/@flags@'",
    "sed -E 's/(@word@)/<\\1>/@flags@'",
    "sed 'y/abc/xyz/'",
    "sed '/@regex@/d'",
    "sed -n '/@regex@/p'",
    "sed -n 's/@word@/&&/p'",
    "sed 's/@word@/@word@/;t;s/$/!/'",
    "sed 's/@word@/\\n/'",
    "sed 'p;p'",
    "sed '/@word@/!d;s/^/> /'",
    "tr @pair@",
    "tr '[:lower:]' '[:upper:]'",
    "tr -d '@set@'",
    "tr -cd '@set@\\n'",
    "tr '\\000-\\011' ' '",
    "cut -d '@comma@' -f @fields@",
    "cut -c @fields@",
    "cut -b @fields@",
    "cut -s -f @fields@",
    "cut --complement -d ' ' -f @fields@",
    "cut -d , -f @fields@ --output-delimiter=::",
    "awk '{ print $1 }'",
    "awk '{ print $NF, NF }'",
    "awk -F , '{ print $2 }'",
    "awk '/@word@/'",
    "awk 'length > 5'",
    "awk 'NF > 1'",
    "awk '{ print toupper(substr($0, 2, 30)) }'",
    "awk '{ gsub(/@word@/, \"-\") } 1'",
    "awk -v x=7 '$1 == x'",
    "rev",
    "fold -w 7",
    "fold -s -w 20",
    "expand -t 4",
    "unexpand -a",
    "iconv -f LATIN1 -t UTF-8",
    "iconv -c -f UTF-8 -t ASCII//TRANSLIT",
    "jq -R .",
    "jq -c .",
    "jq -r '.b? // empty'",
    "col -bx",
    "cat",
    "cat -A",
    "xargs -d '\\n' -n 1000 printf '%s\\n'",
];

/// Stages whose results for chunks can be combined.
const COMBINABLE: &[&str] = &[
    "sort @key@",
    "LC_ALL=C sort @key@",
    "sort -k 2,2 -k 1,1r",
    "sort -u -k 2",
    "sort -u -f",
    "sort -n -s -k 1,1",
    "sort -t , -k 2,2n -k 1",
    "sort -h",
    "sort -V",
    "sort -b -k 2",
    "sort | uniq",
    "sort | uniq -c",
    "uniq",
    "uniq -c",
    "uniq -d",
    "uniq -u",
    "uniq -i -c",
    "uniq -f 1",
    "uniq -w 2 -c",
    "wc",
    "wc -l",
    "wc -w",
    "wc -c",
    "wc -m",
    "wc -L",
    "wc -lc",
    "grep -c '@regex@'",
    "grep -c -v '@regex@'",
    "head -n @n@",
    "head",
    "tail -n @n@",
    "tail",
    "tail -n +@n@",
    "head -n -@n@",
    "awk '{ s += $1 } END { print s }'",
    "awk '{ s += $1; n++ } END { print n, s }'",
    "awk 'END { print NR }'",
    "awk '{ n[$1]++ } END { for (w in n) print n[w], w }' | sort",
    "awk '/@word@/ { n++ } END { print n + 0 }'",
    "comm -23 - other",
    "comm -12 - other",
    "sort | comm -23 - other",
    "sort | LC_ALL=C comm - other",
    "LC_ALL=C sort | LC_ALL=C join - other",
    "LC_ALL=C sort | LC_ALL=C join -v 1 - other",
];

/// Stages that resemble those of `PER_LINE` and `COMBINABLE` but are of another kind: most depend
/// on earlier or later lines.
const TRAPS: &[&str] = &[
    "sed -n 2p",
    "sed =",
    "sed 1d",
    "sed '$d'",
    "sed 3q",
    "sed '2,4s/@word@/@word@/'",
    "sed '/@word@/,/@regex@/d'",
    "sed -n '$='",
    "sed 'N;s/\\n/+/'",
    "sed '$!N;P;D'",
    "sed 'x;G'",
    "sed '1!G;h;$!d' | head -n 3",
    "sed -n '2~3p'",
    "sed '1i head'",
    "sed '$a tail'",
    "sed '/@word@/q'",
    "sed -z 's/@word@/@word@/'",
    "sed -s -n '$p'",
    "awk 'NR % 2'",
    "awk '!seen[$0]++'",
    "awk '{ print NR, $0 }'",
    "awk '{ print last; last = $1 }'",
    "awk 'FNR == 1'",
    "awk '/@word@/ { f = !f } f'",
    "awk -v RS= '{ print NF }'",
    "awk -v RS='\\t' 1",
    "awk '{ getline x; print x $0 }'",
    "awk 'NR == 3 { exit 4 } 1'",
    "awk 'BEGIN { print \"head\" } { print $1 } END { print \"tail\" }'",
    "awk '{ $1 = ++n } 1'",
    "awk '{ s += $1 / 3 } END { printf \"%.17g\\n\", s }'",
    "nl",
    "nl -b a",
    "tac",
    "paste - -",
    "paste -s -d ,",
    "paste - other",
    "cat -n",
    "cat -b",
    "cat -s",
    "grep -n '@regex@'",
    "grep -b '@regex@'",
    "grep -A1 '@word@'",
    "grep -B 1 '@word@'",
    "grep -m2 '@regex@'",
    "grep -q '@word@'",
    "grep -l '@word@'",
    "grep -L '@word@'",
    "grep -z '@word@'",
    "grep '@regex@' other -",
    "grep -c '@regex@' - other",
    "grep -H '@word@'",
    "grep -x -f other",
    "grep '\\(@word@\\)\\1'",
    "tr -s '@set@'",
    "tr -cs A-Za-z '\\n'",
    "tr -d '\\n'",
    "tr '\\n' ' '",
    "tr ' ' '\\n'",
    "tr -s ' \\n' '\\n\\n'",
    "tr -c '@set@' x",
    "cut -z -c 1-5",
    "cut -d '\n' -f 2",
    "head -c 20",
    "tail -c 20",
    "tail -c +5",
    "head -n 2 - other",
    "wc -l - other",
    "sort -m",
    "sort -m - other",
    "sort -c",
    "sort -z",
    "sort -R | wc -l",
    "sort other -",
    "uniq --group",
    "uniq -D",
    "uniq -z -c",
    "fmt -w 20",
    "pr -t -2 -l 10",
    "column -t -s ,",
    "od -c | head -n 30",
    "base64",
    "md5sum",
    "split -n r/1/2",
    "shuf -n 0",
    "numfmt --field 1 --invalid ignore",
    "jq -s length",
    "jq -n '[inputs] | length'",
    "jq -c 'input'",
    "iconv -f UTF-8 -t LATIN1",
    "iconv -f UTF-16 -t UTF-8",
    "head -n 20 | xargs -n 1 echo",
    "head -n 20 | xargs -L 1 echo",
    "head -n 20 | tr '\\n' '\\000' | xargs -0 -n 1 echo",
    "head -n 20 | grep '@word@' | xargs -d '\\n' -n 1 printf '%s.\\n'",
    "uniq -d | sort | grep '@regex@'",
    "head -n 20 | xargs",
    "tr -d '\\n' | wc -c",
    "true",
    "false",
    "cat - other",
    "cat other",
    "while IFS= read -r l; do echo \"$l\"; done | head -n 5",
    "{ read -r x; cat; }",
    // `head` in place of `wc` would consume an amount of input that depends on timing.
    "(read -r first; echo \"$first\"; wc -l)",
    "no-such-command",
    "cat no-such-file -",
    "grep '[' ",
    "sort -k 0",
];

/// Kinds of inputs, through which the pairs rotate.
const KINDS: [Kind; 16] = {
    let mut kinds = [Kind::AllEqual; 16];
    let mut place = 0;
    while place < Kind::ALL.len() {
        kinds[place] = Kind::ALL[place];
        place += 1;
    }
    kinds[15] = Kind::JsonLines;
    kinds
};

/// Returns the first `count` pairs of the sequence that `seed` determines. Some of the pipelines
/// read [`OTHER`] in addition to their input.
pub fn pairs(seed: u64, count: usize) -> impl Iterator<Item = Pair> {
    let mut random = Rng::with_seed(seed);
    KINDS.into_iter().cycle().take(count).map(move |kind| pair(kind, &mut random.fork()))
}

fn pair(kind: Kind, random: &mut Rng) -> Pair {
    let (pipeline, from_stdin) = text(random);
    let kind = match kind {
        Kind::LongLine if random.u8(0..HUGE_LINE_ODDS) == 0 => Kind::HugeLine,
        kind => kind,
    };
    Pair {
        pipeline,
        from_stdin,
        locale: if random.bool() { "C" } else { "C.UTF-8" },
        shape: None,
        kind,
        input: kind.bytes(random),
    }
}

fn text(random: &mut Rng) -> (String, bool) {
    let count = random.usize(1..MAX_STAGES);
    let mut stages: Vec<String> = (1..=count).map(|place| stage(place == count, random)).collect();
    let from_stdin = match random.u8(0..4) {
        0 => true,
        1 => {
            // A redirection of `cat`, so that any stage can be first.
            stages[0] = format!("cat <{FILE} | {}", stages[0]);
            false
        }
        2 => {
            stages.insert(0, format!("cat {FILE} {FILE}"));
            false
        }
        _ => {
            stages.insert(0, format!("cat {FILE}"));
            false
        }
    };
    (stages.join(" | "), from_stdin)
}

/// Draws a stage. The last stage is most often one whose results can be combined, and an earlier
/// one most often works line by line.
fn stage(last: bool, random: &mut Rng) -> String {
    let kinds: [&[&str]; 4] = if last {
        [PER_LINE, COMBINABLE, COMBINABLE, TRAPS]
    } else {
        [PER_LINE, PER_LINE, COMBINABLE, TRAPS]
    };
    match kinds.get(random.usize(..5)) {
        Some(templates) => fill(templates[random.usize(..templates.len())], random),
        None => flowing(random),
    }
}

/// Returns all templates of this module.
#[cfg(test)]
pub fn templates() -> impl Iterator<Item = &'static str> {
    PER_LINE.iter().chain(COMBINABLE).chain(TRAPS).copied()
}
