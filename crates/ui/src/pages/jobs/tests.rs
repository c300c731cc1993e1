use everbell::core::change;
use everbell_core::{Job, JobId, JobKey, JobState, Target, Unschedulable};

use super::*;
use crate::clock::Face;

/// A job whose zone is gone, as it is noticed when it is due.
fn broken(error: Option<&str>) -> JobRow {
    let created_at: Timestamp = "2026-11-15T00:00:00Z".parse().unwrap();
    let definition = everbell_core::with!(Definition {
        created_by: "ana".to_owned(),
        ..Definition::new(
            JobId::new(created_at, [1; 10]),
            JobKey::new("moved").unwrap(),
            Target::new("log").unwrap(),
            Err(Unschedulable {
                expression: Some("0 8 * * *".to_owned()),
                timezone: "Mars/Base".to_owned(),
                reason: "unknown time zone".to_owned(),
                ..Unschedulable::default()
            }),
            created_at
        )
    });
    let new = change::create(definition);
    let state = everbell_core::with!(JobState { error: error.map(str::to_owned), ..new.state });
    JobRow::new(Job::new(new.definition, state))
}

#[test]
fn why_a_job_cannot_fire_is_said_once() {
    let now = "2026-11-15T09:00:00Z".parse().unwrap();
    let clock = Clock { now, face: Face::Schedule, mine: Zone::utc() };
    let row = Row::new(&broken(Some("unknown time zone `Mars/Base`")), &[], &clock);
    assert_eq!(row.about.as_deref(), Some("unknown time zone `Mars/Base`"));
    assert_eq!(row.schedule.text, "Cannot be read");
    // Until the error is recorded, only the schedule shows it.
    assert_eq!(Row::new(&broken(None), &[], &clock).schedule.text, "Cannot be read: unknown time zone");
}

#[test]
fn a_change_of_clocks_is_told_a_month_ahead() {
    let spec = |expression: &str, zone: &str| {
        Spec::recurring(expression.parse().unwrap(), Zone::get(zone).unwrap(), Timestamp::UNIX_EPOCH)
    };
    let change = |expression, zone, now: &str| clock_change(&spec(expression, zone), now.parse().unwrap());
    let gap = change("30 2 * * *", "America/New_York", "2027-03-01T00:00:00Z");
    assert!(gap.is_some_and(|text| text.contains("2027-03-14")));
    assert_eq!(change("30 2 * * *", "America/New_York", "2027-01-01T00:00:00Z"), None);
    assert_eq!(change("30 5 * * *", "America/New_York", "2027-03-01T00:00:00Z"), None);
    assert_eq!(change("*/5 * * * *", "America/New_York", "2027-03-01T00:00:00Z"), None);
    assert_eq!(change("30 2 * * *", "UTC", "2027-03-01T00:00:00Z"), None);
}
