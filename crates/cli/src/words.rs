//! Small parts of sentences.

use super::output::Symbols;

/// A text that is there and is not empty.
pub(crate) fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// Parts of a line with a dot between them.
pub(crate) fn joined(parts: &[&str], symbols: Symbols) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(&format!(" {} ", symbols.dot()))
}

#[test]
fn parts_are_joined_by_dots() {
    assert_eq!(joined(&["a", "", "b"], Symbols::Ascii), "a - b");
}
