//! Maps, deletes and squeezes bytes as `tr` does.

use contend_commands::Simple;
use contend_commands::tr::Effect;
use contend_record::run::ByteSet;
use contend_shell::environment::Environment;
use serde::{Deserialize, Serialize};

use super::{Definition, Operation};

/// The effect of `tr` on bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Translate {
    /// The image of each of the 256 bytes; 0 for deleted ones.
    images: Vec<u8>,
    /// The bytes that are deleted.
    deleted: ByteSet,
    /// Bytes of the output whose runs are squeezed into one byte.
    squeezed: ByteSet,
}

impl Definition for Translate {
    #[cfg(test)]
    const EXAMPLES: &'static [&'static str] = &[
        "tr a-z A-Z",
        "tr '[:upper:]' '[:lower:]'",
        "tr -d '\\r'",
        "tr -d '\\n'",
        "tr -cd '[:print:]\\n'",
        "tr -cs A-Za-z '\\n'",
        "tr -s ' '",
        "tr -s '\\n'",
        "tr -s a-z A-C",
        "tr -ds a b",
        "tr '\\n' '\\0'",
        "tr -t abc x",
        "tr 'a\\377' '\\200b'",
    ];

    fn read(simple: &Simple, environment: &Environment) -> Option<Self> {
        let effect = Effect::read(simple, environment.has_plain_letters(simple))?;
        Some(Self {
            images: effect.map.iter().map(|image| image.unwrap_or_default()).collect(),
            deleted: ByteSet::of(|byte| effect.image(byte).is_none()),
            squeezed: ByteSet::of(|byte| effect.squeezes(byte)),
        })
    }

    fn start(&self) -> Box<dyn Operation> {
        let mut images = [0; 256];
        for (image, byte) in images.iter_mut().zip(&self.images) {
            *image = *byte;
        }
        if self.squeezed.is_empty() && self.deleted.is_empty() {
            return Box::new(Substitution { images });
        }
        if self.squeezed.is_empty() {
            return Box::new(Deletion { images, kept: table(self.deleted.complement()) });
        }
        let kept = table(self.deleted.complement());
        let squeezed = table(self.squeezed);
        Box::new(Squeezing { images, kept, squeezed, last: None })
    }
}

/// Returns a table that shows for each byte whether it is in the set.
fn table(set: ByteSet) -> [bool; 256] {
    let mut table = [false; 256];
    for byte in set.iter() {
        table[usize::from(byte)] = true;
    }
    table
}

/// A running `tr` that only maps bytes.
struct Substitution {
    images: [u8; 256],
}

impl Operation for Substitution {
    fn push(&mut self, input: &[u8], output: &mut Vec<u8>) {
        output.extend(input.iter().map(|byte| self.images[usize::from(*byte)]));
    }

    fn finish(&mut self, _: &mut Vec<u8>) -> i32 {
        0
    }
}

/// A running `tr` that deletes some bytes and maps the others.
struct Deletion {
    images: [u8; 256],
    kept: [bool; 256],
}

impl Operation for Deletion {
    fn push(&mut self, input: &[u8], output: &mut Vec<u8>) {
        let start = output.len();
        output.resize(start + input.len(), 0);
        // A branch might be mispredicted half of the time. Instead, the next byte overwrites a
        // deleted one.
        let mut end = start;
        for byte in input {
            output[end] = self.images[usize::from(*byte)];
            end += usize::from(self.kept[usize::from(*byte)]);
        }
        output.truncate(end);
    }

    fn finish(&mut self, _: &mut Vec<u8>) -> i32 {
        0
    }
}

/// A running `tr` that deletes and maps bytes, and then squeezes equal neighbours.
struct Squeezing {
    images: [u8; 256],
    kept: [bool; 256],
    squeezed: [bool; 256],
    /// The last byte of the output so far, or `None` while the output is empty.
    last: Option<u8>,
}

impl Operation for Squeezing {
    #[expect(
        clippy::needless_bitwise_bool,
        reason = "`&&` would be a branch, mispredicted for text"
    )]
    fn push(&mut self, input: &[u8], output: &mut Vec<u8>) {
        let start = output.len();
        output.resize(start + input.len(), 0);
        let (mut end, mut last) = (start, self.last);
        // This loop has no branch, for the same reason as that of `Deletion`.
        for byte in input {
            let image = self.images[usize::from(*byte)];
            let kept = self.kept[usize::from(*byte)];
            let repeats = self.squeezed[usize::from(image)] & (last == Some(image));
            output[end] = image;
            end += usize::from(kept & !repeats);
            last = if kept { Some(image) } else { last };
        }
        output.truncate(end);
        self.last = last;
    }

    fn finish(&mut self, _: &mut Vec<u8>) -> i32 {
        0
    }
}
