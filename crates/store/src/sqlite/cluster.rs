//! The database itself, instances and their leases, time, and upkeep.

use async_trait::async_trait;
use everbell_core::plan::Plan;
use everbell_core::settle::Settling;
use everbell_core::store::{
    AuditEntry, Beat, ClockTrace, ClusterStore, Counts, Due, FUTURE_TOLERANCE, Instance, LeaseReport, PruneBefore,
    Pruned, Rearmed, Session, StoreError, StoreResult, StoreStatus, Wakeup, WorkSeen,
};
use everbell_core::{App, InstanceId, JobId, ReleaseId, ReleaseStatus, Releases, RunId, Source};
use jiff::{SignedDuration, Timestamp};
use sqlx::Connection;
use uuid::Uuid;

use super::audit::insert_audit;
use super::batch;
use super::connect::clock;
use super::rearm::{cut_gaps, set_back};
use super::transaction::Statement;
use super::{SqliteStore, errors, migrate, purge};
use crate::micros::Micros;
use crate::rows::binds::bind_instance;
use crate::rows::{
    ActiveCountColumns, Asked, InstanceColumns, JobCountColumns, PlanBatch, SettlingColumns, TimerColumns, clock_trace,
    counts, readable, settling,
};

#[async_trait]
impl ClusterStore for SqliteStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        let mut held = self.reader("reading the database").await?;
        let mut tx = held.begin().await?;
        tx.run(sqlx::query(include_str!("sql/now.sql"))).await?;
        Ok(clock())
    }

    async fn status(&self) -> StoreResult<StoreStatus> {
        let mut held = self.reader("reading the status").await?;
        let mut tx = held.begin().await?;
        let (product, size): (String, i64) = tx.one(sqlx::query(include_str!("sql/status.sql"))).await?;
        let notes = match self.path {
            Some(_) => Vec::new(),
            None => vec!["the database is in memory: nothing outlives the process".to_owned()],
        };
        let notes = self.files.iter().filter_map(|files| files.checkpoint_failure()).chain(notes).collect();
        Ok(StoreStatus {
            product: format!("sqlite {product}"),
            schema_version: migrate::latest(),
            size_bytes: u64::try_from(size).ok(),
            oldest_transaction_at: None,
            notes,
            write_failure: self.files.as_ref().and_then(|files| files.write_failure()),
        })
    }

    /// Closes every connection, the anchor last: it leaves the whole database in its file.
    async fn close(&self) -> StoreResult<()> {
        let Some(files) = &self.files else { return Ok(()) };
        let mut writer = self.writer.lock().await;
        let in_place = files.check();
        if !files.refuse_all() {
            return Ok(());
        }
        if let Some(connection) = writer.take() {
            connection.close().await.map_err(|error| errors::from_sqlx("closing the database", error))?;
        }
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
        files.weigh_anchor(in_place).await
    }

    async fn counts(&self, now: Timestamp) -> StoreResult<Counts> {
        let mut held = self.reader("counting").await?;
        let mut tx = held.begin().await?;
        let jobs: Vec<JobCountColumns> = tx.all(sqlx::query(include_str!("sql/count_jobs_by_status.sql"))).await?;
        let active: Vec<ActiveCountColumns> = tx.all(sqlx::query(include_str!("sql/count_active_runs.sql"))).await?;
        let due = sqlx::query(include_str!("sql/count_due_timers.sql")).bind(Micros::from(now));
        counts(jobs, active, &tx.one(due).await?)
    }

    async fn heartbeat(&self, instance: &Instance, lease_until: Option<Timestamp>, looks: bool) -> StoreResult<Beat> {
        let (id, now) = (instance.id.as_uuid(), Micros::from(instance.heartbeat_at));
        let mut held = self.writer("writing a heartbeat").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/other_instances.sql")).bind(id).bind(now);
        let (known, has_unleased, has_lapsed): (bool, bool, bool) = tx.one(query).await?;
        let query = bind_instance!(sqlx::query(include_str!("sql/heartbeat.sql")), instance, lease_until);
        let (draining, losses): (bool, i64) = tx.one(query).await?;
        tx.note_written();
        let query = sqlx::query(include_str!("sql/runs_to_cancel.sql")).bind(id);
        let to_cancel = tx.all(query).await?.into_iter().map(lease_report).collect();
        let mut work = None;
        if looks {
            let targets = batch::rows(instance.targets.iter().map(ToString::to_string));
            let query = sqlx::query(include_str!("sql/work_of_targets.sql")).bind(now).bind(targets);
            let (is_due, is_pending): (bool, bool) = tx.one(query).await?;
            work = Some(WorkSeen { is_due, is_pending });
        }
        tx.commit().await?;
        let losses = u64::try_from(losses).unwrap_or(0);
        Ok(Beat { draining, is_new: !known, losses, to_cancel, has_unleased, has_lapsed, work })
    }

    async fn list_instances(&self) -> StoreResult<Vec<Instance>> {
        let rows: Vec<InstanceColumns> =
            self.read("listing instances", sqlx::query(include_str!("sql/list_instances.sql"))).await?;
        Ok(readable(rows, |row| row.id, InstanceColumns::read).0)
    }

    async fn leave(&self, instance: InstanceId, planned_until: Timestamp, now: Timestamp) -> StoreResult<()> {
        let id = instance.as_uuid();
        let mut held = self.writer("leaving").await?;
        let mut tx = held.begin().await?;
        let departure = sqlx::query(include_str!("sql/note_departure.sql"));
        let departure = departure.bind(id).bind(Micros::from(planned_until.min(now))).bind(Micros::from(now));
        tx.run(departure).await?;
        tx.run(sqlx::query(include_str!("sql/leave.sql")).bind(id)).await?;
        tx.commit().await
    }

    async fn drain_instance(&self, instance: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("draining an instance").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/drain_instance.sql")).bind(instance.as_uuid()).bind(draining);
        if tx.run(query).await? == 0 {
            return Err(StoreError::not_found("instance", instance));
        }
        insert_audit(&mut tx, audit).await?;
        tx.commit_and_wake().await
    }

    async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64> {
        let query = sqlx::query(include_str!("sql/remove_instances.sql")).bind(Micros::from(before));
        self.write("removing instances", query).await
    }

    async fn releases(&self, source: Source, app: &App) -> StoreResult<Releases> {
        self.read_releases(source, app).await
    }

    async fn declare_release(
        &self,
        source: Source,
        app: &App,
        release: &ReleaseId,
        now: Timestamp,
    ) -> StoreResult<ReleaseStatus> {
        let now = Micros::from(now).into();
        self.change_releases(source, app, |releases| releases.declare(release, now)).await
    }

    async fn see_release(&self, source: Source, app: &App, release: &ReleaseId, now: Timestamp) -> StoreResult<()> {
        let now = Micros::from(now).into();
        self.change_releases(source, app, |releases| (releases.see(release, now), ())).await
    }

    async fn held_runs(&self, instance: InstanceId) -> StoreResult<Vec<LeaseReport>> {
        let mut held = self.reader("reading the runs of this instance").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/held_runs.sql")).bind(instance.as_uuid());
        Ok(tx.all(query).await?.into_iter().map(lease_report).collect())
    }

    async fn extend_leases(
        &self,
        instance: InstanceId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<LeaseReport>> {
        let mut held = self.writer("extending leases").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/extend_leases.sql"))
            .bind(instance.as_uuid())
            .bind(Micros::from(now))
            .bind(Micros::from(until));
        let mut rows: Vec<(Uuid, u32, Option<String>)> = tx.all(query).await?;
        if !rows.is_empty() {
            tx.commit().await?;
        }
        rows.sort_unstable_by_key(|(run, _, _)| *run);
        Ok(rows.into_iter().map(lease_report).collect())
    }

    async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        let query = sqlx::query(include_str!("sql/expired_leases.sql")).bind(Micros::from(now)).bind(limit);
        self.settling("looking for expired leases", query).await
    }

    async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        let query = sqlx::query(include_str!("sql/leases_of.sql")).bind(instance.as_uuid()).bind(limit);
        self.settling("looking for the leases of an instance", query).await
    }

    async fn clock_trace(&self) -> StoreResult<ClockTrace> {
        let mut held = self.reader("reading the trace of the clock").await?;
        let mut tx = held.begin().await?;
        Ok(clock_trace(tx.one(sqlx::query(include_str!("sql/clock_trace.sql"))).await?))
    }

    async fn write_trusted_time(&self, at: Timestamp) -> StoreResult<()> {
        let mut held = self.writer("writing the trusted time").await?;
        let mut tx = held.begin().await?;
        tx.run(sqlx::query(include_str!("sql/write_trusted_time.sql")).bind(Micros::from(at))).await?;
        tx.commit().await
    }

    async fn rearm_timers(
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
        let query = sqlx::query(include_str!("sql/set_back_heartbeats.sql"));
        let query = query.bind(Micros::from(now)).bind(horizon).bind(Micros::from(lease_until));
        let heartbeats = tx.run(query).await?;
        if rearmed.timers > 0 {
            insert_audit(&mut tx, &AuditEntry { reason: Some(rearmed.to_string()), ..audit.clone() }).await?;
            tx.commit_and_wake().await?;
        } else if rearmed.leases > 0 || heartbeats > 0 {
            tx.commit().await?;
        }
        Ok(rearmed)
    }

    async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        let mut held = self.writer("pruning history").await?;
        let mut tx = held.begin().await?;
        let bound = Micros::from(before.history);
        let runs = sqlx::query(include_str!("sql/prune_runs.sql"));
        let runs = runs.bind(bound).bind(limit).bind(RunId::first_at(before.history).as_uuid());
        let gaps = sqlx::query(include_str!("sql/prune_gaps.sql")).bind(bound).bind(limit);
        let audit = sqlx::query(include_str!("sql/prune_audit.sql")).bind(Micros::from(before.audit)).bind(limit);
        let answers =
            sqlx::query(include_str!("sql/prune_requests.sql")).bind(Micros::from(before.requests)).bind(limit);
        let sessions = sqlx::query(include_str!("sql/prune_sessions.sql"))
            .bind(Micros::from(before.requests))
            .bind(limit)
            .bind(Micros::from(Session::idle_since(before.requests)));
        let inbox = sqlx::query(include_str!("sql/prune_inbox.sql")).bind(bound).bind(limit);
        let (mut ended, inbox) = (tx.run(sessions).await?, tx.run(inbox).await?);
        for statement in PRUNED_TOO {
            ended += tx.run(sqlx::query(statement).bind(bound).bind(limit)).await?;
        }
        let (runs, gaps) = (tx.run(runs).await?, tx.run(gaps).await?);
        let (jobs, forgotten) = purge::prune_jobs(&mut tx, before.history, limit).await?;
        let pruned = Pruned { runs, gaps, audit: tx.run(audit).await?, answers: tx.run(answers).await?, jobs, inbox };
        if pruned != Pruned::default() || ended > 0 {
            tx.commit().await?;
            self.known.forget(forgotten);
        }
        Ok(pruned)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn can_partition(&self) -> bool {
        false
    }

    fn hears_others(&self) -> bool {
        false
    }

    // The wait starts with the call, not with its first poll.
    fn woken(&self) -> Wakeup<'_> {
        Box::pin(self.wake.notified())
    }
}

/// Statements that prune rows along with the history, without counting them.
const PRUNED_TOO: [&str; 4] = [
    include_str!("sql/prune_deliveries.sql"),
    include_str!("sql/prune_problems.sql"),
    include_str!("sql/prune_absences.sql"),
    include_str!("sql/prune_backfills.sql"),
];

fn lease_report((run, attempt, cancel_by): (Uuid, u32, Option<String>)) -> LeaseReport {
    LeaseReport { run: RunId::from_uuid(run), attempt, cancel_by }
}

impl SqliteStore {
    async fn settling(&self, what: &'static str, query: Statement) -> StoreResult<Vec<Settling>> {
        let mut held = self.reader(what).await?;
        let mut tx = held.begin().await?;
        let rows: Vec<SettlingColumns> = tx.all(query).await?;
        let learned = self.learn(&mut tx, rows.iter().filter_map(|row| row.job_id.map(JobId::from_uuid))).await?;
        Ok(settling(&rows, &learned))
    }
}
