//! Members of the documents that a server answers with. What is absent is empty: an older server says less.

use jiff::Timestamp;
use serde_json::Value;

/// A text, or nothing.
pub(crate) fn text<'a>(document: &'a Value, name: &str) -> &'a str {
    document.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A text, if there is one.
pub(crate) fn some_text<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A time.
pub(crate) fn time(document: &Value, name: &str) -> Option<Timestamp> {
    document.get(name)?.as_str()?.parse().ok()
}

/// A whole number.
pub(crate) fn number(document: &Value, name: &str) -> Option<i64> {
    document.get(name)?.as_i64()
}

pub(crate) fn flag(document: &Value, name: &str) -> bool {
    document.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// The texts of a list.
pub(crate) fn texts<'a>(document: &'a Value, name: &str) -> Vec<&'a str> {
    document.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The documents of a list.
pub(crate) fn items<'a>(document: &'a Value, name: &str) -> &'a [Value] {
    document.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
