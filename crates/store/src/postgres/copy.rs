//! A PostgreSQL database as the source or the target of a copy: one transaction on one connection, which holds locks that
//! keep every server out until it ends.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::Invalid;
use everbell_core::store::StoreResult;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Row as _};
use uuid::Uuid;

use super::connect::{KEEPALIVE_SETTINGS, reach, schema_of};
use super::errors;
use super::moved::{MarkColumns, mark};
use super::schema::Schema;
use crate::ConnectOptions;
use crate::micros::Micros;
use crate::moved::MovedMark;
use crate::portable::tables::{Column, LEFT_OUT, TABLES, Table};
use crate::portable::value::{Kind, Row, Value};
use crate::portable::{Access, Limit};
use crate::url::PostgresAddress;

/// A copy takes as long as it takes, but does not wait long for the locks of others.
const SETTINGS: &str = "set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0; \
                        set local lock_timeout = '10s'; set local jit = off";

/// While rows of the other database are read or written, this one may hear nothing for long; keepalives show whether the
/// other end is there. Not every server has the setting.
const LONG_COPY_SETTINGS: &str = "select set_config('tcp_user_timeout', '0', true) \
                        where exists (select from pg_settings where name = 'tcp_user_timeout')";

/// An instance without a lease of its own counts as running for as long as a lease lasts.
const LEASE: Duration = Duration::from_mins(1);

const READING: &str = "reading the database";

/// See the module's documentation.
pub(crate) struct PostgresSide {
    connection: PgConnection,
    schema: Arc<Schema>,
}

/// The values of a column, for one parameter.
macro_rules! bind_column {
    ($query:expr, $rows:expr, $at:expr, $($pattern:pat => $value:expr),+) => {{
        let mut column = Vec::with_capacity($rows.len());
        for row in $rows.iter_mut() {
            column.push(match std::mem::replace(&mut row[$at], Value::Null) {
                $($pattern => Some($value),)+
                _ => None,
            });
        }
        $query.bind(column)
    }};
}

impl PostgresSide {
    pub(crate) async fn open(url: &str, access: Access) -> StoreResult<PostgresSide> {
        let address = PostgresAddress::parse(url)?;
        let hosts = reach(&address, ConnectOptions::default().request_timeout).await?;
        let schema = schema_of(&address, None)?;
        let keepalive: &[(&str, &str)] = if hosts.is_direct() { &KEEPALIVE_SETTINGS } else { &[] };
        let connection = hosts.connect(keepalive).await;
        let connection = connection.map_err(|error| errors::unavailable(&format!("connecting to {hosts}"), error))?;
        let mut side = PostgresSide { connection, schema };
        if matches!(access, Access::Source | Access::Target) {
            // Before the locks, which would make a server that is at work wait. A pooler needs a transaction for it.
            side.run(READING, "begin read only").await?;
            side.refuse_servers(access).await?;
            side.run(READING, "rollback").await?;
        }
        side.run(READING, "begin isolation level repeatable read").await?;
        side.run(READING, SETTINGS).await?;
        match access {
            Access::Look => side.run(READING, "set transaction read only").await?,
            Access::Mark => {}
            Access::Source | Access::Target => {
                side.lock(access).await?;
                side.refuse_servers(access).await?;
            }
        }
        // It reads, so it would begin the snapshot before the locks.
        side.run(READING, LONG_COPY_SETTINGS).await?;
        Ok(side)
    }

    /// The hosts in alphabetical order, the database and the schema.
    pub(crate) fn identity(url: &str) -> StoreResult<String> {
        let address = PostgresAddress::parse(url)?;
        let schema = schema_of(&address, None)?;
        let (mut hosts, mut database) = (Vec::new(), String::new());
        for url in &address.urls {
            let unreadable = |error| errors::unavailable("reading the address of the database", error);
            let options: PgConnectOptions = url.parse().map_err(unreadable)?;
            let host = options.get_socket().map(|socket| socket.display().to_string());
            let host = host.unwrap_or_else(|| options.get_host().to_lowercase());
            hosts.push(format!("{host}:{}", options.get_port()));
            options.get_database().unwrap_or_else(|| options.get_username()).clone_into(&mut database);
        }
        hosts.sort_unstable();
        Ok(format!("postgres://{}/{database}?schema={}", hosts.join(","), schema.name()))
    }

