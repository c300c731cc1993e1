//! Tables of releases that had no schema of their own.
//!
//! Until migration 6 tables were created in the first schema of `search_path`, most often `public`, next to those of an
//! application, and `schema_migrations` numbered the migrations. Such tables are moved as they are, with their rows,
//! indexes and constraints; an application's tables of the same names are not touched.

use everbell_core::store::{StoreError, StoreResult, UnavailableReason};
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

/// The tables and views of that time, and the migration that created each. An application may have tables with the names
/// of later ones.
const RELATIONS: [(&str, u32); 18] = [
    ("active_runs", 1),
    ("audit", 1),
    ("clock", 3),
    ("gaps", 1),
    ("inbox", 10),
    ("instances", 1),
    ("job_rows", 1),
    ("jobs", 1),
    ("org_overrides", 1),
    ("orgs", 1),
    ("outcomes", 1),
    ("requests", 1),
    ("run_rows", 1),
    ("runs", 1),
    ("sessions", 5),
    ("sweeps", 1),
    ("timers", 1),
    ("tokens", 1),
];

/// The names of the tables and views that there are after this migration.
pub(super) fn relations(version: u32) -> Vec<String> {
    let present = RELATIONS.into_iter().filter(|(_, since)| *since <= version);
    present.map(|(name, _)| name.to_owned()).collect()
}

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
    let (from, to) = (quoted(&old.schema), quoted(schema.name()));
    // Another instance that moves them at this moment is done when this lock is free.
    run(&mut *tx, format!("lock table {from}.schema_migrations in access exclusive mode"))
        .await
        .map_err(errors::passing)?;
    if OldLayout::find(&mut *tx).await?.as_ref() != Some(old) {
        let (what, reason) = (MIGRATING.to_owned(), UnavailableReason::Locked);
        return Err(StoreError::Unavailable { what, reason, maybe_done: false, source: None });
    }
    if old.schema != schema.name() {
        let exists = sqlx::query_scalar("select to_regnamespace($1) is not null").bind(to.clone());
        if !on::<bool>(MIGRATING, exists.fetch_one_on(&mut *tx)).await? {
            create_schema(&mut *tx, schema).await?;
        }
        let present = sqlx::query_as(include_str!("catalog/list_relations.sql"))
            .bind(old.schema.clone())
            .bind(relations(old.version));
        let present: Vec<(String, bool)> = on(MIGRATING, present.fetch_all_on(&mut *tx)).await?;
        for (name, is_view) in present {
            let kind = if is_view { "view" } else { "table" };
            run(&mut *tx, format!("alter {kind} {from}.{name} set schema {to}")).await?;
        }
    }
    run(
        &mut *tx,
        format!("create table {to}.migrations (version integer primary key, applied_at timestamptz not null)"),
    )
    .await?;
    run(&mut *tx, format!("insert into {to}.migrations select version, applied_at from {from}.schema_migrations"))
        .await?;
    run(&mut *tx, format!("insert into {from}.schema_migrations values ({MOVED_VERSION}, clock_timestamp())")).await
}

async fn run(tx: Conn<'_, '_>, sql: String) -> StoreResult<()> {
    let query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
    on(MIGRATING, query.execute_on(tx)).await.map(drop).map_err(transient)
}

/// Any name, also one of a schema that everbell did not create.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
