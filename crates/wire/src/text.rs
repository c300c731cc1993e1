//! Texts that the server, the pages and the command line share.

use jiff::civil::Time;

/// A time of day as a clock shows it; seconds only if there are any.
pub fn clock_face(time: Time) -> String {
    let format = if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    time.strftime(format).to_string()
}

/// Escapes untrusted text, so that it cannot move the cursor, change colors or reverse the direction of writing.
pub fn printable(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() && !everbell_core::is_invisible(c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let escaped = |c: char| if is_plain(c) { c.to_string() } else { c.escape_default().to_string() };
    text.chars().map(escaped).collect()
}

/// Quotes a name for a shell, if it needs quotes.
pub fn shell(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+,=".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", printable(name).replace('\'', "'\\''"))
}

#[test]
fn names_are_quoted_for_the_shell() {
    assert_eq!([shell("daily-briefing@2"), shell("a b"), shell("it's")], ["daily-briefing@2", "'a b'", "'it'\\''s'"]);
}
