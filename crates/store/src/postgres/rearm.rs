//! Timers that a clock which was ahead has moved into the future.

use everbell_core::plan::Plan;
use everbell_core::store::{AuditEntry, Due, FUTURE_TOLERANCE, Rearmed, StoreResult};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::PostgresStore;
use super::audit::insert_audit;
use super::connect::{Conn, on};
use super::statement::Statement;
use super::timers::column;
use crate::micros::Micros;
use crate::rows::{Asked, GapCuts, PlanBatch, TimerColumns};

pub(super) const REARMING: &str = "arming timers again";

impl PostgresStore {
    pub(super) async fn rearm_in(
        &self,
        tx: Conn<'_, '_>,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> StoreResult<Rearmed> {
        let horizon = now.checked_add(SignedDuration::try_from(FUTURE_TOLERANCE).unwrap_or_default());
        let horizon = Micros::from(horizon.unwrap_or(Timestamp::MAX));
        let query = sqlx::query_as(include_str!("sql/lock_future_timers.sql")).bind(horizon).bind(i64::from(limit));
        let timers: Vec<TimerColumns> = on(REARMING, query.fetch_all_on(&mut *tx)).await?;
        let mut rearmed = Rearmed { timers: timers.len() as u32, ..Rearmed::default() };
        if !timers.is_empty() {
            let (asked, mut batch) = (Asked::default(), PlanBatch::default());
            let rearm = |due: &Due, now| {
                asked.add(due);
                Plan::nothing(&due.rearm(now))
            };
            self.ask(&mut *tx, timers, now, &rearm, &mut batch).await?;
            set_back(&mut *tx, &batch, now).await?;
            rearmed.gaps = cut_gaps(&mut *tx, &asked.into_inner(), horizon, now).await?;
        }
        let lease_until = Micros::from(lease_until);
        // Instances before runs, as where losses are counted.
        let query = sqlx::query(include_str!("sql/set_back_heartbeats.sql"));
        let query = query.bind(Micros::from(now)).bind(horizon).bind(lease_until);
        on(REARMING, query.execute_on(&mut *tx)).await?;
        let query = sqlx::query(include_str!("sql/shorten_leases.sql")).bind(lease_until);
        rearmed.leases = on(REARMING, query.execute_on(&mut *tx)).await?.rows_affected() as u32;
        if rearmed.timers > 0 {
            insert_audit(tx, &AuditEntry { reason: Some(rearmed.to_string()), ..audit.clone() }).await?;
        }
        Ok(rearmed)
    }
}

async fn set_back(conn: Conn<'_, '_>, batch: &PlanBatch, now: Timestamp) -> StoreResult<()> {
    let t = &batch.timers;
    let query = sqlx::query(include_str!("sql/set_back_timers.sql"))
        .bind(column(t, |(t, _)| t.job_id))
        .bind(column(t, |(t, _)| t.org_id.as_str()))
        .bind(column(t, |(t, _)| t.next_run_at))
        .bind(column(t, |(t, _)| t.last_slot_at.min(Micros::from(now))))
        .bind(column(t, |(t, _)| t.last_local_date.as_deref()))
        .bind(Micros::from(now));
    on(REARMING, query.execute_on(&mut *conn)).await.map(drop)
}

async fn cut_gaps(conn: Conn<'_, '_>, dues: &[Due], horizon: Micros, now: Timestamp) -> StoreResult<u32> {
    let jobs: Vec<Uuid> = dues.iter().map(|due| due.job.id.as_uuid()).collect();
    let query = sqlx::query_as(include_str!("sql/future_gaps.sql")).bind(jobs).bind(horizon).bind(Micros::from(now));
    let cuts = GapCuts::new(on(REARMING, query.fetch_all_on(&mut *conn)).await?, dues, now);
    if !cuts.delete.is_empty() {
        let query = sqlx::query(include_str!("sql/delete_gaps.sql")).bind(cuts.delete.clone());
        on(REARMING, query.execute_on(&mut *conn)).await?;
    }
    if !cuts.shorten.is_empty() {
        let query = sqlx::query(include_str!("sql/shorten_gaps.sql"))
            .bind(column(&cuts.shorten, |(id, _, _)| *id))
            .bind(column(&cuts.shorten, |(_, last, _)| *last))
            .bind(column(&cuts.shorten, |(_, _, slots)| *slots));
        on(REARMING, query.execute_on(&mut *conn)).await?;
    }
    Ok(cuts.len())
}
