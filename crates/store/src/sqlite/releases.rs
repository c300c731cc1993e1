//! The releases of programs that declare jobs.

use everbell_core::store::StoreResult;
use everbell_core::{App, Releases, Source};

use super::SqliteStore;
use super::transaction::Tx;
use crate::rows::declarations::{read_releases, write_releases};

impl SqliteStore {
    pub(super) async fn read_releases(&self, source: Source, app: &App) -> StoreResult<Releases> {
        let mut held = self.reader("reading releases").await?;
        let mut tx = held.begin().await?;
        releases_of(&mut tx, source, app).await
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
        let (releases, answer) = decide(&releases_of(&mut tx, source, app).await?);
        let query = sqlx::query(include_str!("sql/write_releases.sql"));
        let query = query.bind(source.as_str()).bind(app.as_str().to_owned()).bind(write_releases(&releases));
        tx.run(query).await?;
        tx.commit().await?;
        Ok(answer)
    }
}

async fn releases_of(tx: &mut Tx<'_>, source: Source, app: &App) -> StoreResult<Releases> {
    let query = sqlx::query(include_str!("sql/releases.sql")).bind(source.as_str()).bind(app.as_str().to_owned());
    let found: Option<(String,)> = tx.first(query).await?;
    read_releases(app, found.as_ref().map(|(text,)| text.as_str()))
}
