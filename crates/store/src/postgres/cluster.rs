//! The database itself, instances and their leases, time, and upkeep.

use async_trait::async_trait;
use everbell_core::settle::Settling;
use everbell_core::store::{
    AuditEntry, Beat, ClockTrace, ClusterStore, Counts, Instance, LeaseReport, PruneBefore, Pruned, Rearmed, Session,
    StoreError, StoreResult, StoreStatus, Wakeup, WorkSeen,
};
use everbell_core::{App, InstanceId, ReleaseId, ReleaseStatus, Releases, RunId, Source};
use jiff::Timestamp;
use uuid::Uuid;

use super::audit::insert_audit;
use super::connect::on;
use super::rearm::REARMING;
use super::statement::Statement;
use super::{PostgresStore, migrate};
use crate::micros::Micros;
use crate::rows::binds::bind_instance;
use crate::rows::from_row::by_name;
use crate::rows::{
    ActiveCountColumns, DueColumns, InstanceColumns, JobCountColumns, SettlingColumns, clock_trace, counts, readable,
    settling,
};

#[async_trait]
impl ClusterStore for PostgresStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        let now: Micros = self
            .within("reading the clock", sqlx::query_scalar(include_str!("sql/now.sql")).fetch_one_on(&self.loops))
            .await?;
        Ok(now.into())
    }

    async fn status(&self) -> StoreResult<StoreStatus> {
        type Row = (String, i64, Option<Micros>);
        let query = sqlx::query_as::<_, Row>(include_str!("sql/status.sql"));
        let (product, size, oldest) = self.within("reading the status", query.fetch_one_on(&self.pool)).await?;
        let mut notes = Vec::new();
        match &self.listener {
            None => notes.push("LISTEN is off behind the pooler: loops notice changes when they poll".to_owned()),
            Some(listener) if !listener.is_connected() => {
                notes.push("notifications do not arrive (a pooler?): loops notice changes when they poll".to_owned());
            }
            Some(_) => {}
        }
        notes.extend(self.note_connections().await?);
        Ok(StoreStatus {
            product: format!("postgres {product}"),
            schema_version: migrate::latest(),
            size_bytes: u64::try_from(size).ok(),
            oldest_transaction_at: oldest.map(Into::into),
            notes,
            write_failure: None,
        })
    }

    async fn close(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn counts(&self, now: Timestamp) -> StoreResult<Counts> {
        const WHAT: &str = "counting";
        let jobs = sqlx::query_as(include_str!("sql/count_jobs_by_status.sql"));
        let jobs: Vec<JobCountColumns> = self.within(WHAT, jobs.fetch_all_on(&self.pool)).await?;
        let active = sqlx::query_as(include_str!("sql/count_active_runs.sql"));
        let active: Vec<ActiveCountColumns> = self.within(WHAT, active.fetch_all_on(&self.pool)).await?;
        let due = sqlx::query_as(include_str!("sql/count_due_timers.sql")).bind(Micros::from(now));
        let due: DueColumns = self.within(WHAT, due.fetch_one_on(&self.pool)).await?;
        counts(jobs, active, &due)
    }

    async fn heartbeat(&self, instance: &Instance, lease_until: Option<Timestamp>, looks: bool) -> StoreResult<Beat> {
        let targets: Vec<String> = instance.targets.iter().map(ToString::to_string).collect();
        let query = bind_instance!(sqlx::query_as(include_str!("sql/heartbeat.sql")), instance, lease_until);
        let query = query.bind(looks).bind(targets);
        let rows: Vec<BeatColumns> = self.alone("writing a heartbeat", query.fetch_all_on(&self.loops)).await?;
        Ok(BeatColumns::read(rows, looks))
    }

    async fn list_instances(&self) -> StoreResult<Vec<Instance>> {
        let query = sqlx::query_as(include_str!("sql/list_instances.sql"));
        let rows: Vec<InstanceColumns> = self.within("listing instances", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.id, InstanceColumns::read).0)
    }

    async fn leave(&self, instance: InstanceId, planned_until: Timestamp, now: Timestamp) -> StoreResult<()> {
        let query = sqlx::query(include_str!("sql/leave.sql"))
            .bind(instance.as_uuid())
            .bind(Micros::from(planned_until.min(now)))
            .bind(Micros::from(now));
        self.alone("leaving", query.execute_on(&self.loops)).await.map(drop)
    }

    async fn drain_instance(&self, instance: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "draining an instance";
        let mut tx = self.begin(WHAT).await?;
        let query = sqlx::query(include_str!("sql/drain_instance.sql")).bind(instance.as_uuid()).bind(draining);
        let done = async {
            if on(WHAT, query.execute_on(&mut tx)).await?.rows_affected() == 0 {
                return Err(StoreError::not_found("instance", instance));
            }
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |()| true).await
    }

    async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64> {
        let query = sqlx::query(include_str!("sql/remove_instances.sql")).bind(Micros::from(before));
        Ok(self.alone("removing instances", query.execute_on(&self.pool)).await?.rows_affected())
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
        let query = sqlx::query_as(include_str!("sql/held_runs.sql")).bind(instance.as_uuid());
        let rows: Vec<(Uuid, i32, Option<String>)> =
            self.within("reading the runs of this instance", query.fetch_all_on(&self.loops)).await?;
        Ok(rows.into_iter().map(lease_report).collect())
    }

    async fn extend_leases(
        &self,
        instance: InstanceId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<LeaseReport>> {
        let query = sqlx::query_as(include_str!("sql/extend_leases.sql"))
            .bind(instance.as_uuid())
            .bind(Micros::from(now))
            .bind(Micros::from(until));
        let mut rows: Vec<(Uuid, i32, Option<String>)> =
            self.alone("extending leases", query.fetch_all_on(&self.loops)).await?;
        rows.sort_unstable_by_key(|(run, _, _)| *run);
        Ok(rows.into_iter().map(lease_report).collect())
    }

    async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        const WHAT: &str = "looking for expired leases";
        let query =
            sqlx::query_as(include_str!("sql/expired_leases.sql")).bind(Micros::from(now)).bind(i64::from(limit));
        let rows: Vec<SettlingColumns> = self.within(WHAT, query.fetch_all_on(&self.loops)).await?;
        self.settling(&rows).await
    }

    async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        const WHAT: &str = "looking for the leases of an instance";
        let query = sqlx::query_as(include_str!("sql/leases_of.sql")).bind(instance.as_uuid()).bind(i64::from(limit));
        let rows: Vec<SettlingColumns> = self.within(WHAT, query.fetch_all_on(&self.loops)).await?;
        self.settling(&rows).await
    }

    async fn clock_trace(&self) -> StoreResult<ClockTrace> {
        let query = sqlx::query_as(include_str!("sql/clock_trace.sql"));
        Ok(clock_trace(self.alone("reading the trace of the clock", query.fetch_one_on(&self.pool)).await?))
    }

    async fn write_trusted_time(&self, at: Timestamp) -> StoreResult<()> {
        let query = sqlx::query(include_str!("sql/write_trusted_time.sql")).bind(Micros::from(at));
        self.alone("writing the trusted time", query.execute_on(&self.pool)).await.map(drop)
    }

    async fn rearm_timers(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> StoreResult<Rearmed> {
        let mut tx = self.begin_loop(REARMING).await?;
        let done = self.rearm_in(&mut tx, now, lease_until, limit, audit).await;
        let rearmed = self.finish_transaction(REARMING, tx, done, |rearmed| rearmed.timers > 0).await?;
        if rearmed.timers > 0 {
            self.wake.notify_waiters();
        }
        Ok(rearmed)
    }

    async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        let (bound, limit) = (Micros::from(before.history), i64::from(limit));
        let runs = sqlx::query(include_str!("sql/prune_runs.sql"))
            .bind(bound)
            .bind(limit)
            .bind(RunId::first_at(before.history).as_uuid());
        let gaps = sqlx::query(include_str!("sql/prune_gaps.sql")).bind(bound).bind(limit);
        let audit = sqlx::query(include_str!("sql/prune_audit.sql")).bind(Micros::from(before.audit)).bind(limit);
        let answers =
            sqlx::query(include_str!("sql/prune_requests.sql")).bind(Micros::from(before.requests)).bind(limit);
        let sessions = sqlx::query(include_str!("sql/prune_sessions.sql"))
            .bind(Micros::from(before.requests))
            .bind(limit)
            .bind(Micros::from(Session::idle_since(before.requests)));
        self.alone("pruning sessions", sessions.execute_on(&self.pool)).await?;
        for statement in PRUNED_TOO {
            let query = sqlx::query(statement).bind(bound).bind(limit);
            self.alone("pruning problems and absences", query.execute_on(&self.pool)).await?;
        }
        let inbox = sqlx::query(include_str!("sql/prune_inbox.sql")).bind(bound).bind(limit);
        // Each on its own, so that no lock outlives its statement.
        Ok(Pruned {
            runs: self.alone("pruning runs", runs.execute_on(&self.pool)).await?.rows_affected(),
            gaps: self.alone("pruning gaps", gaps.execute_on(&self.pool)).await?.rows_affected(),
            audit: self.alone("pruning the audit trail", audit.execute_on(&self.pool)).await?.rows_affected(),
            answers: self.alone("pruning answers", answers.execute_on(&self.pool)).await?.rows_affected(),
            jobs: self.prune_jobs(before.history, limit).await?,
            inbox: self.alone("pruning the inbox", inbox.execute_on(&self.pool)).await?.rows_affected(),
        })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn can_partition(&self) -> bool {
        true
    }

    fn hears_others(&self) -> bool {
        self.listener.as_ref().is_some_and(super::listen::Listener::hears)
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

fn lease_report((run, attempt, cancel_by): (Uuid, i32, Option<String>)) -> LeaseReport {
    LeaseReport { run: RunId::from_uuid(run), attempt: u32::try_from(attempt).unwrap_or(0), cancel_by }
}

/// A row of `heartbeat.sql`: one for each run that is to be canceled, or a single one without a run.
#[allow(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
struct BeatColumns {
    draining: bool,
    is_new: bool,
    losses: i64,
    unleased: bool,
    lapsed: bool,
    run_id: Option<Uuid>,
    attempt: Option<i32>,
    cancel_by: Option<String>,
    due: bool,
    pending: bool,
}

by_name!(
    sqlx::postgres::PgRow,
    BeatColumns { draining, is_new, losses, unleased, lapsed, run_id, attempt, cancel_by, due, pending }
);

impl BeatColumns {
    fn read(rows: Vec<BeatColumns>, looks: bool) -> Beat {
        let mut beat = Beat::default();
        for row in rows {
            (beat.draining, beat.is_new) = (row.draining, row.is_new);
            (beat.has_unleased, beat.has_lapsed) = (row.unleased, row.lapsed);
            beat.work = looks.then_some(WorkSeen { is_due: row.due, is_pending: row.pending });
            beat.losses = u64::try_from(row.losses).unwrap_or(0);
            if let (Some(run), Some(attempt)) = (row.run_id, row.attempt) {
                beat.to_cancel.push(lease_report((run, attempt, row.cancel_by)));
            }
        }
        beat.to_cancel.sort_unstable_by_key(|report| report.run);
        beat
    }
}

impl PostgresStore {
    /// Whether the instances may want more connections than the server has. A pooler shares them out by itself.
    async fn note_connections(&self) -> StoreResult<Option<String>> {
        if !self.hosts.is_direct() {
            return Ok(None);
        }
        let query = sqlx::query_as(include_str!("sql/connections.sql"));
        let (allowed, instances): (i64, i64) =
            self.within("counting connections", query.fetch_one_on(&self.pool)).await?;
        let wanted = instances.max(1).saturating_mul(self.max_connections as i64);
        if wanted <= allowed && !self.hosts.is_crowded() {
            return Ok(None);
        }
        let refuses = if self.hosts.is_crowded() { "and refuses some now" } else { "so some may be refused" };
        let note = format!(
            "the server allows {allowed} connections, {instances} instances want up to {wanted}, {refuses}: raise \
             max_connections of the server, or lower database.max_connections"
        );
        Ok(Some(note))
    }

    async fn settling(&self, rows: &[SettlingColumns]) -> StoreResult<Vec<Settling>> {
        let learned = self.learn_apart(rows.iter().filter_map(|row| row.job_id)).await?;
        Ok(settling(rows, &learned))
    }
}
