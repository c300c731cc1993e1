//! Parses a query into a value that a [`Form`](super::Form) can read.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{Field, Kind};

/// The most parameters of a query or a form of a page, which may select a thousand rows.
const MAX_PARAMETERS: usize = 1_100;

/// A query that cannot be read at all.
#[derive(Debug, PartialEq, Eq)]
pub struct QueryError(pub String);

/// Returns the parameters as an object. Lists may be repeated or separated by commas. A value that is not of the kind of
/// its field stays a text, which the form refuses.
pub fn query(text: &str, fields: &[Field]) -> Result<Value, QueryError> {
    let mut members = Map::new();
    for (name, value) in pairs(text)? {
        let kind = fields.iter().find(|field| field.name == name).map(|field| &field.kind);
        let given = match kind {
            Some(Kind::List { of, .. }) => {
                let items = value.split(',').filter(|item| !item.is_empty()).map(|item| typed(item, of));
                let list = members.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    list.extend(items);
                }
                continue;
            }
            Some(kind) => typed(&value, kind),
            None => Value::String(value),
        };
        if members.insert(name.clone(), given).is_some() {
            return Err(QueryError(format!("the parameter `{}` appears twice", name.escape_debug())));
        }
    }
    Ok(Value::Object(members))
}

/// Returns the decoded names and values of a query or of a form of a page.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, QueryError> {
    let parts: Vec<&str> = text.split('&').filter(|part| !part.is_empty()).collect();
    if parts.len() > MAX_PARAMETERS {
        return Err(QueryError(format!("there are more than {MAX_PARAMETERS} parameters")));
    }
    let pair = |part: &&str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Ok((decode(name)?, decode(value)?))
    };
    parts.iter().map(pair).collect()
}

/// Decodes a text of a query; `None` if it is not encoded correctly.
pub fn decoded(text: &str) -> Option<String> {
    decode(text).ok()
}

/// Parses a text as the kind of its field. A text that is not of this kind stays a text.
pub fn typed(text: &str, kind: &Kind) -> Value {
    match kind {
        Kind::Integer { .. } => text.parse::<i64>().map_or_else(|_| Value::String(text.to_owned()), Value::from),
        Kind::Flag => match text {
            "" | "1" | "true" => Value::Bool(true),
            "0" | "false" => Value::Bool(false),
            _ => Value::String(text.to_owned()),
        },
        _ => Value::String(text.to_owned()),
    }
}

fn decode(text: &str) -> Result<String, QueryError> {
    // `percent_decode_str` accepts a stray `%`.
    let has_digits = |rest: &str| rest.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(has_digits) {
        return Err(QueryError("`%` must be followed by two hexadecimal digits".to_owned()));
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| QueryError("the query is not valid UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{TEXT, optional};
    use super::*;

    const FIELDS: &[Field] = &[
        optional("status", Kind::List { of: &TEXT, max: 10 }, "which"),
        optional("limit", Kind::Integer { min: 1, max: 200 }, "how many"),
        optional("exact", Kind::Flag, "count all"),
        optional("q", TEXT, "text"),
    ];

    #[test]
    fn parameters_are_what_their_field_says() {
        let read = query("status=active,paused&status=x&limit=5&exact&q=a%2Bb+%C3%A9&other=1", FIELDS);
        let expected =
            json!({"status": ["active", "paused", "x"], "limit": 5, "exact": true, "q": "a+b é", "other": "1"});
        assert_eq!(read, Ok(expected));
        assert_eq!(query("limit=many&exact=perhaps", FIELDS), Ok(json!({"limit": "many", "exact": "perhaps"})));
        assert_eq!(query("", FIELDS), Ok(json!({})));
    }

    #[test]
    fn unreadable_queries_are_reported() {
        for (text, reason) in [
            ("q=%ff", "not valid UTF-8"),
            ("q=%f", "two hexadecimal digits"),
            ("q=%zz", "two hexadecimal digits"),
            ("q=1&q=2", "`q` appears twice"),
        ] {
            let QueryError(message) = query(text, FIELDS).unwrap_err();
            assert!(message.contains(reason), "{text}: {message}");
        }
        let many: String = (0..1_200).map(|n| format!("p{n}=1")).collect::<Vec<_>>().join("&");
        assert!(query(&many, FIELDS).is_err());
    }
}
