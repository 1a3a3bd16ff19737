//! Commands that always run alone, each with its reason.

use std::borrow::Cow;

const MAKES: &str = "it does not read its input";
const DIGEST: &str = "it makes one sum of all its input";
const PACKS: &str = "what it makes of a byte depends on all that came before";
const WRITES: &str = "it writes its input to files";

const TABLE: &[(&str, &str)] = &[
    ("b2sum", DIGEST),
    ("base32", "where its lines end depends on all that came before"),
    ("base64", "where its lines end depends on all that came before"),
    ("bzip2", PACKS),
    ("cksum", DIGEST),
    ("column", "how wide its columns are depends on all its input"),
    ("csplit", WRITES),
    ("curl", MAKES),
    ("cmp", "it counts bytes and lines from the beginning of its input"),
    ("date", MAKES),
    ("dd", "it counts blocks from the beginning of its input"),
    ("diff", "it looks for the differences between whole files"),
    ("du", MAKES),
    ("echo", MAKES),
    ("find", MAKES),
    ("fmt", "it joins lines to paragraphs"),
    ("gunzip", PACKS),
    ("gzip", PACKS),
    ("hexdump", "it numbers the bytes from the beginning of its input"),
    ("lz4", PACKS),
    ("ls", MAKES),
    ("md5sum", DIGEST),
    ("nl", "it numbers the lines"),
    ("od", "it numbers the bytes from the beginning of its input"),
    ("parallel", "it starts commands of its own, several at a time"),
    ("paste", "it joins lines, and where it begins a new one depends on all that came before"),
    ("pr", "it divides all its input into pages"),
    ("printf", MAKES),
    ("ps", MAKES),
    ("read", "it takes the first line of all its input"),
    ("seq", MAKES),
    ("sha1sum", DIGEST),
    ("sha224sum", DIGEST),
    ("sha256sum", DIGEST),
    ("sha384sum", DIGEST),
    ("sha512sum", DIGEST),
    ("shuf", "it puts all its input into a random order"),
    ("split", WRITES),
    ("sponge", "it writes nothing before it has read all its input"),
    ("sum", DIGEST),
    ("tac", "it writes the lines of all its input from the last to the first"),
    ("tee", WRITES),
    ("tsort", "it looks for an order of all its input"),
    ("xxd", "it numbers the bytes from the beginning of its input"),
    ("xz", PACKS),
    ("xzcat", PACKS),
    ("yes", MAKES),
    ("zcat", PACKS),
    ("zstd", PACKS),
];

/// Returns why a command without a proof runs alone.
pub(super) fn of(name: &str) -> Cow<'static, str> {
    let reason = TABLE.iter().find(|(known, _)| *known == name).map(|(_, reason)| *reason);
    reason.map_or_else(|| format!("nothing is known of `{name}`").into(), Cow::Borrowed)
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
            ("nl -ba", "numbers the lines"),
            ("tac", "last to the first"),
            ("paste - -", "joins lines"),
            ("paste -d, - f", "joins lines"),
            ("tee f", "to files"),
            ("md5sum", "one sum"),
            ("seq 5", "does not read"),
            ("column -t", "how wide"),
            ("frobnicate", "nothing is known of `frobnicate`"),
        ]);
    }
}
