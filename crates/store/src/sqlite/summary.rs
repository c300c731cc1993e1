//! Runs in small and in numbers, for charts.

use everbell_core::RunId;
use everbell_core::store::{Bucket, Glance, Lags, RunGlimpse, StoreResult, Tally};

use super::transaction::Statement;
use super::{SqliteStore, batch};
use crate::micros::Micros;
use crate::rows::summary::{self, GlimpseColumns, TallyColumns};

impl SqliteStore {
    pub(super) async fn read_glance(&self, glance: &Glance) -> StoreResult<Vec<RunGlimpse>> {
        let (from, to) = summary::at_range(glance.window());
        let query = sqlx::query(include_str!("sql/glance.sql"))
            .bind(batch::rows(glance.keys().iter().map(ToString::to_string)))
            .bind(glance.each())
            .bind(from)
            .bind(to);
        let mut held = self.reader("glancing at runs").await?;
        let mut tx = held.begin().await?;
        let rows: Vec<GlimpseColumns> = tx.all(query).await?;
        Ok(summary::glimpses(rows, glance.each()))
    }

    pub(super) async fn read_tally(&self, tally: &Tally) -> StoreResult<Vec<Bucket>> {
        let mut held = self.reader("counting runs").await?;
        let mut tx = held.begin().await?;
        let rows: Vec<TallyColumns> = tx.all(counting(tally)).await?;
        Ok(summary::buckets(tally, &rows))
    }
}

fn counting(tally: &Tally) -> Statement {
    if let Some(key) = tally.job_key() {
        let spans = tally.bounds().windows(2).map(|pair| [summary::at_bound(pair[0]), summary::at_bound(pair[1])]);
        let spans = batch::rows(spans);
        if tally.is_plain() {
            let ((from, to), id) = (tally.window(), |bound| RunId::first_from(bound).as_uuid());
            let query = sqlx::query(include_str!("sql/tally_counts_by_job.sql")).bind(spans);
            return query.bind(key.to_string()).bind(id(from)).bind(id(to));
        }
        return with_times(sqlx::query(include_str!("sql/tally_by_job.sql")).bind(spans), tally).bind(key.to_string());
    }
    let id = |bound| batch::Hex(RunId::first_from(bound).as_uuid());
    let spans = batch::rows(tally.bounds().windows(2).map(|pair| [id(pair[0]), id(pair[1])]));
    if tally.is_plain() {
        return sqlx::query(include_str!("sql/tally_counts.sql")).bind(spans);
    }
    with_times(sqlx::query(include_str!("sql/tally_all.sql")).bind(spans), tally)
}

fn with_times(query: Statement, tally: &Tally) -> Statement {
    let query = query.bind(tally.target().map(ToString::to_string)).bind(tally.has_times());
    Lags::EDGES.iter().fold(query, |query, edge| query.bind(Micros(edge.as_micros() as i64)))
}
