//! Parses GNU `tr` commands with all their options, which translate, delete and squeeze bytes.

use super::sets::{Set, Sets};
use super::{Simple, TABLE};
use crate::options::Options;

/// The effect of a `tr` command on each byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The replacement of each byte; `None` if the byte is deleted.
    pub map: [Option<u8>; 256],
    /// For each output byte, whether a run of that byte is squeezed into one.
    pub squeezed: [bool; 256],
}

impl Effect {
    /// Parses the command. Returns `None` if it is not a `tr`, if `tr` rejects it or warns, if a
    /// set is not written in ASCII, or if a repeat count is at least 2^16. With `plain_letters`,
    /// classes are those of the C locale; otherwise, a set with a class yields `None`.
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

    /// Returns whether runs of the output byte `byte` are squeezed into one.
    pub fn squeezes(&self, byte: u8) -> bool {
        self.squeezed[usize::from(byte)]
    }

    /// Returns the replacement of a byte, or `None` if the byte is deleted.
    pub fn image(&self, byte: u8) -> Option<u8> {
        self.map[usize::from(byte)]
    }
}
