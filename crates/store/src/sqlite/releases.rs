//! The releases of programs that declare jobs.

use everbell_core::store::StoreResult;
use everbell_core::{App, Releases, Source};

use super::SqliteStore;
use crate::rows::declarations::{read_releases, write_releases};

impl SqliteStore {
    pub(super) async fn read_releases(&self, source: Source, app: &App) -> StoreResult<Releases> {
        let query = sqlx::query(include_str!("sql/releases.sql")).bind(source.as_str()).bind(app.as_str().to_owned());
        let found: Option<(String,)> = self.read_first("reading releases", query).await?;
        read_releases(app, found.as_ref().map(|(text,)| text.as_str()))
    }

    /// Reads the releases of a program, and writes those that `decide` returns. There is no other writer.
    pub(super) async fn change_releases<T: Send>(
        &self,
        source: Source,
        app: &App,
        decide: impl FnOnce(&Releases) -> (Releases, T) + Send,
    ) -> StoreResult<T> {
        let mut held = self.writer("declaring a release").await?;
        let mut tx = held.begin().await?;
        let (source, name) = (source.as_str(), app.as_str().to_owned());
        tx.run(sqlx::query(include_str!("sql/insert_app.sql")).bind(source).bind(name.clone())).await?;
        let query = sqlx::query(include_str!("sql/lock_releases.sql")).bind(source).bind(name.clone());
        let (found,): (String,) = tx.one(query).await?;
        let (releases, answer) = decide(&read_releases(app, Some(&found))?);
        let query = sqlx::query(include_str!("sql/write_releases.sql"));
        tx.run(query.bind(source).bind(name).bind(write_releases(&releases))).await?;
        tx.commit().await?;
        Ok(answer)
    }
}
