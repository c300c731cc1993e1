//! Timers that a clock which was ahead has moved into the future.

use everbell_core::store::{Due, StoreResult};
use jiff::Timestamp;

use super::batch::{self, Hex};
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::{GapCuts, PlanBatch};

pub(super) async fn set_back(tx: &mut Tx<'_>, batch: &PlanBatch, now: Timestamp) -> StoreResult<()> {
    let now = Micros::from(now);
    let rows = batch.timers.iter().map(|(t, _)| {
        (Hex(t.job_id), t.org_id.clone(), t.next_run_at, t.last_slot_at.min(now), t.last_local_date.clone())
    });
    tx.run(sqlx::query(include_str!("sql/set_back_timers.sql")).bind(batch::rows(rows)).bind(now)).await.map(drop)
}

pub(super) async fn cut_gaps(tx: &mut Tx<'_>, dues: &[Due], horizon: Micros, now: Timestamp) -> StoreResult<u32> {
    let jobs = batch::ids(dues.iter().map(|due| due.job.id.as_uuid()));
    let query = sqlx::query(include_str!("sql/future_gaps.sql")).bind(jobs).bind(horizon).bind(Micros::from(now));
    let cuts = GapCuts::new(tx.all(query).await?, dues, now);
    if !cuts.delete.is_empty() {
        let ids = batch::ids(cuts.delete.iter().copied());
        tx.run(sqlx::query(include_str!("sql/delete_gaps.sql")).bind(ids)).await?;
    }
    if !cuts.shorten.is_empty() {
        let rows = batch::rows(cuts.shorten.iter().map(|(id, last, slots)| (Hex(*id), *last, *slots)));
        tx.run(sqlx::query(include_str!("sql/shorten_gaps.sql")).bind(rows)).await?;
    }
    Ok(cuts.len())
}
