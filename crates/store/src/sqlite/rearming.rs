//! Timers that a clock which was ahead has moved into the future, and what is known about time.

use everbell_core::plan::Plan;
use everbell_core::store::{AuditEntry, ClockTrace, Due, FUTURE_TOLERANCE, Rearmed, StoreResult};
use jiff::{SignedDuration, Timestamp};

use super::SqliteStore;
use super::access::insert_audit;
use super::batch::{self, Hex};
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::{Asked, GapCuts, PlanBatch, TimerColumns, clock_trace};

impl SqliteStore {
    pub(super) async fn read_clock_trace(&self) -> StoreResult<ClockTrace> {
        let mut held = self.reader("reading the trace of the clock").await?;
        let mut tx = held.begin().await?;
        Ok(clock_trace(tx.one(sqlx::query(include_str!("sql/clock_trace.sql"))).await?))
    }

    pub(super) async fn save_trusted_time(&self, at: Timestamp) -> StoreResult<()> {
        let mut held = self.writer("writing the trusted time").await?;
        let mut tx = held.begin().await?;
        tx.run(sqlx::query(include_str!("sql/write_trusted_time.sql")).bind(Micros::from(at))).await?;
        tx.commit().await
    }

    pub(super) async fn rearm(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> StoreResult<Rearmed> {
        let now: Timestamp = Micros::from(now).into();
        let horizon = now.checked_add(SignedDuration::try_from(FUTURE_TOLERANCE).unwrap_or_default());
        let horizon = Micros::from(horizon.unwrap_or(Timestamp::MAX));
        let mut held = self.writer("arming timers again").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/lock_future_timers.sql")).bind(horizon).bind(limit);
        let timers: Vec<TimerColumns> = tx.all(query).await?;
        let mut rearmed = Rearmed { timers: timers.len() as u32, ..Rearmed::default() };
        if !timers.is_empty() {
            let (asked, mut batch) = (Asked::default(), PlanBatch::default());
            let rearm = |due: &Due, now| {
                asked.add(due);
                Plan::nothing(&due.rearm(now))
            };
            self.ask(&mut tx, timers, now, &rearm, &mut batch).await?;
            set_back(&mut tx, &batch, now).await?;
            rearmed.gaps = cut_gaps(&mut tx, &asked.into_inner(), horizon, now).await?;
        }
        let query = sqlx::query(include_str!("sql/shorten_leases.sql")).bind(Micros::from(lease_until));
        rearmed.leases = tx.run(query).await? as u32;
        let query = sqlx::query(include_str!("sql/set_back_heartbeats.sql")).bind(Micros::from(now)).bind(horizon);
        let heartbeats = tx.run(query).await?;
        if rearmed.timers > 0 {
            insert_audit(&mut tx, &AuditEntry { reason: Some(rearmed.to_string()), ..audit.clone() }).await?;
            tx.commit_and_wake().await?;
        } else if rearmed.leases > 0 || heartbeats > 0 {
            tx.commit().await?;
        }
        Ok(rearmed)
    }
}

async fn set_back(tx: &mut Tx<'_>, batch: &PlanBatch, now: Timestamp) -> StoreResult<()> {
    let now = Micros::from(now);
    let rows = batch.timers.iter().map(|(t, _)| {
        (Hex(t.job_id), t.org_id.clone(), t.next_run_at, t.last_slot_at.min(now), t.last_local_date.clone())
    });
    tx.run(sqlx::query(include_str!("sql/set_back_timers.sql")).bind(batch::rows(rows)).bind(now)).await.map(drop)
}

async fn cut_gaps(tx: &mut Tx<'_>, dues: &[Due], horizon: Micros, now: Timestamp) -> StoreResult<u32> {
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
