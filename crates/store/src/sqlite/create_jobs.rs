//! Many new jobs at once.

use everbell_core::change::NewJob;
use everbell_core::enqueue;
use everbell_core::store::{AuditEntry, StoreResult};
use serde::Serialize;
use serde::ser::SerializeTuple;
use uuid::Uuid;

use super::batch::Hex;
use super::transaction::Tx;
use super::{SqliteStore, audit, batch};
use crate::rows::{JobValues, TimerColumns};

/// How many jobs one statement inserts, so that its text stays small.
const JOBS_PER_STATEMENT: usize = 1_000;

impl SqliteStore {
    pub(super) async fn insert_jobs(&self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer(format!("creating {} jobs", jobs.len())).await?;
        let mut tx = held.begin().await?;
        insert(&mut tx, jobs, audit).await?;
        tx.commit_and_wake().await
    }
}

/// Inserts jobs and their audit entry.
pub(super) async fn insert(tx: &mut Tx<'_>, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()> {
    enqueue::expect_plain(jobs)?;
    for jobs in jobs.chunks(JOBS_PER_STATEMENT) {
        let rows: Vec<JobValues> = jobs.iter().map(|job| JobValues::new(&job.definition, &job.state)).collect();
        let timers = jobs.iter().zip(&rows).filter_map(|(job, row)| {
            let timer = TimerColumns::from(job.timer.as_ref()?);
            Some((Hex(timer.job_id), row.columns.target.clone(), timer.next_run_at, timer.last_slot_at))
        });
        let timers = batch::rows(timers);
        let rows = batch::rows(rows.iter().map(Row));
        tx.run(sqlx::query(include_str!("sql/create_jobs.sql")).bind(rows)).await?;
        tx.run(sqlx::query(include_str!("sql/create_timers.sql")).bind(timers)).await?;
    }
    audit::insert_audit(tx, audit).await
}

/// A job in the order of `create_jobs.sql`.
struct Row<'a>(&'a JobValues);

impl Serialize for Row<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let JobValues { columns: c, schedule_type, content_hash, after_key: _ } = self.0;
        let mut row = serializer.serialize_tuple(33)?;
        row.serialize_element(&Hex(c.id))?;
        row.serialize_element(&c.job_key)?;
        row.serialize_element(&c.version)?;
        row.serialize_element(&c.target)?;
        row.serialize_element(&c.payload)?;
        row.serialize_element(schedule_type)?;
        row.serialize_element(&c.cron_expression)?;
        row.serialize_element(&c.run_at)?;
        row.serialize_element(&c.timezone)?;
        row.serialize_element(&c.anchor_at)?;
        row.serialize_element(&c.start_at)?;
        row.serialize_element(&c.end_at)?;
        row.serialize_element(&c.dst_gap)?;
        row.serialize_element(&c.dst_fold)?;
        row.serialize_element(&c.scope)?;
        row.serialize_element(&c.policies)?;
        row.serialize_element(&c.labels)?;
        row.serialize_element(&c.description)?;
        row.serialize_element(&c.source)?;
        row.serialize_element(&hex(content_hash))?;
        row.serialize_element(&c.created_by)?;
        row.serialize_element(&c.created_at)?;
        row.serialize_element(&c.status)?;
        row.serialize_element(&c.error)?;
        row.serialize_element(&c.pause_reason)?;
        row.serialize_element(&c.paused_by)?;
        row.serialize_element(&c.paused_at)?;
        row.serialize_element(&c.paused_until)?;
        row.serialize_element(&c.revision)?;
        row.serialize_element(&c.consecutive_failures)?;
        row.serialize_element(&c.updated_by)?;
        row.serialize_element(&c.updated_at)?;
        row.serialize_element(&c.trace_context)?;
        row.end()
    }
}

fn hex(bytes: &[u8]) -> String {
    let (halves, _) = bytes.as_chunks::<16>();
    halves.iter().map(|half| Uuid::from_bytes(*half).simple().to_string()).collect()
}
