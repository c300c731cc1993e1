//! The statements of workers that have nothing to do.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use everbell_store::testing::OwnServer;
use sqlx::{AssertSqlSafe, PgConnection};

use super::options::Entry;
use super::report::Timing;
use super::work::{Bench, Measured, Session, connect, named, now_ms};

/// Jobs that are enqueued, and due in a year.
const JOBS: u32 = 1_000;
const YEAR_MS: i64 = 365 * 86_400_000;
const SEED_LIMIT: Duration = Duration::from_mins(1);
/// The first looks of a worker are not the usual ones, and the server counts transactions up to ten seconds later.
const WARM_UP: Duration = Duration::from_secs(16);
const WATCHED: Duration = Duration::from_secs(30);
/// The prefix of a line in the server's log; `%d` is the database.
pub(super) const LOG_LINE_PREFIX: &str = "db=%d:";

struct Idler {
    session: Session,
    connection: PgConnection,
    database: String,
    version: String,
}

/// Lets all of them idle at the same time on one server, each in its database, and counts what each one asks.
pub(super) async fn measure(bench: &Bench<'_>, entries: &[Entry]) -> Result<Vec<Result<Measured, String>>, String> {
    let mut idlers = Vec::new();
    for entry in entries {
        idlers.push(start(bench, *entry).await);
    }
    tokio::time::sleep(WARM_UP).await;
    // For connections that are open already, too: pools were filled while jobs were enqueued.
    log_statements(bench.server, "all").await?;
    let from = log_length(bench.server)?;
    let mut before = Vec::new();
    for idler in idlers.iter_mut().flatten() {
        before.push(transactions(&mut idler.connection).await);
    }
    tokio::time::sleep(WATCHED).await;
    let text = read_log(bench.server, from)?;
    log_statements(bench.server, "none").await?;
    let mut before = before.into_iter();
    let mut all = Vec::new();
    for idler in idlers {
        all.push(match idler {
            Ok(idler) => count(idler, before.next().unwrap_or(Ok(0)), &text).await,
            Err(reason) => Err(reason),
        });
    }
    Ok(all)
}

async fn start(bench: &Bench<'_>, entry: Entry) -> Result<Idler, String> {
    let timing = Timing { base_ms: now_ms() + YEAR_MS, spread_ms: 0, jobs: JOBS };
    let mut session = Session::start(bench, entry, "timed", &timing).await?;
    let ready = session.ready(SEED_LIMIT).await;
    let version = ready.map_err(|missing| missing.say("enqueue everything", SEED_LIMIT))?;
    let mut connection = connect(session.database.url()).await?;
    let name = sqlx::query_scalar("select current_database()").fetch_one(&mut connection).await;
    let database = name.map_err(|error| format!("ask for the name of the database: {error}"))?;
    session.program.send("go").await?;
    Ok(Idler { session, connection, database, version })
}

async fn count(mut idler: Idler, before: Result<i64, String>, log: &str) -> Result<Measured, String> {
    let transactions = transactions(&mut idler.connection).await? - before?;
    let statements = statements(log, &idler.database);
    idler.session.program.kill().await;
    let seconds = WATCHED.as_secs_f64();
    // The bench's own question about transactions is one of each.
    let figures = [
        ("queries_per_second", statements.saturating_sub(1) as f64 / seconds),
        ("transactions_per_second", (transactions - 1).max(0) as f64 / seconds),
        ("complete", 1.0),
    ];
    Ok(Measured { figures: named(&figures), version: idler.version })
}

/// Counts the statements of a database in the server's log.
fn statements(log: &str, database: &str) -> usize {
    let prefix = LOG_LINE_PREFIX.replace("%d", database);
    let lines = log.lines().filter_map(|line| line.strip_prefix(&prefix));
    lines.filter(|line| line.starts_with("LOG:  statement: ") || line.starts_with("LOG:  execute ")).count()
}

async fn transactions(connection: &mut PgConnection) -> Result<i64, String> {
    let query = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()";
    let count = sqlx::query_scalar(query).fetch_one(connection).await;
    count.map_err(|error| format!("count transactions: {error}"))
}

async fn log_statements(server: &OwnServer, which: &'static str) -> Result<(), String> {
    let mut connection = connect(server.url()).await?;
    let set = format!("alter system set log_statement = '{which}'");
    for sql in [set.as_str(), "select pg_reload_conf()"] {
        let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await;
        done.map_err(|error| format!("set log_statement: {error}"))?;
    }
    Ok(())
}

/// Returns the file of the log, which is beside the socket.
fn log_file(server: &OwnServer) -> Result<PathBuf, String> {
    let folder = server.url().split_once("?host=").ok_or("the server's address names no socket")?.1;
    Ok(PathBuf::from(folder).join("log"))
}

fn log_length(server: &OwnServer) -> Result<u64, String> {
    let file = log_file(server)?;
    let metadata = std::fs::metadata(&file).map_err(|error| format!("look at {}: {error}", file.display()))?;
    Ok(metadata.len())
}

fn read_log(server: &OwnServer, from: u64) -> Result<String, String> {
    let path = log_file(server)?;
    let read = || {
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map_err(|error: std::io::Error| format!("read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_one_database_are_counted() {
        let log = "db=a:LOG:  statement: select 1\ndb=a:LOG:  execute <unnamed>: select\n  2\n\
            db=a:DETAIL:  parameters: $1 = '3'\ndb=ab:LOG:  execute s1: select 4\ndb=a:ERROR:  no\n";
        assert_eq!(statements(log, "a"), 2);
        assert_eq!(statements(log, "ab"), 1);
        assert_eq!(statements(log, "b"), 0);
    }
}
