//! Migrations: numbered, forward-only, run when a database is opened, once however many processes open it together.

use everbell_core::store::StoreResult;
use jiff::Timestamp;
use sqlx::{Connection, SqliteConnection};

use super::errors;
use crate::micros::Micros;

/// In order; the number of a migration is its place, from 1. What was released never changes.
const MIGRATIONS: [&str; 7] = [
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_instance_process.sql"),
    include_str!("migrations/0003_clock.sql"),
    include_str!("migrations/0004_deeds.sql"),
    include_str!("migrations/0005_sessions.sql"),
    include_str!("migrations/0006_first_org.sql"),
    include_str!("migrations/0007_earlier_attempts.sql"),
];

const WHAT: &str = "migrating the schema";

/// The schema that this binary needs.
pub(super) const fn latest() -> u32 {
    MIGRATIONS.len() as u32
}

/// Brings the schema up to date, or says why that cannot be.
pub(super) async fn run(connection: &mut SqliteConnection, now: Timestamp) -> StoreResult<()> {
    // Asked without a lock first, so that opening a database that is up to date writes nothing.
    while version(connection).await? < latest() {
        step(connection, now).await?;
    }
    Ok(())
}

/// Applies the next migration. A second process waits for the lock and then finds it done.
async fn step(connection: &mut SqliteConnection, now: Timestamp) -> StoreResult<()> {
    let failed = |error| errors::from_sqlx(WHAT, error);
    let mut tx = connection.begin_with("begin immediate").await.map_err(failed)?;
    let version = version(&mut tx).await?;
    let Some(migration) = MIGRATIONS.get(version as usize) else { return Ok(()) };
    if version == 0 {
        let create = "create table schema_migrations (version integer primary key, applied_at integer not null) strict";
        sqlx::query(create).execute(&mut *tx).await.map_err(failed)?;
    }
    sqlx::raw_sql(*migration).execute(&mut *tx).await.map_err(failed)?;
    let note = sqlx::query("insert into schema_migrations (version, applied_at) values (?1, ?2)");
    note.bind(version + 1).bind(Micros::from(now)).execute(&mut *tx).await.map_err(failed)?;
    tx.commit().await.map_err(|error| errors::commit(WHAT, error))
}

/// The number of the last migration, 0 before the first. One that this binary does not know is refused.
async fn version(connection: &mut SqliteConnection) -> StoreResult<u32> {
    let version = found(connection).await?;
    if version > latest() {
        return Err(errors::refused(format!(
            "schema version {version} is newer than this binary knows ({}); start the newer release, or restore a backup",
            latest()
        )));
    }
    Ok(version)
}

/// The number of the last migration, whichever it is.
pub(super) async fn found(connection: &mut SqliteConnection) -> StoreResult<u32> {
    let failed = |error| errors::from_sqlx("reading the version of the schema", error);
    let known = "select count(*) from sqlite_schema where name = 'schema_migrations'";
    let known: u32 = sqlx::query_scalar(known).fetch_one(&mut *connection).await.map_err(failed)?;
    if known == 0 {
        return Ok(0);
    }
    let last = "select coalesce(max(version), 0) from schema_migrations";
    sqlx::query_scalar(last).fetch_one(&mut *connection).await.map_err(failed)
}
