//! [`Naming`]: names and words of JSON and of TOML.

use std::borrow::Cow;

use serde_json::Value;

/// The spelling of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `jobKey`, in JSON.
    Camel,
    /// `job_key`, in TOML.
    Snake,
}

impl Naming {
    /// The name in the spelling of the document.
    pub fn spell(self, name: &str) -> Cow<'_, str> {
        match self {
            Naming::Camel => Cow::Borrowed(name),
            Naming::Snake => Cow::Owned(snake(name)),
        }
    }

    /// The word for a value with members: an object or a table.
    pub(super) fn object(self) -> &'static str {
        match self {
            Naming::Camel => "an object",
            Naming::Snake => "a table",
        }
    }

    /// The kind of a value, in words.
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
