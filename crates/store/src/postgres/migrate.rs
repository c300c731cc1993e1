//! Migrations: numbered, forward-only, run at start, once however many instances start together.

use std::time::Duration;

use everbell_core::Invalid;
use everbell_core::store::{StoreError, StoreResult, UnavailableReason};

use super::connect::{Conn, on};
use super::pooler::{News, Pool};

/// In order; the number of a migration is its place, from 1. What was released never changes.
pub(crate) const MIGRATIONS: [&str; 7] = [
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_instance_process.sql"),
    include_str!("migrations/0003_clock.sql"),
    include_str!("migrations/0004_deeds.sql"),
    include_str!("migrations/0005_sessions.sql"),
    include_str!("migrations/0006_first_org.sql"),
    include_str!("migrations/0007_earlier_attempts.sql"),
];

/// Waiting longer behind a reader would make every query on that table wait behind the migration.
const LOCK_TIMEOUT: &str = "set local lock_timeout = '2s'";
/// A large table takes its time.
const STATEMENT_TIMEOUT: &str = "set local statement_timeout = '10min'";
const MIGRATION_TIMEOUT: Duration = Duration::from_mins(10);
const MAX_ATTEMPTS: u32 = 30;

/// The schema that this binary needs.
pub(super) const fn latest() -> u32 {
    MIGRATIONS.len() as u32
}

/// Brings the schema up to date, or says why that cannot be.
pub(super) async fn run(pool: &Pool) -> StoreResult<()> {
    for attempt in 1.. {
        match step(pool).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // Another session holds a lock that the migration needs; it gives way and retries.
            Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Applies the next migration, if there is one. A second instance waits for the table and then finds it done.
async fn step(pool: &Pool) -> StoreResult<bool> {
    const WHAT: &str = "migrating the schema";
    let mut tx = on(WHAT, pool.begin_within(MIGRATION_TIMEOUT)).await?;
    for setting in [LOCK_TIMEOUT, STATEMENT_TIMEOUT] {
        on(WHAT, sqlx::query(setting).execute(&mut tx)).await?;
    }
    if !exists(&mut tx).await? {
        // Two that create it at once: one of them waits for the other and then fails, which is transient.
        let create = "create table if not exists schema_migrations (version integer primary key, applied_at timestamptz not null)";
        on(WHAT, sqlx::query(create).execute(&mut tx)).await.map_err(transient)?;
    }
    on(WHAT, sqlx::query("lock table schema_migrations in access exclusive mode").execute(&mut tx)).await?;
    let version = version(&mut tx).await?;
    if version > latest() {
        let reason = format!(
            "schema version {version} is newer than this binary knows ({}); start the newer release, or restore a backup",
            latest()
        );
        return Err(Invalid::new("database", reason).into());
    }
    let Some(migration) = MIGRATIONS.get(version as usize) else { return Ok(false) };
    on(WHAT, sqlx::raw_sql(*migration).execute(&mut tx)).await.map_err(transient)?;
    let note = "insert into schema_migrations (version, applied_at) values ($1, clock_timestamp())";
    on(WHAT, sqlx::query(note).bind((version + 1) as i32).execute(&mut tx)).await?;
    on(WHAT, tx.commit(News::None)).await?;
    Ok(true)
}

/// The number of the last migration, 0 before the first.
pub(super) async fn found(tx: Conn<'_, '_>) -> StoreResult<u32> {
    if exists(&mut *tx).await? { version(tx).await } else { Ok(0) }
}

async fn version(tx: Conn<'_, '_>) -> StoreResult<u32> {
    let last = sqlx::query_scalar("select coalesce(max(version), 0) from schema_migrations");
    let version: i32 = on("reading the version of the schema", last.fetch_one(tx)).await?;
    Ok(u32::try_from(version).unwrap_or(0))
}

/// Asked before anything is created, so that a role without the right to create can still start.
async fn exists(tx: Conn<'_, '_>) -> StoreResult<bool> {
    let query = sqlx::query_scalar("select to_regclass('schema_migrations') is not null");
    on("looking for the schema", query.fetch_one(tx)).await
}

/// Turns a conflict with another instance's migration into an error that passes when that migration is over.
fn transient(error: StoreError) -> StoreError {
    match error {
        StoreError::Conflict { what } => {
            let reason = UnavailableReason::Locked;
            StoreError::Unavailable { what, reason, maybe_done: false, source: None }
        }
        other => other,
    }
}