    /// Locks every table against writers, also the one that a start locks. The snapshot of the transaction begins behind the
    /// locks.
    async fn lock(&mut self, access: Access) -> StoreResult<()> {
        let names = LEFT_OUT.iter().map(|(name, _)| *name).chain(TABLES.iter().map(|table| table.name));
        let names: Vec<String> = names.map(|name| self.named(name)).collect();
        let what = format!("locking the {} (a server or another program may be using it)", access.word());
        self.run(&what, &format!("lock table {} in share row exclusive mode", names.join(", "))).await
    }

    /// Refuses a database whose instances have leases that are not over.
    async fn refuse_servers(&mut self, access: Access) -> StoreResult<()> {
        let now = self.now().await?;
        let instances = format!(
            "select host, pid, heartbeat_at, lease_until from {} order by heartbeat_at desc",
            self.named("instances")
        );
        let query = sqlx::query_as(AssertSqlSafe(instances)).persistent(false);
        let instances: Vec<(String, i64, Micros, Option<Micros>)> =
            query.fetch_all(&mut self.connection).await.map_err(|error| errors::from_sqlx(READING, error))?;
        for (host, pid, heartbeat_at, lease_until) in instances {
            let heartbeat_at = Timestamp::from(heartbeat_at);
            let until = lease_until.map_or(heartbeat_at + LEASE, Timestamp::from);
            if until > now {
                let reason = format!(
                    "a server uses the {}: process {pid} on host {host}, last heartbeat at {}; stop it first (if it was \
                     killed, try again after {})",
                    access.word(),
                    heartbeat_at.strftime("%H:%M:%S UTC"),
                    until.strftime("%H:%M:%S UTC")
                );
                return Err(Invalid::new(access.word(), reason).into());
            }
        }
        Ok(())
    }

    fn named(&self, table: &str) -> String {
        format!("\"{}\".{table}", self.schema.name())
    }

