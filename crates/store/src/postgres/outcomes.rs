//! The outcomes of runs: what ends, what is tried again, and what follows for jobs.

use std::collections::{BTreeMap, HashMap, HashSet};

use everbell_core::settle::{Next, Transition};
use everbell_core::store::{Recorded, StoreResult};
use everbell_core::{Failure, JobId, RunId, RunStatus};
use jiff::Timestamp;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryAs;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{Conn, on};
use super::statement::Statement;
use super::timers::{column, sparse};
use crate::micros::Micros;
use crate::rows::{Recording, earlier};

/// The number of attempts to record outcomes when two writers of the same runs deadlock. A statement locks its rows in
/// the order that its plan reads them, and two sessions may have different plans; the aborted one has changed nothing.
/// Locking in order first would slow down every outcome for the sake of a lost lease.
pub(super) const MAX_DEADLOCK_ATTEMPTS: u32 = 5;

impl PostgresStore {
    /// Records transitions. `alone` has the one-time jobs that end with them, if nothing else can follow from them.
    pub(super) async fn record_once(
        &self,
        what: &str,
        transitions: &[Transition],
        now: Timestamp,
        alone: Option<&[Option<Uuid>]>,
    ) -> StoreResult<Vec<Recorded>> {
        if let Some(retires) = alone
            && let Some(recorded) = self.record_successes(what, transitions, retires, now).await?
        {
            return Ok(recorded);
        }
        let mut tx = self.begin_loop(what).await?;
        let done = self.record_in(&mut tx, what, transitions, now).await;
        let (recording, started) = self.finish_transaction(what, tx, done, |(_, started)| started.is_some()).await?;
        if let Some(oldest) = started {
            self.run_floors.lower(oldest);
            self.wake.notify_waiters();
        }
        Ok(recording.into_recorded())
    }

    /// The usual case, in one statement that is its own transaction: different runs, each of which succeeded. `None` if it
    /// ended none of them: other jobs may start after them.
    async fn record_successes(
        &self,
        what: &str,
        transitions: &[Transition],
        retires: &[Option<Uuid>],
        now: Timestamp,
    ) -> StoreResult<Option<Vec<Recorded>>> {
        let ended = transitions.iter().filter_map(Ended::from_transition).collect::<Vec<_>>();
        let query = end_runs(&ended, true, true).bind(sparse(retires, |job| *job)).bind(Micros::from(now));
        let (runs, _) = self.alone(what, query.fetch_one_on(&self.loops)).await?;
        if runs.is_empty() {
            return Ok(None);
        }
        let applied = Recorded::Applied { consecutive_failures: 0 };
        if runs.len() == transitions.len() {
            return Ok(Some(vec![applied; runs.len()]));
        }
        let runs: HashSet<Uuid> = runs.into_iter().collect();
        let tell = |run: RunId| if runs.contains(&run.as_uuid()) { applied.clone() } else { Recorded::LeaseLost };
        Ok(Some(transitions.iter().map(|transition| tell(transition.run_id)).collect()))
    }

    async fn record_in(
        &self,
        tx: Conn<'_, '_>,
        what: &str,
        transitions: &[Transition],
        now: Timestamp,
    ) -> StoreResult<(Recording, Option<Micros>)> {
        let followers = self.lock_followers(&mut *tx, what, transitions).await?;
        count_losses(&mut *tx, what, transitions).await?;
        let mut recording = Recording::new(transitions);
        let only_successes = Recording::only_successes(transitions);
        for wave in Recording::waves(transitions) {
            let those: Vec<&Transition> = wave.iter().map(|place| &transitions[*place]).collect();
            let mut applied = end(&mut *tx, what, &those, only_successes).await?;
            let (again, asked) = retry(&mut *tx, what, &those).await?;
            applied.extend(again);
            recording.applied(transitions, &wave, &applied);
            let instead = recording.canceled(transitions, &wave, &asked, now);
            end(&mut *tx, what, &instead.iter().collect::<Vec<_>>(), false).await?;
        }
        // The usual case: nothing failed. Ending the runs has cleared what had failed before.
        if !only_successes {
            let (jobs, _) = recording.jobs(transitions);
            let had = lock_failures(&mut *tx, what, jobs).await?;
            let now_have = recording.count(transitions, &had);
            let query = sqlx::query(include_str!("sql/set_failures.sql"))
                .bind(now_have.keys().copied().collect::<Vec<_>>())
                .bind(now_have.values().map(|failures| *failures as i32).collect::<Vec<_>>());
            on(what, query.execute_on(&mut *tx)).await?;
        }
        self.retire_finished(&mut *tx, &recording.ended(transitions), now).await?;
        let started = self.start_followers(&mut *tx, what, followers, &recording.ends(transitions, now), now).await?;
        Ok((recording, started))
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
        on("retiring one-time jobs", query.execute_on(&mut *conn)).await?;
        Ok(())
    }
}

