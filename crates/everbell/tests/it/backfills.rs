//! Runs for slots that have gone by.

use std::sync::Arc;

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
    assert_eq!(begun.runs.len(), 6);
    let again = jobs.plan_backfill("hourly", from, to).await.unwrap();
    assert_eq!(again.wanted(), []);
    assert!(again.slots.iter().all(|slot| slot.existing.is_some_and(|(_, status)| status == RunStatus::Pending)));
    let reports = jobs.backfills("hourly").await.unwrap();
    assert_eq!((reports.len(), reports[0].id, reports[0].is_done()), (1, begun.id, false));
    assert_eq!((reports[0].runs["pending"], reports[0].asked.actor.as_str()), (6, "ana"));
    assert_eq!(reports[0].asked.reason.as_deref(), Some("the disk was full"));

    assert_eq!(jobs.stop_backfill("hourly", begun.id).await.unwrap(), 6);
    let reports = jobs.backfills("hourly").await.unwrap();
    assert!(reports[0].is_done() && reports[0].runs["canceled"] == 6);
    let told = jobs.explain("hourly", time("07:00")).await.unwrap();
    let Explanation::Settled(SlotOutcome::Run(run)) = told else { panic!("{told:?}") };
    assert_eq!(run.status, RunStatus::Canceled);
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
    jobs.backfill("hourly", time("09:00"), time("10:00")).await.unwrap();
    let edit = everbell::Edit { description: Some("again".to_owned()), ..Default::default() };
    jobs.new_version("hourly", edit).await.unwrap();
    let plan = jobs.plan_backfill("hourly", time("08:00"), time("23:00")).await.unwrap();
    let existing: Vec<bool> = plan.slots.iter().map(|slot| slot.existing.is_some()).collect();
    assert_eq!(existing, [false, true, true, false, false], "08:00 to 12:00; the rest is still to come");
    let begun = jobs.backfill("hourly", time("08:00"), time("23:00")).await.unwrap();
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
        ("often", "10:00", "11:00", "to: the range has 3601 slots; at most 1000 at once"),
        ("once", "10:00", "11:00", "from: a one-time job has no slots to go back to"),
    ] {
        let refused = jobs.backfill(key, time(from), time(to)).await.unwrap_err();
        assert!(refused.to_string().starts_with(reason), "{refused}");
    }
}
