//! [`Json`]: text that is known to be JSON and known to fit into every database.
//!
//! Core never looks into a payload, so it keeps the text. What it does check is what would hurt later: `\u0000`, which
//! PostgreSQL refuses; numbers that no `f64` can hold, which serde refuses to read back; depth and size without bound.

use std::fmt;
use std::sync::Arc;

use crate::ids::Invalid;

const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 64;

/// A JSON document of at most 1 MiB and 64 levels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// The text, if it is one JSON value that every store can keep. `field` names it in the refusal.
    pub fn parse(field: &'static str, text: &str) -> Result<Json, Invalid> {
        if text.len() > MAX_BYTES {
            return Err(Invalid::new(field, format!("must be at most {MAX_BYTES} bytes of JSON, not {}", text.len())));
        }
        let mut scan = Scan { text: text.as_bytes(), at: 0 };
        let outcome = scan.space_then_value(0).and_then(|()| {
            scan.space();
            if scan.at == scan.text.len() { Ok(()) } else { Err("text after the end of the value") }
        });
        match outcome {
            Ok(()) => Ok(Json(text.trim_matches([' ', '\t', '\n', '\r']).into())),
            Err(reason) => Err(Invalid::new(field, format!("{reason} at byte {}", scan.at))),
        }
    }

    /// The empty object, the default payload.
    pub fn empty() -> Json {
        Json("{}".into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value on one line, without white space between its parts. Strings and numbers stay as written.
    pub fn to_single_line(&self) -> String {
        let mut line = String::with_capacity(self.0.len());
        let (mut in_string, mut escaped) = (false, false);
        for sign in self.0.chars() {
            if !in_string && matches!(sign, ' ' | '\t' | '\n' | '\r') {
                continue;
            }
            line.push(sign);
            match sign {
                '"' if !escaped => in_string = !in_string,
                _ => {}
            }
            escaped = in_string && sign == '\\' && !escaped;
        }
        line
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

type Checked = Result<(), &'static str>;

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn space_then_value(&mut self, depth: usize) -> Checked {
        self.space();
        if depth > MAX_DEPTH {
            return Err("more than 64 levels");
        }
        match self.peek() {
            Some(b'{') => self.members(b'}', depth),
            Some(b'[') => self.members(b']', depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(_) => Err("unexpected character"),
            None => Err("unexpected end"),
        }
    }

    fn members(&mut self, close: u8, depth: usize) -> Checked {
        self.at += 1;
        self.space();
        if self.take(close) {
            return Ok(());
        }
        loop {
            if close == b'}' {
                self.space();
                if self.peek() != Some(b'"') {
                    return Err("a member name in quotes is needed");
                }
                self.string()?;
                self.space();
                if !self.take(b':') {
                    return Err("`:` is needed");
                }
            }
            self.space_then_value(depth + 1)?;
            self.space();
            if self.take(close) {
                return Ok(());
            }
            if !self.take(b',') {
                return Err("`,` or a closing bracket is needed");
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Checked {
        if !self.text[self.at..].starts_with(word) {
            return Err("unexpected character");
        }
        self.at += word.len();
        Ok(())
    }

    fn string(&mut self) -> Checked {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err("an unterminated string"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(0..=0x1f) => return Err("a control character in a string"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Checked {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => match self.hex()? {
                0 => Err("the character \\u0000, which no database keeps,"),
                0xdc00..=0xdfff => Err("half of a surrogate pair"),
                0xd800..=0xdbff => {
                    let paired = self.take(b'\\') && self.peek() == Some(b'u');
                    if paired && (0xdc00..=0xdfff).contains(&self.hex()?) {
                        Ok(())
                    } else {
                        Err("half of a surrogate pair")
                    }
                }
                _ => Ok(()),
            },
            _ => Err("an unknown escape"),
        }
    }

    /// Reads `uXXXX`.
    fn hex(&mut self) -> Result<u32, &'static str> {
        let digits = self.text.get(self.at + 1..self.at + 5).ok_or("an unfinished escape")?;
        let mut value = 0;
        for digit in digits {
            value = value * 16 + char::from(*digit).to_digit(16).ok_or("an escape that is not hexadecimal")?;
        }
        self.at += 5;
        Ok(value)
    }

    fn number(&mut self) -> Checked {
        let start = self.at;
        self.take(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err("a number without digits"),
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or("");
        if text.parse::<f64>().is_ok_and(f64::is_finite) { Ok(()) } else { Err("a number too large to read back") }
    }

    fn digits(&mut self) -> Checked {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err("a digit is needed") } else { Ok(()) }
    }
}

/// Text of a handler or a person, made fit to be stored: no NUL, at most `max` bytes, cut between characters.
pub fn storable_text(text: &str, max: usize) -> String {
    let clean = text.replace('\0', "\u{fffd}");
    let mut end = clean.len().min(max);
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    clean[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<String, String> {
        Json::parse("payload", text).map(|json| json.to_string()).map_err(|invalid| invalid.reason)
    }

    #[test]
    fn documents_are_kept_as_written() {
        for text in [
            "{}",
            "null",
            "-0.5e-3",
            r#"{"b":1,"a":[true,false,null,"x\n\u00e9\ud83d\ude00"]}"#,
            "12345678901234567890123456789",
            r#""⏰""#,
            "[[],{}]",
        ] {
            assert_eq!(check(text).as_deref(), Ok(text));
        }
        assert_eq!(check(" {\"a\" : 1}\n").as_deref(), Ok("{\"a\" : 1}"));
    }

    #[test]
    fn what_a_database_would_refuse_is_refused_here() {
        for (text, reason) in [
            ("", "unexpected end at byte 0"),
            ("{", "a member name in quotes is needed at byte 1"),
            ("[1,]", "unexpected character at byte 3"),
            ("{\"a\":1,}", "a member name in quotes is needed at byte 7"),
            ("01", "text after the end of the value at byte 1"),
            ("1.", "a digit is needed at byte 2"),
            ("1e400", "a number too large to read back at byte 5"),
            (r#""\u0000""#, "the character \\u0000, which no database keeps, at byte 7"),
            (r#""\ud800x""#, "half of a surrogate pair at byte 7"),
            (r#""\ud800\u0041""#, "half of a surrogate pair at byte 13"),
            ("\"a\0\"", "a control character in a string at byte 2"),
            ("nul", "unexpected character at byte 0"),
            ("{} {}", "text after the end of the value at byte 3"),
            ("'a'", "unexpected character at byte 0"),
        ] {
            assert_eq!(check(text), Err(reason.to_owned()), "{text}");
        }
        assert!(check(&"[".repeat(100_000)).unwrap_err().starts_with("more than 64 levels"));
        assert!(check(&format!("\"{}\"", "x".repeat(MAX_BYTES))).unwrap_err().starts_with("must be at most"));
    }

    #[test]
    fn a_value_fits_into_one_line_and_stays_the_same() {
        let line = |text: &str| Json::parse("payload", text).unwrap().to_single_line();
        assert_eq!(line("{\n  \"a b\": [1, 2.50],\r\n\t\"c\": null }"), r#"{"a b":[1,2.50],"c":null}"#);
        assert_eq!(line(r#"{ "quote \" and \\": " x " }"#), r#"{"quote \" and \\":" x "}"#);
    }

    #[test]
    fn texts_are_made_storable() {
        assert_eq!(storable_text("a\0b", 100), "a\u{fffd}b");
        assert_eq!(storable_text("aé", 2), "a");
    }
}
