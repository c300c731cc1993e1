//! The outcomes of runs: what ends, what is tried again, and what follows for jobs.

use std::collections::{BTreeMap, HashMap};

use everbell_core::settle::{Next, Transition};
use everbell_core::store::StoreResult;
use everbell_core::{Failure, JobId};
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::SqliteStore;
use super::batch::{self, Hex};
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::earlier;

impl SqliteStore {
    /// Retires one-time jobs whose run ended. Asked only when a one-time job may be among them.
    pub(super) async fn retire_finished(
        &self,
        tx: &mut Tx<'_>,
        ended: &[(Uuid, Uuid)],
        now: Timestamp,
    ) -> StoreResult<()> {
        let one_time = |job: Uuid| self.known.get(JobId::from_uuid(job)).is_none_or(|job| job.is_one_time());
        let ended: Vec<Uuid> = ended.iter().filter(|(_, job)| one_time(*job)).map(|(run, _)| *run).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(include_str!("sql/retire_one_time.sql"));
        tx.run(query.bind(batch::ids(ended)).bind(Micros::from(now))).await?;
        Ok(())
    }
}

/// Lets the instances notice from which runs are taken as lost.
pub(super) async fn count_losses(tx: &mut Tx<'_>, transitions: &[Transition]) -> StoreResult<()> {
    let lost: Vec<Uuid> = transitions.iter().filter(|one| one.is_lost()).map(|one| one.run_id.as_uuid()).collect();
    if lost.is_empty() {
        return Ok(());
    }
    tx.run(sqlx::query(include_str!("sql/count_losses.sql")).bind(batch::ids(lost))).await.map(drop)
}

/// Ends the runs that are still guarded; returns them with their jobs.
pub(super) async fn ended_runs(
    tx: &mut Tx<'_>,
    rows: &[impl Serialize + Sync],
) -> StoreResult<HashMap<Uuid, Option<Uuid>>> {
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let query = sqlx::query(include_str!("sql/end_runs.sql")).bind(batch::rows(rows));
    Ok(tx.all(query).await?.into_iter().collect())
}

/// Runs with their jobs, and those of them whose cancellation was asked for, with who did.
type Again = (HashMap<Uuid, Option<Uuid>>, HashMap<Uuid, String>);

/// Makes the runs pending again that are still guarded; returns them.
pub(super) async fn retried(tx: &mut Tx<'_>, rows: &[impl Serialize + Sync]) -> StoreResult<Again> {
    if rows.is_empty() {
        return Ok((HashMap::new(), HashMap::new()));
    }
    let query = sqlx::query(include_str!("sql/retry_runs.sql")).bind(batch::rows(rows));
    let rows: Vec<(Uuid, Option<Uuid>, Option<String>)> = tx.all(query).await?;
    let asked = rows.iter().filter_map(|(run, _, by)| Some((*run, by.clone()?))).collect();
    Ok((rows.into_iter().map(|(run, job, _)| (run, job)).collect(), asked))
}

pub(super) fn end_row(transition: &Transition) -> Option<impl Serialize + Send + Sync + '_> {
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

pub(super) fn retry_row(transition: &Transition) -> Option<impl Serialize + Send + Sync + '_> {
    let Next::Retry { not_before, failure, ended } = &transition.to else { return None };
    let (code, message, details) = failure_columns(Some(failure));
    let (run, earlier) = (Hex(transition.run_id.as_uuid()), ended.as_ref().map(earlier::write));
    let not_before = Micros::from(*not_before);
    Some((run, transition.attempt, not_before, code, message, details, &transition.output, earlier))
}

fn failure_columns(failure: Option<&Failure>) -> (Option<&str>, Option<&str>, Option<&str>) {
    let details = failure.and_then(|failure| failure.details.as_ref());
    (
        failure.map(|failure| failure.code.as_str()),
        failure.map(|failure| failure.message.as_str()),
        details.map(everbell_core::Json::as_str),
    )
}

pub(super) async fn failures_of(tx: &mut Tx<'_>, jobs: Vec<Uuid>) -> StoreResult<BTreeMap<Uuid, u32>> {
    let query = sqlx::query(include_str!("sql/lock_failures.sql")).bind(batch::ids(jobs));
    Ok(tx.all::<(Uuid, u32)>(query).await?.into_iter().collect())
}
