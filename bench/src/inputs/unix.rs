//! Inputs of classic pipelines: people, games of chess, mail, temperatures, a list of words.

use std::io::{self, Write as _};

use fastrand::Rng;

use super::Source;
use super::clock::Clock;
use super::prose;
use super::zipf::{Skewed, Zipf};

const GIVEN: [&str; 12] = [
    "Ken", "Dennis", "Brian", "Doug", "Lorinda", "Rob", "Peter", "Joe", "Grace", "Ada", "Barbara",
    "Radia",
];
const PLACES: [&str; 8] = [
    "Bell Labs, Murray Hill",
    "Berkeley",
    "MIT, Cambridge",
    "AT&T, Holmdel",
    "Xerox PARC, Palo Alto",
    "CWI, Amsterdam",
    "Stanford",
    "Bell Labs, Holmdel",
];
const SYSTEMS: [&str; 7] = ["UNIX", "Multics", "Plan 9", "CTSS", "TENEX", "ITS", "BSD"];

struct People {
    families: Skewed<String>,
}

/// Returns a source of lines with a name, year of birth, place and system, separated by tabs.
pub fn people(random: &mut Rng) -> Box<dyn Source> {
    Box::new(People { families: families(random) })
}

/// Returns a distribution of capitalised family names, made from the rarer words of the
/// English-like text.
fn families(random: &mut Rng) -> Skewed<String> {
    let words = prose::vocabulary(random).into_iter().skip(4000);
    Skewed::new(words.map(|word| prose::capital(&word)).collect())
}

impl Source for People {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        writeln!(
            out,
            "{} {}\t{}\t{}\t{}",
            GIVEN[random.usize(..GIVEN.len())],
            self.families.draw(random),
            random.u16(1900..2005),
            PLACES[random.usize(..PLACES.len())],
            SYSTEMS[random.usize(..SYSTEMS.len())],
        )
    }
}

struct Games {
    round: u32,
}

/// Returns a source of games of chess: a line with the players, then all moves of the game on one
/// line, then an empty line.
pub fn games(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Games { round: 0 })
}

impl Source for Games {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        const RESULTS: [&str; 3] = ["1-0", "0-1", "1/2-1/2"];
        self.round += 1;
        let result = RESULTS[random.usize(..3)];
        let player = |random: &mut Rng| GIVEN[random.usize(..GIVEN.len())];
        writeln!(
            out,
            "[Round \"{}\"] [White \"{}\"] [Black \"{}\"] [Result \"{result}\"]",
            self.round,
            player(random),
            player(random),
        )?;
        for number in 1..random.u8(8..60) {
            write!(out, "{number}. ")?;
            half_move(random, out)?;
            half_move(random, out)?;
        }
        writeln!(out, "{result}\n")
    }
}

/// Appends a move such as `Nf3 `, `exd5 ` or `O-O `.
fn half_move(random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
    if random.u8(..) < 5 {
        return out.write_all(b"O-O ");
    }
    let file = |random: &mut Rng| b"abcdefgh"[random.usize(..8)];
    let piece = random.u8(0..10);
    let takes = random.u8(0..5) == 0;
    if piece < 5 {
        out.push(b"KQRBN"[usize::from(piece)]);
    } else if takes {
        out.push(file(random));
    }
    if takes {
        out.push(b'x');
    }
    out.extend_from_slice(&[file(random), random.u8(b'1'..=b'8')]);
    if random.u8(0..12) == 0 {
        out.push(b'+');
    }
    out.push(b' ');
    Ok(())
}

struct Mail {
    clock: Clock,
    people: Zipf,
    text: Box<dyn Source>,
}

/// Returns a source of messages in mbox format.
pub fn mail(random: &mut Rng) -> Box<dyn Source> {
    Box::new(Mail {
        clock: Clock::default(),
        people: Zipf::new(2000),
        text: prose::english(random),
    })
}

impl Source for Mail {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        self.clock.seconds += random.u64(20..600);
        let now = self.clock.now();
        let (from, to) = (self.people.draw(random), self.people.draw(random));
        let stamp = format!("{} {:>2} {} {}", now.month_name(), now.day, now.time(), now.year);
        writeln!(out, "From user{from}@example.org {stamp}")?;
        writeln!(out, "From: \"{}\" <user{from}@example.org>", GIVEN[from % GIVEN.len()])?;
        writeln!(out, "To: user{to}@example.{}", ["com", "net", "org"][to % 3])?;
        writeln!(out, "Subject: {}{}\n", if to % 2 == 0 { "Re: " } else { "" }, PLACES[from % 8])?;
        for _ in 0..random.u8(2..12) {
            self.text.record(random, out)?;
        }
        out.push(b'\n');
        Ok(())
    }
}

struct Weather {
    station: u32,
    /// Time of the last record, in hours since the beginning of the first year.
    hour: u64,
}

/// Returns a source of temperatures in fixed columns, similar to NOAA's hourly records: year in
/// columns 16 to 19, sign in 88, tenths of a degree in 89 to 92 (9999 if missing), quality in 93.
pub fn weather(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Weather { station: 10_010, hour: 0 })
}

impl Source for Weather {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        const HOURS: u64 = 365 * 24;
        self.hour += random.u64(1..4);
        if self.hour >= HOURS * 8 {
            (self.hour, self.station) = (0, self.station + 10);
        }
        let (year, day) = (2015 + self.hour / HOURS, self.hour % HOURS / 24);
        let tenths = random.i16(-150..150) + if (90..270).contains(&day) { 180 } else { 0 };
        let (sign, tenths) = match random.u8(..) {
            0..6 => ('+', 9999),
            _ => (if tenths < 0 { '-' } else { '+' }, tenths.abs()),
        };
        writeln!(
            out,
            "0079{:06}99999{year}{:02}{:02}{:02}004+{:05}-{:06}FM-12+00{:02}99999V0203201N{:04}\
             1012200001CN01000{}{sign}{tenths:04}{}+99999{:05}9ADDGF",
            self.station,
            day / 31 + 1,
            day % 31 + 1,
            self.hour % 24,
            self.station % 90_000,
            self.station % 180_000,
            self.station % 100,
            random.u16(0..400),
            random.u8(0..10),
            random.choice(b"1111145902").map_or('1', |&sure| char::from(sure)),
            random.u32(95_000..99_999),
        )
    }
}

struct Words {
    words: Vec<String>,
    next: usize,
}

/// Returns a source of distinct words in the order of the C locale: about two thirds of those in
/// the English-like text, then numbered ones.
pub fn words(random: &mut Rng) -> Box<dyn Source> {
    let mut words = prose::vocabulary(random);
    words.retain(|_| random.u8(0..3) > 0);
    words.sort_unstable();
    words.dedup();
    Box::new(Words { words, next: 0 })
}

impl Source for Words {
    fn record(&mut self, _: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        self.next += 1;
        match self.words.get(self.next - 1) {
            Some(word) => writeln!(out, "{word}"),
            // This line sorts after all words and, up to line 99,999,999, after all earlier lines.
            None => writeln!(out, "zz{:08}", self.next),
        }
    }
}
