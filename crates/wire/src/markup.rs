//! Text as HTML and SVG.

/// A text as HTML, also inside of quotes. Signs that turn the direction of what follows are kept in their place by the
/// `dir="auto"` of whatever shows foreign text.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    text.chars().for_each(|character| push_escaped(&mut html, character));
    html
}

/// Appends a character as HTML. Everything that escapes without a template goes through here; templates escape with askama.
pub fn push_escaped(html: &mut String, character: char) {
    match character {
        '&' => html.push_str("&amp;"),
        '<' => html.push_str("&lt;"),
        '>' => html.push_str("&gt;"),
        '"' => html.push_str("&quot;"),
        '\'' => html.push_str("&#39;"),
        other => html.push(other),
    }
}
