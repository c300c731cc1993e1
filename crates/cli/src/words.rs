//! Parts of sentences.

use super::output::Symbols;

/// Returns a text unless it is absent or empty.
pub(crate) fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// Joins the parts of a line with dots.
pub(crate) fn joined(parts: &[&str], symbols: Symbols) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(&format!(" {} ", symbols.dot()))
}

#[test]
fn parts_are_joined_by_dots() {
    assert_eq!(joined(&["a", "", "b"], Symbols::Ascii), "a - b");
}
