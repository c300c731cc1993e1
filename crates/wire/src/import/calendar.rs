//! Calendar expressions of systemd (`OnCalendar=`) as cron expressions, where cron can say the same.

use everbell_core::Zone;

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Returns the cron expression of a calendar expression and its time zone, or why there is none.
pub(super) fn to_cron(text: &str) -> Result<(String, Option<Zone>), String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let last = words.last().filter(|_| words.len() > 1).and_then(|word| Zone::get(word).ok());
    if last.is_some() {
        words.pop();
    }
    let spelled = match words[..] {
        [word] => shorthand(&word.to_lowercase()).unwrap_or(word),
        _ => "",
    };
    if !spelled.is_empty() {
        words = spelled.split(' ').collect();
    }
    let (mut weekdays, mut date, mut time) = (None, None, None);
    for word in words {
        let place = match word {
            _ if word.contains(':') => &mut time,
            _ if word.starts_with(|c: char| c.is_ascii_alphabetic()) => &mut weekdays,
            _ if word.contains(['-', '~']) => &mut date,
            _ => return Err(format!("`{word}` is neither a weekday, a date, a time nor a time zone")),
        };
        if place.replace(word).is_some() {
            return Err(format!("`{word}` is the second of its kind"));
        }
    }
    let (second, minute, hour) = clock(time.unwrap_or("00:00:00"))?;
    let (month, day) = month_and_day(date.unwrap_or("*-*-*"))?;
    let weekday = weekdays.map(weekdays_of).transpose()?.unwrap_or_else(|| "*".to_owned());
    let (day, weekday) = together(day, weekday)?;
    let seconds = if second == "0" { String::new() } else { format!("{second} ") };
    Ok((format!("{seconds}{minute} {hour} {day} {month} {weekday}"), last))
}

fn shorthand(word: &str) -> Option<&'static str> {
    Some(match word {
        "minutely" => "*-*-* *:*:00",
        "hourly" => "*-*-* *:00:00",
        "daily" => "*-*-* 00:00:00",
        "weekly" => "Mon *-*-* 00:00:00",
        "monthly" => "*-*-01 00:00:00",
        "quarterly" => "*-01,04,07,10-01 00:00:00",
        "semiannually" | "semi-annually" => "*-01,07-01 00:00:00",
        "yearly" | "annually" => "*-01-01 00:00:00",
        _ => return None,
    })
}

/// Cron fires if either of two day fields matches, systemd only if both do.
fn together(day: String, weekday: String) -> Result<(String, String), String> {
    if day == "*" || weekday == "*" {
        return Ok((day, weekday));
    }
    let weeks = [("1-7", 1), ("8-14", 2), ("15-21", 3), ("22-28", 4)];
    match weeks.iter().find(|(days, _)| *days == day) {
        Some((_, week)) if !weekday.contains([',', '-']) => Ok(("*".to_owned(), format!("{weekday}#{week}"))),
        _ => Err("the weekday and the day of the month must both match, which cron cannot say".to_owned()),
    }
}

fn clock(text: &str) -> Result<(String, String, String), String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, "00"),
        [hour, minute, second] => (hour, minute, second),
        _ => return Err(format!("`{text}` is not a time such as `04:30` or `*:0/15`")),
    };
    if second.contains('.') {
        return Err(format!("`{text}` names fractions of a second, which cron cannot say"));
    }
    Ok((field(second, 0, 59)?, field(minute, 0, 59)?, field(hour, 0, 23)?))
}

fn month_and_day(text: &str) -> Result<(String, String), String> {
    let (before, last) = match text.split_once('~') {
        Some((before, from_end)) if ["1", "01"].contains(&from_end) => (before, true),
        Some(_) => return Err(format!("`{text}` counts days from the end of the month; cron knows only the last one")),
        None => (text, false),
    };
    let mut parts: Vec<&str> = before.split('-').collect();
    let day = if last { Ok("L".to_owned()) } else { field(parts.pop().unwrap_or("*"), 1, 31) }?;
    let month = field(parts.pop().unwrap_or("*"), 1, 12)?;
    match parts[..] {
        [] | ["*"] => Ok((month, day)),
        _ => Err(format!("`{text}` names years, which cron cannot say")),
    }
}

/// `*`, `1,2`, `1..5`, `0/15` and lists of them.
fn field(text: &str, min: u32, max: u32) -> Result<String, String> {
    let parts: Result<Vec<String>, String> = text.split(',').map(|part| part_of(part, min, max)).collect();
    Ok(parts?.join(","))
}

