//! Whole lives of no-op runs on PostgreSQL.

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Postgres, Row};
use uuid::Uuid;

use super::layout::Layout;
use super::race::{Worker, race};
use super::rows::{Due, EPOCH, RARE_TARGET, SECOND, TARGETS, TRIGGER, job, org, payload, run_id, target};
use crate::micros::Micros;

/// Later than any timer gets: everything is always due, oldest first.
pub(super) const NOW: Micros = Micros(EPOCH + 400 * 86_400 * SECOND);
const LEASE: Micros = Micros(NOW.0 + 30 * SECOND);
const RUNNER: Uuid = Uuid::from_u128(1);

pub(super) struct Life {
    connection: PgConnection,
    layout: Layout,
    batch: i64,
    payload_of: fn(Uuid) -> Option<&'static str>,
    claim: Vec<&'static str>,
    backend: i32,
}

impl Life {
    async fn connect(url: &str, layout: Layout, batch: i64) -> sqlx::Result<Life> {
        let mut connection = PgConnection::connect(url).await?;
        let backend = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection).await?;
        Ok(Life { connection, layout, batch, payload_of: payload, claim: layout.claim().to_vec(), backend })
    }

    /// Every run with a payload of its own.
    pub(super) fn with_payloads(&mut self) {
        self.payload_of = |_| Some(super::rows::PAYLOAD);
    }

    /// Another text for a part of the claim.
    pub(super) fn edit(&mut self, from: &str, to: &str) {
        for sql in self.claim.iter_mut().filter(|_| !from.is_empty()) {
            *sql = sql.replace(from, to).leak();
        }
    }

    /// Says something to the server that holds for this connection.
    pub(super) async fn say(&mut self, sql: &'static str) -> sqlx::Result<()> {
        self.connection.execute(sql).await.map(|_| ())
    }

    async fn claim(&mut self) -> sqlx::Result<Vec<(Uuid, i32)>> {
        let mut transaction = self.connection.begin().await?;
        let due = sqlx::query(self.layout.due()).bind(NOW).bind(self.batch);
        let due: Vec<Due> = due.try_map(|row: PgRow| read_due(&row)).fetch_all(&mut *transaction).await?;
        for sql in &self.claim {
            bind_claim(sqlx::query(*sql), &due, self.payload_of).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(due.iter().map(|due| (run_id(due), 1)).collect())
    }

    async fn start(&mut self, sql: &'static str) -> sqlx::Result<Vec<(Uuid, i32)>> {
        let started = sqlx::query(sql).bind(NOW).bind(all_targets()).bind(self.batch).bind(RUNNER).bind(LEASE);
        started.try_map(|row: PgRow| Ok((row.try_get(0)?, row.try_get(1)?))).fetch_all(&mut self.connection).await
    }

    async fn finish(&mut self, started: &[(Uuid, i32)]) -> sqlx::Result<u64> {
        let (ids, attempts): (Vec<Uuid>, Vec<i32>) = started.iter().copied().unzip();
        // One of a thousand fails.
        let fails = |id: &Uuid| id.as_u128().is_multiple_of(1000);
        let status: Vec<i16> = ids.iter().map(|id| if fails(id) { 3 } else { 2 }).collect();
        let code: Vec<Option<&str>> = ids.iter().map(|id| fails(id).then_some("http_status")).collect();
        let message: Vec<Option<&str>> = ids.iter().map(|id| fails(id).then_some("503 Service Unavailable")).collect();
        let nothing = vec![None::<&str>; ids.len()];
        let finish = sqlx::query(self.layout.finish()).bind(NOW).bind(ids).bind(attempts).bind(status);
        let finish = finish.bind(code).bind(message).bind(&nothing).bind(&nothing);
        Ok(finish.fetch_all(&mut self.connection).await?.len() as u64)
    }
}

impl Worker for Life {
    async fn life(&mut self) -> sqlx::Result<u64> {
        let claimed = self.claim().await?;
        let started = match self.layout.start() {
            Some(sql) => self.start(sql).await?,
            None => claimed,
        };
        self.finish(&started).await
    }

    fn backend(&self) -> Option<i32> {
        Some(self.backend)
    }
}

