//! Migrations: numbered, forward-only, run when a database is opened, once however many processes open it together.
//!
//! The names of all tables, indexes, views and triggers begin with `everbell_`, because the file may be that of an
//! application with tables of its own.

use everbell_core::store::StoreResult;
use jiff::Timestamp;
use sqlx::{Connection, SqliteConnection};

use super::{errors, old_layout};
use crate::micros::Micros;
use crate::migrations::migrations;

/// In order; the number of a migration is its place, from 1.
pub(super) const MIGRATIONS: &[&str] = &migrations!();

pub(super) const MIGRATING: &str = "migrating the schema";

/// The schema that this binary needs.
pub(super) const fn latest() -> u32 {
    MIGRATIONS.len() as u32
}

/// The schema of a database, whether or not it is up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundVersion {
    /// The number of the last migration, 0 before the first.
    pub(super) version: u32,
    /// Whether its tables still have the names that an old release gave them.
    pub(super) old_layout: bool,
}

/// Brings the schema up to date, or says why that cannot be.
pub(super) async fn run(connection: &mut SqliteConnection, now: Timestamp) -> StoreResult<()> {
    // Asked without a lock first, so that opening a database that is up to date writes nothing.
    loop {
        let FoundVersion { version, old_layout } = found(connection).await?;
        refuse_newer(version)?;
        if version == latest() && !old_layout {
            return Ok(());
        }
        step(connection, now).await?;
    }
}

/// Applies the next migration. A second process waits for the lock and then finds it done.
async fn step(connection: &mut SqliteConnection, now: Timestamp) -> StoreResult<()> {
    let failed = |error| errors::from_sqlx(MIGRATING, error);
    let committed = |error| errors::commit(MIGRATING, error);
    let mut tx = connection.begin_with("begin immediate").await.map_err(failed)?;
    let FoundVersion { version, old_layout } = known(&mut tx).await?;
    if old_layout {
        old_layout::rename(&mut tx, version).await?;
        tx.commit().await.map_err(committed)?;
        tracing::info!("gave the tables of an old release their prefix");
        return Ok(());
    }
    let Some(migration) = MIGRATIONS.get(version as usize) else { return Ok(()) };
    if version == 0 {
        let create = "create table if not exists everbell_migrations \
                      (version integer primary key, applied_at integer not null) strict";
        sqlx::query(create).execute(&mut *tx).await.map_err(failed)?;
    }
    sqlx::raw_sql(*migration).execute(&mut *tx).await.map_err(failed)?;
    let note = sqlx::query("insert into everbell_migrations (version, applied_at) values (?1, ?2)");
    note.bind(version + 1).bind(Micros::from(now)).execute(&mut *tx).await.map_err(failed)?;
    tx.commit().await.map_err(committed)
}

fn refuse_newer(version: u32) -> StoreResult<()> {
    if version > latest() {
        return Err(errors::refused(format!(
            "schema version {version} is newer than this binary knows ({}); start the newer release, or restore a backup",
            latest()
        )));
    }
    Ok(())
}

/// The schema of a database. A version that this binary does not know is refused, and so are tables of others that have
/// our names: only in a transaction, because another process may be creating these tables.
async fn known(connection: &mut SqliteConnection) -> StoreResult<FoundVersion> {
    let found = found(connection).await?;
    let FoundVersion { version, .. } = found;
    refuse_newer(version)?;
    if version == 0 || found.old_layout {
        let failed = |error| errors::from_sqlx(LOOKING, error);
        let names = sqlx::query_scalar("select name from sqlite_schema where substr(name, 1, 9) = 'everbell_'");
        let names: Vec<String> = names.fetch_all(&mut *connection).await.map_err(failed)?;
        if !names.is_empty() {
            let ours = old_layout::objects_of(latest()).await.map_err(failed)?;
            if let Some(object) = ours.iter().find(|object| names.contains(&object.name)) {
                return Err(foreign(&object.name));
            }
        }
    }
    Ok(found)
}

const LOOKING: &str = "reading the version of the schema";

/// The schema of a database, whichever it is.
pub(super) async fn found(connection: &mut SqliteConnection) -> StoreResult<FoundVersion> {
    let failed = |error| errors::from_sqlx(LOOKING, error);
    let columns = "select name from pragma_table_info('everbell_migrations') order by cid";
    let columns: Vec<String> = sqlx::query_scalar(columns).fetch_all(&mut *connection).await.map_err(failed)?;
    if columns.is_empty() {
        let old = old_layout::find(connection).await?;
        return Ok(FoundVersion { version: old.unwrap_or(0), old_layout: old.is_some() });
    }
    if columns != ["version", "applied_at"] {
        return Err(foreign("everbell_migrations"));
    }
    let last = "select coalesce(max(version), 0) from everbell_migrations";
    let version = sqlx::query_scalar(last).fetch_one(&mut *connection).await.map_err(failed)?;
    Ok(FoundVersion { version, old_layout: false })
}

fn foreign(name: &str) -> everbell_core::store::StoreError {
    errors::refused(format!(
        "has `{name}`, which everbell did not create in this place; rename it, or give everbell its own file"
    ))
}
