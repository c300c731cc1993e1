//! An SQLite database as the source or the target of a copy: one connection that has the file to itself.
//!
//! In the exclusive locking mode of SQLite no other process can open the file, and it is refused while another process, such as
//! a server, has it open. A target is written in one transaction with a rollback journal instead of the write-ahead log:
//! in an empty database there is next to nothing to roll back, while the log would hold the whole copy once more.

use std::path::{Path, PathBuf};
use std::time::Duration;

use everbell_core::Invalid;
use everbell_core::store::{StoreError, StoreResult};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Row as _, Sqlite, SqliteConnection};
use uuid::Uuid;

use super::{connect, errors, moved, upkeep};
use crate::micros::Micros;
use crate::moved::MovedMark;
use crate::portable::tables::{Column, Table};
use crate::portable::value::{Kind, Row, Value};
use crate::portable::{Access, Limit};

/// How long a copy waits for others to close the file; this process may just have closed it itself.
const EXCLUSIVE_TIMEOUT: Duration = Duration::from_secs(3);
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Rows of one statement. The others of a batch are written one by one.
const STATEMENT_ROWS: usize = 32;

/// Rows that SQLite reads ahead: few, because an output may be large.
const ROW_BUFFER_ROWS: usize = 64;

/// At most 64 MiB of pages, in kibibytes.
const CACHE: &str = "-65536";

const READING: &str = "reading the database";

/// See the module's documentation.
pub(crate) struct SqliteSide {
    connection: SqliteConnection,
    path: PathBuf,
    /// The statements that create the triggers, which are away while rows are written.
    triggers: Vec<String>,
}

