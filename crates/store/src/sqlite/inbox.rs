//! The inbox: requests that others write with plain SQL.

use everbell_core::change::JobView;
use everbell_core::enqueue::replace;
use everbell_core::store::{
    AuditEntry, Deed, InboxAnswer, InboxRequest, JobRef, RefusedRequest, Replacement, StoreResult,
};

use super::job_changes::Deciding;
use super::{SqliteStore, audit, jobs};
use crate::micros::Micros;

/// A text that others wrote, which may be no UTF-8.
type Text = Option<Vec<u8>>;
/// A row of `open_inbox.sql`.
type Row = (i64, Vec<u8>, Text, Text, Text, Text, Text, Text, Text, Option<i64>, Text);
/// A row of `refused_inbox.sql`.
type RefusedRow = (i64, Vec<u8>, Text, Text, Text, Text, Text, Text, Text, Option<i64>, Text, String, Micros);

impl SqliteStore {
    pub(super) async fn add_to_inbox(&self, request: &InboxRequest) -> StoreResult<i64> {
        let mut held = self.writer("writing to the inbox").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/write_inbox.sql"))
            .bind(request.target.clone())
            .bind(request.payload.clone())
            .bind(request.key.clone())
            .bind(request.run_at.clone())
            .bind(request.cron.clone())
            .bind(request.timezone.clone())
            .bind(request.role.clone())
            .bind(request.traceparent.clone())
            .bind(request.priority)
            .bind(request.if_unfinished.clone());
        let (id,): (i64,) = tx.one(query).await?;
        tx.note_written();
        tx.commit_and_wake().await?;
        Ok(id)
    }

    pub(super) async fn read_inbox(&self, limit: u32, without: &[i64]) -> StoreResult<Vec<InboxRequest>> {
        let without = serde_json::Value::from(without).to_string();
        let mut held = self.reader("reading the inbox").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/open_inbox.sql")).bind(limit).bind(without);
        let rows: Vec<Row> = tx.all(query).await?;
        Ok(rows.into_iter().map(request).collect())
    }

    pub(super) async fn read_refusals(&self, limit: u32) -> StoreResult<Vec<RefusedRequest>> {
        let mut held = self.reader("reading the inbox").await?;
        let mut tx = held.begin().await?;
        let rows: Vec<RefusedRow> = tx.all(sqlx::query(include_str!("sql/refused_inbox.sql")).bind(limit)).await?;
        let refused = |(a, b, c, d, e, f, g, h, i, j, k, reason, at): RefusedRow| RefusedRequest {
            request: request((a, b, c, d, e, f, g, h, i, j, k)),
            reason,
            at: at.into(),
        };
        Ok(rows.into_iter().map(refused).collect())
    }

    pub(super) async fn answer_once(&self, id: i64, answer: &InboxAnswer, audit: &AuditEntry) -> StoreResult<bool> {
        let mut held = self.writer("answering the inbox").await?;
        let mut tx = held.begin().await?;
        let open: Option<(i64,)> = tx.first(sqlx::query(include_str!("sql/lock_inbox.sql")).bind(id)).await?;
        if open.is_none() {
            return Ok(false);
        }
        let (key, refusal, deed) = match answer {
            InboxAnswer::Create(job) => {
                jobs::insert_job(&mut tx, job, audit).await?;
                let deed = Deed { job: Some(job.definition.id), ..Deed::default() };
                (Some(job.definition.key.to_string()), None, Some(deed))
            }
            InboxAnswer::Replace(replacement) => {
                let Replacement { job, revision, definition } = &**replacement;
                let decide = |view: &JobView| replace(view, definition.clone(), &audit.actor, audit.at);
                let (job, how) = (JobRef::Id(*job), Deciding::Audited(audit));
                self.decide_in(&mut tx, &job, None, Some(*revision), &decide, how).await?;
                (Some(definition.key.to_string()), None, None)
            }
            InboxAnswer::Keep(key) => (Some(key.to_string()), None, Some(Deed::default())),
            InboxAnswer::Refuse(reason) => (None, Some(reason.clone()), Some(Deed::default())),
        };
        let query = sqlx::query(include_str!("sql/answer_inbox.sql")).bind(id).bind(Micros::from(audit.at));
        tx.run(query.bind(key).bind(refusal)).await?;
        if let Some(deed) = deed {
            audit::insert_audit_of(&mut tx, audit, || deed).await?;
        }
        tx.commit_and_wake().await?;
        Ok(true)
    }
}

fn request(row: Row) -> InboxRequest {
    let (id, target, payload, key, run_at, cron, timezone, role, traceparent, priority, if_unfinished) = row;
    let read = |bytes: Text| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    InboxRequest {
        id,
        target: String::from_utf8_lossy(&target).into_owned(),
        payload: payload.map(payload_text),
        key: read(key),
        run_at: read(run_at),
        cron: read(cron),
        timezone: read(timezone),
        role: read(role),
        traceparent: read(traceparent),
        priority,
        if_unfinished: read(if_unfinished),
    }
}

/// The text of a payload. One that is no UTF-8 becomes a text that is no JSON either, so that it is refused; in every other
/// column the sign for what cannot be read is refused anyway.
fn payload_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|bad| format!("not UTF-8: {}", String::from_utf8_lossy(bad.as_bytes())))
}
