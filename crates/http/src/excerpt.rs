//! Foreign text in messages.

/// Returns foreign text escaped and cut to a printable length.
pub fn excerpt(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}
