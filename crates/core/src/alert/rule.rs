//! [`Rule`]: who is notified of which problems.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Kind;
pub use super::timing::TimeLimit;
use crate::ids::{Invalid, JobKey, OrgId};
use crate::spec::Spec;
use crate::zone::Zone;

/// The channels that are notified of certain problems of certain jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, by which problems remember that it reported them.
    pub name: String,
    /// The problems that it asks about.
    pub kinds: Vec<Kind>,
    /// Whether it also reports that they closed.
    pub recovered: bool,
    /// The jobs that it asks about.
    pub scope: RuleScope,
    /// The orgs that it looks at one by one, where `*` stands for any text. Without any it looks at a job as a whole.
    pub orgs: Vec<String>,
    /// How many failures in a row are a problem: for [`Kind::Failed`].
    pub after: u32,
    /// How often an open problem is repeated.
    pub remind: Option<Duration>,
    /// When a success is overdue: for [`Kind::NoSuccess`].
    pub deadline: Option<Deadline>,
    /// How long after its slot a run may start: for [`Kind::LateStart`].
    pub starts_within: Option<Duration>,
    /// How long a run may take, whichever is less: for [`Kind::TooLong`].
    pub takes_at_most: Vec<TimeLimit>,
    /// When messages wait.
    pub quiet: Option<QuietHours>,
    /// The names of the channels that are notified.
    pub to: Vec<String>,
}

/// The most failures in a row that a rule may wait for.
const MAX_AFTER: u32 = 1_000;
/// The shortest time that a slot may be late by and a run may take.
const MIN_LIMIT: Duration = Duration::from_secs(1);
/// The shortest time between two reminders.
const MIN_REMIND: Duration = Duration::from_mins(1);

impl Rule {
    /// Returns everything that is wrong with it, each with the name of its field in the configuration.
    pub fn problems(&self) -> Vec<Invalid> {
        let mut problems = Vec::new();
        let mut must = |holds: bool, field: &'static str, reason: String| {
            if !holds {
                problems.push(Invalid::new(field, reason));
            }
        };
        let known = Kind::ALL.iter().map(|kind| format!("`{}`", kind.as_str())).collect::<Vec<_>>().join(", ");
        must(!self.kinds.is_empty(), "when", format!("must name at least one problem besides `recovered`: {known}"));
        must(!self.to.is_empty(), "to", "must name at least one channel".to_owned());
        must((1..=MAX_AFTER).contains(&self.after), "after", format!("must be from 1 to {MAX_AFTER}"));
        must(self.remind.is_none_or(|remind| remind >= MIN_REMIND), "remind", "must be at least 1m".to_owned());
        must(
            self.orgs.is_empty() || self.kinds == [Kind::Failed],
            "orgs",
            "is only for rules about `failed`, with or without `recovered`; write another rule for other problems"
                .to_owned(),
        );
        let has_deadline = self.deadline.is_some();
        if self.kinds.contains(&Kind::NoSuccess) {
            must(has_deadline, "by", "is missing: `no_success` needs `by` or `within`".to_owned());
        } else {
            must(!has_deadline, "by", "and `within` are only for rules about `no_success`".to_owned());
        }
        let is_late = self.kinds.contains(&Kind::LateStart);
        must(
            is_late == self.starts_within.is_some(),
            "starts_within",
            if is_late {
                "is missing: `late_start` needs it, such as `10m`"
            } else {
                "is only for rules about `late_start`"
            }
            .to_owned(),
        );
        must(
            self.starts_within.is_none_or(|time| time >= MIN_LIMIT),
            "starts_within",
            "must be at least 1s".to_owned(),
        );
        let is_long = self.kinds.contains(&Kind::TooLong);
        must(
            is_long != self.takes_at_most.is_empty(),
            "takes_at_most",
            if is_long {
                "is missing: `too_long` needs `takes_at_most` or `p95_times`"
            } else {
                "and `p95_times` are only for rules about `too_long`"
            }
            .to_owned(),
        );
        let is_short = |limit: &TimeLimit| limit.least() < MIN_LIMIT;
        must(!self.takes_at_most.iter().any(is_short), "takes_at_most", "must be at least 1s".to_owned());
        must(
            self.after == 1 || self.kinds.contains(&Kind::Failed),
            "after",
            "is only for rules about `failed`".to_owned(),
        );
        problems
    }

    /// Whether it asks about this kind of problem of instances.
    pub fn asks_about_instances(&self) -> bool {
        self.kinds.contains(&Kind::InstanceLost)
    }

    /// Whether it asks about this problem of this job; with an org, of the runs of the job for that org.
    pub fn covers(&self, kind: Kind, key: &JobKey, labels: &BTreeMap<String, String>, org: Option<&OrgId>) -> bool {
        let is_same = match org {
            Some(org) => self.orgs.iter().any(|pattern| is_like(pattern, org.as_str())),
            None => self.orgs.is_empty(),
        };
        is_same && self.kinds.contains(&kind) && self.scope.contains(key, labels)
    }

    /// Whether it looks at orgs of this job one by one.
    pub fn looks_at_orgs_of(&self, key: &JobKey, labels: &BTreeMap<String, String>) -> bool {
        !self.orgs.is_empty() && self.scope.contains(key, labels)
    }

    /// When a message of this time may be sent.
    pub fn sends_at(&self, now: Timestamp) -> Timestamp {
        self.quiet.as_ref().and_then(|quiet| quiet.end(now)).unwrap_or(now)
    }
}

