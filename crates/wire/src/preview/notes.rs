//! Notes about fires that daylight saving time moved, or chose from two equal local times.
//!
//! A fire gets a note only if another rule for daylight saving time would not fire at this instant. Schedules that follow
//! elapsed time (`*/30 * * * *`) therefore never get one.

use everbell_core::cron::{Dst, DstFold, DstGap};
use everbell_core::{MovedSlot, OffsetChange, Spec, Zone};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

use crate::clock_face;

/// Longer than any clock change: clocks go back by less than this, and forward by at most a day.
const MAX_CLOCK_CHANGE: SignedDuration = SignedDuration::from_hours(25);

/// The most slots of other days that a note names.
const MAX_NAMED_SLOTS: usize = 3;

/// Describes what is special about a fire of this schedule: slots that moved to its day, and the effect of daylight saving
/// time. `None` if there is nothing.
pub fn note(spec: &Spec, at: Timestamp) -> Option<String> {
    let notes: Vec<String> = moved(spec, at).into_iter().chain(clock_change(spec, at)).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Names the days of the slots that moved to this fire.
fn moved(spec: &Spec, at: Timestamp) -> Option<String> {
    let moved = spec.moved_to(at);
    let mut days: Vec<String> = moved.iter().map(MovedSlot::day).collect();
    days.dedup();
    let more = days.len().saturating_sub(MAX_NAMED_SLOTS);
    days.truncate(MAX_NAMED_SLOTS);
    let named = days.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() };
    let is_own = spec.slots_at(at).contains(&at);
    (!moved.is_empty())
        .then(|| if is_own { format!("also moved here: {named}") } else { format!("moved from {named}") })
}

fn clock_change(spec: &Spec, at: Timestamp) -> Option<String> {
    let (after, until) = (at.checked_sub(MAX_CLOCK_CHANGE).ok()?, at.checked_add(MAX_CLOCK_CHANGE).ok()?);
    spec.zone().changes_between(after, until).into_iter().find_map(|change| note_on(spec, at, change))
}

fn note_on(spec: &Spec, at: Timestamp, change: OffsetChange) -> Option<String> {
    let fires_with = |dst: Dst| spec.clone().with_dst(dst).matches(at);
    let dst = spec.dst();
    let repeated = SignedDuration::from_secs(change.before - change.after);
    if repeated.is_negative() {
        let moved = at == change.at && !fires_with(Dst { gap: DstGap::Skip, ..dst });
        return moved.then(|| missing(spec, change)).flatten();
    }
    let (which, other_fold) = if at >= change.at && at < change.at.checked_add(repeated).ok()? {
        ("second", DstFold::First)
    } else if at < change.at && at >= change.at.checked_sub(repeated).ok()? {
        ("first", DstFold::Last)
    } else {
        return None;
    };
    let time = at.to_zoned(spec.zone().as_jiff().clone()).time();
    (!fires_with(Dst { fold: other_fold, ..dst })).then(|| format!("{which} {}", clock_face(time)))
}

/// Names the local times that the fire right after a change forward stands for.
fn missing(spec: &Spec, change: OffsetChange) -> Option<String> {
    // In UTC every local time exists, so the same expression there shows which ones the expression names.
    let everywhere = Spec::recurring(spec.expression()?.clone(), Zone::utc(), change.at);
    let local = |offset: i64| change.at.checked_add(SignedDuration::from_secs(offset)).ok();
    let second = SignedDuration::from_secs(1);
    let before_gap = local(change.before)?.checked_sub(second).ok()?;
    let end_of_gap = local(change.after)?.checked_sub(second).ok()?;
    let first = everywhere.next_after(before_gap)?;
    let last = everywhere.prev_at_or_before(end_of_gap)?;
    let date = Offset::UTC.to_datetime(local(change.after)?).date();
    let named = |local: Timestamp| {
        let missing = Offset::UTC.to_datetime(local);
        let face = clock_face(missing.time());
        if missing.date() == date { face } else { format!("{} {face}", missing.date()) }
    };
    Some(match everywhere.count_between(before_gap, end_of_gap) {
        1 => format!("shifted: {} does not exist", named(first)),
        2 => format!("shifted: {} and {} do not exist", named(first), named(last)),
        _ => format!("shifted: {} to {} do not exist", named(first), named(last)),
    })
}

#[cfg(test)]
mod tests {
    use everbell_core::cron::Expression;

    use super::*;

    /// The notes of the first fires, with `-` for none.
    fn notes(expr: &str, zone: &str, from: &str, dst: Dst) -> Vec<String> {
        let from: Timestamp = from.parse().unwrap();
        let spec = Spec::recurring(Expression::parse(expr).unwrap(), Zone::get(zone).unwrap(), from).with_dst(dst);
        let fires = spec.slots_after(from).take(3);
        fires.map(|at| note(&spec, at).unwrap_or_else(|| "-".to_owned())).collect()
    }

    fn folded(fold: DstFold) -> Dst {
        Dst { fold, ..Dst::default() }
    }

    #[test]
    fn shifted_fire_names_the_missing_times() {
        let gap = |expr| notes(expr, "America/New_York", "2027-03-14T06:59:00Z", Dst::default())[0].clone();
        assert_eq!(gap("30 2 * * *"), "shifted: 02:30 does not exist");
        assert_eq!(gap("15 30 2 * * *"), "shifted: 02:30:15 does not exist");
        assert_eq!(gap("5,10 2 * * *"), "shifted: 02:05 and 02:10 do not exist");
        assert_eq!(gap("0/10 2 * * *"), "shifted: 02:00 to 02:50 do not exist");
        // These fire at 03:00 by themselves.
        assert_eq!(gap("0 3 * * *"), "-");
        assert_eq!(gap("*/30 * * * *"), "-");
        assert_eq!(gap("@every 1m"), "-");
    }

    #[test]
    fn a_missing_day_is_named_with_its_date() {
        let notes = notes("0 12 * * *", "Pacific/Apia", "2011-12-30T00:00:00Z", Dst::default());
        assert_eq!(notes, ["shifted: 2011-12-30 12:00 does not exist", "-", "-"]);
    }

    #[test]
    fn repeated_time_names_which_one_fires() {
        let fold = |expr, dst| notes(expr, "America/New_York", "2027-11-07T04:59:00Z", dst);
        assert_eq!(fold("30 1 * * *", folded(DstFold::First)), ["first 01:30", "-", "-"]);
        assert_eq!(fold("30 1 * * *", folded(DstFold::Last)), ["second 01:30", "-", "-"]);
        assert_eq!(fold("30 1 * * *", folded(DstFold::Both)), ["first 01:30", "second 01:30", "-"]);
        assert_eq!(fold("*/30 * * * *", folded(DstFold::Both)), ["-", "-", "-"]);
    }
}
