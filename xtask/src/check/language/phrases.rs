//! Phrases of literal, coined English, with advice on what to write instead.
//!
//! When the list was made, each phrase was at least eight times as frequent in this code base as in
//! the comments of widely used crates. Per 1,000 words, these comments contain 0.1 to 1 phrases of
//! the list: clap and tokio 0.4, rustix 0.3, memchr 0.1, jiff 0.5, regex-automata 0.9
//! (`cargo xtask language FOLDER` counts others). Phrases that are also common in such crates, such
//! as "at all" and "gives up", are not listed.

use anyhow::{Context as _, Result};
use regex::Regex;

/// Phrases as regular expressions, and the advice printed with each.
const PHRASES: &[(&str, &str)] = &[
    // Quantities without a number.
    (r"so (?:many|much)", "give the number, or leave the quantity out"),
    (r"(?:that|this) (?:many|much)", "give the number, or leave the quantity out"),
    (
        r"some (?:hundreds?|thousands?|tens?)",
        "give the number, or write \"about\" or \"hundreds of\"",
    ),
    (r"how (?:much|many|often|far|long) of", "name the quantity: \"the number of …\""),
    (r"(?:all|none|nothing|much|most|more|part|any|many|one) of it", "name the thing"),
    // Relative clauses and pronouns in place of nouns.
    (r"(?:nobody|whoever|somebody|anybody)", "name who it is: the reader, the caller, a thread"),
    (
        r"what (?:is|are|was|were|comes|stands|goes|remains|belongs|follows|others)",
        "use a noun in place of the clause",
    ),
    (r"what (?:it|they|its|one|has|had|came|of|such)", "use a noun in place of the clause"),
    (
        r"who (?:is|has|have|does|reads|writes|waits|ends|comes|asks|knows|takes|holds|sends|gets|wants)",
        "use a noun: the reader, the sender",
    ),
    (
        r"(?:all|nothing|anything|everything|something) that (?:is|there|was)",
        "use a noun in place of the clause",
    ),
    (r"(?:is|are|was|were|be) none", "say \"there is no …\", or \"is not a …\""),
    (r"(?:has|have|had) none", "repeat the noun: \"has no …\""),
    (r"(?:it|which|what|that|this) (?:is|are|was|were) no", "write \"is not a …\""),
    (r"if (?:that|it) is (?:one|none|so)", "repeat the condition"),
    (r", of which", "make the aside a sentence, or write \"whose\""),
    (r"becomes? one", "name the result: are merged, is concatenated"),
    // Verbs that treat things as people.
    (r"(?:is|are|was|were|be|been|being) told", "say who passes what: receives, gets, reads"),
    (
        r"tells? (?:that|from|whether|how|what|of|it|them|others|apart)",
        "reports, notifies, shows, distinguishes",
    ),
    (r"says? (?:what|of|how|whether)", "describes, explains, returns whether"),
    (r"stands? (?:before|there|in|for|at|on|beside|over|behind)", "is in, precedes, means"),
    (r"(?:comes?|came) of", "results from, follows from"),
    (r"(?:came|comes?|coming) to", "reaches, adds up to"),
    (r"(?:has|have) (?:come|gone)", "has arrived, has exited, is closed"),
    (r"(?:is|are|was|were) there", "exists, is present, is available"),
    (r"on (?:its|their) way", "in transit, queued"),
    (r"go(?:es)? on", "continues"),
    (r"(?:is|are|goes|go|went|ends?|ended) well", "succeeds"),
    (r"look(?:s|ed|ing)? at", "examines, reads, checks, samples"),
    (r"sets? the pace", "is the bottleneck"),
    (r"at work", "running, busy"),
    (r"put together", "composed, joined"),
    (r"(?:is|are|was|were) (?:left|known|wanted|asked|kept) of", "use a noun: the remainder"),
    (r"nothing (?:but|of)", "only"),
    (r"stays? (?:away|out)", "is missing, is left out"),
    (r"(?:heeds?|mend(?:s|ed)?|fares?)", "depends on, fixes, performs"),
    // Places, times and ways.
    (r"behind", "after, following"),
    (r"beside", "next to, in addition to, compared with"),
    (r"meanwhile", "in this time, while …"),
    (r"by then", "name the moment"),
    (r"anew", "again"),
    (r"again and again", "repeatedly"),
    (r"one by one", "individually, each"),
    (r"one (?:after|behind|beside) the other", "in turn, in order"),
    (r"in one piece", "as a whole"),
    (r"over parts", "over chunks, in parallel"),
    (r"(?:by|for|of) (?:itself|themselves|oneself)", "automatically, independently, on its own"),
    (r"as (?:it|they) (?:is|are|was|were|stands?|comes?)", "unchanged"),
    (r"to (?:its|their) end", "to EOF, completely"),
    (r"(?:is|are|was|were) to be", "must be, will be"),
    (r"for want of", "without"),
];