/// The jobs that a rule asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// Every job.
    All,
    /// Jobs with this label, with this value if one is given.
    Label(String, Option<String>),
    /// Jobs with one of these keys. A `*` stands for any text.
    Keys(Vec<String>),
}

impl RuleScope {
    fn contains(&self, key: &JobKey, labels: &BTreeMap<String, String>) -> bool {
        match self {
            RuleScope::All => true,
            RuleScope::Label(name, value) => {
                labels.get(name).is_some_and(|own| value.as_ref().is_none_or(|value| value == own))
            }
            RuleScope::Keys(patterns) => patterns.iter().any(|pattern| is_like(pattern, key.as_str())),
        }
    }
}

/// Whether a text is like a pattern in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        // The earliest place leaves the most for the rest.
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

/// When a success is overdue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Every day at a local time. The success must come after the deadline of the day before.
    By(DailyTime),
    /// This long after the success before.
    Within(Duration),
}

impl Deadline {
    /// Every day at this time, `06:00` for example, in this zone.
    pub fn by(time: &str, zone: &str) -> Result<Deadline, Invalid> {
        DailyTime::parse("by", time, zone).map(Deadline::By)
    }

    /// Returns the deadline that a job has missed at `now`, if it has. `from` is the earliest time from which a success
    /// can be expected of it, and `success` its last one.
    pub(super) fn missed(
        &self,
        spec: &Spec,
        from: Timestamp,
        success: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        match self {
            Deadline::By(time) => {
                let deadline = time.latest(now)?;
                let begin = time.latest(earlier(deadline, Duration::from_secs(1)))?.max(from);
                let is_expected = spec.next_after(begin).is_some_and(|slot| slot <= deadline);
                (is_expected && success.is_none_or(|success| success <= begin)).then_some(deadline)
            }
            Deadline::Within(duration) => {
                let base = success.map_or(from, |success| success.max(from));
                let slot = spec.next_after(base)?;
                let deadline = later(base, *duration);
                // A schedule that fires less often than that gives its slot the whole duration.
                let deadline = if slot < deadline { deadline } else { later(slot, *duration) };
                (deadline <= now).then_some(deadline)
            }
        }
    }
}

/// When messages wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietHours {
    from: DailyTime,
    until: DailyTime,
}

impl QuietHours {
    /// Every day from one local time to another, over midnight if need be.
    pub fn new(from: &str, until: &str, zone: &str) -> Result<QuietHours, Invalid> {
        let hours =
            QuietHours { from: DailyTime::parse("quiet", from, zone)?, until: DailyTime::parse("quiet", until, zone)? };
        if hours.from == hours.until {
            return Err(Invalid::new("quiet", "must not begin when it ends"));
        }
        Ok(hours)
    }

    /// When the quiet hours end that this time is in.
    fn end(&self, now: Timestamp) -> Option<Timestamp> {
        let (began, ended) = (self.from.latest(now)?, self.until.latest(now)?);
        if began < ended { None } else { self.until.0.next_after(now) }
    }
}

/// A local time of every day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DailyTime(Spec);

impl DailyTime {
    /// `06:00` in a zone. `field` names it in the refusal.
    pub fn parse(field: &'static str, time: &str, zone: &str) -> Result<DailyTime, Invalid> {
        let refused = || Invalid::new(field, format!("`{time}` is not a time of day such as `06:00`"));
        let is_number = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = |text: &str| is_number(text).then(|| text.parse::<u8>().ok()).flatten();
        let (hour, minute) = time.split_once(':').ok_or_else(refused)?;
        let hour = number(hour).filter(|hour| *hour < 24).ok_or_else(refused)?;
        let minute = number(minute).filter(|minute| *minute < 60).ok_or_else(refused)?;
        let zone = Zone::get(zone).map_err(|error| Invalid::new(field, error.to_string()))?;
        let expression = format!("{minute} {hour} * * *").parse().map_err(|_| refused())?;
        Ok(DailyTime(Spec::recurring(expression, zone, Timestamp::UNIX_EPOCH)))
    }

