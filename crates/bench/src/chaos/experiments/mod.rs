//! The experiments, one function each.

mod claims;
mod clocks;
mod connections;
mod host;
mod load;
mod locks;
mod partition;
mod promises;
mod starve;

use serde_json::{Value, json};

use super::database::Engine::{self, Postgres, Sqlite};
use super::{Cluster, Options, Outcome, Plan, Verdict};

/// Something to break, and what must hold nevertheless.
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) databases: &'static [Engine],
    pub(crate) run: fn(&Options) -> Outcome<Verdict>,
}

const fn on(
    databases: &'static [Engine],
    name: &'static str,
    about: &'static str,
    run: fn(&Options) -> Outcome<Verdict>,
) -> Experiment {
    Experiment { name, about, databases, run }
}

const POSTGRES: &[Engine] = &[Postgres];
const SQLITE: &[Engine] = &[Sqlite];
const BOTH: &[Engine] = &[Postgres, Sqlite];

/// All of them.
pub(crate) const ALL: &[Experiment] = &[
    on(POSTGRES, "late_claim", "keep back the answer to a claim for 3 s while a program runs", claims::late_claim),
    on(POSTGRES, "late_claim_long", "keep back the answer to a claim for 14 s", claims::late_claim_long),
    on(POSTGRES, "zombie_claim", "freeze an instance between a claim and its answer", claims::zombie_claim),
    on(POSTGRES, "partition_cut", "cut one instance off its database while its programs run", partition::cut),
    on(POSTGRES, "partition_stop", "freeze an instance while its programs run", partition::stop),
    on(POSTGRES, "lock_starve_stop", "freeze an instance that holds timer locks", starve::stop),
    on(POSTGRES, "lock_starve_silent", "silence the network of an instance that holds timer locks", starve::silent),
    on(POSTGRES, "db_clock_back", "the database's clock is 60 s ahead for a while", clocks::database_back),
    on(POSTGRES, "db_clock_forward", "the database's clock jumps forward by 1.5 leases", clocks::database_forward),
    on(POSTGRES, "early", "an instance starts while the database is slow", clocks::early),
    on(SQLITE, "host_clock_ahead", "one start with a clock that is 400 days ahead", clocks::host_ahead),
    on(SQLITE, "host_clock_back", "the clock goes back by an hour under a running server", clocks::host_back),
    on(POSTGRES, "row_lock", "another session locks a timer: run now must be answered", locks::row_lock),
    on(
        POSTGRES,
        "table_lock",
        "another session locks the table of timers: creating a job must be answered",
        locks::table_lock,
    ),
    on(POSTGRES, "stop_in_outage", "SIGTERM while the database is silent", locks::stop_in_outage),
    on(POSTGRES, "many", "20 instances on a server with max_connections = 100", load::many),
    on(POSTGRES, "xmin", "a foreign snapshot stays open under load", load::xmin),
    on(POSTGRES, "statement_timeout", "the role gets a statement_timeout of 5 ms", load::statement_timeout),
    on(SQLITE, "removed_file", "the database file is removed under a running server", host::removed_file),
    on(SQLITE, "removed_wal", "the write-ahead log is removed under a running server", host::removed_wal),
    on(SQLITE, "truncated_file", "the database file is truncated under a running server", host::truncated_file),
    on(SQLITE, "full_stderr", "standard error is a pipe that nobody reads", host::full_stderr),
    on(
        SQLITE,
        "supervisor_stopped",
        "the process that ends programs of a dead server is frozen",
        host::supervisor_stopped,
    ),
    on(SQLITE, "never_reading", "1,100 clients that never read their answers", connections::never_reading),
    on(SQLITE, "descriptors", "1,100 idle connections with a limit of 1,024 descriptors", connections::descriptors),
    on(
        POSTGRES,
        "idempotency_crash",
        "kill -9 at each statement of a run-now with an idempotency key",
        promises::idempotency,
    ),
    on(BOTH, "pause_pending", "pause a job with pending runs of a backfill", promises::pause_pending),
    on(BOTH, "pause_race", "pause jobs at the moment they fire", promises::pause_race),
    on(BOTH, "kill_and_restart", "kill -9 and restart at random", promises::kill_and_restart),
];

/// Policies of a job that fires every second: overlap is forbidden, and each slot is wanted on time only.
fn strict() -> Value {
    json!({ "overlap": "skip", "catchUp": "none" })
}

const EVERY_SECOND: &str = "* * * * * *";

fn plan(options: &Options) -> Plan {
    let instances = if options.database == Sqlite { 1 } else { options.instances };
    Plan { engine: options.engine(), ..Plan::new(instances) }
}

/// Stops the cluster and adds what every experiment checks: each slot once, one outcome for each slot, no overlap, no early
/// start, no start after the end.
fn judge(verdict: &mut Verdict, cluster: &mut Cluster) -> Outcome<()> {
    use super::{checks, true_time};
    cluster.stop_all(std::time::Duration::from_secs(100));
    let (executions, snapshot) = (cluster.log.executions(), cluster.database.snapshot()?);
    verdict.check(executions.is_empty(), format!("{} starts", executions.len()));
    let twice = checks::started_twice(&executions);
    verdict.check(!twice.is_empty(), format!("{} slots started twice", twice.len()));
    let overlaps = checks::overlaps(&executions, true_time());
    let longest = overlaps.values().copied().fold(0.0, f64::max);
    verdict.check(!overlaps.is_empty(), format!("{} jobs overlapped (up to {longest:.1} s)", overlaps.len()));
    let early = checks::early(&executions);
    let most = early.iter().copied().fold(0.0, f64::max);
    verdict.check(!early.is_empty(), format!("{} early (up to {most:.2} s)", early.len()));
    let late = checks::after_the_end(&executions, &snapshot);
    let most = late.iter().copied().fold(0.0, f64::max);
    verdict.check(!late.is_empty(), format!("{} started after their end (up to {most:.1} s)", late.len()));
    let complaints = checks::complaints(&snapshot);
    let first = complaints.first().map(|first| format!(", such as: {first}")).unwrap_or_default();
    verdict.check(!complaints.is_empty(), format!("{} wrong rows{first}", complaints.len()));
    Ok(())
}
