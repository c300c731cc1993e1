//! Payloads as people edit them: JSON as it was written, a member a line.

use serde_json::value::RawValue;

/// JSON with a member a line. Only the space between its parts changes, so no number loses a digit and no member its
/// place.
pub(super) fn indented(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut signs = parts(json).peekable();
    while let Some((sign, quoted)) = signs.next() {
        let next = signs.peek().map(|(next, _)| *next);
        match sign {
            _ if quoted => text.push(sign),
            '{' | '[' if matches!(next, Some('}' | ']')) => text.push(sign),
            '{' | '[' => {
                depth += 1;
                text.push(sign);
                line(&mut text, depth);
            }
            '}' | ']' if text.ends_with(['{', '[']) => text.push(sign),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(sign);
            }
            ',' => {
                text.push(sign);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            other => text.push(other),
        }
    }
    text
}

fn line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

/// The signs of JSON without the space between its parts, each with whether it belongs to a text.
fn parts(json: &str) -> impl Iterator<Item = (char, bool)> {
    let (mut quoted, mut escaped) = (false, false);
    json.chars().filter_map(move |sign| {
        let inside = quoted;
        if quoted {
            quoted = escaped || sign != '"';
            escaped = !escaped && sign == '\\';
        } else {
            quoted = sign == '"';
        }
        (inside || !sign.is_ascii_whitespace()).then_some((sign, inside || quoted))
    })
}

/// The payload that was typed, if it is another than the job's; or what is wrong with it, with line and column.
pub(super) fn changed_payload(typed: &str, own: &str) -> Result<Option<Box<RawValue>>, String> {
    let read: Box<RawValue> = serde_json::from_str(typed).map_err(|error| format!("is not JSON: {error}"))?;
    if indented(typed) == indented(own) {
        return Ok(None);
    }
    if read.get() == "null" {
        return Err(
            "`null` selects the payload of the job; enter another value or leave the field unchanged".to_owned()
        );
    }
    Ok(Some(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_shown_as_it_was_written() {
        let text = r#"{"b":12345678901234567890.10,"a":[1, 2,{}],"c":"x: {\"y\", [","d":[ ]}"#;
        let shown = "{\n  \"b\": 12345678901234567890.10,\n  \"a\": [\n    1,\n    2,\n    {}\n  ],\n  \"c\": \"x: {\\\"y\\\", [\",\n  \"d\": []\n}";
        assert_eq!(indented(text), shown);
        assert_eq!(indented(shown), shown);
        assert_eq!((indented("{}"), indented(" 7 ")), ("{}".to_owned(), "7".to_owned()));
    }

    #[test]
    fn a_payload_is_sent_only_if_it_is_another() {
        assert!(changed_payload("{ \"a\" :\r\n 1 }", "{\"a\":1}").unwrap().is_none());
        assert_eq!(changed_payload("{\"a\":2.50}", "{\"a\":1}").unwrap().unwrap().get(), "{\"a\":2.50}");
        let fault = changed_payload("{\n  \"a\": x\n}", "{}").unwrap_err();
        assert!(fault.starts_with("is not JSON") && fault.ends_with("at line 2 column 8"), "{fault}");
        assert!(changed_payload("null", "{}").is_err());
        assert!(changed_payload("", "{}").is_err());
    }
}
