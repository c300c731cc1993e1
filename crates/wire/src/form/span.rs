//! Durations as people and programs write them.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// `15m`, `1h 30m`, `7d` or `PT15M`. A day has 24 hours; months and years have no fixed length and are refused.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
    let refusal = || format!("`{shown}` is not a duration; write it as `90s`, `15m`, `1h 30m`, `7d` or `PT15M`");
    let span: Span = text.parse().map_err(|_| refusal())?;
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| refusal())?;
    Duration::try_from(signed).map_err(|_| format!("`{shown}` is negative; a duration from now on is needed"))
}

/// ISO 8601, as the API writes it: `PT15M`.
pub fn iso(time: Duration) -> String {
    SignedDuration::try_from(time).map_or_else(|_| format!("PT{}S", time.as_secs()), |signed| signed.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_written_in_one() {
        for (text, seconds, written) in [
            ("90s", 90, "PT1M30S"),
            ("15m", 900, "PT15M"),
            ("1h 30m", 5_400, "PT1H30M"),
            ("7d", 604_800, "PT168H"),
            ("PT15M", 900, "PT15M"),
            ("P1D", 86_400, "PT24H"),
            ("0s", 0, "PT0S"),
        ] {
            let read = parse_span(text).unwrap();
            assert_eq!((read.as_secs(), iso(read).as_str()), (seconds, written), "{text}");
            assert_eq!(parse_span(&iso(read)), Ok(read));
        }
        assert_eq!(iso(Duration::from_millis(1_500)), "PT1.5S");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "15", "soon", "1 month", "P1M", "1y", "15m\0", "999999999999h"] {
            assert!(parse_span(text).unwrap_err().contains("is not a duration"), "{text}");
        }
        assert!(parse_span("-5m").unwrap_err().contains("is negative"));
    }
}
