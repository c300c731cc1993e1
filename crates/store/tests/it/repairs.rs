//! A timer that somebody disarmed by hand is found among the active jobs, and armed again.

use everbell_core::change;
use everbell_core::repair::{Repair, needed};
use everbell_core::store::{AuditEntry, JobFilter, JobRef, JobRow, PageRequest, Store};
use everbell_core::{GapReason, JobId, JobKey, JobStatus};

use super::broken::{Broken, on_both};
use super::sqlite_world::{at, audit, create};

on_both!(a_timer_without_a_next_fire, a_job_whose_error_has_no_cause_any_more);

/// The active jobs without a next fire, and what each needs.
async fn resting(store: &dyn Store) -> Vec<(String, JobId, Option<Repair>)> {
    let filter = JobFilter { status: vec![JobStatus::Active], scheduled: Some(false), ..JobFilter::default() };
    let page = store.list_jobs(&filter, &PageRequest { limit: 100, after: None }).await.unwrap();
    let told = |row: &JobRow| {
        (row.job.definition.key.to_string(), row.job.definition.id, needed(&row.job, row.timer.as_ref()))
    };
    page.items.iter().map(told).collect()
}

async fn a_timer_without_a_next_fire(database: Broken) {
    let store = database.open().await;
    create(&*store, "lost", "0 * * * *").await;
    create(&*store, "well", "0 * * * *").await;
    assert!(resting(&*store).await.is_empty());
    database
        .run("update everbell.timers set next_run_at = null where job_id = (select id from everbell.jobs where job_key = 'lost')")
        .await;
    let found = resting(&*store).await;
    let [(key, id, Some(Repair::Arm))] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(key, "lost");

    let now = at("12:30:00");
    let repair = |view: &change::JobView| change::repair(view, "everbell", now);
    let entry = AuditEntry { action: "job.repaired".to_owned(), at: now, ..audit(1) };
    let changed = store.change_job(&JobRef::Id(*id), None, &repair, &entry).await.unwrap();
    assert!(changed.job.timer.unwrap().next_run_at.is_some());
    assert!(resting(&*store).await.is_empty());
    let again = store
        .change_job(&JobRef::Id(*id), None, &repair, &AuditEntry { id: uuid::Uuid::from_u128(2), ..entry.clone() })
        .await;
    assert!(again.is_err(), "somebody was faster: {again:?}");
    let trail = store.list_audit(None, &PageRequest { limit: 10, after: None }).await.unwrap().items;
    assert_eq!(trail.iter().filter(|entry| entry.action == "job.repaired").count(), 1);
}

async fn a_job_whose_error_has_no_cause_any_more(database: Broken) {
    let store = database.open().await;
    create(&*store, "errored", "0 * * * *").await;
    database.run("update everbell.jobs set error = 'no zone'").await;
    database.run("update everbell.timers set next_run_at = null").await;
    let found = resting(&*store).await;
    let [(_, id, Some(Repair::EndError))] = found.as_slice() else { panic!("{found:?}") };
    let now = at("12:30:00");
    let repair = |view: &change::JobView| change::repair(view, "everbell", now);
    let changed = store.change_job(&JobRef::Id(*id), None, &repair, &audit(1)).await.unwrap();
    assert_eq!(changed.job.job.state.error, None);
    assert!(changed.gaps.iter().any(|gap| gap.reason == GapReason::Errored), "{:?}", changed.gaps);
    let row = store.get_job(&JobRef::Key(JobKey::new("errored").unwrap())).await.unwrap();
    assert!(row.timer.unwrap().next_run_at.is_some_and(|next| next > now));
}
