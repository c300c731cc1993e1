//! The effect of the next daylight saving time changes on a schedule, under the selected policy and under the others.

use everbell_core::cron::{Dst, DstFold, DstGap, Warning, WarningCode};
use everbell_core::{OffsetChange, Spec, Zone};
use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

use everbell_wire::clock_face;

/// How far ahead changes are looked for: as far as core warns of them.
const CLOCK_CHANGE_HORIZON: SignedDuration = SignedDuration::from_hours(24 * 368);

/// A change of the clocks that moves a fire.
#[derive(Debug)]
pub(crate) struct ClockChange {
    /// Clocks go forward, so that a time is missing.
    pub(crate) forward: bool,
    /// `Sun 14 Mar 2027`.
    pub(crate) date: String,
    /// `02:30 does not exist`.
    pub(crate) subject: String,
    /// `02:00 EST → 03:00 EDT`.
    pub(crate) clocks: String,
    pub(crate) outcomes: Vec<Outcome>,
}

/// The effect under one policy.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) rule: &'static str,
    pub(crate) chosen: bool,
    /// `fires at 03:00 EDT instead`.
    pub(crate) text: String,
    /// `07:00Z`, if one instant can be named.
    pub(crate) utc: Option<String>,
}

/// The next gap and the next fold that touch a schedule.
pub(crate) fn next_changes(spec: &Spec, from: Timestamp) -> Vec<ClockChange> {
    let gaps = || DstGap::ALL.iter().map(|gap| (gap.as_str(), Dst { gap: *gap, ..spec.dst() })).collect();
    let folds = || DstFold::ALL.iter().map(|fold| (fold.as_str(), Dst { fold: *fold, ..spec.dst() })).collect();
    let next = [next(spec, from, WarningCode::DstGap, gaps()), next(spec, from, WarningCode::DstFold, folds())];
    next.into_iter().flatten().collect()
}

/// Whether clocks change at all in the coming year.
pub(crate) fn any_ahead(zone: &Zone, from: Timestamp) -> bool {
    from.checked_add(CLOCK_CHANGE_HORIZON).is_ok_and(|until| !zone.changes_between(from, until).is_empty())
}

