//! Schedules for who does not write cron: a few choices that become an expression.

use jiff::civil::Time;

use super::draft::Draft;

/// The ways to say when, and their labels.
pub(crate) const FREQUENCIES: [(&str, &str); 6] = [
    ("minutes", "Every few minutes"),
    ("hourly", "Every hour"),
    ("daily", "Every day"),
    ("weekdays", "Monday to Friday"),
    ("weekly", "Days of the week"),
    ("monthly", "Day of the month"),
];

/// Days as cron counts them, in the order of a calendar.
pub(crate) const DAYS: [(&str, &str); 7] =
    [("1", "Mon"), ("2", "Tue"), ("3", "Wed"), ("4", "Thu"), ("5", "Fri"), ("6", "Sat"), ("0", "Sun")];

/// The longest rate in minutes: a week.
const MAX_RATE_MINUTES: u32 = 7 * 24 * 60;

/// A field of the form, and what is wrong with it.
pub(crate) type Fault = (&'static str, String);

/// The expression of what is chosen.
pub(crate) fn expression(draft: &Draft) -> Result<String, Fault> {
    match draft.text("every") {
        "minutes" => Ok(rate(number(draft, "minutes", 1, MAX_RATE_MINUTES)?)),
        "hourly" => Ok(format!("{} * * * *", number(draft, "minute", 0, 59)?)),
        "weekdays" => Ok(format!("{} * * 1-5", time(draft)?)),
        "weekly" => Ok(format!("{} * * {}", time(draft)?, days(draft)?)),
        "monthly" => Ok(format!("{} {} * *", time(draft)?, date(draft)?)),
        _ => Ok(format!("{} * * *", time(draft)?)),
    }
}

/// On the clock where the rate divides an hour or a day; else at a fixed rate, which never stumbles at midnight.
fn rate(minutes: u32) -> String {
    match minutes {
        1 => "* * * * *".to_owned(),
        60 => "0 * * * *".to_owned(),
        1_440 => "0 0 * * *".to_owned(),
        _ if 60 % minutes == 0 => format!("*/{minutes} * * * *"),
        _ if minutes.is_multiple_of(60) && 1_440 % minutes == 0 => format!("0 */{} * * *", minutes / 60),
        _ => format!("@every {minutes}m"),
    }
}

/// Minute and hour.
fn time(draft: &Draft) -> Result<String, Fault> {
    let text = draft.filled("time").ok_or(("time", "enter a time, such as 09:00".to_owned()))?;
    let time: Time = text.parse().map_err(|_| ("time", "is not a valid time; use the format 09:00".to_owned()))?;
    Ok(match time.second() {
        0 => format!("{} {}", time.minute(), time.hour()),
        second => format!("{second} {} {}", time.minute(), time.hour()),
    })
}

fn days(draft: &Draft) -> Result<String, Fault> {
    let chosen = draft.all("days");
    let known: Vec<&str> = DAYS.iter().map(|(day, _)| *day).filter(|day| chosen.contains(day)).collect();
    if known.is_empty() { Err(("days", "choose at least one day".to_owned())) } else { Ok(known.join(",")) }
}

fn date(draft: &Draft) -> Result<String, Fault> {
    if draft.is("date", "L") {
        return Ok("L".to_owned());
    }
    Ok(number(draft, "date", 1, 31)?.to_string())
}

fn number(draft: &Draft, name: &'static str, min: u32, max: u32) -> Result<u32, Fault> {
    let number = draft.filled(name).and_then(|text| text.parse().ok()).filter(|number| (min..=max).contains(number));
    number.ok_or((name, format!("must be a whole number from {min} to {max}")))
}

#[cfg(test)]
mod tests {
    use everbell_core::cron::Expression;

    use super::*;

    fn draft(text: &str) -> Draft {
        Draft::sent(&everbell_wire::form::pairs(text).unwrap())
    }

    #[test]
    fn choices_become_expressions() {
        for (chosen, expected, words) in [
            ("every=minutes&minutes=1", "* * * * *", "Every minute"),
            ("every=minutes&minutes=15", "*/15 * * * *", "Every 15 minutes"),
            ("every=minutes&minutes=60", "0 * * * *", "Every hour"),
            ("every=minutes&minutes=120", "0 */2 * * *", "Every 2 hours"),
            ("every=minutes&minutes=1440", "0 0 * * *", "Every day at 00:00"),
            // On the clock these would stumble at the end of an hour or a day.
            ("every=minutes&minutes=7", "@every 7m", "Every 7 minutes"),
            ("every=minutes&minutes=90", "@every 90m", "Every 1 hour 30 minutes"),
            ("every=hourly&minute=5", "5 * * * *", "At 5 minutes past every hour"),
            ("every=daily&time=09:30", "30 9 * * *", "Every day at 09:30"),
            ("every=daily&time=09%3A30%3A15", "15 30 9 * * *", "Every day at 09:30:15"),
            ("every=weekdays&time=08:00", "0 8 * * 1-5", "At 08:00 on weekdays"),
            ("every=weekly&time=08:00&days=0&days=1", "0 8 * * 1,0", "At 08:00 on Monday and Sunday"),
            ("every=monthly&time=00:00&date=31", "0 0 31 * *", "At 00:00 on day 31 of the month"),
            ("every=monthly&time=18:00&date=L", "0 18 L * *", "At 18:00 on the last day of the month"),
        ] {
            let made = expression(&draft(chosen)).unwrap();
            assert_eq!((made.as_str(), Expression::parse(&made).unwrap().describe().as_str()), (expected, words));
        }
    }

    #[test]
    fn what_is_missing_is_told_at_its_field() {
        for (chosen, field) in [
            ("every=minutes&minutes=0", "minutes"),
            ("every=minutes&minutes=20000", "minutes"),
            ("every=hourly&minute=60", "minute"),
            ("every=hourly", "minute"),
            ("every=daily&time=25:00", "time"),
            ("every=daily", "time"),
            ("every=weekly&time=08:00", "days"),
            ("every=weekly&time=08:00&days=9", "days"),
            ("every=monthly&time=08:00&date=32", "date"),
        ] {
            assert_eq!(expression(&draft(chosen)).unwrap_err().0, field, "{chosen}");
        }
    }
}