    fn latest(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.prev_at_or_before(now)
    }
}

/// Returns the time that lies this long before `at`.
pub(super) fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    at.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// Returns the time that lies this long after `at`.
pub(super) fn later(at: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, wanted) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("*b*", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("*", "", true),
        ] {
            assert_eq!(is_like(pattern, text), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn quiet_hours_may_pass_midnight() {
        let hours = QuietHours::new("22:00", "07:00", "Europe/Paris").unwrap();
        let end = at("2026-11-16T06:00:00Z");
        assert_eq!(hours.end(at("2026-11-15T20:59:59Z")), None);
        assert_eq!(hours.end(at("2026-11-15T21:00:00Z")), Some(end));
        assert_eq!(hours.end(at("2026-11-16T05:59:59Z")), Some(end));
        assert_eq!(hours.end(end), None);
        let noon = QuietHours::new("12:00", "13:00", "UTC").unwrap();
        assert_eq!(noon.end(at("2026-11-15T12:30:00Z")), Some(at("2026-11-15T13:00:00Z")));
        assert_eq!(noon.end(at("2026-11-15T13:30:00Z")), None);
    }

    #[test]
    fn a_time_of_day_is_read_strictly() {
        for bad in ["6:00", "24:00", "06:60", "0600", "06:00:00", "+6:00", ""] {
            assert!(DailyTime::parse("by", bad, "UTC").is_err(), "{bad}");
        }
        let unknown = DailyTime::parse("by", "06:00", "Europe/Pariis").unwrap_err();
        assert!(unknown.reason.contains("Pariis"), "{}", unknown.reason);
    }

    #[test]
    fn a_local_deadline_counts_what_came_since_the_one_before() {
        let zone = Zone::get("Europe/Paris").unwrap();
        let spec = Spec::recurring("0 2 * * *".parse().unwrap(), zone, Timestamp::UNIX_EPOCH);
        let by = Deadline::by("06:00", "Europe/Paris").unwrap();
        let (old, deadline) = (at("2026-11-10T00:00:00Z"), at("2026-11-15T05:00:00Z"));
        let missed = |success: &str, now: &str| by.missed(&spec, old, Some(at(success)), at(now));
        assert_eq!(missed("2026-11-14T01:10:00Z", "2026-11-15T04:59:59Z"), None, "before the deadline");
        assert_eq!(missed("2026-11-14T01:10:00Z", "2026-11-15T05:00:00Z"), Some(deadline));
        assert_eq!(missed("2026-11-15T01:10:00Z", "2026-11-15T05:00:00Z"), None, "in time");
        assert_eq!(missed("2026-11-15T09:00:00Z", "2026-11-15T09:00:01Z"), None, "late, but there");
        // A job that was created, edited or resumed after its slot is not expected to have run.
        assert_eq!(by.missed(&spec, at("2026-11-15T03:00:00Z"), None, deadline), None);
        assert_eq!(by.missed(&spec, at("2026-11-14T22:00:00Z"), None, deadline), Some(deadline));
    }

    #[test]
    fn a_duration_counts_from_the_last_success_but_not_before_the_schedule_asks() {
        let spec = |cron: &str| Spec::recurring(cron.parse().unwrap(), Zone::utc(), Timestamp::UNIX_EPOCH);
        let within = Deadline::Within(Duration::from_hours(26));
        let (daily, monthly) = (spec("0 2 * * *"), spec("0 2 1 * *"));
        let success = at("2026-11-15T02:05:00Z");
        let missed = |spec: &Spec, now: &str| within.missed(spec, at("2026-01-01T00:00:00Z"), Some(success), at(now));
        assert_eq!(missed(&daily, "2026-11-16T04:04:59Z"), None);
        assert_eq!(missed(&daily, "2026-11-16T04:05:00Z"), Some(at("2026-11-16T04:05:00Z")));
        assert_eq!(missed(&monthly, "2026-12-02T03:59:59Z"), None);
        assert_eq!(missed(&monthly, "2026-12-02T04:00:00Z"), Some(at("2026-12-02T04:00:00Z")));
    }
}