impl SqliteSide {
    pub(crate) async fn open(path: &Path, access: Access) -> StoreResult<SqliteSide> {
        upkeep::exists(path)?;
        let options = connect::options().filename(path).create_if_missing(false);
        let options = options.pragma("cache_size", CACHE).row_buffer_size(ROW_BUFFER_ROWS);
        let options = match access {
            Access::Look => options.pragma("query_only", "on"),
            Access::Mark => options,
            Access::Source => options.locking_mode(SqliteLockingMode::Exclusive).busy_timeout(Duration::ZERO),
            Access::Target => options
                .locking_mode(SqliteLockingMode::Exclusive)
                .journal_mode(SqliteJournalMode::Delete)
                .busy_timeout(Duration::ZERO),
        };
        let begin = if access == Access::Look { "begin" } else { "begin immediate" };
        let mut waited = Duration::ZERO;
        let connection = loop {
            match begun(&options, begin).await {
                Ok(connection) => break connection,
                Err(error) if errors::is_busy(&error) && waited < EXCLUSIVE_TIMEOUT => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    waited += RETRY_PAUSE;
                }
                Err(error) if errors::is_busy(&error) => return Err(in_use(path, access).await),
                Err(error) => return Err(errors::from_sqlx(&format!("opening {}", path.display()), error)),
            }
        };
        Ok(SqliteSide { connection, path: path.to_owned(), triggers: Vec::new() })
    }

    /// One statement or several, without values.
    async fn run(&mut self, what: &str, sql: &str) -> StoreResult<()> {
        let ran = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.connection).await;
        ran.map(drop).map_err(|error| errors::from_sqlx(what, error))
    }

    #[allow(clippy::unused_async, reason = "as the other database")]
    pub(crate) async fn now(&mut self) -> StoreResult<Timestamp> {
        Ok(connect::clock())
    }

    pub(crate) async fn moved(&mut self) -> StoreResult<Option<MovedMark>> {
        moved::read_mark(&mut self.connection).await
    }

    pub(crate) async fn write_mark(&mut self, mark: &MovedMark) -> StoreResult<()> {
        let sql = "insert into everbell_moves (id, state, moved_to, target, moved_at) values (1, 'begun', ?1, ?2, ?3) \
                   on conflict (id) do update set state = excluded.state, moved_to = excluded.moved_to, \
                   target = excluded.target, moved_at = excluded.moved_at";
        let query = sqlx::query(sql).bind(&mark.to).bind(&mark.target).bind(Micros::from(mark.at));
        let written = query.execute(&mut self.connection).await;
        written.map(drop).map_err(|error| errors::from_sqlx("marking the source as moved", error))
    }

    pub(crate) async fn end_mark(&mut self) -> StoreResult<()> {
        self.run("noting the end of the copy", "update everbell_moves set state = 'done'").await
    }

    pub(crate) async fn is_used(&mut self) -> StoreResult<bool> {
        let sql = "select exists (select 1 from everbell_jobs) or exists (select 1 from everbell_runs)
                     or exists (select 1 from everbell_instances where heartbeat_at > ?1)";
        let minute_ago = connect::clock() - Duration::from_mins(1);
        let query = sqlx::query_scalar(sql).bind(Micros::from(minute_ago));
        query.fetch_one(&mut self.connection).await.map_err(|error| errors::from_sqlx(READING, error))
    }

    pub(crate) async fn clear_mark(&mut self) -> StoreResult<()> {
        self.run("removing the mark", "delete from everbell_moves").await
    }

    pub(crate) async fn count(&mut self, table: &Table, limit: Option<Limit>) -> StoreResult<u64> {
        let query = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) {}", selection(table, limit))));
        let count: i64 = query
            .fetch_one(&mut self.connection)
            .await
            .map_err(|error| errors::from_sqlx(&format!("counting {}", table.name), error))?;
        Ok(count.unsigned_abs())
    }

    pub(crate) fn rows(&mut self, table: &'static Table, limit: Option<Limit>) -> BoxStream<'_, StoreResult<Row>> {
        let columns = table.columns();
        let sql = format!(
            "select {} {} order by {}",
            quoted(columns.iter().map(|column| column.name)),
            selection(table, limit),
            quoted(table.order_by.iter().copied())
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).persistent(false).fetch(&mut self.connection);
        Box::pin(rows.map(move |row| {
            let what = || format!("reading {}", table.name);
            read(&row.map_err(|error| errors::from_sqlx(&what(), error))?, &columns, &what)
        }))
    }

    /// Drops the triggers, which would make every run pending that is written.
    pub(crate) async fn prepare(&mut self) -> StoreResult<()> {
        let query = "select name, sql from sqlite_schema where type = 'trigger' and substr(name, 1, 9) = 'everbell_'";
        let found: Vec<(String, String)> = sqlx::query_as(query)
            .fetch_all(&mut self.connection)
            .await
            .map_err(|error| errors::from_sqlx("reading the schema", error))?;
        for (name, sql) in found {
            self.run("preparing the schema", &format!("drop trigger {name}")).await?;
            self.triggers.push(sql);
        }
        Ok(())
    }

    pub(crate) async fn clear(&mut self, table: &Table) -> StoreResult<()> {
        let sql = format!("delete from everbell_{}", table.name);
        self.run(&format!("writing {}", table.name), &sql).await
    }

    pub(crate) async fn insert(&mut self, table: &Table, rows: Vec<Row>) -> StoreResult<()> {
        let columns = table.columns();
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let count = if rows.len() >= STATEMENT_ROWS { STATEMENT_ROWS } else { 1 };
            let row = format!("({})", vec!["?"; columns.len()].join(", "));
            let sql = format!(
                "insert into everbell_{} ({}) values {}",
                table.name,
                quoted(columns.iter().map(|column| column.name)),
                vec![row; count].join(", ")
            );
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for row in rows.by_ref().take(count) {
                for (value, column) in row.into_iter().zip(&columns) {
                    query = bind(query, value, column.kind);
                }
            }
            let written = query.execute(&mut self.connection).await;
            written.map_err(|error| errors::from_sqlx(&format!("writing {}", table.name), error))?;
        }
        Ok(())
    }

    pub(crate) async fn last_identity(&mut self, table: &Table) -> StoreResult<Option<i64>> {
        if table.identity.is_none() {
            return Ok(None);
        }
        let query = sqlx::query_scalar("select seq from sqlite_sequence where name = ?1");
        let query = query.bind(format!("everbell_{}", table.name));
        let last: Option<i64> =
            query.fetch_optional(&mut self.connection).await.map_err(|error| errors::from_sqlx(READING, error))?;
        Ok(Some(last.unwrap_or(0)))
    }

    pub(crate) async fn set_identity(&mut self, table: &Table, last: i64) -> StoreResult<()> {
        let name = format!("everbell_{}", table.name);
        // SQLite has written a row here with the first row of the table.
        let sql = format!(
            "insert into sqlite_sequence (name, seq) select '{name}', 0
               where not exists (select 1 from sqlite_sequence where name = '{name}');
             update sqlite_sequence set seq = max(seq, {last}) where name = '{name}'"
        );
        self.run("writing the sequence", &sql).await
    }

    /// Creates the triggers again.
    pub(crate) async fn complete(&mut self) -> StoreResult<()> {
        for sql in std::mem::take(&mut self.triggers) {
            self.run("completing the schema", &sql).await?;
        }
        Ok(())
    }

    pub(crate) async fn commit(&mut self, what: &str) -> StoreResult<()> {
        let what = format!("{what} in {}", self.path.display());
        let committed = sqlx::raw_sql("commit").execute(&mut self.connection).await;
        committed.map(drop).map_err(|error| errors::commit(&what, error))
    }

    pub(crate) async fn rollback(&mut self) -> StoreResult<()> {
        self.run("rolling back", "rollback").await
    }
}

