//! Keys, parsed from the bytes that a terminal sends.

/// A key with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// `q`: end the observation.
    Quit,
    /// `f`, `j` or ↓: select the next finding.
    Next,
    /// `F`, `k` or ↑: select the previous finding.
    Previous,
    /// `t`: change between findings and threads.
    List,
    /// `w`: change between the whole observation and the last ten seconds.
    Scope,
    /// Space: pause the display, or continue it.
    Pause,
}

/// The position in an escape sequence, such as that of an arrow key: ESC [ A or ESC O A.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    Sequence,
}

/// A parser of keys. An escape sequence may be split between two calls.
#[derive(Debug, Default)]
pub struct Keys {
    state: State,
}

impl Keys {
    /// Returns the keys with a meaning among `bytes`, and ignores the others.
    pub fn parse(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|&byte| self.next(byte)).collect()
    }

    fn next(&mut self, byte: u8) -> Option<Key> {
        let (state, key) = match (self.state, byte) {
            (_, b'\x1b') => (State::Escape, None),
            // A sequence may have parameters, as with a modifier: ESC [ 1 ; 5 A.
            (State::Escape, b'[' | b'O') | (State::Sequence, b' '..=b'?') => {
                (State::Sequence, None)
            }
            (State::Sequence, b'A') => (State::Ground, Some(Key::Previous)),
            (State::Sequence, b'B') => (State::Ground, Some(Key::Next)),
            (State::Sequence, _) => (State::Ground, None),
            // After a lone escape, a key is a key.
            (State::Ground | State::Escape, byte) => (State::Ground, key(byte)),
        };
        self.state = state;
        key
    }
}

fn key(byte: u8) -> Option<Key> {
    match byte {
        b'q' | b'Q' => Some(Key::Quit),
        b'f' | b'j' => Some(Key::Next),
        b'F' | b'k' => Some(Key::Previous),
        b't' => Some(Key::List),
        b'w' => Some(Key::Scope),
        b' ' => Some(Key::Pause),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_arrows_are_told_apart() {
        let mut keys = Keys::default();
        assert_eq!(keys.parse(b"fxq"), [Key::Next, Key::Quit]);
        assert_eq!(keys.parse(b"\x1b[A\x1bOB"), [Key::Previous, Key::Next]);
        assert_eq!(keys.parse(b"\x1b[1;5B w"), [Key::Next, Key::Pause, Key::Scope]);
    }

    #[test]
    fn a_sequence_may_be_split_or_unknown() {
        let mut keys = Keys::default();
        assert_eq!(keys.parse(b"\x1b"), []);
        assert_eq!(keys.parse(b"["), []);
        assert_eq!(keys.parse(b"B"), [Key::Next]);
        assert_eq!(keys.parse(b"\x1b[15~t"), [Key::List], "F5 has no meaning");
        assert_eq!(keys.parse(b"\x1bq"), [Key::Quit], "after a lone escape");
        assert_eq!(keys.parse(b"\x1b\x1b[Aq"), [Key::Previous, Key::Quit]);
        assert_eq!(keys.parse("é".as_bytes()), []);
    }
}
