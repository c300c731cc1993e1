//! Rust source as a list of words and signs: what is left after comments, literals and lifetimes are gone.
//!
//! It knows just enough of the language to never mistake the inside of a string or of a comment for code.

/// A word (identifier, keyword or number) or a sign. `::`, `->` and `=>` are one sign, any other is one character.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
    /// Offset in the source, in bytes.
    at: usize,
}

impl Token<'_> {
    pub(super) fn is_word(&self) -> bool {
        self.text.bytes().next().is_some_and(is_word_byte)
    }

    /// Nothing stands between this token and the next one.
    pub(super) fn touches(&self, next: &Token<'_>) -> bool {
        self.at + self.text.len() == next.at
    }
}

pub(super) fn lex(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < source.len() {
        let rest = &source[at..];
        let blank = blank_len(rest);
        if blank > 0 {
            line += rest[..blank].matches('\n').count();
            at += blank;
        } else {
            let text = &rest[..token_len(rest)];
            tokens.push(Token { text, line, at });
            at += text.len();
        }
    }
    tokens
}

/// The length of the white space, comment, literal or lifetime at the beginning, 0 if there is none.
fn blank_len(rest: &str) -> usize {
    let spaces = len_while(rest, |byte| byte.is_ascii_whitespace());
    if spaces > 0 {
        spaces
    } else if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        block_comment_len(rest)
    } else {
        literal_len(rest)
    }
}

fn block_comment_len(rest: &str) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        let Some(next) = rest[at..].find(['/', '*']) else {
            return rest.len();
        };
        at += next;
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
    }
    at
}

fn literal_len(rest: &str) -> usize {
    // Of most tokens, the first byte says that they are no literal.
    if !rest.starts_with(['r', 'b', 'c', '"', '\'']) {
        return 0;
    }
    for prefix in ["r", "br", "cr"] {
        if let Some(len) = rest.strip_prefix(prefix).and_then(raw_string_len) {
            return prefix.len() + len;
        }
    }
    for prefix in ["", "b", "c"] {
        if let Some(body) = rest.strip_prefix(prefix).and_then(|quoted| quoted.strip_prefix('"')) {
            return prefix.len() + 1 + string_body_len(body);
        }
    }
    for prefix in ["", "b"] {
        if let Some(body) = rest.strip_prefix(prefix).and_then(|quoted| quoted.strip_prefix('\'')) {
            return prefix.len() + 1 + char_body_len(body);
        }
    }
    0
}

/// From the first `#` or `"` after the `r`. `None` is a raw identifier, or no raw anything.
fn raw_string_len(rest: &str) -> Option<usize> {
    let hashes = rest.find(|c| c != '#')?;
    let body = rest[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &rest[..hashes]);
    Some(body.find(&end).map_or(rest.len(), |len| hashes + 1 + len + end.len()))
}

/// From behind the opening quote to behind the closing one.
fn string_body_len(body: &str) -> usize {
    let mut at = 0;
    while let Some(next) = body[at..].find(['\\', '"']) {
        at += next + 1;
        if body[..at].ends_with('"') {
            return at;
        }
        at += body[at..].chars().next().map_or(0, char::len_utf8);
    }
    body.len()
}

/// From behind the opening `'`, which may also begin a lifetime or a label.
fn char_body_len(body: &str) -> usize {
    if body.starts_with('\\') {
        // The escaped character may be a quote itself.
        return body.get(2..).and_then(|rest| rest.find('\'')).map_or(body.len(), |len| 2 + len + 1);
    }
    let first = body.chars().next().map_or(0, char::len_utf8);
    if body[first..].starts_with('\'') { first + 1 } else { word_len(body) }
}

fn token_len(rest: &str) -> usize {
    let raw_identifier = rest.strip_prefix("r#").map_or(0, word_len);
    if raw_identifier > 0 {
        return 2 + raw_identifier;
    }
    let word = word_len(rest);
    if word > 0 {
        word
    } else if ["::", "->", "=>"].iter().any(|sign| rest.starts_with(sign)) {
        2
    } else {
        rest.chars().next().map_or(0, char::len_utf8)
    }
}

fn word_len(rest: &str) -> usize {
    len_while(rest, is_word_byte)
}

/// Outside of literals and comments, Rust has no character beyond ASCII that is not part of a word.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// By bytes, because test builds are slow with characters, and these tests read every source.
fn len_while(rest: &str, belongs: fn(u8) -> bool) -> usize {
    rest.bytes().position(|byte| !belongs(byte)).unwrap_or(rest.len())
}

#[test]
fn code_is_seen_with_its_lines() {
    let tokens = lex("use a::b;\nfn c() -> u8 {\n    1\n}\n");
    let seen: Vec<_> = tokens.iter().map(|token| (token.line, token.text)).collect();
    let (first, second) = ([(1, "use"), (1, "a"), (1, "::"), (1, "b"), (1, ";")], [(2, "fn"), (2, "c"), (2, "(")]);
    assert_eq!(&seen[..5], first);
    assert_eq!(&seen[5..8], second);
    assert_eq!(&seen[8..], [(2, ")"), (2, "->"), (2, "u8"), (2, "{"), (3, "1"), (4, "}")]);
}

#[test]
fn comments_and_literals_are_not_code() {
    for (source, left) in [
        ("a // b { \" '\nc", "a c"),
        ("a /* b /* c */ d */ e", "a e"),
        ("a /* never closed", "a"),
        (r#"a "b \" c { \\" d"#, "a d"),
        ("a r\"b \\\" c", "a c"),
        ("a r##\"b \"# c\"## d", "a d"),
        ("a b\"x\" c\"y\" br#\"z\"# cr\"w\" d", "a d"),
        (r"a '{' '\'' '\\' '\u{1F600}' b'}' '√' d", "a d"),
        ("a \"never closed", "a"),
        ("a 'x", "a"),
        ("a\\", "a \\"),
    ] {
        assert_eq!(texts(source), left, "{source}");
    }
}

#[test]
fn lifetimes_and_raw_identifiers_hide_nothing() {
    for (source, left) in [
        ("fn a<'a, 'b>(x: &'a str)", "fn a < , > ( x : & str )"),
        ("'outer: loop { break 'outer }", ": loop { break }"),
        ("let r#fn = r; br + cr", "let r#fn = r ; br + cr"),
        ("(b, c)", "( b , c )"),
        ("x >> 1 => y", "x > > 1 => y"),
    ] {
        assert_eq!(texts(source), left, "{source}");
    }
}

#[test]
fn lines_are_counted_inside_of_what_is_left_out() {
    let tokens = lex("\"one\ntwo\" /* \n */ r\"\n\" a");
    assert_eq!(tokens[0].line, 4);
}

fn texts(source: &str) -> String {
    lex(source).iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
}
