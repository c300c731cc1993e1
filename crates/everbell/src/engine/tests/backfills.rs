//! The backfiller: runs of a backfill are created as places become free.

use everbell_core::backfill::{Backfill, BackfillSettings, BackfillStatus};
use everbell_core::change::{self, BackfillFacts, JobView};
use everbell_core::store::{BackfillStore, JobRef, JobStore};
use everbell_core::{BackfillId, JobKey};

use super::lab::{Lab, at, job};
use crate::engine::{Step, Wait, audit, known_slots};

/// Creates `hourly` at midnight, and begins a backfill of five slots of the day before.
async fn begin(lab: &Lab, settings: BackfillSettings) -> BackfillId {
    lab.create(job("hourly", "0 * * * *", "log")).await;
    let id = BackfillId::new(at("00:00"), [5; 10]);
    let range = (at("2026-11-14T01:00:00Z"), at("2026-11-14T05:00:00Z"));
    let backfill = Backfill::new((id, JobKey::new("hourly").unwrap(), None), range, settings, "ana", at("00:00"));
    let row = lab.store.get_job(&JobRef::Key(backfill.job_key.clone())).await.unwrap();
    let slots = backfill.next_slots(row.job.definition.spec.as_ref().unwrap(), 100);
    let known = known_slots(&*lab.store, &backfill, &slots).await.unwrap();
    let facts = BackfillFacts { runs: &[], slots: &known, max_active: 100 };
    let decide = |view: &JobView| change::begin_backfill(view, backfill.clone(), &facts, at("00:00"));
    let entry = audit("job.backfill", "job:hourly".to_owned(), None, at("00:00"));
    lab.store.change_job(&JobRef::Id(row.job.definition.id), None, &decide, &entry).await.unwrap();
    id
}

#[tokio::test]
async fn the_backfiller_creates_the_next_run_when_one_ended() {
    let mut lab = Lab::new();
    let id = begin(&lab, BackfillSettings::default()).await;
    for (second, slot) in (1..).zip(["01", "02", "03", "04", "05"]) {
        lab.turn().await;
        let noted = lab.log.lock().unwrap().clone();
        assert_eq!((noted.len(), noted.last().unwrap()), (second, &format!("log {slot}:00:00")));
        lab.set(&format!("00:00:{second:02}"));
        lab.engine.backfiller.step().await.unwrap();
    }
    let done = lab.store.get_backfill(id).await.unwrap();
    assert_eq!((done.status, done.counts.succeeded), (BackfillStatus::Done, 5));
}

#[tokio::test]
async fn an_instance_without_backfills_looks_for_them_seldom() {
    let mut lab = Lab::new();
    assert_eq!(lab.engine.backfiller.step().await.unwrap(), Wait::For(std::time::Duration::from_mins(1)));
    // Woken by something else, it does not look.
    let Wait::For(wait) = lab.engine.backfiller.step().await.unwrap() else { panic!("it looked again") };
    assert!(wait <= std::time::Duration::from_secs(5), "{wait:?}");
}
