//! The list of tables is that of both databases: a column that a migration adds cannot be forgotten.

use std::collections::BTreeSet;

use everbell_store::testing::TestDatabase;
use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::portable::tables::{LEFT_OUT, TABLES};
use crate::portable::value::Kind;

const FORGOTTEN: &str =
    "a table or a column is missing in `copy/tables.rs`, or is gone: copy it, or say in `LEFT_OUT` why not";

/// The columns that are copied, with the types of a database.
fn listed(type_of: impl Fn(Kind) -> &'static str) -> BTreeSet<String> {
    let columns = TABLES.iter().flat_map(|table| {
        table.columns().into_iter().map(|column| format!("{}.{} {}", table.name, column.name, type_of(column.kind)))
    });
    columns.collect()
}

fn is_copied(table: &str) -> bool {
    !LEFT_OUT.iter().any(|(name, _)| *name == table)
}

#[tokio::test]
async fn list_is_the_schema_of_postgres() {
    let database = TestDatabase::create().await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    let query = "select c.relname::text, c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
                 from pg_attribute a join pg_class c on c.oid = a.attrelid
                 where c.relnamespace = 'everbell'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0
                   and not a.attisdropped";
    let found: Vec<(String, String)> = sqlx::query_as(query).fetch_all(&mut connection).await.unwrap();
    let tables: BTreeSet<&str> = found.iter().map(|(table, _)| table.as_str()).collect();
    assert!(LEFT_OUT.iter().all(|(name, _)| tables.contains(name)), "a table of `LEFT_OUT` is gone");
    let found: BTreeSet<String> =
        found.into_iter().filter(|(table, _)| is_copied(table)).map(|(_, column)| column).collect();
    let listed = listed(|kind| match kind {
        Kind::Text | Kind::TextOrEmpty => "text",
        Kind::Uuid => "uuid",
        Kind::Bytes => "bytea",
        Kind::Bool => "boolean",
        Kind::Int => "bigint",
        Kind::Int4 => "integer",
        Kind::Time | Kind::TimeText => "timestamp with time zone",
    });
    assert_eq!(listed, found, "{FORGOTTEN}");
}

#[tokio::test]
async fn list_is_the_schema_of_sqlite() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    for migration in crate::sqlite::migrations() {
        sqlx::raw_sql(*migration).execute(&mut connection).await.unwrap();
    }
    let query = "select substr(m.name, 10), substr(m.name, 10) || '.' || c.name || ' ' || lower(c.type)
                 from sqlite_schema m join pragma_table_info(m.name) c
                 where m.type = 'table' and substr(m.name, 1, 9) = 'everbell_'";
    let found: Vec<(String, String)> = sqlx::query_as(query).fetch_all(&mut connection).await.unwrap();
    let found: BTreeSet<String> =
        found.into_iter().filter(|(table, _)| is_copied(table)).map(|(_, column)| column).collect();
    let listed = listed(|kind| match kind {
        Kind::Text | Kind::TextOrEmpty | Kind::TimeText => "text",
        Kind::Uuid | Kind::Bytes => "blob",
        Kind::Bool | Kind::Int | Kind::Int4 | Kind::Time => "integer",
    });
    assert_eq!(listed, found, "{FORGOTTEN}");
}

#[test]
fn tables_are_ordered_by_columns_that_they_have() {
    for table in &TABLES {
        let columns = table.columns();
        for name in table.order_by.iter().chain(&table.identity) {
            assert!(columns.iter().any(|column| column.name == *name), "{}.{name}", table.name);
        }
    }
}
