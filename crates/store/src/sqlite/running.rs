//! From pending to terminal: start, extend, record, and what was lost.

use std::collections::{BTreeMap, HashMap};

use everbell_core::settle::{Next, Settling, Transition};
use everbell_core::store::{
    AuditEntry, Canceled, Claim, Deed, LeaseReport, Recorded, StartRuns, StoreError, StoreResult,
};
use everbell_core::{Failure, InstanceId, JobId, OutputSoFar, Run, RunId, RunStatus};
use jiff::Timestamp;
use serde::Serialize;
use sqlx::FromRow;
use uuid::Uuid;

use super::batch::{self, Hex};
use super::planning::{cancel, insert_runs};
use super::transaction::{Statement, Tx};
use super::{SqliteStore, access, jobs};
use crate::micros::Micros;
use crate::rows::{ClaimColumns, Recording, RunColumns, RunValues, SettlingColumns};

/// How often a claim begins again because it met rows that cannot be read.
const ROUNDS: usize = 100;

/// A pending run that may start.
#[derive(FromRow)]
struct Waiting {
    #[sqlx(flatten)]
    run: ClaimColumns,
    available_at: Micros,
}

impl SqliteStore {
    pub(super) async fn claim_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        let mut held = self.writer("starting runs").await?;
        let mut tx = held.begin().await?;
        let mut unreadable = Vec::new();
        for _ in 0..ROUNDS {
            let known_bad = unreadable.len();
            let mut claims = self.startable(&mut tx, request, &mut unreadable).await?;
            // What cannot be read must not start, and must not stand in the way of the others: look again without it.
            if unreadable.len() > known_bad {
                continue;
            }
            if !claims.is_empty() {
                let query = sqlx::query(include_str!("sql/start_runs.sql"))
                    .bind(batch::ids(claims.iter().map(|claim| claim.run.id.as_uuid())))
                    .bind(request.instance.as_uuid())
                    .bind(Micros::from(request.now))
                    .bind(Micros::from(request.lease_until));
                tx.run(query).await?;
                tx.commit().await?;
            }
            claims.sort_by_key(|claim| (claim.run.scheduled_at, claim.run.id));
            return Ok(claims);
        }
        Ok(Vec::new())
    }

    /// The runs that may start, as they will be then: the oldest of all targets, as many of each as it has room for.
    /// Runs and jobs that cannot be read are added to `unreadable`.
    async fn startable(
        &self,
        tx: &mut Tx<'_>,
        request: &StartRuns<'_>,
        unreadable: &mut Vec<Uuid>,
    ) -> StoreResult<Vec<Claim>> {
        let rooms: BTreeMap<&str, (u32, bool)> =
            request.targets.iter().map(|want| (want.target.as_str(), (want.room, want.backfills))).collect();
        let bad = (!unreadable.is_empty()).then(|| batch::ids(unreadable.iter().copied()));
        let mut waiting: Vec<Waiting> = Vec::new();
        for (target, (room, backfills)) in rooms.into_iter().filter(|(_, (room, _))| *room > 0) {
            let query = sqlx::query(include_str!("sql/waiting_runs.sql"))
                .bind(target.to_owned())
                .bind(Micros::from(request.now))
                .bind(room.min(request.limit))
                .bind(bad.clone())
                .bind(backfills);
            waiting.extend(tx.all(query).await?);
        }
        waiting.sort_unstable_by_key(|row| (row.available_at, row.run.id));
        waiting.truncate(request.limit as usize);
        let jobs = waiting.iter().filter_map(|row| row.run.job_id.map(JobId::from_uuid));
        let learned = self.learn(tx, jobs).await?;
        let mut claims = Vec::with_capacity(waiting.len());
        for Waiting { run, .. } in waiting {
            let (run_id, id) = (run.id, run.job_id.map(JobId::from_uuid));
            let job = id.and_then(|id| learned.get(id));
            match (id, job) {
                (Some(id), None) => unreadable.push(id.as_uuid()),
                (_, job) => match run.read(job, request.instance, request.now, request.lease_until) {
                    Ok(claim) => claims.push(claim),
                    Err(_) => unreadable.push(run_id),
                },
            }
        }
        Ok(claims)
    }

    pub(super) async fn extend(
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
        let report = |(run, attempt, cancel_by)| LeaseReport { run: RunId::from_uuid(run), attempt, cancel_by };
        Ok(rows.into_iter().map(report).collect())
    }

    pub(super) async fn keep(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        if outputs.is_empty() {
            return Ok(Vec::new());
        }
        let mut held = self.writer("keeping what runs print").await?;
        let mut tx = held.begin().await?;
        let row = |output: &OutputSoFar| (Hex(output.run_id.as_uuid()), output.attempt, output.text.clone());
        let query = sqlx::query(include_str!("sql/keep_outputs.sql")).bind(batch::rows(outputs.iter().map(row)));
        let kept: Vec<(Uuid,)> = tx.all(query).await?;
        tx.commit().await?;
        Ok(kept.into_iter().map(|(run,)| RunId::from_uuid(run)).collect())
    }

    pub(super) async fn read_expired(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        let query = sqlx::query(include_str!("sql/expired_leases.sql")).bind(Micros::from(now)).bind(limit);
        self.settling("looking for expired leases", query).await
    }

    pub(super) async fn read_leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        let query = sqlx::query(include_str!("sql/leases_of.sql")).bind(instance.as_uuid()).bind(limit);
        self.settling("looking for the leases of an instance", query).await
    }

    async fn settling(&self, what: &'static str, query: Statement) -> StoreResult<Vec<Settling>> {
        let mut held = self.reader(what).await?;
        let mut tx = held.begin().await?;
        let rows: Vec<SettlingColumns> = tx.all(query).await?;
        let learned = self.learn(&mut tx, rows.iter().filter_map(|row| row.job_id.map(JobId::from_uuid))).await?;
        // A run whose job cannot be read is lost all the same.
        let settling = |row: &SettlingColumns| {
            let id = row.job_id.map(JobId::from_uuid);
            let job = id.and_then(|id| learned.get(id));
            row.read(job.as_deref())
        };
        Ok(rows.iter().map(settling).collect())
    }

    pub(super) async fn record_all(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        if transitions.is_empty() {
            return Ok(Vec::new());
        }
        let mut held = self.writer("recording runs").await?;
        let mut tx = held.begin().await?;
        let mut recording = Recording::new(transitions);
        for wave in Recording::waves(transitions) {
            let ended: Vec<_> = wave.iter().filter_map(|place| end_row(&transitions[*place])).collect();
            let again: Vec<_> = wave.iter().filter_map(|place| retry_row(&transitions[*place])).collect();
            let mut applied = guarded(&mut tx, include_str!("sql/end_runs.sql"), &ended).await?;
            applied.extend(guarded(&mut tx, include_str!("sql/retry_runs.sql"), &again).await?);
            recording.applied(transitions, &wave, &applied);
        }
        let (jobs, only_successes) = recording.jobs(transitions);
        if !only_successes {
            let had = failures_of(&mut tx, jobs).await?;
            let now_have = recording.count(transitions, &had);
            let rows = batch::rows(now_have.iter().map(|(job, failures)| (Hex(*job), failures)));
            tx.run(sqlx::query(include_str!("sql/set_failures.sql")).bind(rows)).await?;
        } else if !jobs.is_empty() {
            // The usual case: everything succeeded, and so it did before.
            tx.run(sqlx::query(include_str!("sql/clear_failures.sql")).bind(batch::ids(jobs))).await?;
        }
        self.retire_finished(&mut tx, &recording.ended(transitions), now).await?;
        tx.commit().await?;
        Ok(recording.told())
    }

    /// Retires one-time jobs whose run ended. Asked only when a one-time job may be among them.
    async fn retire_finished(&self, tx: &mut Tx<'_>, ended: &[(Uuid, Uuid)], now: Timestamp) -> StoreResult<()> {
        let one_time = |job: Uuid| self.known.get(JobId::from_uuid(job)).is_none_or(|job| job.is_one_time());
        let ended: Vec<Uuid> = ended.iter().filter(|(_, job)| one_time(*job)).map(|(run, _)| *run).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(include_str!("sql/retire_one_time.sql"));
        tx.run(query.bind(batch::ids(ended)).bind(Micros::from(now))).await?;
        Ok(())
    }

    pub(super) async fn insert_trial(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("inserting a run").await?;
        let mut tx = held.begin().await?;
        let new = insert_runs(&mut tx, &[RunValues::of_trial(run)], Micros::from(run.created_at)).await?;
        if new.is_empty() {
            return Err(StoreError::Conflict { what: format!("run `{}` exists already", run.id) });
        }
        let deed = || Deed { runs: vec![run.id], ..Deed::default() };
        access::insert_audit_of(&mut tx, audit, deed).await?;
        tx.commit_and_wake().await
    }

    pub(super) async fn cancel(
        &self,
        run: RunId,
        by: &str,
        now: Timestamp,
        audit: &AuditEntry,
    ) -> StoreResult<Canceled> {
        let mut held = self.writer("canceling a run").await?;
        let mut tx = held.begin().await?;
        let id = run.as_uuid();
        let outcome = match cancel(&mut tx, &[id], by, now).await? {
            (0, 0) => {
                let found: Option<RunColumns> = jobs::runs_of(&mut tx, [id]).await?.remove(&id);
                let status: RunStatus = found.ok_or_else(|| StoreError::not_found("run", run))?.read()?.status;
                return Ok(Canceled::TooLate(status));
            }
            (0, _) => Canceled::Requested,
            _ => Canceled::AtOnce,
        };
        let deed = || Deed { runs: vec![run], ..Deed::default() };
        access::insert_audit_of(&mut tx, audit, deed).await?;
        tx.commit_and_wake().await?;
        Ok(outcome)
    }
}

