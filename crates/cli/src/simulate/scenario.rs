//! The flags of a simulation: its window, outages and durations.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::simulate::{Outage, Scenario};
use everbell_core::{Invalid, Target, Zone};
use everbell_wire::form::parse_span;
use everbell_wire::time_input::TimeReader;
use jiff::Timestamp;
use jiff::civil::Time;

use super::SimulateArgs;
use super::subject::Subject;
use crate::CliError;
use crate::output::printable;
use crate::times::local;

/// The duration of attempts that nothing is known about.
const DEFAULT_DURATION: Duration = Duration::from_secs(1);

/// When the simulation begins and ends, and under which conditions.
pub(super) struct Window {
    pub(super) scenario: Scenario,
    pub(super) instances: u32,
}

impl Window {
    pub(super) fn parse(args: &SimulateArgs, zone: &Zone, now: Timestamp) -> Result<Window, CliError> {
        let from = TimeReader { now, zone }.read("--from", &args.from)?;
        let to = TimeReader { now: from, zone }.read("--to", &args.to)?;
        let outages = args.outage.iter().map(|text| outage(text, from, zone)).collect::<Result<_, _>>()?;
        let places = args.instances.saturating_mul(args.concurrency);
        let scenario = Scenario { from, to, outages, places, target_places: BTreeMap::new() };
        Ok(Window { scenario, instances: args.instances })
    }

    /// With limits of targets, each of which holds for one instance.
    pub(super) fn with_limits(mut self, limits: BTreeMap<Target, u32>) -> Window {
        let of_all = limits.into_iter().map(|(target, limit)| (target, limit.saturating_mul(self.instances)));
        self.scenario.target_places = of_all.collect();
        self
    }
}

/// Reads `TARGET=N`, several times.
pub(super) fn target_limits(texts: &[String]) -> Result<BTreeMap<Target, u32>, CliError> {
    let limit = |text: &String| {
        let invalid = |reason: String| CliError::invalid(format!("--target-concurrency: {reason}"));
        let (target, limit) =
            text.rsplit_once('=').ok_or_else(|| invalid(format!("`{}` is not TARGET=N", printable(text))))?;
        let target = Target::new(target.trim()).map_err(|error| invalid(error.to_string()))?;
        let limit = limit.trim().parse().ok().filter(|limit| (1..=100_000).contains(limit));
        Ok((
            target,
            limit.ok_or_else(|| invalid(format!("`{}` must end in a number from 1 to 100000", printable(text))))?,
        ))
    };
    texts.iter().map(limit).collect()
}

/// Reads `02:00..04:30`, `2027-03-28T02:00Z..+3h` and the like. The start counts from `from`, the end from the start.
fn outage(text: &str, from: Timestamp, zone: &Zone) -> Result<Outage, CliError> {
    let Some((first, last)) = text.split_once("..") else {
        return Err(CliError::Invalid {
            message: format!("--outage: `{}` has no `..` between its start and its end", printable(text)),
            hint: Some("write it as `02:00..04:30` or `2027-03-28T02:00Z..+3h`".to_owned()),
        });
    };
    let begins = moment(first.trim(), from, zone)?;
    let ends = moment(last.trim(), begins, zone)?;
    if ends <= begins {
        let message = format!("--outage: `{}` ends before it begins", printable(text));
        return Err(CliError::Invalid { message, hint: Some("write the end with its date, or as `+3h`".to_owned()) });
    }
    Ok(Outage { from: begins, to: ends })
}

/// Reads a time. A bare clock time is that of the same day as `from`, or of the next day if it is past.
fn moment(text: &str, from: Timestamp, zone: &Zone) -> Result<Timestamp, CliError> {
    let reader = TimeReader { now: from, zone };
    if !text.contains(':') || text.parse::<Time>().is_err() || text.contains(['-', 'T', '+', 'Z']) {
        return Ok(reader.read("--outage", text)?);
    }
    let today = local(from, zone).date();
    let found = reader.read("--outage", &format!("{today}T{text}"))?;
    let Some(tomorrow) = today.tomorrow().ok().filter(|_| found < from) else { return Ok(found) };
    Ok(reader.read("--outage", &format!("{tomorrow}T{text}"))?)
}

/// How long attempts take.
pub(super) struct Durations {
    all: Option<Duration>,
    by_key: BTreeMap<String, Duration>,
}

