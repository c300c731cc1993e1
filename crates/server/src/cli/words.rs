//! Small parts of sentences.

use super::output::Symbols;

/// A name as a shell takes it.
pub(crate) fn shell(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+,=".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", super::output::printable(name).replace('\'', "'\\''"))
}

/// Parts of a line with a dot between them.
pub(crate) fn joined(parts: &[&str], symbols: Symbols) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(&format!(" {} ", symbols.dot()))
}

#[test]
fn names_are_quoted_for_the_shell() {
    assert_eq!([shell("daily-briefing@2"), shell("a b"), shell("it's")], ["daily-briefing@2", "'a b'", "'it'\\''s'"]);
    assert_eq!(joined(&["a", "", "b"], Symbols::Ascii), "a - b");
}
