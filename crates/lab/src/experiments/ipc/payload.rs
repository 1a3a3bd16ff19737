//! The content of messages. All bytes depend on the number of the message, so that a lost,
//! repeated, reordered or torn message is detected. Messages shorter than 8 bytes contain only the
//! lowest byte of the number, so their contents repeat after 256 messages.

/// Fills `message` with the content for the given number.
#[inline]
pub fn write(message: &mut [u8], number: u64) {
    if let [byte] = message {
        *byte = number.to_le_bytes()[0]; // the general case would take longer than sending
        return;
    }
    let mut word = number.wrapping_mul(MULTIPLIER);
    let (lines, rest) = message.as_chunks_mut::<LINE_BYTES>();
    for line in lines {
        for (index, bytes) in (0..).zip(line.as_chunks_mut::<8>().0) {
            *bytes = word.wrapping_add(index).to_le_bytes();
        }
        word = word.wrapping_add(WORDS_PER_LINE);
    }
    let (words, rest) = rest.as_chunks_mut::<8>();
    for (index, bytes) in (0..).zip(words) {
        *bytes = word.wrapping_add(index).to_le_bytes();
    }
    for byte in rest {
        *byte = number.to_le_bytes()[0];
    }
}

/// Reads the whole message and returns whether it has the content for the given number.
#[inline]
pub fn is_intact(message: &[u8], number: u64) -> bool {
    if let [byte] = message {
        return *byte == number.to_le_bytes()[0];
    }
    let mut word = number.wrapping_mul(MULTIPLIER);
    let mut differences = 0;
    let (lines, rest) = message.as_chunks::<LINE_BYTES>();
    for line in lines {
        for (index, bytes) in (0..).zip(line.as_chunks::<8>().0) {
            differences |= u64::from_le_bytes(*bytes) ^ word.wrapping_add(index);
        }
        word = word.wrapping_add(WORDS_PER_LINE);
    }
    let (words, rest) = rest.as_chunks::<8>();
    for (index, bytes) in (0..).zip(words) {
        differences |= u64::from_le_bytes(*bytes) ^ word.wrapping_add(index);
    }
    for &byte in rest {
        differences |= u64::from(byte ^ number.to_le_bytes()[0]);
    }
    differences == 0
}

/// Number of bytes in one iteration of the outer loops; the compiler vectorises the inner loop over
/// their words.
const LINE_BYTES: usize = 64;
/// Number of 8-byte words in [`LINE_BYTES`].
const WORDS_PER_LINE: u64 = LINE_BYTES as u64 / 8;
/// Odd factor that makes the words of neighbouring numbers differ in many bits.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_or_another_number_is_detected() {
        for length in [1, 7, 8, 9, 64, 1000] {
            let mut message = vec![0; length];
            write(&mut message, 200);
            assert!(is_intact(&message, 200) && !is_intact(&message, 201), "{length}");
            for index in 0..length {
                message[index] ^= 1;
                assert!(!is_intact(&message, 200), "{length} {index}");
                message[index] ^= 1;
            }
        }
    }
}