/// A connection in a transaction. Setting the mode of the journal and the first transaction need the file alone.
async fn begun(options: &SqliteConnectOptions, begin: &'static str) -> sqlx::Result<SqliteConnection> {
    let mut connection = options.connect().await?;
    sqlx::raw_sql(begin).execute(&mut connection).await?;
    Ok(connection)
}

/// Names the process that seems to be in the way: the instance that was heard of last.
async fn in_use(path: &Path, access: Access) -> StoreError {
    let options = connect::options().filename(path).create_if_missing(false).pragma("query_only", "on");
    let last = "select host, pid from everbell_instances order by heartbeat_at desc limit 1";
    let found: Option<(String, i64)> = match options.connect().await {
        Ok(mut connection) => sqlx::query_as(last).fetch_optional(&mut connection).await.ok().flatten(),
        Err(_) => None,
    };
    let who =
        found.map_or_else(String::new, |(host, pid)| format!(" (the last server was process {pid} on host {host})"));
    let (path, side) = (path.display(), access.word());
    let reason = format!("another process has `{path}`, the {side}, open{who}; stop the server first");
    Invalid::new(side, reason).into()
}

/// `from` and `where` of a query for the rows that are not too old.
fn selection(table: &Table, limit: Option<Limit>) -> String {
    let limit = limit.map(|limit| {
        let id = format!("x'{}'", limit.first_run.as_uuid().simple());
        (Micros::from(limit.at).0.to_string(), id)
    });
    let limit = limit.as_ref().map(|(at, id)| (at.as_str(), id.as_str()));
    let condition = table.condition(limit, |name| format!("everbell_{name}"));
    let condition = condition.map_or_else(String::new, |condition| format!(" where {condition}"));
    format!("from everbell_{}{condition}", table.name)
}

fn quoted(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<String>>().join(", ")
}

type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

fn bind(query: Statement<'_>, value: Value, kind: Kind) -> Statement<'_> {
    match value {
        Value::Null => query.bind(None::<i64>),
        Value::Text(text) => query.bind(text),
        Value::Uuid(id) => query.bind(id),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Bool(value) => query.bind(i64::from(value)),
        Value::Int(number) => query.bind(number),
        Value::Time(micros) if kind == Kind::TimeText => query.bind(Timestamp::from(Micros(micros)).to_string()),
        Value::Time(micros) => query.bind(micros),
    }
}

fn read(row: &SqliteRow, columns: &[Column], what: &impl Fn() -> String) -> StoreResult<Row> {
    let mut values = Row::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let value = match column.kind {
            Kind::TimeText => time_text(row, at, columns, &values, what)?,
            kind => read_value(row, at, kind).map_err(|error| errors::from_sqlx(&what(), error))?,
        };
        values.push(value);
    }
    Ok(values)
}

fn read_value(row: &SqliteRow, at: usize, kind: Kind) -> sqlx::Result<Value> {
    fn get<'r, T>(row: &'r SqliteRow, at: usize, value: impl FnOnce(T) -> Value) -> sqlx::Result<Value>
    where
        T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
    {
        Ok(row.try_get::<Option<T>, usize>(at)?.map_or(Value::Null, value))
    }
    match kind {
        Kind::Text | Kind::TimeText => get::<String>(row, at, Value::Text),
        Kind::TextOrEmpty => {
            let text: Option<String> = row.try_get(at)?;
            Ok(text.filter(|text| !text.is_empty()).map_or(Value::Null, Value::Text))
        }
        Kind::Uuid => get::<Uuid>(row, at, Value::Uuid),
        Kind::Bytes => get::<Vec<u8>>(row, at, Value::Bytes),
        Kind::Bool => get::<i64>(row, at, |value| Value::Bool(value != 0)),
        Kind::Int | Kind::Int4 => get::<i64>(row, at, Value::Int),
        Kind::Time => get::<i64>(row, at, Value::Time),
    }
}

/// Reads a time that others wrote as text. One that is no time was refused; then the refusal has the text.
fn time_text(
    row: &SqliteRow,
    at: usize,
    columns: &[Column],
    values: &[Value],
    what: &impl Fn() -> String,
) -> StoreResult<Value> {
    let value = read_value(row, at, Kind::Text).map_err(|error| errors::from_sqlx(&what(), error))?;
    let Value::Text(text) = value else { return Ok(Value::Null) };
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(Value::Time(Micros::from(time).0));
    }
    let answered = columns.iter().position(|column| column.name == "answered_at").and_then(|at| values.get(at));
    if answered.is_some_and(|answered| *answered != Value::Null) {
        return Ok(Value::Null);
    }
    let reason = format!(
        "{}: a request that has no answer yet asks for the time `{text}`, which is not a time; start a server once, which refuses \
         the request, or delete it from `everbell_inbox`",
        what()
    );
    Err(Invalid::new("source", reason).into())
}
