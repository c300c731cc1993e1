//! Examples are what the server would write.

use everbell_core::cron::Expression;
use everbell_core::{Spec, Zone};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::problem::ProblemKind;
use crate::*;

/// Reads an example back and looks for a time that could not be read.
fn check<T: Example + Serialize + DeserializeOwned>() {
    for document in [T::example(), T::example_item()] {
        let written = serde_json::to_value(&document).unwrap();
        let read: T = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        assert!(!written.to_string().contains("1970-01-01"), "{written}");
    }
}

#[test]
fn examples_read_back() {
    check::<Page<Job>>();
    check::<Job>();
    check::<Bulk>();
    check::<ChangedField>();
    check::<NewVersion>();
    check::<Paused>();
    check::<PurgedJob>();
    check::<Resumed>();
    check::<Backfill>();
    check::<BackfillReport>();
    check::<StoppedBackfill>();
    check::<Fires>();
    check::<Preview>();
    check::<Run>();
    check::<RunNow>();
    check::<RunsNow>();
    check::<Canceled>();
    check::<Gap>();
    check::<Explanation>();
    check::<Stats>();
    check::<Top>();
    check::<Org>();
    check::<Imported>();
    check::<OrgJob>();
    check::<OrgOverride>();
    check::<JobOrgs>();
    check::<OrgUpdate>();
    check::<OrgUpdateStarted>();
    check::<WhatIf>();
    check::<Targets>();
    check::<Items<Instance>>();
    check::<Status>();
    check::<AuditEntry>();
    check::<NewToken>();
    check::<Session>();
    check::<EndedSessions>();
    check::<JobProblem>();
    check::<NotifyChannel>();
    check::<NotifyDelivery>();
    check::<Reloaded>();
    check::<ProblemKind>();
    for job in [created_job(), updated_job(), retired_job(), rescheduled_job(), restored_job(), skipped_job()] {
        assert!(!serde_json::to_string(&job).unwrap().contains("1970-01-01"));
    }
}

/// The schedule of an example job as the server reads it.
fn spec(expression: &str, zone: &str) -> Spec {
    Spec::recurring(Expression::parse(expression).unwrap(), Zone::get(zone).unwrap(), at(CREATED_AT))
}

#[test]
fn examples_fire_when_they_say() {
    let spec = spec("0 8 * * 1-5", "Europe/Berlin");
    let computed = Preview::new(&spec, at(NOW), 2).unwrap();
    assert_eq!(serde_json::to_value(Preview::example()).unwrap(), serde_json::to_value(&computed).unwrap());
    let job = Job::example();
    assert_eq!((job.schedule_text, job.next_run_at), (computed.description, Some(computed.next[0].at)));
    assert_eq!(job.next_run_at_local.as_ref(), Some(&computed.next[0].local));
    let skipped = Fire::new(&spec, spec.slots_after(at(NOW)).nth(2).unwrap());
    let job = skipped_job();
    assert_eq!((job.next_run_at, job.next_run_at_local), (Some(skipped.at), Some(skipped.local)));
    let run = Run::example();
    let slot = Fire::new(&spec, at(SLOT_AT));
    assert_eq!((run.slot_at, run.slot_at_local), (Some(slot.at), Some(slot.local)));
    assert_eq!(spec.prev_at_or_before(at(NOW)), run.slot_at);
}

#[test]
fn examples_of_orgs_fire_when_they_say() {
    let (tokyo, berlin) = (spec("30 9 * * *", "Asia/Tokyo"), spec("30 9 * * *", "Europe/Berlin"));
    let (before, after) = (Fire::after(&tokyo, at(NOW), 1), Fire::after(&berlin, at(NOW), 1));
    let job = OrgJob::example();
    assert_eq!(job.next_run_at, Some(before[0].at));
    assert_eq!(job.next_run_at_local.as_ref(), Some(&before[0].local));
    assert_eq!(job.schedule_text, Preview::new(&tokyo, at(NOW), 1).unwrap().description);
    let moved: Value = serde_json::to_value(&WhatIf::example().jobs[0]).unwrap();
    assert_eq!((&moved["before"], &moved["after"]), (&json!(before), &json!(after)));
}
