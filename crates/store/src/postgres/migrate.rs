//! Migrations: numbered, forward-only, run at start, once however many instances start together.
//!
//! The files name no schema. Each runs with its schema as the only one in `search_path`, so it creates its tables there and
//! finds no others: `pg_catalog` is always in front, and `pg_temp` is named last, where nothing of it can be in the way.

use std::time::Duration;

use everbell_core::Invalid;
use everbell_core::store::{StoreError, StoreResult, UnavailableReason};
use sqlx::AssertSqlSafe;

use super::connect::{Conn, on};
use super::old_layout::{self, OldLayout};
use super::pooler::{News, Pool};
use super::schema::Schema;
use super::statement::Statement;
use crate::migrations::migrations;
use crate::rows::from_row::by_name;

/// In order; the number of a migration is its place, from 1.
pub(crate) const MIGRATIONS: &[&str] = &migrations!();

pub(super) const MIGRATING: &str = "migrating the schema";

/// Tables that are there since the first migration.
const FIRST_TABLES: [&str; 4] = ["active_runs", "jobs", "outcomes", "timers"];

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

/// The state of the schema in a database.
#[derive(Debug)]
enum SchemaState {
    /// Its table of migrations, and the first of the tables that the first migration creates and that is missing.
    Ours { missing: Option<&'static str> },
    /// Tables of an old release in another schema.
    Old(OldLayout),
    /// Nothing yet; perhaps the schema itself, empty.
    Nothing { schema_exists: bool },
}

/// Brings the schema up to date, or says why that cannot be.
pub(super) async fn run(pool: &Pool) -> StoreResult<()> {
    for attempt in 1.. {
        match step(pool).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // Another session holds a lock that the migration needs; it gives way and retries.
            Err(error) if passes(&error) && attempt < MAX_ATTEMPTS => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a retry may succeed. Other people's objects and missing privileges stay as they are.
fn passes(error: &StoreError) -> bool {
    let StoreError::Unavailable { reason, .. } = error else { return false };
    !matches!(reason, UnavailableReason::Schema | UnavailableReason::Permission)
}

/// Applies the next migration, if there is one. A second instance waits for the table and then finds it done.
async fn step(pool: &Pool) -> StoreResult<bool> {
    let schema = pool.schema();
    let mut tx = on(MIGRATING, pool.begin_within(MIGRATION_TIMEOUT)).await?;
    for setting in [LOCK_TIMEOUT, STATEMENT_TIMEOUT] {
        on(MIGRATING, sqlx::query(setting).execute_on(&mut tx)).await?;
    }
    let (mut missing, mut moved) = (None, None);
    match find(&mut tx, schema).await? {
        SchemaState::Ours { missing: table } => missing = table,
        SchemaState::Old(old) => {
            old_layout::take_over(&mut tx, schema, &old).await?;
            moved = Some(old.schema);
        }
        SchemaState::Nothing { schema_exists } => {
            if !schema_exists {
                create_schema(&mut tx, schema).await?;
            }
            // Two that create it at once: one of them waits for the other and then fails, which is transient.
            let create = "create table if not exists everbell.migrations \
                          (version integer primary key, applied_at timestamptz not null)";
            on(MIGRATING, sqlx::query(create).execute_on(&mut tx)).await.map_err(transient)?;
        }
    }
    on(MIGRATING, sqlx::query("lock table everbell.migrations in access exclusive mode").execute_on(&mut tx)).await?;
    let version = version(&mut tx).await?;
    if version > latest() {
        let reason = format!(
            "schema version {version} is newer than this binary knows ({}); start the newer release, or restore a backup",
            latest()
        );
        return Err(Invalid::new("database", reason).into());
    }
    if let (Some(table), 1..) = (missing, version) {
        return Err(incomplete(schema, version, table));
    }
    let Some(migration) = MIGRATIONS.get(version as usize) else {
        // Tables of an old release may have been moved.
        on(MIGRATING, tx.commit(News::None)).await?;
        log_move(schema, moved);
        return Ok(false);
    };
    let search_path = AssertSqlSafe(format!("set local search_path = \"{}\", pg_temp", schema.name()));
    on(MIGRATING, sqlx::query(search_path).execute_on(&mut tx)).await?;
    on(MIGRATING, sqlx::raw_sql(*migration).execute_on(&mut tx)).await.map_err(transient)?;
    let note = "insert into everbell.migrations (version, applied_at) values ($1, clock_timestamp())";
    on(MIGRATING, sqlx::query(note).bind((version + 1) as i32).execute_on(&mut tx)).await?;
    on(MIGRATING, tx.commit(News::None)).await?;
    log_move(schema, moved);
    Ok(true)
}

fn log_move(schema: &Schema, from: Option<String>) {
    if let Some(from) = from {
        tracing::info!(%from, to = %schema.name(), "moved the tables of an old release into their own schema");
    }
}

/// A role that may not create schemas can be given one, so this is asked only if there is none.
pub(super) async fn create_schema(tx: Conn<'_, '_>, schema: &Schema) -> StoreResult<()> {
    let create = AssertSqlSafe(format!("create schema if not exists \"{}\"", schema.name()));
    let names = sqlx::query_as("select quote_ident($1), quote_ident(current_user)").bind(schema.name().to_owned());
    let (name, role): (String, String) = on(MIGRATING, names.fetch_one_on(&mut *tx)).await?;
    let created = on(MIGRATING, sqlx::query(create).execute_on(tx)).await;
    created.map(drop).map_err(transient).map_err(|error| match error {
        StoreError::Unavailable { what, reason: UnavailableReason::Permission, .. } => {
            let remedy = format!("create schema {name} authorization {role}");
            let reason = format!("{what}: an administrator of the database has to run `{remedy}`");
            Invalid::new("database", reason).into()
        }
        other => other,
    })
}

/// The schema of a database, whether or not it is up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundVersion {
    /// The number of the last migration, 0 before the first.
    pub(super) version: u32,
    /// Whether its tables are still where an old release created them.
    pub(super) old_layout: bool,
}

pub(super) async fn found(tx: Conn<'_, '_>, schema: &Schema) -> StoreResult<FoundVersion> {
    Ok(match find(&mut *tx, schema).await? {
        SchemaState::Ours { .. } => FoundVersion { version: version(tx).await?, old_layout: false },
        SchemaState::Old(old) => FoundVersion { version: old.version, old_layout: true },
        SchemaState::Nothing { .. } => FoundVersion { version: 0, old_layout: false },
    })
}

async fn version(tx: Conn<'_, '_>) -> StoreResult<u32> {
    let last = sqlx::query_scalar("select coalesce(max(version), 0) from everbell.migrations");
    let version: i32 = on("reading the version of the schema", last.fetch_one_on(tx)).await?;
    Ok(u32::try_from(version).unwrap_or(0))
}

/// Looks for the schema. Asked before anything is created, so that a role without the right to create can still start.
/// Objects of others in a schema of this name are refused.
async fn find(tx: Conn<'_, '_>, schema: &Schema) -> StoreResult<SchemaState> {
    let look = look(&mut *tx, schema).await?;
    let Look { schema_exists, columns, relations } = &look;
    let old = OldLayout::find(&mut *tx).await?;
    if *columns == ["version integer", "applied_at timestamp with time zone"] {
        if let Some(old) = old.filter(|old| old.schema != schema.name() && schema.is_default()) {
            return Err(two_layouts(schema, &old));
        }
        let is_missing = |table: &&str| !relations.iter().any(|found| found == table);
        return Ok(SchemaState::Ours { missing: FIRST_TABLES.into_iter().find(is_missing) });
    }
    if let Some(old) = old {
        let is_in_place = old.schema == schema.name();
        if is_in_place || (columns.is_empty() && relations.is_empty()) {
            return Ok(SchemaState::Old(old));
        }
    }
    let foreign = if columns.is_empty() { relations.first().map(String::as_str) } else { Some("migrations") };
    match foreign {
        // Another instance may be creating or moving the schema at this moment.
        Some(_) if self::look(&mut *tx, schema).await? != look => {
            let (what, reason) = (LOOKING.to_owned(), UnavailableReason::Locked);
            Err(StoreError::Unavailable { what, reason, maybe_done: false, source: None })
        }
        Some(foreign) => Err(clash(schema, foreign)),
        None => Ok(SchemaState::Nothing { schema_exists: *schema_exists }),
    }
}

const LOOKING: &str = "looking for the schema";

/// The parts of a schema that concern everbell.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    schema_exists: bool,
    /// The columns of its table of migrations.
    columns: Vec<String>,
    /// Those that have a name of ours.
    relations: Vec<String>,
}

by_name!(sqlx::postgres::PgRow, Look { schema_exists, columns, relations });

async fn look(tx: Conn<'_, '_>, schema: &Schema) -> StoreResult<Look> {
    let query = sqlx::query_as(include_str!("catalog/find_schema.sql")).bind(schema.name().to_owned());
    on(LOOKING, query.bind(old_layout::relations(latest())).fetch_one_on(tx)).await
}

/// Refuses to choose between two sets of tables: a backup of an old release may have been restored beside new tables.
fn two_layouts(schema: &Schema, old: &OldLayout) -> StoreError {
    let (name, old) = (schema.name(), &old.schema);
    let reason = format!(
        "both the schema `{name}` and the schema `{old}` hold tables of everbell, those of `{old}` from an old release; to \
         continue with the old ones (a restored backup, for instance) drop the schema `{name}`, else drop the table \
         `{old}.schema_migrations`"
    );
    Invalid::new("database", reason).into()
}

fn clash(schema: &Schema, relation: &str) -> StoreError {
    let name = schema.name();
    let reason = format!(
        "the schema `{name}` has a relation `{relation}` that everbell did not create; rename it, or give everbell another \
         schema, such as `?schema=everbell_jobs` in the address of the database"
    );
    Invalid::new("database", reason).into()
}

/// Refuses a table of migrations that belongs to another program, or a damaged database.
fn incomplete(schema: &Schema, version: u32, table: &str) -> StoreError {
    let name = schema.name();
    let reason = format!(
        "the schema `{name}` has a table `migrations` at version {version}, but no table `{table}`; restore a backup, or \
         give everbell another schema, such as `?schema=everbell_jobs` in the address of the database"
    );
    Invalid::new("database", reason).into()
}

/// Turns a conflict with another instance's migration into an error that passes when that migration is over.
pub(super) fn transient(error: StoreError) -> StoreError {
    match error {
        StoreError::Conflict { what } => {
            let reason = UnavailableReason::Locked;
            StoreError::Unavailable { what, reason, maybe_done: false, source: None }
        }
        other => other,
    }
}