/// Pattern of idioms that begin like a phrase, such as "it is no longer", and are not counted.
const IDIOMS: &str = r"^\w+ (?:is|are|was|were) no (?:longer|more|less|fewer|worse|better)\b";

/// The phrases, compiled to regular expressions.
pub struct Phrases {
    any: Regex,
    each: Vec<(Regex, &'static str)>,
    idioms: Regex,
}

/// An occurrence of a phrase in a text.
pub struct Found<'t> {
    /// The offset of the phrase's first byte in the text.
    pub start: usize,
    pub phrase: &'t str,
    pub advice: &'static str,
}

impl Phrases {
    /// Compiles the phrases. Words of a phrase may be separated by line breaks.
    ///
    /// # Errors
    /// Returns an error if a phrase is not a valid regular expression.
    pub fn new() -> Result<Self> {
        let all: Vec<_> = PHRASES.iter().map(|(phrase, _)| *phrase).collect();
        let each = PHRASES.iter().map(|(phrase, advice)| Ok((compile(phrase)?, *advice)));
        Ok(Self {
            any: compile(&all.join("|"))?,
            each: each.collect::<Result<_>>()?,
            idioms: Regex::new(IDIOMS).context("idioms")?,
        })
    }

    /// Returns the occurrences of phrases in a text, without overlaps and without `IDIOMS`.
    pub fn find<'t>(&self, text: &'t str) -> Vec<Found<'t>> {
        let found = self.any.find_iter(text).map(|found| Found {
            start: found.start(),
            phrase: found.as_str(),
            advice: self.advice(text, found.start()),
        });
        found.filter(|found| !self.idioms.is_match(&text[found.start..])).collect()
    }

    fn advice(&self, text: &str, start: usize) -> &'static str {
        let begins = |regex: &Regex| regex.find_at(text, start).map(|found| found.start());
        let matching = self.each.iter().find(|(regex, _)| begins(regex) == Some(start));
        matching.map_or("", |(_, advice)| advice)
    }
}

fn compile(pattern: &str) -> Result<Regex> {
    let pattern = pattern.replace(' ', r"\s+");
    Regex::new(&format!(r"(?i)\b(?:{pattern})\b")).context("a phrase")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let phrases = Phrases::new().expect("valid phrases");
        phrases.find(text).into_iter().map(|found| found.phrase).collect()
    }

    #[test]
    fn phrases_are_found_across_lines_and_in_any_case() {
        assert_eq!(
            found("So\n many bytes, one\nafter the other"),
            ["So\n many", "one\nafter the other"]
        );
        assert_eq!(found("There is none; that is no file"), ["is none", "that is no"]);
    }

    #[test]
    fn idiomatic_english_is_not_counted() {
        for text in [
            "It is no longer used, and there is no file.",
            "This gives up at once if it has no match at all.",
            "No more than 4 bytes, as long as the lock is held.",
            "Two of which one is an each of which.",
            "The beholder's behindhand foregoes onward looks.",
        ] {
            assert_eq!(found(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn every_phrase_has_advice() {
        let phrases = Phrases::new().expect("valid phrases");
        let found = phrases.find("It goes\non, of which");
        let advice: Vec<_> = found.iter().map(|found| found.advice).collect();
        assert_eq!(advice, ["continues", "make the aside a sentence, or write \"whose\""]);
        assert!(PHRASES.iter().all(|(_, advice)| !advice.is_empty()));
    }
}
