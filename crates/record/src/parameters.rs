//! The parameters of a case: names and values, in display order.

pub mod names;

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The value of a parameter: a flag, a number or text.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A number; its unit depends on the parameter.
    Number(u64),
    /// A name or another text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(value) => write!(f, "{}", if *value { "yes" } else { "no" }),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// Parameters by name, in display order. They serialize as an object in the same order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Parameters(Vec<(String, Value)>);

impl Parameters {
    /// Creates an empty set of parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the parameters with `name` set to `value`: added at the end, or replaced in its
    /// place.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.set(name.to_owned(), value.into());
        self
    }

    /// Returns a copy of the parameters without `name`.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(other, _)| other != name).cloned().collect())
    }

    fn set(&mut self, name: String, value: Value) {
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Returns whether this set and `other` have the same names with the same values. Ignores the
    /// order, because that of a JSON object has no meaning.
    pub fn has_same_entries(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().all(|(name, value)| other.get(name) == Some(value))
    }

    /// Returns the value of the parameter `name`, or `None` if it is absent.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// Returns the value of the parameter `name` if it is text. Returns `None` if it is absent or
    /// of another type.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of the parameter `name` if it is a number. Returns `None` if it is absent
    /// or of another type.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns whether the parameter `name` is the flag `true`. Returns `false` if it is absent or
    /// of another type.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Flag(true))
    }

    /// Iterates over the names and values of the parameters, in display order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Parameters;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of parameters")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
                let mut parameters = Parameters::new();
                while let Some((name, value)) = map.next_entry()? {
                    parameters.set(name, value);
                }
                Ok(parameters)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl JsonSchema for Parameters {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Parameters".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Value>();
        json_schema!({
            "description": "Parameters of a case, by name.",
            "type": "object",
            "additionalProperties": value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_shown_and_replaced_in_their_order() {
        let parameters = Parameters::new().with("kind", "fork").with("n", 100).with("huge", false);
        assert_eq!(parameters.to_string(), "kind=fork n=100 huge=no");
        let parameters = parameters.with("kind", "vfork");
        assert_eq!(parameters.to_string(), "kind=vfork n=100 huge=no");
        assert_eq!(parameters.without("n").to_string(), "kind=vfork huge=no");
        assert_eq!(parameters.number("n"), Some(100));
        assert_eq!(parameters.text("kind"), Some("vfork"));
        assert!(!parameters.flag("huge") && !parameters.flag("kind"));
        let turned = Parameters::new().with("huge", false).with("n", 100).with("kind", "vfork");
        assert!(turned != parameters && turned.has_same_entries(&parameters));
        assert!(!turned.without("n").has_same_entries(&parameters));
        assert!(!turned.with("n", 1).has_same_entries(&parameters));
    }
}
