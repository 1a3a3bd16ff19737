//! `cargo xtask language --sample`: doc comments drawn at random, for a reviewer.

use std::fmt::Write as _;

use super::texts::Text;
use crate::random::SplitMix64;

/// Draws `count` distinct doc comments, or all if there are fewer, and returns them with their
/// locations, ordered by file and line. The same seed and texts give the same sample.
pub fn sample(texts: &[Text<'_>], count: usize, seed: u64) -> String {
    let mut comments: Vec<_> = texts.iter().filter(|text| text.is_doc).collect();
    let mut generator = SplitMix64(seed);
    let count = count.min(comments.len());
    for index in 0..count {
        let rest = comments.len() - index;
        comments.swap(index, index + generator.below(rest));
    }
    comments.truncate(count);
    comments.sort_by_key(|text| (text.path, text.line));
    let mut sample = String::new();
    for text in comments {
        // Writing to a string cannot fail.
        let _ = writeln!(sample, "{}:{}", text.path.display(), text.line);
        for line in text.content.lines().filter(|line| !line.is_empty()) {
            let _ = writeln!(sample, "    {}", line.trim());
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::texts::Kind;
    use super::*;

    fn comments() -> Vec<Text<'static>> {
        let comment = |line| Text {
            package: "crates/a".to_owned(),
            kind: Kind::Comments,
            path: Path::new("a.rs"),
            line,
            content: format!(" Comment {line}."),
            is_doc: line % 2 == 0,
        };
        (1..=40).map(comment).collect()
    }

    #[test]
    fn a_seed_reproduces_a_sample_of_distinct_doc_comments() {
        let drawn = sample(&comments(), 8, 7);
        assert_eq!(drawn, sample(&comments(), 8, 7));
        assert_ne!(drawn, sample(&comments(), 8, 8));
        let mut places: Vec<_> = drawn.lines().filter(|line| line.starts_with("a.rs:")).collect();
        places.dedup();
        assert_eq!(places.len(), 8, "{drawn}");
    }

    #[test]
    fn a_large_sample_has_every_doc_comment_once() {
        assert_eq!(sample(&comments(), 100, 1).matches("a.rs:").count(), 20);
    }
}
