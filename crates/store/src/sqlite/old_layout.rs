//! Tables of releases that gave them no prefix.
//!
//! Until migration 6 tables had plain names, such as `jobs`, and `schema_migrations` numbered the migrations. Such tables
//! are renamed with their rows; their indexes, views and triggers are created again under their new names.

use everbell_core::store::StoreResult;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};

use super::errors;
use super::migrate::{MIGRATING, MIGRATIONS};
use crate::rows::from_row::by_name;

/// The last migration that gave its tables no prefix.
const LAST_VERSION: u32 = 6;

/// The version that stays behind in `schema_migrations`. A binary of an old release that is started again refuses it, and
/// does not begin with empty tables of its own.
const MOVED_VERSION: u32 = 1000;

/// The prefix of all names since then.
const PREFIX: &str = "everbell_";

/// Columns of an old release, which distinguish its tables from those of an application.
const COLUMNS: &str = "select count(*) from (
  select 'schema_migrations' as relation, 'version' as name union all select 'schema_migrations', 'applied_at'
  union all select 'jobs', 'supersedes_job_id' union all select 'jobs', 'content_hash' union all select 'jobs', 'dst_fold'
  union all select 'timers', 'last_slot_at' union all select 'timers', 'rescheduled_from'
  union all select 'active_runs', 'max_concurrent' union all select 'active_runs', 'lease_until'
  union all select 'outcomes', 'failure_details' union all select 'outcomes', 'runner_id'
) ours where exists (select 1 from pragma_table_info(ours.relation) found where found.name = ours.name)";
const COLUMN_COUNT: i64 = 11;

/// The number of the last migration of an old release, if this is its database. Tables of others are recognized by their
/// columns.
pub(super) async fn find(connection: &mut SqliteConnection) -> StoreResult<Option<u32>> {
    let failed = |error| errors::from_sqlx("looking for tables of an old release", error);
    let found: i64 = sqlx::query_scalar(COLUMNS).fetch_one(&mut *connection).await.map_err(failed)?;
    if found != COLUMN_COUNT {
        return Ok(None);
    }
    let last = "select cast(coalesce(max(version), 0) as integer) from schema_migrations";
    let version: i64 = sqlx::query_scalar(last).fetch_one(&mut *connection).await.map_err(failed)?;
    Ok(u32::try_from(version).ok().filter(|version| (1..=LAST_VERSION).contains(version)))
}

/// Renames the tables of an old release, in the transaction of the migration.
pub(super) async fn rename(tx: &mut SqliteConnection, version: u32) -> StoreResult<()> {
    let failed = |error| errors::from_sqlx(MIGRATING, error);
    let wanted = objects_of(version).await.map_err(failed)?;
    let plain = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    // Views and triggers first: a rename would change the names of tables inside of them.
    for kind in ["trigger", "view", "index"] {
        for object in wanted.iter().filter(|object| object.kind == kind) {
            run(tx, format!("drop {kind} if exists {}", plain(&object.name))).await?;
        }
    }
    for table in wanted.iter().filter(|object| object.kind == "table") {
        run(tx, format!("alter table {} rename to {}", plain(&table.name), table.name)).await?;
    }
    let columns = "(version integer primary key, applied_at integer not null) strict";
    run(tx, format!("create table everbell_migrations {columns}")).await?;
    run(tx, "insert into everbell_migrations select version, applied_at from schema_migrations".to_owned()).await?;
    run(tx, format!("insert into schema_migrations values ({MOVED_VERSION}, 0)")).await?;
    for kind in ["index", "view", "trigger"] {
        for object in wanted.iter().filter(|object| object.kind == kind) {
            run(tx, object.sql.clone()).await?;
        }
    }
    Ok(())
}

async fn run(tx: &mut SqliteConnection, sql: String) -> StoreResult<()> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(tx).await;
    done.map(drop).map_err(|error| errors::from_sqlx(MIGRATING, error))
}

/// A table, index, view or trigger.
pub(super) struct Object {
    kind: String,
    pub(super) name: String,
    sql: String,
}

by_name!(sqlx::sqlite::SqliteRow, Object { kind, name, sql });

/// Everything that a new database has after this migration, from one in memory.
pub(super) async fn objects_of(version: u32) -> sqlx::Result<Vec<Object>> {
    let mut fresh = SqliteConnectOptions::new().in_memory(true).disable_statement_logging().connect().await?;
    for migration in MIGRATIONS.iter().take(version as usize) {
        sqlx::raw_sql(*migration).execute(&mut fresh).await?;
    }
    let objects = "select type as kind, name, sql from sqlite_schema where sql is not null order by rowid";
    let objects = sqlx::query_as(objects).fetch_all(&mut fresh).await?;
    fresh.close().await?;
    Ok(objects)
}
