//! Prose: sentences and paragraphs in lines of limited width, with words drawn by Zipf's law.

use std::io;

use fastrand::Rng;

use super::Source;
use super::zipf::Skewed;

/// Length in bytes at which a line ends: the word that reaches it is the last one of the line.
const LINE_WIDTH: usize = 72;
const VOCABULARY: usize = 20_000;

/// The most frequent words; rarer words consist of syllables.
const ENGLISH: &str = "the of and to in a is that for it as was with be by on not he his but at are \
    this have from or had an they which one you were her all she there would their we him been has \
    when who will more no if out so said what up its about into than them can only other new some \
    could time these two may then do first any my now such like our over man me even most made \
    after also did many before must through back years where much your way well down should because \
    each just those people too how little state good very make world still own see men work long \
    here get both between life being under never day same another know while last might us great old \
    year off come since against go came right used take three error warning user file line data";
const ENGLISH_SYLLABLES: &str = "an ar ba be bor ca con da de der di en er es fa for ga ge ha im in \
    ing is ja ka la le ler li lo ma me ment mi mo na ne no or pa per po qua ra re ri ro sa se sion \
    sta sti ta ter ti tion to tra u va ver vi wa wor ya zo";

const WORLD: &str = "die und la de el é não für über que está être où ça 的 是 在 и в не на что to και \
    είναι από της 日本 の に は を た 하다 있다 그 את של לא في من على naïve straße año più è già \
    señor größe œuvre łódź żółw čeština ďábel";
const WORLD_SYLLABLES: &str = "é è ü ö ä ñ ão ça ße øre lå ský čin ři на по ст ра ние го ко та ση \
    και λο μα 東 京 語 文 字 か な き り カ ナ 한 글 말 שלום تاب ka ra lo mi 😀 e\u{301} o\u{308}";

/// A generator of prose, line by line.
struct Prose {
    words: Skewed<String>,
    /// Number of words still to come before the last word of the sentence.
    left: usize,
    /// Whether the next word begins a sentence.
    begins: bool,
}

/// Returns a source of lines of English-like text.
pub fn english(random: &mut Rng) -> Box<dyn Source> {
    Box::new(Prose::new(vocabulary(random)))
}

/// Returns the words of the English-like text, the most frequent first; rare words may occur twice.
pub fn vocabulary(random: &mut Rng) -> Vec<String> {
    words(ENGLISH, ENGLISH_SYLLABLES, random)
}

/// Returns a source of lines of text in which most words have letters of several bytes.
pub fn world(random: &mut Rng) -> Box<dyn Source> {
    Box::new(Prose::new(words(WORLD, WORLD_SYLLABLES, random)))
}

/// Returns the words `common`, followed by rare ones of two to four syllables, [`VOCABULARY`] words
/// in all.
fn words(common: &str, syllables: &str, random: &mut Rng) -> Vec<String> {
    let syllables: Vec<&str> = syllables.split_whitespace().collect();
    let mut words: Vec<String> = common.split_whitespace().map(str::to_owned).collect();
    while words.len() < VOCABULARY {
        let count = random.usize(2..=4);
        words.push((0..count).map(|_| syllables[random.usize(..syllables.len())]).collect());
    }
    words
}

impl Source for Prose {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        let begin = out.len();
        while out.len() - begin < LINE_WIDTH {
            if out.len() > begin {
                out.push(b' ');
            }
            if self.word(random, out) && random.u8(..) < 24 {
                out.extend_from_slice(b"\n\n"); // the end of a paragraph
                return Ok(());
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

impl Prose {
    fn new(words: Vec<String>) -> Self {
        Self { words: Skewed::new(words), left: 8, begins: true }
    }

    /// Appends a word or number with the punctuation after it. Returns whether it ends its
    /// sentence.
    fn word(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> bool {
        let style = random.u8(..);
        if style < 4 {
            out.extend_from_slice(random.u16(1..2100).to_string().as_bytes());
        } else {
            let word = self.words.draw(random);
            match (self.begins, style) {
                (true, _) | (_, 4..10) => out.extend_from_slice(capital(word).as_bytes()),
                (_, 10..12) => out.extend_from_slice(word.to_uppercase().as_bytes()),
                _ => out.extend_from_slice(word.as_bytes()),
            }
        }
        self.begins = self.left == 0;
        if self.begins {
            out.push(*random.choice(b"........?!").unwrap_or(&b'.'));
            self.left = random.usize(3..24);
        } else {
            self.left -= 1;
            match random.u8(..) {
                0..16 => out.push(b','),
                16..18 => out.push(b';'),
                _ => {}
            }
        }
        self.begins
    }
}

/// Returns `word` with a capital first letter.
pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
