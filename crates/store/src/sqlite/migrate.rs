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

/// The schema that all migrations leave. A new database gets it in one step, and tests hold that both are the same.
const SCHEMA: &str = include_str!("schema.sql");
/// The rows that they leave in a database without jobs.
const ROWS: &str = "insert into everbell_alert_state (id, generation) values (1, 0)";

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
    if version == 0 && names_of_ours(&mut tx).await?.is_empty() {
        create(&mut tx, now).await?;
        return tx.commit().await.map_err(committed);
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

/// Gives a database that has nothing of ours all that it needs.
async fn create(tx: &mut SqliteConnection, now: Timestamp) -> StoreResult<()> {
    let failed = |error| errors::from_sqlx(MIGRATING, error);
    sqlx::raw_sql(SCHEMA).execute(&mut *tx).await.map_err(failed)?;
    sqlx::raw_sql(ROWS).execute(&mut *tx).await.map_err(failed)?;
    let notes = "insert into everbell_migrations (version, applied_at)
      with recursive n (n) as (select 1 union all select n + 1 from n where n < ?1) select n, ?2 from n";
    sqlx::query(notes).bind(latest()).bind(Micros::from(now)).execute(&mut *tx).await.map_err(failed)?;
    Ok(())
}

/// The names in a database that begin like ours.
async fn names_of_ours(connection: &mut SqliteConnection) -> StoreResult<Vec<String>> {
    let names = sqlx::query_scalar("select name from sqlite_schema where substr(name, 1, 9) = 'everbell_'");
    names.fetch_all(connection).await.map_err(|error| errors::from_sqlx(LOOKING, error))
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
        let names = names_of_ours(connection).await?;
        if !names.is_empty() {
            let ours = old_layout::objects_of(latest()).await.map_err(|error| errors::from_sqlx(LOOKING, error))?;
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

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{AssertSqlSafe, ConnectOptions};

    use super::*;

    async fn empty() -> SqliteConnection {
        SqliteConnectOptions::new().in_memory(true).connect().await.unwrap()
    }

    /// A database that went through all migrations, one after the other.
    async fn migrated() -> SqliteConnection {
        let mut connection = empty().await;
        let notes =
            "create table everbell_migrations (version integer primary key, applied_at integer not null) strict";
        sqlx::raw_sql(notes).execute(&mut connection).await.unwrap();
        for (before, migration) in MIGRATIONS.iter().enumerate() {
            sqlx::raw_sql(*migration).execute(&mut connection).await.unwrap();
            let note = sqlx::query("insert into everbell_migrations (version, applied_at) values (?1, 0)");
            note.bind(before as u32 + 1).execute(&mut connection).await.unwrap();
        }
        connection
    }

    /// Tables before what stands on them, so that the whole can be executed.
    async fn schema_of(connection: &mut SqliteConnection) -> String {
        let query = "select sql from sqlite_schema where sql is not null and substr(name, 1, 7) <> 'sqlite_'
          order by type <> 'table', tbl_name, type, name";
        let parts: Vec<String> = sqlx::query_scalar(query).fetch_all(connection).await.unwrap();
        format!("{};\n", parts.join(";\n"))
    }

    /// The rows of each table, as text.
    async fn rows_of(connection: &mut SqliteConnection) -> Vec<(String, String)> {
        let tables = "select name from sqlite_schema where type = 'table' order by name";
        let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *connection).await.unwrap();
        let mut rows = Vec::new();
        for table in tables {
            let columns = format!("select group_concat(quote(name), ', ') from pragma_table_info('{table}')");
            let columns: String = sqlx::query_scalar(AssertSqlSafe(columns)).fetch_one(&mut *connection).await.unwrap();
            let columns = columns.replace('\'', "\"");
            let found = format!("select json_array({columns}) from {table} order by 1");
            let found: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(found)).fetch_all(&mut *connection).await.unwrap();
            rows.extend(found.into_iter().map(|row| (table.clone(), row)));
        }
        rows
    }

    #[tokio::test]
    async fn the_schema_is_the_one_on_file() {
        let found = schema_of(&mut migrated().await).await;
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/schema.sql");
        if std::env::var_os("EVERBELL_BLESS").is_some() {
            std::fs::write(path, &found).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), found, "EVERBELL_BLESS=1 writes it");
    }

    #[tokio::test]
    async fn a_new_database_is_like_one_that_went_through_all_migrations() {
        let mut fresh = empty().await;
        run(&mut fresh, Timestamp::UNIX_EPOCH).await.unwrap();
        let mut old = migrated().await;
        assert_eq!(schema_of(&mut fresh).await, schema_of(&mut old).await);
        assert_eq!(rows_of(&mut fresh).await, rows_of(&mut old).await);
    }
}
