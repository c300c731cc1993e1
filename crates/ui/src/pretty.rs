//! JSON as people read it: on many lines, and not a digit of it changed.

/// A document with a line for each member. Whatever stands in texts and numbers stays as it was written.
pub(crate) fn pretty(json: &str) -> String {
    let mut shown = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut signs = json.chars().peekable();
    while let Some(sign) = signs.next() {
        if in_text {
            shown.push(sign);
            in_text = escaped || sign != '"';
            escaped = !escaped && sign == '\\';
            continue;
        }
        match sign {
            '{' | '[' => {
                while signs.next_if(char::is_ascii_whitespace).is_some() {}
                shown.push(sign);
                let Some(end) = signs.next_if(|next| matches!(next, '}' | ']')) else {
                    depth += 1;
                    line(&mut shown, depth);
                    continue;
                };
                shown.push(end);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut shown, depth);
                shown.push(sign);
            }
            ',' => {
                shown.push(sign);
                line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            ' ' | '\n' | '\r' | '\t' => {}
            other => {
                in_text = other == '"';
                shown.push(other);
            }
        }
    }
    shown
}

fn line(shown: &mut String, depth: usize) {
    shown.push('\n');
    shown.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_shown_on_lines() {
        assert_eq!(
            pretty("{\"a\" :[1,2.50, {}],\n\t\"b\":{\"c\":[ ]}}"),
            "{\n  \"a\": [\n    1,\n    2.50,\n    {}\n  ],\n  \"b\": {\n    \"c\": []\n  }\n}"
        );
        assert_eq!(pretty("null"), "null");
    }

    #[test]
    fn texts_and_numbers_stay_as_they_are() {
        let text = r#""a {b: [c], \" \\""#;
        assert_eq!(pretty(text), text);
        assert_eq!(pretty("[12345678901234567890.000]"), "[\n  12345678901234567890.000\n]");
    }
}
