//! The secret in the address of every page.
//!
//! The token is a part of the path, not a cookie: browsers send the cookies of `127.0.0.1` to servers at all of
//! its ports, also to those of other users of the machine. A page of another site cannot guess the path, and so
//! cannot send a request that is answered.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Length of a token in bytes, before it is written as hexadecimal digits.
const TOKEN_BYTES: usize = 16;

/// A random token of 128 bits, written as 32 hexadecimal digits.
pub struct Token(String);

impl Token {
    /// Returns a new token from the kernel's random numbers.
    ///
    /// # Errors
    /// Returns an error if the kernel has no random numbers.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        let length = getrandom(&mut bytes, GetRandomFlags::empty())?;
        if length < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let digits = bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Ok(Self(digits))
    }

    /// Returns the token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether `candidate` is the token. The time that this takes depends only on its length.
    pub fn is(&self, candidate: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), candidate.as_bytes());
        let difference = own.iter().zip(other).fold(0, |found, (a, b)| black_box(found | (a ^ b)));
        own.len() == other.len() && difference == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_differ() {
        let [one, other] = [(); 2].map(|()| Token::random().expect("random numbers"));
        assert!(one.as_str().len() == 32 && one.as_str().bytes().all(|b| b.is_ascii_hexdigit()));
        assert_ne!(one.as_str(), other.as_str());
    }

    #[test]
    fn only_the_whole_token_matches() {
        let token = Token::random().expect("random numbers");
        assert!(token.is(token.as_str()));
        let text = token.as_str();
        let last = if text.ends_with('0') { '1' } else { '0' };
        let changed = format!("{}{last}", &text[..31]);
        for other in ["", &text[..31], &format!("{text}0"), &changed, &text.to_uppercase()] {
            assert!(other == text || !token.is(other), "{other}");
        }
    }
}
