//! All of GNU's `tr`: what it translates, deletes and squeezes, byte by byte.

use super::sets::{Set, Sets};
use super::{Simple, TABLE};
use crate::options::Options;

/// What a `tr` does to bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// What each byte becomes; `None` where it is deleted.
    pub map: [Option<u8>; 256],
    /// Of which of the bytes that it writes neighbours that are equal become one.
    pub squeezed: [bool; 256],
}

impl Effect {
    /// Reads the command; `None` where `tr` itself would refuse it or warn, and where its sets
    /// are not ASCII. `plain_letters` says that letters are those of C.
    pub fn read(simple: &Simple, plain_letters: bool) -> Option<Self> {
        if simple.name() != "tr" {
            return None;
        }
        let options = Options::read(&simple.arguments, &TABLE)?;
        let texts: Vec<&str> =
            options.operands.iter().map(|&place| simple.arguments[place].text.as_str()).collect();
        let complemented = options.has('c') || options.has('C');
        let (deletes, squeezes) = (options.has('d'), options.has('s'));
        let sets = Sets { complemented, truncates: options.has('t'), plain_letters };
        let mut effect = Self::nothing();
        match texts.as_slice() {
            [only] if deletes != squeezes => {
                let set = sets.chosen(only)?;
                if deletes {
                    effect.delete(&set);
                } else {
                    effect.squeezed = set;
                }
            }
            [first, second] if deletes && squeezes => {
                effect.delete(&sets.chosen(first)?);
                effect.squeezed = Sets { complemented: false, ..sets }.chosen(second)?;
            }
            [first, second] if !deletes => {
                let (first, second) = sets.translation(first, second)?;
                for (&from, &to) in first.iter().zip(&second) {
                    effect.map[usize::from(from)] = Some(to);
                }
                if squeezes {
                    for byte in second {
                        effect.squeezed[usize::from(byte)] = true;
                    }
                }
            }
            _ => return None,
        }
        Some(effect)
    }

    fn nothing() -> Self {
        Self { map: std::array::from_fn(|byte| u8::try_from(byte).ok()), squeezed: [false; 256] }
    }

    fn delete(&mut self, set: &Set) {
        for (image, &is_in) in self.map.iter_mut().zip(set) {
            if is_in {
                *image = None;
            }
        }
    }

    /// Whether this byte, where it is written, becomes one with an equal neighbour.
    pub fn squeezes(&self, byte: u8) -> bool {
        self.squeezed[usize::from(byte)]
    }

    /// What becomes of a byte.
    pub fn image(&self, byte: u8) -> Option<u8> {
        self.map[usize::from(byte)]
    }
}
