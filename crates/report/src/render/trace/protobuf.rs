//! Encodes protocol buffers: the few kinds of fields that traces need.
//!
//! A field is its number and its kind in a varint, followed by the value. A nested message, a string
//! and bytes have their length in front (<https://protobuf.dev/programming-guides/encoding>).

/// Kind of a field whose value is a varint.
const VARINT: u32 = 0;
/// Kind of a field whose value is a length and as many bytes.
const LENGTH: u32 = 2;

/// A message that is being encoded.
#[derive(Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Adds an integer or the number of an enumerator.
    pub fn integer(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3 | VARINT));
        self.varint(value);
    }

    /// Adds a process or thread ID, of type `int32` or `int64`.
    pub fn id(&mut self, field: u32, value: i32) {
        self.integer(field, i64::from(value).cast_unsigned());
    }

    /// Adds a string.
    pub fn string(&mut self, field: u32, value: &str) {
        self.varint(u64::from(field << 3 | LENGTH));
        self.varint(value.len() as u64);
        self.bytes.extend(value.as_bytes());
    }

    /// Adds a message with the fields that `fill` adds.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.varint(u64::from(field << 3 | LENGTH));
        let start = self.bytes.len();
        fill(self);
        // Most messages are short, so that their length takes one byte to insert.
        let length = self.bytes.len() - start;
        let end = self.bytes.len();
        self.varint(length as u64);
        let length_bytes = self.bytes.len() - end;
        self.bytes[start..].rotate_right(length_bytes);
    }

    /// Returns the encoded fields.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all fields, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
            value >>= 7;
        }
        self.bytes.push(u8::try_from(value).unwrap_or(0));
    }
}

#[cfg(test)]
pub mod reader {
    //! Decodes protocol buffers without knowledge of the messages.

    /// Value of a field.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Value {
        Integer(u64),
        Bytes(Vec<u8>),
    }

    impl Value {
        pub fn integer(&self) -> u64 {
            match self {
                Self::Integer(value) => *value,
                Self::Bytes(_) => panic!("not an integer: {self:?}"),
            }
        }

        pub fn text(&self) -> &str {
            match self {
                Self::Bytes(bytes) => std::str::from_utf8(bytes).expect("UTF-8"),
                Self::Integer(_) => panic!("not a string: {self:?}"),
            }
        }

        pub fn fields(&self) -> Fields {
            match self {
                Self::Bytes(bytes) => Fields::decode(bytes),
                Self::Integer(_) => panic!("not a message: {self:?}"),
            }
        }
    }

    /// The fields of a message in their order.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Fields(pub Vec<(u64, Value)>);

    impl Fields {
        pub fn decode(mut bytes: &[u8]) -> Self {
            let mut fields = Vec::new();
            while !bytes.is_empty() {
                let tag = varint(&mut bytes);
                let value = match tag & 7 {
                    0 => Value::Integer(varint(&mut bytes)),
                    2 => {
                        let length = usize::try_from(varint(&mut bytes)).expect("short");
                        let (value, rest) = bytes.split_at(length);
                        bytes = rest;
                        Value::Bytes(value.to_vec())
                    }
                    kind => panic!("kind {kind}"),
                };
                fields.push((tag >> 3, value));
            }
            Self(fields)
        }

        pub fn all(&self, field: u64) -> impl Iterator<Item = &Value> {
            self.0.iter().filter(move |(number, _)| *number == field).map(|(_, value)| value)
        }

        pub fn get(&self, field: u64) -> Option<&Value> {
            self.all(field).next()
        }
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a complete varint");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return value;
            }
        }
        panic!("longer than 64 bits");
    }
}

#[cfg(test)]
mod tests {
    use super::reader::{Fields, Value};
    use super::*;

    #[test]
    fn examples_of_the_specification() {
        let mut message = Message::default();
        message.integer(1, 150);
        assert_eq!(message.bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.string(2, "testing");
        assert_eq!(message.bytes(), [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        message.clear();
        message.message(3, |nested| nested.integer(1, 150));
        assert_eq!(message.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        message.clear();
        message.id(1, -2);
        let two = [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(message.bytes(), two);
    }

    #[test]
    fn decoded_fields_are_those_that_were_encoded() {
        let long = "x".repeat(300);
        for value in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
            let mut message = Message::default();
            message.integer(1, value);
            message.message(60, |nested| {
                nested.string(2000, &long);
                nested.message(3, |inner| inner.integer(4, value));
                nested.message(5, |_| {});
            });
            let decoded = Fields::decode(message.bytes());
            assert_eq!(decoded.get(1), Some(&Value::Integer(value)));
            let nested = decoded.get(60).expect("a message").fields();
            assert_eq!(nested.get(2000).expect("a string").text(), long);
            let inner = nested.get(3).expect("a message").fields();
            assert_eq!(inner.0, [(4, Value::Integer(value))]);
            assert_eq!(nested.get(5), Some(&Value::Bytes(Vec::new())));
        }
    }
}
