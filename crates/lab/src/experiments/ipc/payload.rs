//! What stands in a message: all of it depends on the message's number, so that one that is lost, comes
//! twice, in the wrong order or not whole is seen.

/// Fills a message.
#[inline]
pub fn write(message: &mut [u8], number: u64) {
    if let [byte] = message {
        *byte = number.to_le_bytes()[0]; // what follows takes longer than sending it
        return;
    }
    let first = number.wrapping_mul(SPREAD);
    let (words, rest) = message.as_chunks_mut::<8>();
    for (place, word) in words.iter_mut().enumerate() {
        *word = first.wrapping_add(place as u64).to_le_bytes();
    }
    for byte in rest {
        *byte = number.to_le_bytes()[0];
    }
}

/// Reads a message: whether all of it is as it was written for this number.
#[inline]
pub fn is_whole(message: &[u8], number: u64) -> bool {
    if let [byte] = message {
        return *byte == number.to_le_bytes()[0];
    }
    let first = number.wrapping_mul(SPREAD);
    let (words, rest) = message.as_chunks::<8>();
    let mut differences = 0;
    for (place, word) in words.iter().enumerate() {
        differences |= u64::from_le_bytes(*word) ^ first.wrapping_add(place as u64);
    }
    for &byte in rest {
        differences |= u64::from(byte ^ number.to_le_bytes()[0]);
    }
    differences == 0
}

/// Neighbouring numbers give words that differ in many bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_number_and_whole() {
        for length in [1, 7, 8, 9, 64, 1000] {
            let mut message = vec![0; length];
            write(&mut message, 200);
            assert!(is_whole(&message, 200) && !is_whole(&message, 201), "{length}");
            for place in 0..length {
                message[place] ^= 1;
                assert!(!is_whole(&message, 200), "{length} {place}");
                message[place] ^= 1;
            }
        }
    }
}
