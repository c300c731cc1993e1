//! From pending to terminal: start, extend, record, and what was lost.

use std::collections::{BTreeMap, HashMap, HashSet};

use everbell_core::settle::{Next, Settling, Transition};
use everbell_core::store::{
    AuditEntry, Canceled, Claim, Deed, LeaseReport, Recorded, StartRuns, StoreError, StoreResult,
};
use everbell_core::{Failure, InstanceId, JobId, OutputSoFar, Run, RunId, RunStatus};
use jiff::Timestamp;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryAs;
use tokio::time::Instant;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{Conn, on};
use super::fault;
use super::planning::{cancel, column, insert_runs, sparse};
use crate::micros::Micros;
use crate::rows::{ClaimColumns, Learned, Recording, RunColumns, RunValues, SettlingColumns};

/// How often outcomes are recorded anew when two who record the same runs wait for each other. A statement locks its rows in
/// the order that its plan reads them, and two sessions may have different plans; the one that is sent away has changed
/// nothing. Locking them in order first would cost every outcome what only a lost lease can need.
pub(super) const DEADLOCKS: u32 = 5;

impl PostgresStore {
    pub(super) async fn claim_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        const WHAT: &str = "starting runs";
        let moment = Instant::now();
        let looks = column(request.targets, |wanted| self.run_floors.look(wanted.target.as_str(), moment));
        let query = sqlx::query_as(include_str!("sql/start_runs.sql"))
            .bind(column(request.targets, |wanted| wanted.target.to_string()))
            .bind(column(request.targets, |wanted| i64::from(wanted.room)))
            .bind(i64::from(request.limit))
            .bind(Micros::from(request.now))
            .bind(request.instance.as_uuid())
            .bind(Micros::from(request.lease_until))
            .bind(column(&looks, |look| look.since))
            .bind(column(request.targets, |wanted| wanted.backfills));
        let rows: Vec<ClaimColumns> = self.alone(WHAT, query.fetch_all(&self.loops)).await?;
        self.find_run_floors(request, &looks).await;
        let learned = self.learn_apart(rows.iter().filter_map(|row| row.job_id)).await?;
        let claim = |row: ClaimColumns| {
            let id = row.job_id.map(JobId::from_uuid);
            let job = id.and_then(|id| learned.get(id));
            row.read(job, request.instance, request.now, request.lease_until)
        };
        let (mut claims, mut unreadable) = (Vec::with_capacity(rows.len()), None);
        for row in rows {
            match claim(row) {
                Ok(claim) => claims.push(claim),
                Err(error) => unreadable = Some(error),
            }
        }
        // What cannot be read must not stand in the way of the others; whoever holds the lease notices that it is unknown.
        if let Some(error) = unreadable.filter(|_| claims.is_empty()) {
            return Err(error);
        }
        // A claim is large, and is moved once like this.
        claims.sort_by_cached_key(|claim| (claim.run.scheduled_at, claim.run.id));
        self.started.add(&claims);
        Ok(claims)
    }

    /// Reads the definitions that are not known yet, outside of a transaction; seldom there is one.
    async fn learn_apart(&self, jobs: impl Iterator<Item = Uuid>) -> StoreResult<Learned> {
        const WHAT: &str = "reading jobs";
        let jobs: Vec<JobId> = jobs.map(JobId::from_uuid).collect();
        let learned = self.known.look_up(jobs.iter().copied());
        if learned.missing().is_empty() {
            return Ok(learned);
        }
        let mut tx = self.begin_loop(WHAT).await?;
        let done = self.learn(&mut tx, jobs.into_iter()).await;
        self.settle(WHAT, tx, done, |_| false).await
    }

    pub(super) async fn extend(
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
            self.alone("extending leases", query.fetch_all(&self.loops)).await?;
        rows.sort_unstable_by_key(|(run, _, _)| *run);
        let report = |(run, attempt, cancel_by): (Uuid, i32, Option<String>)| LeaseReport {
            run: RunId::from_uuid(run),
            attempt: u32::try_from(attempt).unwrap_or(0),
            cancel_by,
        };
        Ok(rows.into_iter().map(report).collect())
    }

    pub(super) async fn keep(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        if outputs.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query_scalar(include_str!("sql/keep_outputs.sql"))
            .bind(column(outputs, |output| output.run_id.as_uuid()))
            .bind(column(outputs, |output| output.attempt as i32))
            .bind(column(outputs, |output| output.text.clone()));
        let kept: Vec<Uuid> = self.alone("keeping what runs print", query.fetch_all(&self.loops)).await?;
        Ok(kept.into_iter().map(RunId::from_uuid).collect())
    }

    pub(super) async fn read_expired(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        const WHAT: &str = "looking for expired leases";
        let query =
            sqlx::query_as(include_str!("sql/expired_leases.sql")).bind(Micros::from(now)).bind(i64::from(limit));
        let rows: Vec<SettlingColumns> = self.within(WHAT, query.fetch_all(&self.loops)).await?;
        self.settling(&rows).await
    }

    pub(super) async fn read_leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        const WHAT: &str = "looking for the leases of an instance";
        let query = sqlx::query_as(include_str!("sql/leases_of.sql")).bind(instance.as_uuid()).bind(i64::from(limit));
        let rows: Vec<SettlingColumns> = self.within(WHAT, query.fetch_all(&self.loops)).await?;
        self.settling(&rows).await
    }

    async fn settling(&self, rows: &[SettlingColumns]) -> StoreResult<Vec<Settling>> {
        let learned = self.learn_apart(rows.iter().filter_map(|row| row.job_id)).await?;
        let settling = |row: &SettlingColumns| {
            let id = row.job_id.map(JobId::from_uuid);
            let job = id.and_then(|id| learned.get(id));
            row.read(job.as_deref())
        };
        Ok(rows.iter().map(settling).collect())
    }

    pub(super) async fn record_all(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        const WHAT: &str = "recording runs";
        if transitions.is_empty() {
            return Ok(Vec::new());
        }
        let end_alone = self.started.remove(transitions) && Recording::only_successes(transitions);
        for _ in 1..DEADLOCKS {
            match self.record_once(WHAT, transitions, now, end_alone).await {
                Err(error) if fault::is_deadlock(&error) => {}
                answer => return answer,
            }
        }
        self.record_once(WHAT, transitions, now, end_alone).await
    }

    async fn record_once(
        &self,
        what: &str,
        transitions: &[Transition],
        now: Timestamp,
        end_alone: bool,
    ) -> StoreResult<Vec<Recorded>> {
        if end_alone {
            return self.record_successes(what, transitions).await;
        }
        let mut tx = self.begin_loop(what).await?;
        let done = self.record_in(&mut tx, what, transitions, now).await;
        let recording = self.settle(what, tx, done, |_| false).await?;
        Ok(recording.told())
    }

    /// The usual case, in one statement that is its own transaction: different runs, each of which succeeded.
    async fn record_successes(&self, what: &str, transitions: &[Transition]) -> StoreResult<Vec<Recorded>> {
        let ended = transitions.iter().filter_map(Ended::of).collect::<Vec<_>>();
        let (runs, _) = self.alone(what, end_runs(&ended, true).fetch_one(&self.loops)).await?;
        let applied = Recorded::Applied { consecutive_failures: 0 };
        if runs.len() == transitions.len() {
            return Ok(vec![applied; runs.len()]);
        }
        let runs: HashSet<Uuid> = runs.into_iter().collect();
        let tell = |run: RunId| if runs.contains(&run.as_uuid()) { applied.clone() } else { Recorded::LeaseLost };
        Ok(transitions.iter().map(|transition| tell(transition.run_id)).collect())
    }

    async fn record_in(
        &self,
        tx: Conn<'_, '_>,
        what: &str,
        transitions: &[Transition],
        now: Timestamp,
    ) -> StoreResult<Recording> {
        let mut recording = Recording::new(transitions);
        let only_successes = Recording::only_successes(transitions);
        for wave in Recording::waves(transitions) {
            let those: Vec<&Transition> = wave.iter().map(|place| &transitions[*place]).collect();
            let mut applied = end(&mut *tx, what, &those, only_successes).await?;
            applied.extend(retry(&mut *tx, what, &those).await?);
            recording.applied(transitions, &wave, &applied);
        }
        // The usual case: nothing failed. Ending the runs has cleared what had failed before.
        if !only_successes {
            let (jobs, _) = recording.jobs(transitions);
            let had = lock_failures(&mut *tx, what, jobs).await?;
            let now_have = recording.count(transitions, &had);
            let query = sqlx::query(include_str!("sql/set_failures.sql"))
                .bind(now_have.keys().copied().collect::<Vec<_>>())
                .bind(now_have.values().map(|failures| *failures as i32).collect::<Vec<_>>());
            on(what, query.execute(&mut *tx)).await?;
        }
        self.retire_finished(&mut *tx, &recording.ended(transitions), now).await?;
        Ok(recording)
    }

    /// Retires one-time jobs whose run ended. Asked only when a one-time job is among them.
    async fn retire_finished(&self, conn: Conn<'_, '_>, ended: &[(Uuid, Uuid)], now: Timestamp) -> StoreResult<()> {
        let learned = self.learn(&mut *conn, ended.iter().map(|(_, job)| JobId::from_uuid(*job))).await?;
        let one_time = |job: Uuid| learned.get(JobId::from_uuid(job)).is_none_or(|job| job.is_one_time());
        let ended: Vec<Uuid> = ended.iter().filter(|(_, job)| one_time(*job)).map(|(run, _)| *run).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(include_str!("sql/retire_one_time.sql")).bind(ended).bind(Micros::from(now));
        on("retiring one-time jobs", query.execute(&mut *conn)).await?;
        Ok(())
    }

    pub(super) async fn insert_trial(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "inserting a run";
        let mut tx = self.begin(WHAT).await?;
        let done = async {
            let values = RunValues::of_trial(run);
            if insert_runs(&mut tx, WHAT, &[values], Micros::from(run.created_at)).await?.is_empty() {
                return Err(StoreError::Conflict { what: format!("run `{}` exists already", run.id) });
            }
            let deed = || Deed { runs: vec![run.id], ..Deed::default() };
            super::access::insert_audit_of(&mut tx, audit, deed).await
        };
        let done = done.await;
        self.settle(WHAT, tx, done, |()| true).await
    }

    pub(super) async fn cancel(
        &self,
        run: RunId,
        by: &str,
        now: Timestamp,
        audit: &AuditEntry,
    ) -> StoreResult<Canceled> {
        const WHAT: &str = "canceling a run";
        let mut tx = self.begin(WHAT).await?;
        let done = self.cancel_in(&mut tx, WHAT, run, by, now, audit).await;
        self.settle(WHAT, tx, done, |outcome| !matches!(outcome, Canceled::TooLate(_))).await
    }

    async fn cancel_in(
        &self,
        tx: Conn<'_, '_>,
        what: &str,
        run: RunId,
        by: &str,
        now: Timestamp,
        audit: &AuditEntry,
    ) -> StoreResult<Canceled> {
        let done = cancel(&mut *tx, what, &[run.as_uuid()], Micros::from(now), by).await?;
        let outcome = match done {
            (0, 0) => {
                // On the same connection: whoever waits for a second one while holding the first may wait forever.
                let query = sqlx::query_as(include_str!("sql/get_runs.sql")).bind(vec![run.as_uuid()]);
                let found: Option<RunColumns> = on(what, query.fetch_optional(&mut *tx)).await?;
                match found.ok_or_else(|| StoreError::not_found("run", run))?.read()?.status {
                    RunStatus::Pending | RunStatus::Running => return Err(moving(run)),
                    status => return Ok(Canceled::TooLate(status)),
                }
            }
            (0, _) => Canceled::Requested,
            _ => Canceled::AtOnce,
        };
        let deed = || Deed { runs: vec![run], ..Deed::default() };
        super::access::insert_audit_of(&mut *tx, audit, deed).await?;
        Ok(outcome)
    }
}

