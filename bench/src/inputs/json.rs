//! Events as JSON: an object on each line, or all in one array on one line.

use std::io::{self, Write as _};

use fastrand::Rng;

use super::Source;
use super::clock::Clock;
use super::zipf::Zipf;

const KINDS: [&str; 5] = ["view", "view", "click", "order", "error"];
/// Contents of JSON strings, most of them with escapes or characters of several bytes.
const NOTES: [&str; 6] =
    ["ok", "said \\\"hello\\\"", "path C:\\\\temp", "two\\nlines", "café \\u00e9", "コメント"];

struct Events {
    clock: Clock,
    users: Zipf,
    number: u64,
    array: bool,
}

/// Returns a source of events as JSON objects, one on each line.
pub fn lines(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Events::new(false))
}

/// Returns a source of events as one JSON array, on one line.
pub fn array(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Events::new(true))
}

impl Events {
    fn new(array: bool) -> Self {
        Self { clock: Clock::default(), users: Zipf::new(10_000), number: 0, array }
    }
}

impl Source for Events {
    fn head(&self) -> &'static str {
        if self.array { "[" } else { "" }
    }

    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        self.number += 1;
        self.clock.seconds += random.u64(0..4);
        let now = self.clock.now();
        let user = self.users.draw(random);
        if self.array && self.number > 1 {
            out.push(b',');
        }
        write!(
            out,
            "{{\"id\":{},\"time\":\"{}T{}Z\",\"kind\":\"{}\",\"user\":{{\"id\":{user},\"name\":\
             \"user{user}\",\"admin\":{}}},\"ms\":{}.{},\"tags\":[\"{}\",\"{}\"],\"note\":{}}}",
            self.number,
            now.date(),
            now.time(),
            KINDS[random.usize(..KINDS.len())],
            user.is_multiple_of(50),
            random.u16(0..2000),
            random.u8(0..10),
            random.choice(["web", "app"]).unwrap_or("web"),
            random.choice(["new", "old", "vip"]).unwrap_or("new"),
            note(random),
        )?;
        if !self.array {
            out.push(b'\n');
        }
        Ok(())
    }

    fn tail(&self) -> &'static str {
        if self.array { "]\n" } else { "" }
    }
}

fn note(random: &mut Rng) -> String {
    match random.usize(..2 * NOTES.len()) {
        number if number < NOTES.len() => format!("\"{}\"", NOTES[number]),
        _ => "null".to_owned(),
    }
}
