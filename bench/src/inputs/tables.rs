//! Records of fields: orders, accounts, numbers; and base64, which has no fields.

use std::io::{self, Write as _};

use fastrand::Rng;

use super::Source;
use super::clock::Clock;
use super::zipf::{Skewed, Zipf};

/// Products, the most frequent first. One has a quotation mark, one a comma.
const PRODUCTS: [&str; 12] = [
    "Notebook A5",
    "Ballpoint pen",
    "Desk lamp",
    "Monitor 27\"",
    "USB cable 2 m",
    "Keyboard, wireless",
    "Mouse",
    "Office chair",
    "Stapler",
    "Headset",
    "Paper A4 500 sheets",
    "Whiteboard",
];
const COUNTRIES: [&str; 12] =
    ["US", "DE", "JP", "GB", "FR", "IN", "BR", "CA", "IT", "NL", "SE", "NZ"];
const FAMILIES: [&str; 12] = [
    "Smith", "Garcia", "Tanaka", "Mueller", "Brown", "Rossi", "Silva", "Khan", "Novak", "Lee",
    "O'Neill", "Dubois",
];
const GIVEN: [&str; 8] = ["Anna", "Ben", "Chloe", "David", "Emma", "Farid", "Grace", "Hiro"];

struct Orders {
    separator: char,
    number: u64,
    clock: Clock,
    products: Skewed<&'static str>,
    countries: Skewed<&'static str>,
}

/// Returns a source of orders as comma-separated values, quoted where RFC 4180 requires it.
pub fn orders_csv(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Orders::separated_by(','))
}

/// Returns a source of orders as tab-separated values.
pub fn orders_tsv(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Orders::separated_by('\t'))
}

impl Orders {
    fn separated_by(separator: char) -> Self {
        Self {
            separator,
            number: 100_000,
            clock: Clock::default(),
            products: Skewed::new(PRODUCTS.to_vec()),
            countries: Skewed::new(COUNTRIES.to_vec()),
        }
    }

    fn field(&self, text: &str) -> String {
        if self.separator == ',' && text.contains([',', '"']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    }
}

impl Source for Orders {
    fn head(&self) -> &'static str {
        match self.separator {
            ',' => "id,date,customer,product,quantity,price,country\n",
            _ => "id\tdate\tcustomer\tproduct\tquantity\tprice\tcountry\n",
        }
    }

    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        self.number += random.u64(1..4);
        self.clock.seconds += random.u64(0..60);
        let given = GIVEN[random.usize(..GIVEN.len())];
        let family = FAMILIES[random.usize(..FAMILIES.len())];
        let customer = if random.u8(..) < 40 {
            self.field(&format!("{family}, {given}"))
        } else {
            format!("{given} {family}")
        };
        let product = self.field(self.products.draw(random));
        let price = random.u32(1..300) * random.u32(1..300);
        let s = self.separator;
        writeln!(
            out,
            "{}{s}{}{s}{customer}{s}{product}{s}{}{s}{}.{:02}{s}{}",
            self.number,
            self.clock.now().date(),
            random.u8(1..20),
            price / 100,
            price % 100,
            self.countries.draw(random),
        )
    }
}

struct Accounts {
    number: u32,
}

/// Returns a source of accounts as in /etc/passwd, with occasional comments.
pub fn accounts(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Accounts { number: 999 })
}

impl Source for Accounts {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        if random.u8(..) < 2 {
            return out.write_all(b"# accounts from the directory\n");
        }
        self.number += 1;
        let family = FAMILIES[random.usize(..FAMILIES.len())];
        let given = GIVEN[random.usize(..GIVEN.len())];
        let shell = match random.u8(0..10) {
            0..6 => "/bin/bash",
            6..8 => "/usr/sbin/nologin",
            8 => "/bin/sh",
            _ => "/bin/false",
        };
        let name = format!("{}{}", family.to_lowercase().replace('\'', ""), self.number);
        writeln!(
            out,
            "{name}:x:{}:{}:{given} {family},,,:/home/{name}:{shell}",
            self.number,
            100 + random.u32(0..40),
        )
    }
}

struct Base64;

/// Returns a source of lines of random bytes, as `base64` prints them.
pub fn base64(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Base64)
}

impl Source for Base64 {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const WIDTH: usize = 76;
        let mut bits = 0_u64;
        for column in 0..WIDTH {
            if column % 10 == 0 {
                bits = random.u64(..);
            }
            out.push(ALPHABET[(bits & 63) as usize]);
            bits >>= 6;
        }
        out.push(b'\n');
        Ok(())
    }
}

struct Numbers {
    common: Zipf,
}

/// Returns a source of integers, one on each line: repeated small ones, large ones, some negative.
pub fn numbers(_: &mut Rng) -> Box<dyn Source> {
    Box::new(Numbers { common: Zipf::new(100_000) })
}

impl Source for Numbers {
    fn record(&mut self, random: &mut Rng, out: &mut Vec<u8>) -> io::Result<()> {
        match random.u8(0..10) {
            0..4 => writeln!(out, "{}", self.common.draw(random)),
            4..9 => writeln!(out, "{}", random.u32(..)),
            _ => writeln!(out, "-{}", random.u16(1..)),
        }
    }
}