    /// One statement or several, without values.
    async fn run(&mut self, what: &str, sql: &str) -> StoreResult<()> {
        let ran = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.connection).await;
        ran.map(drop).map_err(|error| errors::from_sqlx(what, error))
    }

    async fn one<T>(&mut self, what: &str, sql: String) -> StoreResult<T>
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
    {
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).persistent(false);
        query.fetch_one(&mut self.connection).await.map_err(|error| errors::from_sqlx(what, error))
    }

    pub(crate) async fn now(&mut self) -> StoreResult<Timestamp> {
        let now: Micros = self.one(READING, "select clock_timestamp()".to_owned()).await?;
        Ok(now.into())
    }

    pub(crate) async fn moved(&mut self) -> StoreResult<Option<MovedMark>> {
        let sql = format!("select moved_to, target, state = 'done', moved_at from {}", self.named("moves"));
        let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
        let found: Option<MarkColumns> =
            query.fetch_optional(&mut self.connection).await.map_err(|error| errors::from_sqlx(READING, error))?;
        Ok(found.map(mark))
    }

    pub(crate) async fn write_mark(&mut self, mark: &MovedMark) -> StoreResult<()> {
        let sql = format!(
            "insert into {} (id, state, moved_to, target, moved_at) values (1, 'begun', $1, $2, $3) \
             on conflict (id) do update set state = excluded.state, moved_to = excluded.moved_to, \
             target = excluded.target, moved_at = excluded.moved_at",
            self.named("moves")
        );
        let query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        let query = query.bind(&mark.to).bind(&mark.target).bind(Micros::from(mark.at));
        let written = query.execute(&mut self.connection).await;
        written.map(drop).map_err(|error| errors::from_sqlx("marking the source as moved", error))
    }

    pub(crate) async fn end_mark(&mut self) -> StoreResult<()> {
        let sql = format!("update {} set state = 'done'", self.named("moves"));
        self.run("noting the end of the copy", &sql).await
    }

    pub(crate) async fn clear_mark(&mut self) -> StoreResult<()> {
        let sql = format!("delete from {}", self.named("moves"));
        self.run("removing the mark", &sql).await
    }

    pub(crate) async fn is_used(&mut self) -> StoreResult<bool> {
        let sql = format!(
            "select exists (select from {}) or exists (select from {}) or exists (select from {} \
             where heartbeat_at > clock_timestamp() - interval '1 minute')",
            self.named("jobs"),
            self.named("runs"),
            self.named("instances")
        );
        self.one(READING, sql).await
    }

    /// `from` and `where` of a query for the rows that are not too old.
    fn selection(&self, table: &Table, limit: Option<Limit>) -> String {
        let limit = limit.map(|limit| {
            let id = format!("'{}'::uuid", limit.first_run.as_uuid());
            (format!("'{}'::timestamptz", limit.at), id)
        });
        let limit = limit.as_ref().map(|(at, id)| (at.as_str(), id.as_str()));
        let condition = table.condition(limit, |name| self.named(name));
        let condition = condition.map_or_else(String::new, |condition| format!(" where {condition}"));
        format!("from {}{condition}", self.named(table.name))
    }

    pub(crate) async fn count(&mut self, table: &Table, limit: Option<Limit>) -> StoreResult<u64> {
        let sql = format!("select count(*) {}", self.selection(table, limit));
        let count: i64 = self.one(&format!("counting {}", table.name), sql).await?;
        Ok(count.unsigned_abs())
    }

    pub(crate) fn rows(&mut self, table: &'static Table, limit: Option<Limit>) -> BoxStream<'_, StoreResult<Row>> {
        let columns = table.columns();
        let sql = format!(
            "select {} {} order by {}",
            quoted(columns.iter().map(|column| column.name)),
            self.selection(table, limit),
            quoted(table.order_by.iter().copied())
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).persistent(false).fetch(&mut self.connection);
        Box::pin(rows.map(move |row| {
            let row =
                row.and_then(|row| columns.iter().enumerate().map(|(at, column)| read(&row, at, column)).collect());
            row.map_err(|error| errors::from_sqlx(&format!("reading {}", table.name), error))
        }))
    }

    /// Nothing: the one trigger only wakes listeners, at the commit.
    #[allow(clippy::unused_async, reason = "as the other database")]
    pub(crate) async fn prepare(&mut self) -> StoreResult<()> {
        Ok(())
    }

    pub(crate) async fn clear(&mut self, table: &Table) -> StoreResult<()> {
        let sql = format!("delete from {}", self.named(table.name));
        self.run(&format!("writing {}", table.name), &sql).await
    }

    /// One array for each column.
    pub(crate) async fn insert(&mut self, table: &Table, mut rows: Vec<Row>) -> StoreResult<()> {
        let columns = table.columns();
        let arrays: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| format!("${}::{}[]", at + 1, type_name(column.kind)))
            .collect();
        let sql = format!(
            "insert into {} ({}) {} select * from unnest({})",
            self.named(table.name),
            quoted(columns.iter().map(|column| column.name)),
            if table.identity.is_some() { "overriding system value" } else { "" },
            arrays.join(", ")
        );
        let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        for (at, column) in columns.iter().enumerate() {
            query = bind(query, &mut rows, at, column.kind);
        }
        let written = query.execute(&mut self.connection).await;
        written.map(drop).map_err(|error| errors::from_sqlx(&format!("writing {}", table.name), error))
    }

    pub(crate) async fn last_identity(&mut self, table: &Table) -> StoreResult<Option<i64>> {
        let Some(column) = table.identity else { return Ok(None) };
        let sequence = format!("select pg_get_serial_sequence('{}', '{column}')", self.named(table.name));
        let sequence: String = self.one(READING, sequence).await?;
        let last = format!("select case when is_called then last_value else 0 end from {sequence}");
        self.one(READING, last).await.map(Some)
    }

    pub(crate) async fn set_identity(&mut self, table: &Table, last: i64) -> StoreResult<()> {
        let Some(column) = table.identity.filter(|_| last > 0) else { return Ok(()) };
        let name = self.named(table.name);
        let sql = format!(
            "select setval(pg_get_serial_sequence('{name}', '{column}'), \
             greatest({last}, (select coalesce(max({column}), 1) from {name})))"
        );
        self.one::<i64>("writing the sequence", sql).await.map(drop)
    }

    /// The planner of a server that starts now shall know the tables.
    pub(crate) async fn complete(&mut self) -> StoreResult<()> {
        for table in &TABLES {
            let sql = format!("analyze {}", self.named(table.name));
            self.run(&format!("analyzing {}", table.name), &sql).await?;
        }
        Ok(())
    }

    pub(crate) async fn commit(&mut self, what: &str) -> StoreResult<()> {
        let committed = sqlx::raw_sql("commit").execute(&mut self.connection).await;
        committed.map(drop).map_err(|error| errors::commit(what, error))
    }

    pub(crate) async fn rollback(&mut self) -> StoreResult<()> {
        self.run("rolling back", "rollback").await
    }
}