/// Lets the instances notice from which runs are taken as lost.
async fn count_losses(conn: Conn<'_, '_>, what: &str, transitions: &[Transition]) -> StoreResult<()> {
    let lost: Vec<Uuid> = transitions.iter().filter(|one| one.is_lost()).map(|one| one.run_id.as_uuid()).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(include_str!("sql/count_losses.sql")).bind(lost);
    on(what, query.execute_on(&mut *conn)).await.map(drop)
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
    fn from_transition(transition: &'a Transition) -> Option<Ended<'a>> {
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

/// Ends the runs that are still guarded; returns them with their jobs. The caller adds the one-time jobs to retire, and when.
fn end_runs<'a>(
    ended: &'a [Ended<'a>],
    only_successes: bool,
    alone: bool,
) -> QueryAs<'a, Postgres, RunsAndJobs, PgArguments> {
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
        .bind(alone)
}

/// Ends runs; returns those that were still guarded, with their jobs.
async fn end(
    conn: Conn<'_, '_>,
    what: &str,
    transitions: &[&Transition],
    only_successes: bool,
) -> StoreResult<HashMap<Uuid, Option<Uuid>>> {
    let ended: Vec<Ended<'_>> = transitions.iter().copied().filter_map(Ended::from_transition).collect();
    if ended.is_empty() {
        return Ok(HashMap::new());
    }
    // One-time jobs are retired by a statement of their own: here a run may have ended in any way.
    let query = end_runs(&ended, only_successes, false).bind(Vec::<Uuid>::new()).bind(None::<Micros>);
    let (runs, jobs) = on(what, query.fetch_one_on(&mut *conn)).await?;
    Ok(runs.into_iter().zip(jobs).collect())
}

/// A run that is tried again.
struct Retried<'a> {
    transition: &'a Transition,
    not_before: Timestamp,
    failure: &'a Failure,
    /// The line about the attempt that has ended.
    earlier: Option<String>,
}

/// Runs with their jobs, and those of them whose cancellation was asked for, with who did.
type Again = (HashMap<Uuid, Option<Uuid>>, HashMap<Uuid, String>);

/// Makes runs pending again; returns those that were still guarded.
async fn retry(conn: Conn<'_, '_>, what: &str, transitions: &[&Transition]) -> StoreResult<Again> {
    let again: Vec<Retried<'_>> = transitions
        .iter()
        .copied()
        .filter_map(|transition| match &transition.to {
            Next::Retry { not_before, failure, ended } => Some(Retried {
                transition,
                not_before: *not_before,
                failure,
                earlier: ended.as_ref().map(earlier::write),
            }),
            Next::Finish { .. } => None,
        })
        .collect();
    if again.is_empty() {
        return Ok((HashMap::new(), HashMap::new()));
    }
    let query = sqlx::query_as(include_str!("sql/retry_runs.sql"))
        .bind(column(&again, |r| r.transition.run_id.as_uuid()))
        .bind(column(&again, |r| r.transition.attempt as i32))
        .bind(column(&again, |r| Micros::from(r.not_before)))
        .bind(column(&again, |r| r.failure.code.as_str().to_owned()))
        .bind(column(&again, |r| r.failure.message.clone()))
        .bind(column(&again, |r| details(Some(r.failure))))
        .bind(sparse(&again, |r| r.transition.output.as_deref()))
        .bind(sparse(&again, |r| r.earlier.as_deref()));
    let rows: Vec<(Uuid, Option<Uuid>, Option<String>)> = on(what, query.fetch_all_on(&mut *conn)).await?;
    let asked = rows.iter().filter_map(|(run, _, by)| Some((*run, by.clone()?))).collect();
    Ok((rows.into_iter().map(|(run, job, _)| (run, job)).collect(), asked))
}

fn details(failure: Option<&Failure>) -> Option<String> {
    failure.and_then(|failure| failure.details.as_ref()).map(ToString::to_string)
}

async fn lock_failures(conn: Conn<'_, '_>, what: &str, jobs: Vec<Uuid>) -> StoreResult<BTreeMap<Uuid, u32>> {
    let query = sqlx::query_as(include_str!("sql/lock_failures.sql")).bind(jobs);
    let rows: Vec<(Uuid, i32)> = on(what, query.fetch_all_on(&mut *conn)).await?;
    Ok(rows.into_iter().map(|(id, failures)| (id, u32::try_from(failures).unwrap_or(0))).collect())
}
