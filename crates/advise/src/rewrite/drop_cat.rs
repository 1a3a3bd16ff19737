//! Drops a `cat` that only forwards data: the stage after it can read the input itself, or the
//! stage before it can write the output itself.

use contend_commands::grep::Grep;
use contend_commands::options::{Options, Table};
use contend_commands::purity::is_pure;
use contend_commands::{Simple, Word, wc};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Replacement, Situation, Variant};
use crate::rewrite::draft::Stage;

const TABLE: Table = Table { short: "u", long: &[] };
/// Commands that behave the same whether their standard input and output are files, pipes or
/// terminals. `is_filter` has the exceptions.
const FILTERS: &[&str] =
    &["awk", "cut", "gawk", "grep", "head", "mawk", "sed", "sort", "tail", "tr", "uniq", "wc"];

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    let stages = &situation.draft.stages;
    let places = stages.iter().enumerate();
    places.filter_map(|(index, stage)| change(situation, index, stage)).collect()
}

fn change(situation: &Situation<'_>, index: usize, stage: &Stage) -> Option<Change> {
    let (_, source) = stage.read(source)?;
    match situation.draft.stages.get(index + 1) {
        Some(reader) => before(index, source.as_ref(), reader),
        None => at_the_end(situation, index).filter(|_| source.is_none()),
    }
}

fn before(index: usize, source: Option<&Word>, reader: &Stage) -> Option<Change> {
    // How a script or xargs uses its input is unknown.
    reader.simple.as_ref().filter(|simple| is_pure(simple))?;
    let text = if let Some(file) = source {
        let simple = reader.simple.clone().filter(|simple| simple.input.is_none())?;
        Simple { input: Some(file.clone()), ..simple }.text()
    } else {
        reader.text.clone()
    };
    let safety = if is_filter(reader) { Safety::Always } else { Safety::ThisData };
    Some(without(index..index + 2, text, index + 1, safety))
}

/// Returns the change that removes the `cat` at `index`, the last stage. Returns `None` if no stage
/// precedes it, or if that stage is not a filter. The change is not always safe: without the `cat`,
/// the shell sees the exit status of that stage, and the stage may see a terminal as its output.
fn at_the_end(situation: &Situation<'_>, index: usize) -> Option<Change> {
    let writer = situation.draft.stages.get(index.checked_sub(1)?)?;
    let text = writer.text.clone();
    is_filter(writer).then(|| without(index - 1..index + 1, text, index - 1, Safety::ThisData))
}

fn without(at: std::ops::Range<usize>, text: String, rest: usize, safety: Safety) -> Change {
    let takes_more = text.starts_with("sort") || text.contains(" sort ");
    let mut reasons = vec!["cat only forwards data: saves one copy and one process".to_owned()];
    if takes_more && text.contains('<') {
        reasons.push("sort sees the file's size and allocates memory accordingly".to_owned());
    }
    let stages = vec![Replacement::of(text, [rest])];
    Change { rewrite: RewriteId::DropCat, variant: Variant::Only, at, stages, safety, reasons }
}

/// Returns the file that a plain `cat` reads (`Some(None)` for standard input), or `None` if the
/// command is not a plain `cat` of one file.
#[expect(clippy::option_option, reason = "standard input is no failure")]
fn source(simple: &Simple) -> Option<Option<Word>> {
    let options = Options::read(&simple.arguments, &TABLE)?;
    if simple.name() != "cat" || !simple.variables.is_empty() {
        return None;
    }
    let files: Vec<_> = options.operands.iter().map(|&index| &simple.arguments[index]).collect();
    match (files.as_slice(), &simple.input) {
        ([], input) => Some(input.clone()),
        ([file], None) if file.text == "-" => Some(None),
        ([file], None) => Some(Some((*file).clone())),
        _ => None,
    }
}

fn is_filter(stage: &Stage) -> bool {
    let simple = stage.simple.as_ref();
    simple.is_some_and(|simple| {
        // wc derives the width of its columns from the size of a file.
        let counts_several = simple.name() == "wc" && !wc::prints_one_count(simple);
        // Opening such a path creates a new file offset, so each open reads the file from its
        // start.
        let opens_anew = ["/dev/", "/proc/"];
        let by_name = |word: &Word| opens_anew.iter().any(|folder| word.text.starts_with(folder));
        // grep treats a file with a hole as binary, even before it reads the hole.
        let sees_holes = Grep::read(simple).is_some_and(|grep| !grep.reads_anything_as_text());
        FILTERS.contains(&simple.name())
            && is_pure(simple)
            && !counts_several
            && !sees_holes
            && !simple.arguments.iter().any(by_name)
            && !simple.arguments.iter().any(|word| word.text.contains("colo"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, safety};
    use super::*;

    fn changed(text: &str) -> Vec<String> {
        apply(RewriteId::DropCat, text)
    }

    #[test]
    fn a_cat_is_dropped_wherever_it_stands() {
        assert_eq!(changed("cat 'a b' | sort -n | uniq"), ["sort -n <'a b' | uniq"]);
        assert_eq!(changed("cat <f | sort"), ["sort <f"]);
        assert_eq!(changed("cat | sort | head"), ["sort | head"]);
        assert_eq!(changed("sort f | cat - | head"), ["sort f | head"]);
        assert_eq!(changed("sort f | cat"), ["sort f"]);
        assert_eq!(changed("cat -u f | LC_ALL=C sort"), ["LC_ALL=C sort <f"]);
        assert_eq!(safety(RewriteId::DropCat, "cat f | sort"), Safety::Always);
        assert_eq!(safety(RewriteId::DropCat, "cat f | wc -c"), Safety::Always);
        assert_eq!(safety(RewriteId::DropCat, "cat f | grep -a x"), Safety::Always);
        for text in [
            "cat f | nl",
            "cat f | wc",
            "cat f | wc -lc",
            "cat f | wc -l - f",
            "cat f | grep x",
            "cat f | sort /dev/stdin /dev/stdin",
        ] {
            assert_eq!(safety(RewriteId::DropCat, text), Safety::ThisData, "{text}");
        }
    }

    #[test]
    fn a_cat_that_does_something_stays() {
        for text in [
            "cat a b | sort",
            "cat -n f | sort",
            "cat f - | sort",
            "cat f | { sort; }",
            "cat f | sort <g",
            "cat -A f | sort",
            "cat f",
            "nl f | cat",
            "grep --color=always x f | cat",
            "zcat f | sort",
            "cat f | tee g",
            "cat f | xargs echo",
            "cat f | python3 x",
            "cat f | ./script | sort",
            "cat f | uniq - g",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