/// It was neither pending nor running a moment ago, and is now: the caller looks again.
fn moving(run: RunId) -> StoreError {
    StoreError::Conflict { what: format!("run `{run}` is changing at this moment") }
}

/// A run that ends, and how.
struct Ended<'a> {
    transition: &'a Transition,
    status: RunStatus,
    finished_at: Timestamp,
    failure: Option<&'a Failure>,
    result: Option<String>,
}

impl<'a> Ended<'a> {
    fn of(transition: &'a Transition) -> Option<Ended<'a>> {
        let Next::Finish { status, finished_at, failure, result } = &transition.to else { return None };
        Some(Ended {
            transition,
            status: *status,
            finished_at: *finished_at,
            failure: failure.as_ref(),
            result: result.as_ref().map(ToString::to_string),
        })
    }
}

/// Runs, and at the same places their jobs.
type RunsAndJobs = (Vec<Uuid>, Vec<Option<Uuid>>);

/// Ends what is still guarded; tells which runs that were, with their jobs.
fn end_runs<'a>(ended: &'a [Ended<'a>], only_successes: bool) -> QueryAs<'a, Postgres, RunsAndJobs, PgArguments> {
    sqlx::query_as(include_str!("sql/end_runs.sql"))
        .bind(column(ended, |e| e.transition.run_id.as_uuid()))
        .bind(column(ended, |e| e.transition.attempt as i32))
        .bind(column(ended, |e| e.transition.from.as_str()))
        .bind(column(ended, |e| e.status.as_str()))
        .bind(column(ended, |e| Micros::from(e.finished_at)))
        .bind(sparse(ended, |e| e.failure.map(|failure| failure.code.as_str())))
        .bind(sparse(ended, |e| e.failure.map(|failure| failure.message.as_str())))
        .bind(sparse(ended, |e| details(e.failure)))
        .bind(sparse(ended, |e| e.result.as_deref()))
        .bind(sparse(ended, |e| e.transition.output.as_deref()))
        .bind(only_successes)
}

/// Ends those that end; tells which runs that were, with their jobs.
async fn end(
    conn: Conn<'_, '_>,
    what: &str,
    transitions: &[&Transition],
    only_successes: bool,
) -> StoreResult<HashMap<Uuid, Option<Uuid>>> {
    let ended: Vec<Ended<'_>> = transitions.iter().copied().filter_map(Ended::of).collect();
    if ended.is_empty() {
        return Ok(HashMap::new());
    }
    let (runs, jobs) = on(what, end_runs(&ended, only_successes).fetch_one(&mut *conn)).await?;
    Ok(runs.into_iter().zip(jobs).collect())
}

/// Puts back what shall be tried again; tells which runs that were, with their jobs.
async fn retry(
    conn: Conn<'_, '_>,
    what: &str,
    transitions: &[&Transition],
) -> StoreResult<HashMap<Uuid, Option<Uuid>>> {
    let again: Vec<(&Transition, Timestamp, &Failure)> = transitions
        .iter()
        .copied()
        .filter_map(|transition| match &transition.to {
            Next::Retry { not_before, failure } => Some((transition, *not_before, failure)),
            Next::Finish { .. } => None,
        })
        .collect();
    if again.is_empty() {
        return Ok(HashMap::new());
    }
    let query = sqlx::query_as(include_str!("sql/retry_runs.sql"))
        .bind(column(&again, |r| r.0.run_id.as_uuid()))
        .bind(column(&again, |r| r.0.attempt as i32))
        .bind(column(&again, |r| Micros::from(r.1)))
        .bind(column(&again, |r| r.2.code.as_str().to_owned()))
        .bind(column(&again, |r| r.2.message.clone()))
        .bind(column(&again, |r| details(Some(r.2))))
        .bind(sparse(&again, |r| r.0.output.as_deref()));
    let rows: Vec<(Uuid, Option<Uuid>)> = on(what, query.fetch_all(&mut *conn)).await?;
    Ok(rows.into_iter().collect())
}

fn details(failure: Option<&Failure>) -> Option<String> {
    failure.and_then(|failure| failure.details.as_ref()).map(ToString::to_string)
}

async fn lock_failures(conn: Conn<'_, '_>, what: &str, jobs: Vec<Uuid>) -> StoreResult<BTreeMap<Uuid, u32>> {
    let query = sqlx::query_as(include_str!("sql/lock_failures.sql")).bind(jobs);
    let rows: Vec<(Uuid, i32)> = on(what, query.fetch_all(&mut *conn)).await?;
    Ok(rows.into_iter().map(|(id, failures)| (id, u32::try_from(failures).unwrap_or(0))).collect())
}