pub(super) fn all_targets() -> Vec<&'static str> {
    TARGETS.iter().copied().chain([RARE_TARGET]).collect()
}

fn read_due(row: &PgRow) -> sqlx::Result<Due> {
    let Micros(at) = row.try_get(2)?;
    Ok(Due { job: row.try_get(0)?, org: row.try_get(1)?, at, place: row.try_get(3)? })
}

type Bound = Query<'static, Postgres, PgArguments>;

fn bind_claim(query: Bound, due: &[Due], payload_of: fn(Uuid) -> Option<&'static str>) -> Bound {
    let column = |of: fn(&Due) -> Micros| due.iter().map(of).collect::<Vec<_>>();
    let query = query.bind(NOW).bind(due.iter().map(run_id).collect::<Vec<_>>());
    let query = query.bind(due.iter().map(|due| due.job).collect::<Vec<_>>());
    let query = query.bind(due.iter().map(|due| due.org.clone()).collect::<Vec<_>>());
    let query = query.bind(column(|due| Micros(due.at))).bind(column(|due| Micros(due.at + 60 * SECOND)));
    let query = query.bind(vec![TRIGGER; due.len()]).bind(due.iter().map(|due| target(due.job)).collect::<Vec<_>>());
    let query = query.bind(due.iter().map(|due| payload_of(due.job)).collect::<Vec<_>>());
    let query = query.bind(vec![false; due.len()]).bind(vec![0_i64; due.len()]);
    query.bind(due.iter().map(|due| due.place.clone()).collect::<Vec<_>>())
}

/// What the lives of many runs took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) per_second: f64,
    /// Of the server, for one run.
    pub(super) cpu_us: f64,
    /// Written to the log by the server for one run.
    pub(super) wal_bytes: f64,
}

impl Cost {
    /// The best of both: everything that disturbs only adds.
    pub(super) fn better(self, other: Cost) -> Cost {
        Cost {
            per_second: self.per_second.max(other.per_second),
            cpu_us: self.cpu_us.min(other.cpu_us),
            wal_bytes: self.wal_bytes.min(other.wal_bytes),
        }
    }

    pub(super) const NONE: Cost = Cost { per_second: 0.0, cpu_us: f64::INFINITY, wal_bytes: f64::INFINITY };
}

/// Lives for a while on new connections.
pub(super) async fn lives(url: &str, workers: Vec<Life>, seconds: f64) -> sqlx::Result<Cost> {
    let mut connection = PgConnection::connect(url).await?;
    let warm_up: i64 = workers.iter().map(|worker| worker.batch).sum();
    let wal = "select (pg_current_wal_insert_lsn() - '0/0')::float8";
    let before: f64 = sqlx::query_scalar(wal).fetch_one(&mut connection).await?;
    let rate = race(workers, seconds).await?;
    let after: f64 = sqlx::query_scalar(wal).fetch_one(&mut connection).await?;
    let wal_bytes = (after - before) / (rate.runs + warm_up as u64) as f64;
    Ok(Cost { per_second: rate.per_second, cpu_us: rate.cpu_us, wal_bytes })
}

pub(super) async fn connect(url: &str, layout: Layout, batch: i64, connections: usize) -> sqlx::Result<Vec<Life>> {
    let mut workers = Vec::new();
    for _ in 0..connections {
        workers.push(Life::connect(url, layout, batch).await?);
    }
    Ok(workers)
}

/// Creates the tables, and timers that are all due.
pub(super) async fn prepare(url: &str, layout: Layout, timers: u64) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    connection.execute(AssertSqlSafe(layout.tables())).await?;
    let seed = "insert into seed select * from unnest($1::int[], $2::uuid[], $3::text[])";
    let numbers: Vec<i32> = (0..timers as i32).collect();
    let jobs: Vec<Uuid> = (0..timers).map(job).collect();
    let orgs: Vec<String> = (0..timers).map(org).collect();
    sqlx::query(seed).bind(numbers).bind(jobs).bind(orgs).execute(&mut connection).await?;
    let fill = "insert into timers select job_id, org_id, $1::timestamptz + n * interval '1 ms' from seed";
    sqlx::query(fill).bind(Micros(EPOCH)).execute(&mut connection).await?;
    connection.execute("vacuum analyze timers").await?;
    connection.close().await
}
