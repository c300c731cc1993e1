//! Tables of releases that had no schema of their own.
//!
//! Until migration 6 tables were created in the first schema of `search_path`, most often `public`, next to those of an
//! application, and `schema_migrations` numbered the migrations. Such tables are moved as they are, with their rows,
//! indexes and constraints; an application's tables of the same names are not touched.

use everbell_core::store::StoreResult;
use sqlx::AssertSqlSafe;

use super::connect::{Conn, on};
use super::errors;
use super::migrate::{MIGRATING, create_schema, transient};
use super::schema::Schema;
use super::statement::Statement;

/// The last migration that created its tables in the first schema of `search_path`.
const LAST_VERSION: u32 = 6;

/// The version that stays behind where the tables were. A binary of an old release that is started again refuses it, and
/// does not begin with an empty database of its own.
const MOVED_VERSION: u32 = 1000;

/// The tables and views of that time, of which an older version lacks some.
pub(super) const RELATIONS: [&str; 17] = [
    "active_runs",
    "audit",
    "clock",
    "gaps",
    "instances",
    "job_rows",
    "jobs",
    "org_overrides",
    "orgs",
    "outcomes",
    "requests",
    "run_rows",
    "runs",
    "sessions",
    "sweeps",
    "timers",
    "tokens",
];

/// Tables of an old release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OldLayout {
    /// The schema that they are in.
    pub(super) schema: String,
    /// The number of its last migration.
    pub(super) version: u32,
}

impl OldLayout {
    /// Looks for them where an old release would. Tables of others are recognized by their columns.
    pub(super) async fn find(tx: Conn<'_, '_>) -> StoreResult<Option<OldLayout>> {
        const WHAT: &str = "looking for tables of an old release";
        let query = sqlx::query_scalar(include_str!("catalog/find_old_layout.sql"));
        let schema: Option<String> = on(WHAT, query.fetch_optional_on(&mut *tx)).await?;
        let Some(schema) = schema else { return Ok(None) };
        let last = format!("select coalesce(max(version), 0) from {}.schema_migrations", quoted(&schema));
        let last = sqlx::query_scalar(AssertSqlSafe(last)).persistent(false);
        // Another instance may have moved it after the look above.
        let version: i32 = on(WHAT, last.fetch_one_on(tx)).await.map_err(errors::passing)?;
        let version = u32::try_from(version).unwrap_or(0);
        Ok((1..=LAST_VERSION).contains(&version).then_some(OldLayout { schema, version }))
    }
}

/// Moves the tables of an old release into the schema, in the transaction of the migration.
pub(super) async fn take_over(tx: Conn<'_, '_>, schema: &Schema, old: &OldLayout) -> StoreResult<()> {
    let from = quoted(&old.schema);
    // Another instance that moves them at this moment is done when this lock is free, and they are gone then.
    run(&mut *tx, format!("lock table {from}.schema_migrations in access exclusive mode"))
        .await
        .map_err(errors::passing)?;
    if old.schema != schema.name() {
        let exists = sqlx::query_scalar("select to_regnamespace($1) is not null").bind(quoted(schema.name()));
        if !on::<bool>(MIGRATING, exists.fetch_one_on(&mut *tx)).await? {
            create_schema(&mut *tx, schema).await?;
        }
        let present = sqlx::query_as(include_str!("catalog/list_relations.sql"))
            .bind(old.schema.clone())
            .bind(RELATIONS.map(str::to_owned).to_vec());
        let present: Vec<(String, bool)> = on(MIGRATING, present.fetch_all_on(&mut *tx)).await?;
        for (name, is_view) in present {
            let kind = if is_view { "view" } else { "table" };
            run(&mut *tx, format!("alter {kind} {from}.{name} set schema {}", quoted(schema.name()))).await?;
        }
        run(&mut *tx, format!("alter table {from}.schema_migrations set schema {}", quoted(schema.name()))).await?;
    }
    let to = quoted(schema.name());
    run(&mut *tx, format!("alter table {to}.schema_migrations rename to migrations")).await?;
    run(&mut *tx, format!("alter index {to}.schema_migrations_pkey rename to migrations_pkey")).await?;
    if old.schema != schema.name() {
        let columns = "(version integer primary key, applied_at timestamptz not null)";
        run(&mut *tx, format!("create table {from}.schema_migrations {columns}")).await?;
        let note = format!("insert into {from}.schema_migrations values ({MOVED_VERSION}, clock_timestamp())");
        run(&mut *tx, note).await?;
    }
    tracing::info!(from = %old.schema, to = %schema.name(), "moved the tables of an old release into their own schema");
    Ok(())
}

async fn run(tx: Conn<'_, '_>, sql: String) -> StoreResult<()> {
    let query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
    on(MIGRATING, query.execute_on(tx)).await.map(drop).map_err(transient)
}

/// Any name, also one of a schema that everbell did not create.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