fn next(spec: &Spec, from: Timestamp, code: WarningCode, rules: Vec<(&'static str, Dst)>) -> Option<ClockChange> {
    let warning = spec.warnings(from).into_iter().find(|warning| warning.code == code)?;
    let date = warning.local_date?;
    let forward = code == WarningCode::DstGap;
    let change = change_on(spec.zone(), from, date, forward)?;
    let outcome = |(rule, dst): (&'static str, Dst)| {
        let same = spec.clone().with_dst(dst).warnings(from);
        let same = same.into_iter().find(|other| other.code == code && other.local_date == Some(date))?;
        let (_, text) = split_detail(&same, date, spec.zone())?;
        // Both instants are in the text; of many times each has its own.
        let one = rule != DstFold::Both.as_str() && !text.starts_with("each ");
        let utc = same.at.filter(|_| one).map(|at| format!("{}Z", clock_face(Offset::UTC.to_datetime(at).time())));
        Some(Outcome { rule, chosen: dst == spec.dst(), text, utc })
    };
    Some(ClockChange {
        forward,
        date: date.strftime("%a %-d %b %Y").to_string(),
        subject: split_detail(&warning, date, spec.zone())?.0,
        clocks: clocks(spec.zone(), change),
        outcomes: rules.into_iter().filter_map(outcome).collect(),
    })
}

/// Splits the warning of core into the subject and the effect, without the date and the zone, which are shown
/// separately.
fn split_detail(warning: &Warning, date: Date, zone: &Zone) -> Option<(String, String)> {
    let (subject, text) = warning.detail.split_once(&format!(" on {date} in {zone}; "))?;
    Some((subject.to_owned(), text.to_owned()))
}

/// The change in whose missing or repeated span this date is.
fn change_on(zone: &Zone, from: Timestamp, date: Date, forward: bool) -> Option<OffsetChange> {
    let day = SignedDuration::from_hours(24);
    let changes = zone.changes_between(from.checked_sub(day).ok()?, from.checked_add(CLOCK_CHANGE_HORIZON).ok()?);
    changes.into_iter().find(|change| {
        let (low, high) =
            (local(change.at, change.before.min(change.after)), local(change.at, change.before.max(change.after)));
        (change.after > change.before) == forward && low.date() <= date && date <= high.date()
    })
}

fn clocks(zone: &Zone, change: OffsetChange) -> String {
    let before = change.at.checked_sub(SignedDuration::from_secs(1)).unwrap_or(change.at);
    let shown = |offset: i64, at: Timestamp| {
        let name = zone.as_jiff().to_offset_info(at).abbreviation().to_owned();
        // Zones without letters have only their offset, which is said to be one.
        let name = if name.starts_with(['+', '-']) { format!("UTC{name}") } else { name };
        format!("{} {name}", clock_face(local(change.at, offset).time()))
    };
    format!("{} → {}", shown(change.before, before), shown(change.after, change.at))
}

fn local(at: Timestamp, offset: i64) -> jiff::civil::DateTime {
    Offset::UTC.to_datetime(at.checked_add(SignedDuration::from_secs(offset)).unwrap_or(at))
}

#[cfg(test)]
mod tests {
    use everbell_core::cron::Expression;

    use super::*;

    fn changes(expression: &str, zone: &str, dst: Dst) -> Vec<String> {
        let from = "2026-11-15T12:00:00Z".parse().unwrap();
        let spec =
            Spec::recurring(Expression::parse(expression).unwrap(), Zone::get(zone).unwrap(), from).with_dst(dst);
        let shown = |change: ClockChange| {
            let outcomes: Vec<String> = change
                .outcomes
                .iter()
                .map(|one| {
                    let (mark, utc) = (if one.chosen { "*" } else { "" }, one.utc.as_deref().unwrap_or("-"));
                    format!("{mark}{}: {} ({utc})", one.rule, one.text)
                })
                .collect();
            format!("{}: {} ({}) | {}", change.date, change.subject, change.clocks, outcomes.join(" | "))
        };
        next_changes(&spec, from).into_iter().map(shown).collect()
    }

    #[test]
    fn each_rule_says_what_it_does() {
        assert_eq!(
            changes("30 2 * * *", "America/New_York", Dst::default()),
            ["Sun 14 Mar 2027: 02:30 does not exist (02:00 EST → 03:00 EDT) \
              | *shift: fires at 03:00 EDT instead (07:00Z) | skip: it is skipped (-)"]
        );
        assert_eq!(
            changes("30 1 * * *", "America/New_York", Dst { fold: DstFold::Both, ..Dst::default() }),
            ["Sun 7 Nov 2027: 01:30 happens twice (02:00 EDT → 01:00 EST) \
              | first: fires the first time, at 01:30 EDT (05:30Z) | last: fires the second time, at 01:30 EST (06:30Z) \
              | *both: fires both times, at 01:30 EDT and at 01:30 EST (-)"]
        );
    }

    #[test]
    fn odd_zones_are_told_too() {
        let half = changes("10 2 * * *", "Australia/Lord_Howe", Dst { gap: DstGap::Skip, ..Dst::default() });
        assert!(
            half[0].starts_with("Sun 3 Oct 2027: 02:10 does not exist (02:00 UTC+1030 → 02:30 UTC+11)"),
            "{half:?}"
        );
        assert!(half[0].contains("*skip: it is skipped"), "{half:?}");
        let midnight = changes("30 0 * * *", "Africa/Cairo", Dst::default());
        assert!(
            midnight[0].starts_with("Fri 30 Apr 2027: 00:30 does not exist (00:00 EET → 01:00 EEST)"),
            "{midnight:?}"
        );
        let many = changes("0/15 1,2 * * *", "Europe/Paris", Dst::default());
        assert!(many[0].contains("do not exist") && many[1].contains("each fires the first time"), "{many:?}");
    }

    #[test]
    fn what_follows_elapsed_time_is_not_touched() {
        assert_eq!(changes("*/30 * * * *", "America/New_York", Dst::default()), [""; 0]);
        assert_eq!(changes("30 2 * * *", "UTC", Dst::default()), [""; 0]);
        let from = "2026-11-15T12:00:00Z".parse().unwrap();
        assert!(
            any_ahead(&Zone::get("Europe/Paris").unwrap(), from) && !any_ahead(&Zone::get("Asia/Tokyo").unwrap(), from)
        );
    }
}
