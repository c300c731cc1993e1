//! The attempts of a run that were followed by another one, as text: a line for each, which a retry appends.

use everbell_core::{EarlierAttempt, FailureCode, Invalid};
use jiff::Timestamp;

use crate::micros::Micros;

const COUNTED: &str = "counted";
const UNCOUNTED: &str = "uncounted";

/// Returns the line of an attempt.
pub(crate) fn write(ended: &EarlierAttempt) -> String {
    let EarlierAttempt { attempt, code, ended_at, counts, .. } = ended;
    // As precise as any other time of the database.
    let ended_at = Timestamp::from(Micros::from(*ended_at));
    format!("{attempt} {} {ended_at} {}\n", code.as_str(), if *counts { COUNTED } else { UNCOUNTED })
}

/// Reads the lines of a run; none if it had no other attempt.
pub(super) fn read(text: Option<&str>) -> Result<Vec<EarlierAttempt>, Invalid> {
    text.unwrap_or_default().lines().map(read_line).collect()
}

fn read_line(line: &str) -> Result<EarlierAttempt, Invalid> {
    let unknown = || Invalid::new("earlierAttempts", format!("`{line}` is not known"));
    let mut words = line.split(' ');
    let mut next = || words.next().ok_or_else(unknown);
    let (attempt, code, ended_at, counts) = (next()?, next()?, next()?, next()?);
    let counts = match counts {
        COUNTED => true,
        UNCOUNTED => false,
        _ => return Err(unknown()),
    };
    let (attempt, ended_at) = (attempt.parse().map_err(|_| unknown())?, ended_at.parse().map_err(|_| unknown())?);
    Ok(EarlierAttempt::new(attempt, FailureCode::new(code)?, ended_at, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let ended_at = "2026-11-15T12:00:00.000001Z".parse().unwrap();
        let lost = EarlierAttempt::new(1, FailureCode::LOST, ended_at, true);
        let stopped = EarlierAttempt::new(2, FailureCode::SHUTDOWN, ended_at, false);
        let text = write(&lost) + &write(&stopped);
        assert!(text.starts_with("1 lost 2026-11-15T12:00:00.000001Z counted\n2 shutdown "), "{text}");
        assert_eq!(read(Some(&text)).unwrap(), [lost, stopped]);
        assert_eq!(read(None).unwrap(), []);
        for line in
            ["1 lost", "x lost 2026-11-15T12:00:00Z counted", "1 lost today counted", "1 lost 2026-11-15T12:00:00Z yes"]
        {
            assert!(read(Some(line)).is_err(), "{line}");
        }
    }
}
