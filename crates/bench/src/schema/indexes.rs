//! What each index costs a life: added one at a time to the primary keys, on a database that has a history already.

use everbell_store::testing::TestDatabase;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::Plan;
use super::history::empty_poll;
use super::layout::Layout;
use super::life::{Cost, connect, lives, prepare};
use crate::table::{Table, thousands};

const BATCH: i64 = 100;
const CONNECTIONS: usize = 2;

const CANDIDATES: [&str; 11] = [
    "unique index candidate on runs (id)",
    "unique index candidate on runs (job_id, org_id, slot_at)",
    "index candidate on runs (scheduled_at, id)",
    "index candidate on runs (job_id, id)",
    "index candidate on runs (target, id)",
    "index candidate on outcomes (run_id) where status > 2",
    "index candidate on active_runs (job_id, org_id)",
    "index candidate on active_runs (target, available_at)",
    "index candidate on active_runs (target, run_id)",
    "index candidate on active_runs (run_id) where status = 0",
    "index candidate on active_runs (lease_until)",
];

/// Expects the tables without any index but the primary keys.
pub(super) async fn run(plan: &Plan, url: &str) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    let heading =
        ["one more index", "runs/s without", "with", "server µs without", "with", "log bytes without", "with"];
    let mut table = Table::new(1, &heading);
    let mut before = cost(url, plan, &mut connection).await?;
    for candidate in CANDIDATES {
        connection.execute(AssertSqlSafe(format!("create {candidate}"))).await?;
        let with = cost(url, plan, &mut connection).await?;
        connection.execute("drop index candidate").await?;
        let after = cost(url, plan, &mut connection).await?;
        let without = before.better(after);
        let pair = |of: fn(&Cost) -> f64| [of(&without), of(&with)].map(|value| thousands(value as u64));
        let cells = [pair(|cost| cost.per_second), pair(|cost| cost.cpu_us), pair(|cost| cost.wal_bytes)];
        let name = candidate.replace("index candidate on ", "");
        table.row([name].into_iter().chain(cells.into_iter().flatten()).collect());
        before = after;
    }
    table.print(&format!(
        "## PostgreSQL: the cost of one more index (layout C with primary keys only, {} runs of history, batch {BATCH}, {CONNECTIONS} connections)",
        thousands(plan.history as u64)
    ));
    Ok(())
}

async fn cost(url: &str, plan: &Plan, connection: &mut PgConnection) -> sqlx::Result<Cost> {
    // What autovacuum does in the long run.
    connection.execute("vacuum active_runs").await?;
    connection.execute("vacuum timers").await?;
    let mut best = Cost::NONE;
    for _ in 0..plan.rounds {
        let workers = connect(url, Layout::Bare, BATCH, CONNECTIONS).await?;
        best = best.better(lives(url, workers, plan.seconds).await?);
    }
    Ok(best)
}

struct Setting {
    name: &'static str,
    /// Of the tables.
    change: &'static str,
    /// Of a connection.
    session: &'static str,
    /// Of the statement that claims.
    edit: (&'static str, &'static str),
    has_payloads: bool,
}

const AS_PROPOSED: Setting =
    Setting { name: "as proposed", change: "", session: "", edit: ("", ""), has_payloads: false };

const SETTINGS: [Setting; 9] = [
    AS_PROPOSED,
    Setting { name: "timers with fill factor 100", change: "alter table timers reset (fillfactor)", ..AS_PROPOSED },
    Setting {
        name: "timers index partial (where next_run_at is not null)",
        change: "drop index timers_due; create index timers_due on timers (next_run_at) where next_run_at is not null",
        ..AS_PROPOSED
    },
    Setting {
        name: "timers advanced by key, not by ctid",
        edit: ("t.ctid = any($12::text[]::tid[]) and", "cardinality($12::text[]) > 0 and"),
        ..AS_PROPOSED
    },
    Setting {
        name: "enable_seqscan = off, jit = off",
        session: "set enable_seqscan = off; set jit = off",
        ..AS_PROPOSED
    },
    Setting {
        name: "active_runs with fill factor 100",
        change: "alter table active_runs reset (fillfactor)",
        ..AS_PROPOSED
    },
    Setting { name: "a payload in each run, as text", has_payloads: true, ..AS_PROPOSED },
    Setting {
        name: "a payload in each run, as json",
        change: "alter table runs alter payload type json using null",
        edit: ("target, payload, skip", "target, payload::json, skip"),
        has_payloads: true,
        ..AS_PROPOSED
    },
    Setting {
        name: "a payload in each run, as jsonb",
        change: "alter table runs alter payload type jsonb using null",
        edit: ("target, payload, skip", "target, payload::jsonb, skip"),
        has_payloads: true,
        ..AS_PROPOSED
    },
];

/// Settings of the tables; and what a poll that finds nothing costs after many fires.
pub(super) async fn settings(plan: &Plan, server: &str) -> sqlx::Result<()> {
    let heading = [
        "setting",
        "runs/s",
        "server µs",
        "log bytes",
        "fires",
        "empty poll, ms",
        "after vacuum, ms",
        "runs, bytes each",
    ];
    let mut table = Table::new(1, &heading);
    for setting in &SETTINGS {
        let database = TestDatabase::create_on(server).await;
        let url = database.url();
        prepare(url, Layout::Lean, plan.timers).await?;
        let mut connection = PgConnection::connect(url).await?;
        connection.execute(setting.change).await?;
        connection.execute("vacuum full timers").await?;
        let mut best = Cost::NONE;
        for _ in 0..plan.rounds * 2 {
            let mut workers = connect(url, Layout::Lean, BATCH, CONNECTIONS).await?;
            for worker in &mut workers {
                worker.say(setting.session).await?;
                worker.edit(setting.edit.0, setting.edit.1);
                if setting.has_payloads {
                    worker.with_payloads();
                }
            }
            best = best.better(lives(url, workers, plan.seconds).await?);
        }
        let stale = empty_poll(&mut connection).await?;
        connection.execute("vacuum timers").await?;
        let vacuumed = empty_poll(&mut connection).await?;
        let fires: i64 = sqlx::query_scalar("select count(*) from runs").fetch_one(&mut connection).await?;
        let bytes: i64 = sqlx::query_scalar("select pg_relation_size('runs')").fetch_one(&mut connection).await?;
        let numbers = [best.per_second, best.cpu_us, best.wal_bytes, fires as f64].map(|value| thousands(value as u64));
        let more = [format!("{stale:.2}"), format!("{vacuumed:.2}"), (bytes / fires.max(1)).to_string()];
        table.row([setting.name.to_owned()].into_iter().chain(numbers).chain(more).collect());
    }
    table.print("## PostgreSQL: settings of the tables (lean indexes, batch 100, 2 connections)");
    Ok(())
}