fn quoted(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<String>>().join(", ")
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::TextOrEmpty => "text",
        Kind::Uuid => "uuid",
        Kind::Bytes => "bytea",
        Kind::Bool => "bool",
        Kind::Int => "int8",
        Kind::Int4 => "int4",
        Kind::Time | Kind::TimeText => "timestamptz",
    }
}

/// Binds the values of a column, which are taken out of their rows.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    rows: &mut [Row],
    at: usize,
    kind: Kind,
) -> Query<'q, Postgres, PgArguments> {
    match kind {
        Kind::Text => bind_column!(query, rows, at, Value::Text(text) => text),
        Kind::TextOrEmpty => bind_column!(query, rows, at, Value::Text(text) => text, Value::Null => String::new()),
        Kind::Uuid => bind_column!(query, rows, at, Value::Uuid(id) => id),
        Kind::Bytes => bind_column!(query, rows, at, Value::Bytes(bytes) => bytes),
        Kind::Bool => bind_column!(query, rows, at, Value::Bool(value) => value),
        Kind::Int => bind_column!(query, rows, at, Value::Int(number) => number),
        // One that does not fit becomes another number, which the checksum notices.
        Kind::Int4 => bind_column!(query, rows, at, Value::Int(number) => i32::try_from(number).unwrap_or(i32::MAX)),
        Kind::Time | Kind::TimeText => bind_column!(query, rows, at, Value::Time(micros) => Micros(micros)),
    }
}

fn read(row: &PgRow, at: usize, column: &Column) -> sqlx::Result<Value> {
    fn get<'r, T>(row: &'r PgRow, at: usize, value: impl FnOnce(T) -> Value) -> sqlx::Result<Value>
    where
        T: sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
    {
        Ok(row.try_get::<Option<T>, usize>(at)?.map_or(Value::Null, value))
    }
    match column.kind {
        Kind::Text => get::<String>(row, at, Value::Text),
        Kind::TextOrEmpty => {
            let text: Option<String> = row.try_get(at)?;
            Ok(text.filter(|text| !text.is_empty()).map_or(Value::Null, Value::Text))
        }
        Kind::Uuid => get::<Uuid>(row, at, Value::Uuid),
        Kind::Bytes => get::<Vec<u8>>(row, at, Value::Bytes),
        Kind::Bool => get::<bool>(row, at, Value::Bool),
        Kind::Int => get::<i64>(row, at, Value::Int),
        Kind::Int4 => get::<i32>(row, at, |number| Value::Int(number.into())),
        Kind::Time | Kind::TimeText => get::<Micros>(row, at, |micros| Value::Time(micros.0)),
    }
}
