//! Absences: what an instance writes down when it begins, and when it was late.

use everbell_core::outage::{Absence, AbsenceGroup, LateOutcome, Outage};
use everbell_core::store::{ClusterStore, ReportStore};

use super::lab::{Lab, at, job};
use crate::engine::Step;

async fn absences(lab: &Lab) -> Vec<(String, String)> {
    let clock = |at: jiff::Timestamp| at.strftime("%H:%M:%S").to_string();
    let absences = lab.store.absences(None, None, 100).await.unwrap();
    absences.into_iter().map(|Absence { from, until }| (clock(from), clock(until))).collect()
}

fn pair(from: &str, until: &str) -> (String, String) {
    (from.to_owned(), until.to_owned())
}

#[tokio::test]
async fn the_next_instance_writes_down_for_how_long_nobody_scheduled() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.turn_at("01:00").await;
    lab.engine.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, [], "the first of all instances ends no absence");
    let mut next = lab.engine_instead();
    lab.set("05:30");
    next.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, [pair("01:00:00", "05:30:00")]);
    next.planner.step().await.unwrap();
    let absence = lab.store.absences(None, None, 1).await.unwrap()[0];
    let range = AbsenceGroup::from_absences(vec![absence])[0].ranges[0];
    let outage = Outage::new(absence, &lab.store.late_slots(&range).await.unwrap());
    assert_eq!((outage.slots(), outage.count(LateOutcome::Coalesced), outage.caught_up()), (4, 3, 1));
    lab.set("05:30:05");
    next.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await.len(), 1, "a heartbeat in time ends none");
}

#[tokio::test]
async fn nobody_is_absent_while_another_instance_schedules() {
    let mut lab = Lab::new();
    let mut other = lab.engine_beside();
    lab.set("01:00");
    lab.engine.heartbeat.step().await.unwrap();
    lab.set("01:04:55");
    other.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, [pair("01:00:00", "01:04:55")], "the other one came late");
    lab.set("01:05");
    lab.engine.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await.len(), 1, "this one was late, and the other one was there");
}

#[tokio::test]
async fn an_instance_that_was_stopped_for_a_while_ends_its_own_absence() {
    let mut lab = Lab::new();
    lab.set("01:00");
    lab.engine.heartbeat.step().await.unwrap();
    lab.set("01:00:19");
    lab.engine.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, []);
    lab.set("01:02");
    lab.engine.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, [pair("01:00:19", "01:02:00")]);
}

#[tokio::test]
async fn an_instance_that_left_is_remembered() {
    let mut lab = Lab::new();
    lab.set("01:00");
    lab.engine.heartbeat.step().await.unwrap();
    lab.store.leave(lab.engine.shared.instance, at("01:00"), at("01:00")).await.unwrap();
    assert_eq!(lab.store.last_departure().await.unwrap(), Some(at("01:00")));
    let mut next = lab.engine_beside();
    lab.set("01:00:10");
    next.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, [], "a quick restart");
    lab.store.leave(next.shared.instance, at("01:00:10"), at("01:00:10")).await.unwrap();
    let mut last = lab.engine_beside();
    lab.set("01:03");
    last.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, [pair("01:00:10", "01:03:00")]);
}

#[tokio::test]
async fn an_instance_whose_clock_is_a_little_ahead_is_there() {
    let mut lab = Lab::new();
    lab.set("01:00");
    lab.engine.heartbeat.step().await.unwrap();
    lab.store.leave(lab.engine.shared.instance, at("01:00"), at("01:00")).await.unwrap();
    let (mut other, mut next) = (lab.engine_beside(), lab.engine_beside());
    lab.set("01:00:10");
    other.heartbeat.step().await.unwrap();
    lab.set("09:00:20");
    other.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await.len(), 1, "the other one was stopped for a while");
    // It sent a heartbeat after this one had read the time, or its clock is ahead.
    lab.set("09:00:19");
    next.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, [pair("01:00:10", "09:00:20")]);
}

#[tokio::test]
async fn an_old_departure_is_no_sign_of_an_absence_if_something_was_planned_since() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.set("00:30");
    lab.engine.heartbeat.step().await.unwrap();
    lab.store.leave(lab.engine.shared.instance, at("00:30"), at("00:30")).await.unwrap();
    // An instance of an earlier release sends heartbeats and leaves no trace but its runs.
    lab.set("08:00");
    lab.engine.planner.step().await.unwrap();
    let mut next = lab.engine_beside();
    lab.set("08:00:15");
    next.heartbeat.step().await.unwrap();
    assert_eq!(absences(&lab).await, []);
}
