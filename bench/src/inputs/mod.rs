//! Inputs of benchmarks, generated from a seed: text, logs, tables, JSON, numbers.
//!
//! Inputs resemble real files: a few words, addresses and paths are common and most are rare
//! (Zipf's law), and every record is complete. The same seed gives the same bytes, and a shorter
//! file of lines is a prefix of a longer one.

mod clock;
pub mod folder;
mod json;
mod logs;
mod prose;
mod tables;
mod unix;
mod zipf;

use std::io::{self, Write};

use anyhow::{Context as _, Result};
use fastrand::Rng;

/// A kind of generated input file.
#[derive(Debug)]
pub struct Input {
    /// Name of the file.
    pub file: &'static str,
    /// Summary of the content, in one line.
    pub summary: &'static str,
    source: fn(&mut Rng) -> Box<dyn Source>,
}

/// A generator of an input's records.
trait Source {
    /// Returns the bytes before the first record.
    fn head(&self) -> &'static str {
        ""
    }

    /// Appends the next record, with its terminator or separator.
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()>;

    /// Returns the bytes after the last record.
    fn tail(&self) -> &'static str {
        ""
    }
}

/// Every kind of input.
pub const TABLE: [Input; 17] = [
    Input {
        file: "text.txt",
        summary: "English-like text in lines of 72 columns",
        source: prose::english,
    },
    Input {
        file: "world.txt",
        summary: "text in eight scripts and many accents, UTF-8",
        source: prose::world,
    },
    Input {
        file: "access.log",
        summary: "a web server's requests, combined format",
        source: logs::access,
    },
    Input { file: "syslog", summary: "lines as syslogd writes them", source: logs::syslog },
    Input { file: "metrics.log", summary: "key=value lines of a service", source: logs::metrics },
    Input {
        file: "orders.csv",
        summary: "orders with a header, some fields quoted",
        source: tables::orders_csv,
    },
    Input {
        file: "orders.tsv",
        summary: "the same orders, tab-separated",
        source: tables::orders_tsv,
    },
    Input { file: "passwd", summary: "accounts as in /etc/passwd", source: tables::accounts },
    Input { file: "events.jsonl", summary: "events, one JSON object a line", source: json::lines },
    Input {
        file: "events.json",
        summary: "the events as an array on one line",
        source: json::array,
    },
    Input {
        file: "data.b64",
        summary: "random bytes in base64, 76 columns",
        source: tables::base64,
    },
    Input {
        file: "numbers.txt",
        summary: "integers, one a line, some repeated",
        source: tables::numbers,
    },
    Input {
        file: "people.tsv",
        summary: "name, year of birth, place and system, tab-separated",
        source: unix::people,
    },
    Input { file: "games.pgn", summary: "games of chess", source: unix::games },
    Input { file: "mail.mbox", summary: "mails in a mailbox", source: unix::mail },
    Input {
        file: "weather.txt",
        summary: "hourly temperatures in fixed columns",
        source: unix::weather,
    },
    Input {
        file: "words.txt",
        summary: "words in the order of the C locale, without duplicates",
        source: unix::words,
    },
];

fn find(file: &str) -> Option<&'static Input> {
    TABLE.iter().find(|input| input.file == file)
}

/// Returns the kind of input with the file name `file`.
///
/// # Errors
/// Returns an error if there is no such kind.
pub fn known(file: &str) -> Result<&'static Input> {
    find(file).with_context(|| format!("no input is named {file}: see the table in inputs/mod.rs"))
}

impl Input {
    /// Writes as many whole records as fit into `size` bytes, and returns the number of bytes
    /// written. `seed` determines the records.
    ///
    /// Writes nothing if the first record does not fit.
    pub fn write(&self, size: u64, seed: u64, out: &mut (impl Write + ?Sized)) -> io::Result<u64> {
        let mut random = Rng::with_seed(seed ^ fingerprint(self.file.as_bytes()));
        let mut source = (self.source)(&mut random);
        let tail = source.tail().as_bytes();
        let mut record = source.head().as_bytes().to_vec();
        let mut written = 0;
        loop {
            source.record(&mut random, &mut record)?;
            if written + (record.len() + tail.len()) as u64 > size {
                break;
            }
            out.write_all(&record)?;
            written += record.len() as u64;
            record.clear();
        }
        if written > 0 {
            out.write_all(tail)?;
            written += tail.len() as u64;
        }
        Ok(written)
    }
}

/// Returns a hash of `bytes` (FNV-1a, 64 bits), which is the same on every machine.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(BASIS, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests;
