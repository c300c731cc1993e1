//! The releases of programs that declare jobs.

use everbell_core::store::StoreResult;
use everbell_core::{App, Releases, Source};

use super::PostgresStore;
use super::connect::{Conn, on};
use super::statement::Statement;
use crate::rows::declarations::{read_releases, write_releases};

const DECLARING: &str = "declaring a release";

impl PostgresStore {
    pub(super) async fn read_releases(&self, source: Source, app: &App) -> StoreResult<Releases> {
        let query = sqlx::query_scalar(include_str!("sql/releases.sql"));
        let query = query.bind(source.as_str()).bind(app.as_str().to_owned());
        let found: Option<String> = self.within("reading releases", query.fetch_optional_on(&self.pool)).await?;
        read_releases(app, found.as_deref())
    }

    /// Locks the releases of a program, and writes those that `decide` returns.
    pub(super) async fn change_releases<T: Send>(
        &self,
        source: Source,
        app: &App,
        decide: impl FnOnce(&Releases) -> (Releases, T) + Send,
    ) -> StoreResult<T> {
        let mut tx = self.begin(DECLARING).await?;
        let done = change_in(&mut tx, source, app, decide).await;
        self.finish_transaction(DECLARING, tx, done, |_| false).await
    }
}

async fn change_in<T: Send>(
    conn: Conn<'_, '_>,
    source: Source,
    app: &App,
    decide: impl FnOnce(&Releases) -> (Releases, T) + Send,
) -> StoreResult<T> {
    let (source, name) = (source.as_str(), app.as_str().to_owned());
    let query = sqlx::query(include_str!("sql/insert_app.sql")).bind(source).bind(name.clone());
    on(DECLARING, query.execute_on(&mut *conn)).await?;
    let query = sqlx::query_scalar(include_str!("sql/lock_releases.sql")).bind(source).bind(name.clone());
    let found: Option<String> = on(DECLARING, query.fetch_optional_on(&mut *conn)).await?;
    let (releases, answer) = decide(&read_releases(app, found.as_deref())?);
    let query = sqlx::query(include_str!("sql/write_releases.sql"));
    let query = query.bind(source).bind(name).bind(write_releases(&releases));
    on(DECLARING, query.execute_on(&mut *conn)).await?;
    Ok(answer)
}
