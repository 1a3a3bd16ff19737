//! Classifies `iconv`, which handles each line independently if both encodings are stateless and
//! represent a newline by one byte.

use contend_commands::options::Table;
use contend_shell::environment::{Encoding, Maker};

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Guard, Records};

const TABLE: Table = Table {
    short: "cf:lo:st:",
    long: &[("from-code", 'f'), ("to-code", 't'), ("list", 'l'), ("output", 'o'), ("silent", 's')],
};

const REFUSED: &[(char, &str)] =
    &[('o', "`-o` writes to a file"), ('l', "`-l` does not read its input")];

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Glibc)?;
    let own = match subject.encoding()? {
        Encoding::Bytes => "ASCII",
        Encoding::Utf8 => "UTF-8",
    };
    let options = subject.options(&TABLE, REFUSED)?;
    subject.reads_standard_input(&options.operands)?;
    let from = options.value('f').unwrap_or(own).to_ascii_uppercase();
    let to = options.value('t').unwrap_or(own).to_ascii_uppercase();
    let (to, transliterates) =
        to.strip_suffix("//TRANSLIT").map_or((to.as_str(), false), |to| (to, true));
    for name in [from.as_str(), to] {
        if !is_stateless(name) {
            return Err(format!("`{name}` may depend on earlier input").into());
        }
    }
    let beyond_ascii = ByteSet::of(|byte| !byte.is_ascii());
    // A character may be transliterated to several ASCII characters, even a newline.
    let nearly_ascii = ByteSet::of(|byte| transliterates && byte.is_ascii() && byte != 0);
    let output = Output {
        keeps_utf8: is_utf8(to) || is_ascii(to),
        adds: beyond_ascii.union(nearly_ascii),
        ..Output::LINES
    };
    Ok(Class::PerRecord(PerRecord {
        guard: Guard { utf8: is_utf8(&from), ..Guard::NONE },
        may_fail: true,
        output,
        ..PerRecord::new(Records::Lines)
    }))
}

fn is_utf8(name: &str) -> bool {
    ["UTF-8", "UTF8"].contains(&name)
}

fn is_ascii(name: &str) -> bool {
    ["ASCII", "US-ASCII", "ANSI_X3.4-1968"].contains(&name)
}

/// Returns whether the named encoding represents each character by the same bytes everywhere, and
/// each ASCII character by its ASCII byte. Returns `false` for an unknown encoding. Windows code
/// pages 1255 and 1258 combine characters, so they do not qualify.
fn is_stateless(name: &str) -> bool {
    let numbered = |prefix: &str, numbers: &[&str]| {
        name.strip_prefix(prefix).is_some_and(|number| numbers.contains(&number))
    };
    let parts = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "13", "14", "15", "16"];
    let pages = ["1250", "1251", "1252", "1253", "1254", "1256", "1257"];
    is_utf8(name)
        || is_ascii(name)
        || ["LATIN1", "KOI8-R", "KOI8-U"].contains(&name)
        || numbered("ISO-8859-", &parts)
        || numbered("ISO8859-", &parts)
        || numbered("WINDOWS-", &pages)
        || numbered("CP", &pages)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, per_record};

    #[test]
    fn encodings_without_a_state() {
        all_per_record(&[
            "iconv -f utf-8 -t latin1",
            "iconv -f ISO-8859-15 -t UTF-8",
            "iconv -c -f utf8 -t ascii//translit",
            "iconv -f windows-1252",
            "iconv -t koi8-r -",
        ]);
        let class = per_record("iconv -f utf-8 -t latin1");
        assert!(class.guard.utf8 && class.may_fail && !class.output.keeps_utf8);
        let class = per_record("iconv -f latin1 -t utf-8");
        assert!(!class.guard.utf8 && class.output.keeps_utf8 && class.output.adds.contains(0xc3));
        assert!(!class.output.adds.contains(b'a'));
        all_opaque(&[
            ("iconv -f utf-16 -t utf-8", "`UTF-16`"),
            ("iconv -f utf-8 -t iso-2022-jp", "`ISO-2022-JP`"),
            ("iconv -f cp1255 -t utf-8", "`CP1255`"),
            ("iconv -f utf-8 -t ascii//IGNORE", "`ASCII//IGNORE`"),
            ("iconv -o f -t utf-8", "`-o`"),
            ("iconv -l", "`-l`"),
            ("iconv -t utf-8 f", "it reads files named in its arguments"),
        ]);
    }
}
