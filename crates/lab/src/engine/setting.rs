//! Parameters that users can set, and the values chosen for them.

use contend_record::parameters::{Parameters, Value};

/// A parameter that users can set.
#[derive(Debug)]
pub struct Setting {
    /// Name of the parameter.
    pub name: &'static str,
    /// Description for the generated reference, usually with the default.
    pub summary: &'static str,
    values: Values,
}

/// The allowed values of a parameter.
#[derive(Debug)]
enum Values {
    /// A number between two bounds, inclusive.
    Numbers(u64, u64),
    /// One of the names that a function returns.
    Names(fn() -> Vec<&'static str>),
}

impl Setting {
    /// Creates a parameter whose values are the numbers from `min` to `max`, inclusive.
    pub const fn number(name: &'static str, summary: &'static str, min: u64, max: u64) -> Self {
        Self { name, summary, values: Values::Numbers(min, max) }
    }

    /// Creates a parameter whose values are the names that `names` returns.
    pub const fn named(
        name: &'static str,
        summary: &'static str,
        names: fn() -> Vec<&'static str>,
    ) -> Self {
        Self { name, summary, values: Values::Names(names) }
    }

    /// Parses a value of this parameter.
    ///
    /// # Errors
    /// Returns a description of the allowed values if `text` is none of them.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match self.values {
            Values::Numbers(min, max) => match text.parse() {
                Ok(number) if (min..=max).contains(&number) => Ok(Value::Number(number)),
                _ => Err(format!("expected a number from {min} to {max}")),
            },
            Values::Names(names) => match names().into_iter().find(|name| *name == text) {
                Some(name) => Ok(name.into()),
                None => Err(format!("expected one of {}", names().join(", "))),
            },
        }
    }

    /// Returns the allowed names, or an empty list if the parameter is a number.
    pub fn names(&self) -> Vec<&'static str> {
        match self.values {
            Values::Numbers(..) => Vec::new(),
            Values::Names(names) => names(),
        }
    }

    /// Returns an example of an allowed value, or an empty text if there is none.
    pub fn example(&self) -> Value {
        match self.values {
            Values::Numbers(min, max) => Value::Number(max.min(min + 2)),
            Values::Names(names) => names().last().copied().unwrap_or("").into(),
        }
    }
}

/// The chosen values of parameters, in the order of the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choices(Vec<(String, Vec<Value>)>);

impl Choices {
    /// Adds a value to those of a parameter, unless it is already one of them.
    pub fn add(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(other, _)| other == name) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.0.push((name.to_owned(), vec![value])),
        }
    }

    /// Returns the chosen values of a parameter, or an empty slice if none were chosen.
    pub fn of(&self, name: &str) -> &[Value] {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map_or(&[], |(_, values)| values)
    }

    /// Returns the chosen numbers of a parameter, or `default` if no value was chosen for it.
    pub fn numbers(&self, name: &str, default: &[u64]) -> Vec<u64> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        match self.of(name) {
            [] => default.to_vec(),
            chosen => chosen.iter().filter_map(number).collect(),
        }
    }

    /// Returns the given cases with every combination of the values chosen for `settings`, without
    /// duplicates. A parameter for which none were chosen keeps its value.
    pub fn applied(&self, cases: Vec<Parameters>, settings: &[&Setting]) -> Vec<Parameters> {
        let mut cases = cases;
        for setting in settings {
            let values = self.of(setting.name);
            if values.is_empty() {
                continue;
            }
            let mut with: Vec<Parameters> = Vec::new();
            for case in &cases {
                for value in values {
                    let case = case.clone().with(setting.name, value.clone());
                    if !with.contains(&case) {
                        with.push(case);
                    }
                }
            }
            cases = with;
        }
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: Setting = Setting::number("n", "", 1, 9);
    const KIND: Setting = Setting::named("kind", "", || vec!["a", "b"]);

    #[test]
    fn values_are_parsed_or_rejected() {
        assert_eq!(N.parse("7"), Ok(Value::Number(7)));
        assert_eq!(N.parse("10"), Err("expected a number from 1 to 9".to_owned()));
        assert_eq!(KIND.parse("b"), Ok("b".into()));
        assert_eq!(KIND.parse("c"), Err("expected one of a, b".to_owned()));
        assert_eq!((N.example(), KIND.example()), (Value::Number(3), "b".into()));
    }

    #[test]
    fn cases_get_every_value_that_was_chosen_once() {
        let mut choices = Choices::default();
        for n in [3, 4, 3] {
            choices.add("n", Value::Number(n));
        }
        choices.add("kind", "b".into());
        let case = |kind: &str, n: u64| Parameters::new().with("kind", kind).with("n", n);
        let cases = choices.applied(vec![case("a", 1), case("a", 2)], &[&N, &KIND]);
        assert_eq!(cases, [case("b", 3), case("b", 4)]);
        let others = choices.applied(vec![case("a", 1)], &[]);
        assert_eq!(others, [case("a", 1)], "a parameter without a choice keeps its value");
        assert_eq!(choices.numbers("n", &[9]), [3, 4]);
        assert_eq!(choices.numbers("m", &[9]), [9]);
    }
}
