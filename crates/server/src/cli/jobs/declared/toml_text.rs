//! JSON as TOML, in one line for each value.

use serde_json::Value;

/// A value as it stands behind `=`. TOML has no `null`, and no whole number beyond 64 bits.
pub(super) fn value(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Null => return Err("`null`, for which TOML has no word".to_owned()),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(float)) if number.is_f64() => format!("{float:?}"),
            _ => return Err(format!("`{number}`, which is too large for TOML")),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(self::value).collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let pair = |(name, member): (&String, &Value)| Ok(format!("{} = {}", key(name), self::value(member)?));
            format!("{{ {} }}", members.iter().map(pair).collect::<Result<Vec<_>, String>>()?.join(", "))
        }
    })
}

/// A name as it stands before `=`.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_and_what_cannot_be_is_told() {
        let all = json!({"a b": [1, -2.5, true, "x\"\\\n\u{7}\u{7f}é"], "c": {}, "d": 1e300, "e": 3.0});
        let written = value(&all).unwrap();
        let expected = "{ \"a b\" = [1, -2.5, true, \"x\\\"\\\\\\n\\u0007\\u007Fé\"], c = {}, d = 1e300, e = 3.0 }";
        assert_eq!(written, expected);
        assert!(value(&json!({"a": [null]})).unwrap_err().contains("`null`"));
        assert!(value(&json!(u64::MAX)).unwrap_err().contains("too large"));
        assert_eq!((key("a-b_1"), key("a.b"), key("")), ("a-b_1".to_owned(), "\"a.b\"".to_owned(), "\"\"".to_owned()));
    }
}
