//! The functions of a Rust source and their length.

use super::lexer::{Token, lex};

#[derive(Debug, PartialEq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Where the `fn` stands.
    pub(super) line: usize,
    /// From the `fn` to the closing brace.
    pub(super) lines: usize,
}

/// Every function with a body, nested ones as well; a declaration in a trait and a function pointer have none.
pub(super) fn functions(source: &str) -> Vec<Function> {
    let tokens = lex(source);
    let starts = tokens.iter().enumerate().filter(|(_, token)| token.text == "fn");
    starts.filter_map(|(at, _)| function(&tokens[at..])).collect()
}

/// The function whose `fn` is the first of these tokens.
fn function(tokens: &[Token<'_>]) -> Option<Function> {
    let first = tokens.first()?;
    let name = match tokens.get(1)? {
        token if token.is_word() => token.text.to_owned(),
        // Written by a macro: `fn $name() {}`.
        token if token.text == "$" => format!("${}", tokens.get(2)?.text),
        _ => return None,
    };
    let open = body(tokens)?;
    let close = group_end(&tokens[open..])? + open;
    Some(Function { name, line: first.line, lines: tokens[close].line - first.line + 1 })
}

/// The brace that opens the body: the first one that belongs neither to a group nor to a generic argument.
fn body(tokens: &[Token<'_>]) -> Option<usize> {
    let (mut at, mut angles) = (0, 0);
    loop {
        match tokens.get(at)?.text {
            "{" if angles == 0 => return Some(at),
            "(" | "[" | "{" => at += group_end(&tokens[at..])?,
            "<" => angles += 1,
            ">" => angles -= 1,
            // A declaration, or the end of the macro pattern that this `fn` is part of.
            ";" | ")" | "]" | "}" => return None,
            _ => {}
        }
        at += 1;
    }
}

/// The sign that closes the group which the first token opens.
fn group_end(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn found(source: &str) -> Vec<(String, usize, usize)> {
    functions(source).into_iter().map(|found| (found.name, found.line, found.lines)).collect()
}

#[test]
fn lengths_are_counted_from_the_fn_to_the_brace() {
    let source = "/// Doc.\n#[test]\npub async fn one(\n    a: u8,\n) -> u8 {\n    a\n}\n\nfn two() {}\n";
    assert_eq!(found(source), [("one".to_owned(), 3, 5), ("two".to_owned(), 9, 1)]);
}

#[test]
fn braces_in_literals_and_comments_do_not_count() {
    let source = "fn a<'a>() {\n    \"}\"; '}'; r#\"}\"}\"#; b'}';\n    // }\n    /* } /* } */ */\n    'x: loop {}\n}\nfn b() {}";
    assert_eq!(found(source), [("a".to_owned(), 1, 6), ("b".to_owned(), 7, 1)]);
}

#[test]
fn the_signature_may_be_difficult() {
    for signature in [
        "fn a<const N: usize>() -> [u8; { N << 1 }]",
        "fn a() -> Matrix<{ N + 1 }>",
        "fn a(x: [u8; 1 << 3]) -> u8",
        "fn a<F>(f: F) -> Vec<Vec<u8>> where F: Fn(fn(u8) -> u8) -> u8",
        "fn a() where [(); { N - 1 }]:, T: Into<u8>",
        "unsafe extern \"C\" fn a(self: &Self)",
    ] {
        assert_eq!(found(&format!("{signature} {{\n\n}}")), [("a".to_owned(), 1, 3)], "{signature}");
    }
}

#[test]
fn what_has_no_body_is_no_function() {
    for source in ["trait A { fn a(); fn b() -> u8; }", "type A = fn(u8) -> u8;", "let r#fn = 1; {}", "// fn a() {}"] {
        assert_eq!(found(source), [], "{source}");
    }
}

#[test]
fn nested_and_generated_functions_are_found() {
    let source = "fn outer() {\n    fn inner() {\n    }\n}\nmacro_rules! m { ($name:ident) => { fn $name() {} } }";
    let names: Vec<_> = found(source).into_iter().map(|(name, _, lines)| (name, lines)).collect();
    assert_eq!(names, [("outer".to_owned(), 4), ("inner".to_owned(), 2), ("$name".to_owned(), 1)]);
}
