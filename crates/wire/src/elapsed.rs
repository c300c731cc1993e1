//! Spans of time as people read them.

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A time to wait in two units at most; from a week on, in days.
pub fn wait(seconds: i64) -> String {
    let two = |(large, large_name): (i64, char), (small, small_name): (i64, char)| match seconds % large / small {
        0 => format!("{}{large_name}", seconds / large),
        rest => format!("{}{large_name} {rest}{small_name}", seconds / large),
    };
    match seconds {
        ..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => two((MINUTE, 'm'), (1, 's')),
        HOUR..DAY => two((HOUR, 'h'), (MINUTE, 'm')),
        _ if seconds < 7 * DAY => two((DAY, 'd'), (HOUR, 'h')),
        _ => format!("{}d", (seconds + DAY / 2) / DAY),
    }
}

/// How long something took: milliseconds below a second, tenths below a minute.
pub fn took(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{}ms", millis.max(0)),
        1_000..60_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        _ => wait(millis / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_short_to_read() {
        for (seconds, shown) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (192, "3m 12s"),
            (3_600, "1h"),
            (65_922, "18h 18m"),
            (86_399, "23h 59m"),
            (86_400 * 5 + 3_700, "5d 1h"),
            (86_400 * 7 + 65_922, "8d"),
            (86_400 * 1_461, "1461d"),
        ] {
            assert_eq!(wait(seconds), shown);
        }
    }

    #[test]
    fn durations_are_as_fine_as_they_are_short() {
        for (millis, shown) in
            [(-3, "0ms"), (7, "7ms"), (999, "999ms"), (2_149, "2.1s"), (59_999, "59.9s"), (900_000, "15m")]
        {
            assert_eq!(took(millis), shown);
        }
    }
}
