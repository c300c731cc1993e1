//! Many new jobs at once.

use everbell_core::change::NewJob;
use everbell_core::enqueue;
use everbell_core::store::{AuditEntry, StoreResult};

use super::connect::{Conn, on};
use super::statement::Statement;
use super::timers::sparse;
use super::{PostgresStore, audit};
use crate::micros::Micros;
use crate::rows::{JobValues, TimerColumns};

impl PostgresStore {
    pub(super) async fn insert_jobs(&self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()> {
        let what = format!("creating {} jobs", jobs.len());
        let mut tx = self.begin(&what).await?;
        let done = insert(&mut tx, &what, jobs, audit).await;
        self.finish_transaction(&what, tx, done, |()| true).await
    }
}

/// Inserts jobs and their audit entry with two statements.
pub(super) async fn insert(tx: Conn<'_, '_>, what: &str, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()> {
    enqueue::expect_plain(jobs)?;
    let rows: Vec<JobValues> = jobs.iter().map(|job| JobValues::new(&job.definition, &job.state)).collect();
    let timers: Vec<TimerColumns> = jobs.iter().filter_map(|job| job.timer.as_ref()).map(TimerColumns::from).collect();
    let query = sqlx::query(include_str!("sql/create_jobs.sql"))
        .bind(column(&rows, |row| row.columns.id))
        .bind(column(&rows, |row| row.columns.job_key.clone()))
        .bind(column(&rows, |row| row.columns.version))
        .bind(column(&rows, |row| row.columns.target.clone()))
        .bind(column(&rows, |row| row.columns.payload.clone()))
        .bind(column(&rows, |row| row.schedule_type))
        .bind(column(&rows, |row| row.columns.cron_expression.clone()))
        .bind(column(&rows, |row| row.columns.run_at))
        .bind(column(&rows, |row| row.columns.timezone.clone()))
        .bind(column(&rows, |row| row.columns.anchor_at))
        .bind(column(&rows, |row| row.columns.start_at))
        .bind(column(&rows, |row| row.columns.end_at))
        .bind(column(&rows, |row| row.columns.dst_gap.clone()))
        .bind(column(&rows, |row| row.columns.dst_fold.clone()))
        .bind(column(&rows, |row| row.columns.scope.clone()))
        .bind(column(&rows, |row| row.columns.policies.clone()))
        .bind(column(&rows, |row| row.columns.labels.clone()))
        .bind(column(&rows, |row| row.columns.description.clone()))
        .bind(column(&rows, |row| row.columns.source.clone()))
        .bind(column(&rows, |row| row.content_hash.clone()))
        .bind(column(&rows, |row| row.columns.created_by.clone()))
        .bind(column(&rows, |row| row.columns.created_at))
        .bind(column(&rows, |row| row.columns.status.clone()))
        .bind(column(&rows, |row| row.columns.error.clone()))
        .bind(column(&rows, |row| row.columns.pause_reason.clone()))
        .bind(column(&rows, |row| row.columns.paused_by.clone()))
        .bind(column(&rows, |row| row.columns.paused_at))
        .bind(column(&rows, |row| row.columns.paused_until))
        .bind(column(&rows, |row| row.columns.revision))
        .bind(column(&rows, |row| row.columns.consecutive_failures))
        .bind(column(&rows, |row| row.columns.updated_by.clone()))
        .bind(column(&rows, |row| row.columns.updated_at))
        .bind(timers.iter().map(|timer| timer.next_run_at).collect::<Vec<Option<Micros>>>())
        .bind(timers.iter().map(|timer| timer.last_slot_at).collect::<Vec<Micros>>())
        .bind(sparse(&rows, |row| row.columns.trace_context.as_deref()));
    on(what, query.execute_on(&mut *tx)).await?;
    audit::insert_audit(tx, audit).await
}

fn column<T>(rows: &[JobValues], of: impl Fn(&JobValues) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}
