//! Jobs as `[[job]]` blocks of a configuration file.

use everbell_core::Definition;
use jiff::Timestamp;
use serde_json::Value;

use crate::body::job;
use crate::form::Naming;
use crate::job_body::essential;

/// Writes a job as a block. Members with default values are left out.
pub fn block(own: &Definition, now: Timestamp) -> Result<String, String> {
    let body = essential(own, now)?;
    let mut lines = vec!["[[job]]".to_owned()];
    for field in job::JOB {
        let Some(wanted) = body.get(field.name) else { continue };
        let name = Naming::Snake.spell(field.name).into_owned();
        if field.name == "policies" {
            members(&name, wanted, &mut lines)?;
        } else {
            lines.push(line(&name, wanted)?);
        }
    }
    Ok(format!("{}\n", lines.join("\n")))
}

/// Writes a line for each member, with its whole path.
fn members(path: &str, wanted: &Value, lines: &mut Vec<String>) -> Result<(), String> {
    let Value::Object(inner) = wanted else {
        lines.push(line(path, wanted)?);
        return Ok(());
    };
    inner
        .iter()
        .try_for_each(|(name, member)| members(&format!("{path}.{}", key(&Naming::Snake.spell(name))), member, lines))
}

/// Writes a member of a block.
pub(crate) fn line(path: &str, wanted: &Value) -> Result<String, String> {
    let written = value(wanted).map_err(|why| format!("its {path} has {why}"))?;
    Ok(format!("{path} = {written}"))
}

/// Writes a value. TOML has no `null`, and no whole number beyond 64 bits.
fn value(value: &Value) -> Result<String, String> {
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

/// Writes a name, with quotes if it needs them.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

/// Writes a text with quotes.
pub fn quoted(text: &str) -> String {
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