/// Writes what is still guarded; tells which runs that were, with their jobs.
async fn guarded(
    tx: &mut Tx<'_>,
    sql: &'static str,
    rows: &[impl Serialize + Sync],
) -> StoreResult<HashMap<Uuid, Option<Uuid>>> {
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(tx.all(sqlx::query(sql).bind(batch::rows(rows))).await?.into_iter().collect())
}

fn end_row(transition: &Transition) -> Option<impl Serialize + Send + Sync + '_> {
    let Next::Finish { status, finished_at, failure, result } = &transition.to else { return None };
    let (code, message, details) = failure_columns(failure.as_ref());
    Some((
        Hex(transition.run_id.as_uuid()),
        transition.attempt,
        transition.from.as_str(),
        status.as_str(),
        Micros::from(*finished_at),
        code,
        message,
        details,
        result.as_ref().map(everbell_core::Json::as_str),
        &transition.output,
    ))
}

fn retry_row(transition: &Transition) -> Option<impl Serialize + Send + Sync + '_> {
    let Next::Retry { not_before, failure } = &transition.to else { return None };
    let (code, message, details) = failure_columns(Some(failure));
    let run = Hex(transition.run_id.as_uuid());
    Some((run, transition.attempt, Micros::from(*not_before), code, message, details, &transition.output))
}

fn failure_columns(failure: Option<&Failure>) -> (Option<&str>, Option<&str>, Option<&str>) {
    let details = failure.and_then(|failure| failure.details.as_ref());
    (
        failure.map(|failure| failure.code.as_str()),
        failure.map(|failure| failure.message.as_str()),
        details.map(everbell_core::Json::as_str),
    )
}

async fn failures_of(tx: &mut Tx<'_>, jobs: Vec<Uuid>) -> StoreResult<BTreeMap<Uuid, u32>> {
    let query = sqlx::query(include_str!("sql/lock_failures.sql")).bind(batch::ids(jobs));
    Ok(tx.all::<(Uuid, u32)>(query).await?.into_iter().collect())
}
