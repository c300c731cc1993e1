//! [`Naming`]: the words of JSON and of TOML for the same things.

use std::borrow::Cow;

use serde_json::Value;

/// How the names are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `jobKey`, in JSON.
    Camel,
    /// `job_key`, in TOML.
    Snake,
}

impl Naming {
    /// The name as it stands in the document.
    pub fn spell(self, name: &str) -> Cow<'_, str> {
        match self {
            Naming::Camel => Cow::Borrowed(name),
            Naming::Snake => Cow::Owned(snake(name)),
        }
    }

    /// What the document calls a value with members.
    pub(super) fn object(self) -> &'static str {
        match self {
            Naming::Camel => "an object",
            Naming::Snake => "a table",
        }
    }

    /// What a value is, for people.
    pub(super) fn kind_of(self, value: &Value) -> &'static str {
        match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => self.object(),
        }
    }
}

fn snake(name: &str) -> String {
    let mut spelled = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            spelled.push('_');
        }
        spelled.push(letter.to_ascii_lowercase());
    }
    spelled
}