impl Durations {
    pub(super) fn parse(texts: &[String]) -> Result<Durations, CliError> {
        let mut durations = Durations { all: None, by_key: BTreeMap::new() };
        let invalid = |reason: String| CliError::invalid(format!("--duration: {reason}"));
        for text in texts {
            let Some((key, duration)) = text.split_once('=') else {
                durations.all = Some(parse_span(text).map_err(invalid)?);
                continue;
            };
            durations.by_key.insert(key.trim().to_owned(), parse_span(duration.trim()).map_err(invalid)?);
        }
        Ok(durations)
    }

    /// The duration that a flag names for a job.
    pub(super) fn named(&self, key: &str) -> Option<Duration> {
        self.by_key.get(key).copied().or(self.all)
    }

    /// The duration of a job: named by a flag, measured on the server, or the default.
    pub(super) fn duration_of(&self, key: &str, measured: Option<Duration>) -> Duration {
        self.named(key).or(measured).unwrap_or(DEFAULT_DURATION)
    }

    /// Refuses the duration of a job that is not simulated.
    pub(super) fn expect_known(&self, subjects: &[Subject]) -> Result<(), CliError> {
        let keys: Vec<&str> = subjects.iter().map(Subject::key).collect();
        let Some(unknown) = self.by_key.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
        let nearest = everbell_core::nearest(unknown, keys.iter().copied(), 1);
        Err(CliError::Invalid {
            message: format!("--duration: no job `{}` is simulated", printable(unknown)),
            hint: nearest.first().map(|key| format!("did you mean `{}`?", printable(key))),
        })
    }
}

/// A refusal of the simulator, with the flag that it is about.
pub(super) fn in_flags(refused: &Invalid) -> CliError {
    let flag = match refused.field {
        "to" => "--to",
        "outage" => "--outage",
        "targetPlaces" => "--target-concurrency",
        _ => "--concurrency",
    };
    CliError::invalid(format!("{flag}: {}", refused.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_read_relative_to_the_window() {
        let (from, paris) = ("2027-03-27T12:00:00Z".parse().unwrap(), Zone::get("Europe/Paris").unwrap());
        let read = |text: &str| outage(text, from, &paris).map(|found| format!("{}..{}", found.from, found.to));
        for (text, expected) in [
            ("14:00..15:30", "2027-03-27T13:00:00Z..2027-03-27T14:30:00Z"),
            ("02:00..04:30", "2027-03-28T01:00:00Z"),
            ("23:00..01:00", "2027-03-27T22:00:00Z..2027-03-28T00:00:00Z"),
            ("2027-03-28T02:00Z..+3h", "2027-03-28T02:00:00Z..2027-03-28T05:00:00Z"),
            ("+1h..+30m", "2027-03-27T13:00:00Z..2027-03-27T13:30:00Z"),
        ] {
            match read(text) {
                Ok(found) => assert_eq!(found, expected, "{text}"),
                // Clocks go forward from 02:00 to 03:00 on this night.
                Err(error) => assert!(text == "02:00..04:30" && error.to_string().contains("--outage"), "{error}"),
            }
        }
        for (text, words) in [
            ("14:00", "has no `..` between"),
            ("2027-03-28..2027-03-27", "ends before it begins"),
            ("soon..later", "`soon` is not a time"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words) && error.starts_with("--outage: "), "{text}: {error}");
        }
    }

    #[test]
    fn limits_name_their_target() {
        let read = |texts: &[&str]| target_limits(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let limits = read(&["mail=2", "a=b=3"]).unwrap();
        assert_eq!(
            limits.iter().map(|(target, limit)| (target.as_str(), *limit)).collect::<Vec<_>>(),
            [("a=b", 3), ("mail", 2)]
        );
        for text in ["mail", "mail=0", "mail=many", "=1"] {
            assert!(read(&[text]).unwrap_err().to_string().starts_with("--target-concurrency: "), "{text}");
        }
    }

    #[test]
    fn durations_are_for_all_or_for_one() {
        let texts = ["90s", "nightly=90m"].map(str::to_owned);
        let durations = Durations::parse(&texts).unwrap();
        let minutes = |key| durations.duration_of(key, Some(Duration::from_secs(7))).as_secs();
        assert_eq!((minutes("nightly"), minutes("other")), (5_400, 90));
        assert_eq!(Durations::parse(&[]).unwrap().duration_of("a", None), Duration::from_secs(1));
        assert!(Durations::parse(&["a=soon".to_owned()]).err().unwrap().to_string().starts_with("--duration: `soon`"));
    }
}
