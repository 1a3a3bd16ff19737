//! Commands that always run alone, each with its reason.

use std::borrow::Cow;

const READS_NO_INPUT: &str = "it does not read its input";
const DIGEST: &str = "it computes one checksum of the whole input";
const DEPENDS_ON_ALL_INPUT: &str = "its output depends on all earlier input";
const WRITES: &str = "it writes its input to files";

const TABLE: &[(&str, &str)] = &[
    ("b2sum", DIGEST),
    ("base32", "its line breaks depend on all earlier input"),
    ("base64", "its line breaks depend on all earlier input"),
    ("bzip2", DEPENDS_ON_ALL_INPUT),
    ("cksum", DIGEST),
    ("column", "the width of its columns depends on the whole input"),
    ("csplit", WRITES),
    ("curl", READS_NO_INPUT),
    ("cmp", "it counts bytes and lines from the start of the input"),
    ("date", READS_NO_INPUT),
    ("dd", "it counts blocks from the start of the input"),
    ("diff", "it compares whole files"),
    ("du", READS_NO_INPUT),
    ("echo", READS_NO_INPUT),
    ("find", READS_NO_INPUT),
    ("fmt", "it joins lines into paragraphs"),
    ("gunzip", DEPENDS_ON_ALL_INPUT),
    ("gzip", DEPENDS_ON_ALL_INPUT),
    ("hexdump", "it numbers bytes from the start of the input"),
    ("lz4", DEPENDS_ON_ALL_INPUT),
    ("ls", READS_NO_INPUT),
    ("md5sum", DIGEST),
    ("nl", "it numbers lines"),
    ("od", "it numbers bytes from the start of the input"),
    ("parallel", "it starts commands, several at a time"),
    ("paste", "it joins lines, and where it breaks them depends on all earlier input"),
    ("pr", "it divides the input into pages"),
    ("printf", READS_NO_INPUT),
    ("ps", READS_NO_INPUT),
    ("read", "it takes the first line of the input"),
    ("seq", READS_NO_INPUT),
    ("sha1sum", DIGEST),
    ("sha224sum", DIGEST),
    ("sha256sum", DIGEST),
    ("sha384sum", DIGEST),
    ("sha512sum", DIGEST),
    ("shuf", "it shuffles the whole input"),
    ("split", WRITES),
    ("sponge", "it writes nothing until it has read the whole input"),
    ("sum", DIGEST),
    ("tac", "it writes the lines of the whole input in reverse"),
    ("tee", WRITES),
    ("tsort", "it orders the whole input"),
    ("xxd", "it numbers bytes from the start of the input"),
    ("xz", DEPENDS_ON_ALL_INPUT),
    ("xzcat", DEPENDS_ON_ALL_INPUT),
    ("yes", READS_NO_INPUT),
    ("zcat", DEPENDS_ON_ALL_INPUT),
    ("zstd", DEPENDS_ON_ALL_INPUT),
];

/// Returns why a command of the given name runs alone. For a name that is not in the table, the
/// reason is that it is unknown.
pub(super) fn of(name: &str) -> Cow<'static, str> {
    let reason = TABLE.iter().find(|(known, _)| *known == name).map(|(_, reason)| *reason);
    reason.map_or_else(|| format!("`{name}` is unknown").into(), Cow::Borrowed)
}

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static &'static str> {
    TABLE.iter().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::all_opaque;

    #[test]
    fn each_has_its_own_reason() {
        all_opaque(&[
            ("nl -ba", "numbers lines"),
            ("tac", "in reverse"),
            ("paste - -", "joins lines"),
            ("paste -d, - f", "joins lines"),
            ("tee f", "to files"),
            ("md5sum", "it computes one checksum of the whole input"),
            ("seq 5", "does not read"),
            ("column -t", "the width of its columns depends on the whole input"),
            ("frobnicate", "`frobnicate` is unknown"),
        ]);
    }
}
