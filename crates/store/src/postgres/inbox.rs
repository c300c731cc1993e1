//! The inbox: requests that others write with plain SQL.

use everbell_core::change::JobView;
use everbell_core::enqueue::replace;
use everbell_core::store::{
    AuditEntry, Deed, InboxAnswer, InboxRequest, JobRef, RefusedRequest, Replacement, StoreError, StoreResult,
};
use jiff::Timestamp;

use super::connect::{Conn, on};
use super::job_changes::Wanted;
use super::statement::Statement;
use super::{PostgresStore, audit, jobs};
use crate::micros::Micros;

/// A row of `open_inbox.sql`.
type Row = (
    i64,
    String,
    Option<String>,
    Option<String>,
    Option<Micros>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<String>,
);
/// A row of `refused_inbox.sql`.
type RefusedRow = (
    i64,
    String,
    Option<String>,
    Option<String>,
    Option<Micros>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<String>,
    String,
    Micros,
);

const ANSWERING: &str = "answering the inbox";

impl PostgresStore {
    pub(super) async fn add_to_inbox(&self, request: &InboxRequest) -> StoreResult<i64> {
        let run_at = request.run_at.as_ref().map(|text| text.parse::<Timestamp>()).transpose();
        let run_at = run_at.map_err(|error| everbell_core::Invalid::new("runAt", error.to_string()))?;
        let query = sqlx::query_scalar(include_str!("sql/write_inbox.sql"))
            .bind(request.target.clone())
            .bind(request.payload.clone())
            .bind(request.key.clone())
            .bind(run_at.map(Micros::from))
            .bind(request.cron.clone())
            .bind(request.timezone.clone())
            .bind(request.role.clone())
            .bind(request.traceparent.clone())
            .bind(request.priority)
            .bind(request.if_unfinished.clone());
        let id = self.alone("writing to the inbox", query.fetch_one_on(&self.pool)).await?;
        self.wake.notify_waiters();
        Ok(id)
    }

    pub(super) async fn read_inbox(&self, limit: u32, without: &[i64]) -> StoreResult<Vec<InboxRequest>> {
        let query = sqlx::query_as(include_str!("sql/open_inbox.sql")).bind(i64::from(limit)).bind(without.to_vec());
        let rows: Vec<Row> = self.within("reading the inbox", query.fetch_all_on(&self.loops)).await?;
        Ok(rows.into_iter().map(request).collect())
    }

    pub(super) async fn read_refusals(&self, limit: u32) -> StoreResult<Vec<RefusedRequest>> {
        let query = sqlx::query_as(include_str!("sql/refused_inbox.sql")).bind(i64::from(limit));
        let rows: Vec<RefusedRow> = self.within("reading the inbox", query.fetch_all_on(&self.pool)).await?;
        let refused = |(a, b, c, d, e, f, g, h, i, j, k, reason, at): RefusedRow| RefusedRequest {
            request: request((a, b, c, d, e, f, g, h, i, j, k)),
            reason,
            at: at.into(),
        };
        Ok(rows.into_iter().map(refused).collect())
    }

    pub(super) async fn answer_once(&self, id: i64, answer: &InboxAnswer, audit: &AuditEntry) -> StoreResult<bool> {
        let mut tx = self.begin_loop(ANSWERING).await?;
        let done = self.answer_in(&mut tx, id, answer, audit).await;
        self.finish_transaction(ANSWERING, tx, done, |answered| *answered).await
    }

    async fn answer_in(
        &self,
        tx: Conn<'_, '_>,
        id: i64,
        answer: &InboxAnswer,
        audit: &AuditEntry,
    ) -> StoreResult<bool> {
        let query = sqlx::query_scalar(include_str!("sql/lock_inbox.sql")).bind(id);
        let locked: Option<i64> = on(ANSWERING, query.fetch_optional_on(&mut *tx)).await?;
        if locked.is_none() {
            return Ok(false);
        }
        let (key, refusal, deed) = match answer {
            InboxAnswer::Create(job) => {
                jobs::insert_job(&mut *tx, ANSWERING, job, audit).await?;
                let deed = Deed { job: Some(job.definition.id), ..Deed::default() };
                (Some(job.definition.key.to_string()), None, Some(deed))
            }
            InboxAnswer::Replace(replacement) => {
                let Replacement { job, revision, definition } = &**replacement;
                let decide = |view: &JobView| replace(view, definition.clone(), &audit.actor, audit.at);
                let (job, expected_revision) = (JobRef::Id(*job), Some(*revision));
                let wanted = Wanted { job: &job, org: None, expected_revision, is_audited: true };
                self.decide_in(&mut *tx, ANSWERING, wanted, &decide, audit).await?;
                (Some(definition.key.to_string()), None, None)
            }
            InboxAnswer::Keep(key) => (Some(key.to_string()), None, Some(Deed::default())),
            InboxAnswer::Refuse(reason) => (None, Some(reason.clone()), Some(Deed::default())),
        };
        let query = sqlx::query(include_str!("sql/answer_inbox.sql")).bind(id).bind(Micros::from(audit.at));
        let answered = on(ANSWERING, query.bind(key).bind(refusal).execute_on(&mut *tx)).await?;
        if answered.rows_affected() != 1 {
            return Err(StoreError::Corrupt { what: format!("request {id} of the inbox is gone") });
        }
        if let Some(deed) = deed {
            audit::insert_audit_of(tx, audit, || deed).await?;
        }
        Ok(true)
    }
}

fn request(row: Row) -> InboxRequest {
    let (id, target, payload, key, run_at, cron, timezone, role, traceparent, priority, if_unfinished) = row;
    let run_at = run_at.map(|at| Timestamp::from(at).to_string());
    // A request that was copied from SQLite may have none.
    let role = role.filter(|role| !role.is_empty());
    InboxRequest { id, target, payload, key, run_at, cron, timezone, role, traceparent, priority, if_unfinished }
}
