//! Runs for slots that have gone by.

use std::sync::Arc;

use everbell::client::BackfillEdit;
use everbell::core::backfill::BackfillStatus;
use everbell::core::store::{JobRef, SlotOutcome};
use everbell::{Everbell, Explanation, RunFilter, RunStatus, Schedule};

use crate::given::{Manual, Stored, at, nothing, page, time};

async fn bell(stored: &Stored, clock: &Arc<Manual>) -> Everbell {
    at(stored, clock).target("nothing", nothing).build().await.unwrap()
}

#[tokio::test]
async fn a_range_is_planned_made_followed_and_stopped() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs().by("ana").because("the disk was full");
    jobs.create(Schedule::cron("hourly", "0 * * * *").target("nothing")).await.unwrap();
    // Also what lies before the job was made.
    let (from, to) = (time("06:00"), time("11:30"));
    let plan = jobs.plan_backfill("hourly", from, to).await.unwrap();
    assert_eq!(plan.wanted(), ["06:00", "07:00", "08:00", "09:00", "10:00", "11:00"].map(time));
    assert!(bell.runs().list(&RunFilter::default(), &page()).await.unwrap().items.is_empty(), "only told");

    let begun = jobs.backfill("hourly", from, to).await.unwrap();
    assert_eq!((begun.runs.len(), begun.plan.to_create()), (1, 6), "one at a time, as the job says");
    let again = jobs.plan_backfill("hourly", from, to).await.unwrap();
    assert_eq!(again.wanted().len(), 5);
    assert!(again.slots[0].existing.is_some_and(|(_, status)| status == RunStatus::Pending));
    let reports = jobs.backfills("hourly").await.unwrap();
    assert_eq!((reports.len(), reports[0].id, reports[0].is_done()), (1, begun.id, false));
    assert_eq!((reports[0].runs["pending"], reports[0].asked_by.as_str()), (6, "ana"));
    assert_eq!(reports[0].reason.as_deref(), Some("the disk was full"));

    assert_eq!(jobs.stop_backfill("hourly", begun.id).await.unwrap(), 6);
    let reports = jobs.backfills("hourly").await.unwrap();
    assert!(reports[0].is_done() && reports[0].runs.is_empty());
    assert_eq!(reports[0].status(), BackfillStatus::Stopped);
    let explained = jobs.explain("hourly", time("07:00")).await.unwrap();
    assert!(!matches!(explained, Explanation::Settled(SlotOutcome::Run(_))), "withdrawn: {explained:?}");
    assert_eq!(jobs.plan_backfill("hourly", from, to).await.unwrap().wanted().len(), 6, "and can be requested again");
    let other = everbell::core::BackfillId::new(time("12:00"), [1; 10]);
    let missing = jobs.stop_backfill("hourly", other).await.unwrap_err();
    assert!(missing.to_string().starts_with("there is no backfill"), "{missing}");
}

#[tokio::test]
async fn slots_of_another_version_count_and_those_to_come_do_not() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    let first = jobs.create(Schedule::cron("hourly", "0 * * * *").target("nothing")).await.unwrap();
    jobs.clone().parallel(2).backfill("hourly", time("09:00"), time("10:00")).await.unwrap();
    let edit = everbell::Edit { description: Some("again".to_owned()), ..Default::default() };
    jobs.new_version("hourly", edit).await.unwrap();
    let plan = jobs.plan_backfill("hourly", time("08:00"), time("23:00")).await.unwrap();
    let existing: Vec<bool> = plan.slots.iter().map(|slot| slot.existing.is_some()).collect();
    assert_eq!(existing, [false, true, true, false, false], "08:00 to 12:00; the rest is still to come");
    let begun = jobs.clone().parallel(9).backfill("hourly", time("08:00"), time("23:00")).await.unwrap();
    assert_eq!(begun.runs.len(), 3);
    let retired = jobs.backfill(JobRef::Id(first.job.definition.id), time("01:00"), time("02:00")).await.unwrap_err();
    assert!(retired.to_string().contains("retired"), "{retired}");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    jobs.create(Schedule::cron("often", "* * * * * *").target("nothing")).await.unwrap();
    jobs.create(Schedule::once("once", time("13:00")).target("nothing")).await.unwrap();
    for (key, from, to, reason) in [
        ("often", "10:00", "09:00", "to: must not be before `from`"),
        ("once", "10:00", "11:00", "from: a one-time job has no past slots to backfill"),
    ] {
        let refused = jobs.backfill(key, time(from), time(to)).await.unwrap_err();
        assert!(refused.to_string().starts_with(reason), "{refused}");
    }
}

#[tokio::test]
async fn a_backfill_is_paused_changed_and_resumed_with_one_entry_each() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs().by("ana");
    jobs.create(Schedule::cron("often", "* * * * * *").target("nothing")).await.unwrap();
    // A day of seconds.
    let plan = jobs.plan_backfill("often", time("00:00"), time("11:59")).await.unwrap();
    assert_eq!((plan.total, plan.slots.len(), plan.is_complete()), (43_141, 100, false));
    let begun = jobs.clone().parallel(3).backfill("often", time("00:00"), time("11:59")).await.unwrap();
    assert_eq!(begun.runs.len(), 3);

    let paused = jobs.pause_backfill("often", begun.id).await.unwrap();
    assert_eq!((paused.status(), paused.runs["pending"]), (BackfillStatus::Paused, 43_141));
    assert!(bell.runs().list(&RunFilter::default(), &page()).await.unwrap().items.is_empty(), "withdrawn");
    let refused = jobs.pause_backfill("often", begun.id).await.unwrap_err();
    assert!(refused.to_string().contains("not running: it is paused"), "{refused}");
    let edit =
        BackfillEdit { parallel: Some(Some(5)), rate: Some(Some("10/m".parse().unwrap())), ..Default::default() };
    let set = jobs.set_backfill("often", begun.id, edit).await.unwrap();
    let details = set.details.as_ref().unwrap();
    assert_eq!((details.backfill.settings.parallel, details.backfill.status), (Some(5), BackfillStatus::Paused));
    assert_eq!(jobs.resume_backfill("often", begun.id).await.unwrap().status(), BackfillStatus::Running);
    assert_eq!(jobs.stop_backfill("often", begun.id).await.unwrap(), 43_141);
    assert_eq!(jobs.stop_backfill("often", begun.id).await.unwrap(), 0, "it is over");
    let refused = jobs.resume_backfill("often", begun.id).await.unwrap_err();
    assert!(refused.to_string().contains("it is stopped"), "{refused}");
    let entries = bell.store().list_audit(Some("job:often"), &page()).await.unwrap().items;
    let actions: Vec<&str> = entries.iter().rev().map(|entry| entry.action.trim_start_matches("job.")).collect();
    assert_eq!(actions, ["create", "backfill", "backfill_pause", "backfill_set", "backfill_resume", "backfill_stop"]);
}