fn part_of(text: &str, min: u32, max: u32) -> Result<String, String> {
    let number = |text: &str| {
        let read = text.parse::<u32>().ok().filter(|number| (min..=max).contains(number));
        read.ok_or_else(|| format!("`{text}` is not a number from {min} to {max}"))
    };
    let (values, step) = match text.split_once('/') {
        Some((values, step)) => (values, Some(step)),
        None => (text, None),
    };
    let step = match step.map(|step| step.parse::<u32>().ok().filter(|step| *step > 0).ok_or(step)) {
        None => None,
        Some(Ok(step)) => Some(step),
        Some(Err(step)) => return Err(format!("`{step}` is not a step")),
    };
    let values = match (values, values.split_once("..")) {
        ("*", _) => "*".to_owned(),
        (_, Some((first, last))) => format!("{}-{}", number(first)?, number(last)?),
        // A start with a step goes on to the end.
        (one, None) if step.is_some() => format!("{}-{max}", number(one)?),
        (one, None) => number(one)?.to_string(),
    };
    Ok(match step {
        // As people write it.
        Some(step) if values == format!("0-{max}") => format!("*/{step}"),
        Some(step) => format!("{values}/{step}"),
        None => values,
    })
}

fn weekdays_of(text: &str) -> Result<String, String> {
    let day = |name: &str| {
        let name = name.to_lowercase();
        let found = WEEKDAYS.iter().find(|day| name.len() >= 3 && is_weekday(&name, day));
        found.copied().ok_or_else(|| format!("`{name}` is not a weekday"))
    };
    let parts = text.split(',').filter(|part| !part.is_empty()).map(|part| {
        match part.split_once("..").or_else(|| part.split_once('-')) {
            Some((first, last)) => Ok(format!("{}-{}", day(first)?, day(last)?)),
            None => day(part).map(str::to_owned),
        }
    });
    Ok(parts.collect::<Result<Vec<String>, String>>()?.join(","))
}

/// A name such as `tue` or `tuesday`.
fn is_weekday(name: &str, day: &str) -> bool {
    let whole = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    name == day || whole.iter().any(|whole| *whole == name && whole.starts_with(day))
}

#[cfg(test)]
mod tests {
    use everbell_core::cron::Expression;

    use super::*;

    #[test]
    fn calendars_become_cron_expressions() {
        for (calendar, cron) in [
            ("hourly", "0 * * * *"),
            ("Daily", "0 0 * * *"),
            ("weekly", "0 0 * * mon"),
            ("monthly", "0 0 1 * *"),
            ("quarterly", "0 0 1 1,4,7,10 *"),
            ("*-*-* 04:30:00", "30 4 * * *"),
            ("Mon..Fri 09:00", "0 9 * * mon-fri"),
            ("Mon,Wednesday *-*-* 9:5", "5 9 * * mon,wed"),
            ("*:0/15", "*/15 * * * *"),
            ("*-*-* 06..22/2:10", "10 6-22/2 * * *"),
            ("*:5/20", "5-59/20 * * * *"),
            ("*-*-1,15 12:00", "0 12 1,15 * *"),
            ("12-24 18:00", "0 18 24 12 *"),
            ("*-*~01 23:00", "0 23 L * *"),
            ("Sat *-*-1..7 18:00:00", "0 18 * * sat#1"),
            ("*:*:0/10", "*/10 * * * * *"),
            ("*-*-* 04:30:15", "15 30 4 * * *"),
        ] {
            assert_eq!(to_cron(calendar).map(|(cron, _)| cron).as_deref(), Ok(cron), "{calendar}");
            assert!(Expression::parse(cron).is_ok(), "{cron}");
        }
        let (cron, zone) = to_cron("*-*-* 02:00:00 Europe/Paris").unwrap();
        assert_eq!((cron.as_str(), zone.map(|zone| zone.name())), ("0 2 * * *", Some("Europe/Paris")));
    }

    #[test]
    fn calendar_that_cron_cannot_say_is_refused_with_the_reason() {
        for (calendar, reason) in [
            ("2027-*-* 00:00", "names years"),
            ("Mon *-*-13 00:00", "must both match"),
            ("*-*~03 00:00", "from the end of the month"),
            ("*:*:00.5", "fractions of a second"),
            ("Moonday 10:00", "`moonday` is not a weekday"),
            ("25:00", "`25` is not a number from 0 to 23"),
            ("10", "neither a weekday, a date"),
            ("10:00 11:00", "second of its kind"),
            ("*:0/x", "`x` is not a step"),
        ] {
            let refused = to_cron(calendar).map(|(cron, _)| cron).unwrap_err();
            assert!(refused.contains(reason), "{calendar}: {refused}");
        }
    }
}
