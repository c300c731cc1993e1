//! Too many instances, and claims that get slower.
#![allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]

use std::time::Duration;

use everbell_store::testing::OwnSetup;

use super::{EVERY_SECOND, plan, strict};
use crate::chaos::checks::{SILENCE_S, ready_in_silence};
use crate::chaos::clock::{pause_s, stretch, wait_for};
use crate::chaos::cluster::Folder;
use crate::chaos::database::Database;
use crate::chaos::{Cluster, Options, Outcome, Plan, Verdict, true_time};

/// The old versions of its own rows that a run reads for each fire of its job that cannot be cleaned up.
const BLOCKS_PER_FIRE: f64 = 12.0;

/// 20 instances on a server that allows 100 connections: operators must still get in, and jobs fire.
pub(super) fn many(options: &Options) -> Outcome<Verdict> {
    let mut verdict = Verdict::new("many", "20 instances, max_connections = 100, 30 s");
    let setup = OwnSetup { settings: vec![("max_connections".into(), "100".into())], ..OwnSetup::default() };
    let database = Database::own(&setup)?;
    let mut cluster = Cluster::prepare_on(options, &Plan { instances: 20, ..plan(options) }, database, Folder::new()?)?;
    // The server keeps places for superusers, as long as the instances are none.
    cluster.database.execute("create role everbell login; create schema everbell authorization everbell")?;
    let mut failed = 0;
    for node in &mut cluster.nodes {
        node.launch.database = node.launch.database.replacen("//postgres@", "//everbell@", 1);
        failed += usize::from(node.start().is_err());
    }
    verdict.check(failed > 0, format!("{failed} of 20 did not start"));
    cluster.jobs("tick", 10, "quick", EVERY_SECOND, &strict())?;
    let begun = cluster.log.started();
    pause_s(30.0);
    let fired = cluster.log.started() - begun;
    verdict.check(fired == 0, format!("{fired} starts in 30 s"));
    let refused = cluster.database.log().matches("too many clients").count();
    let refused = refused + cluster.database.log().matches("remaining connection slots").count();
    verdict.check(refused > 500, format!("{refused} connections refused by PostgreSQL"));
    let in_use = cluster.database.number("select count(*) from pg_stat_activity where backend_type = 'client backend'");
    verdict.check(
        in_use.is_err(),
        in_use.map_or_else(|error| format!("an operator was refused: {error}"), |count| format!("{count} connections")),
    );
    cluster.stop_all(Duration::from_secs(90));
    Ok(verdict)
}

/// Blocks that were read from a table and its indexes so far.
fn blocks(cluster: &Cluster) -> Outcome<i64> {
    cluster.database.number(
        "select (sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0) \
         + coalesce(idx_blks_read, 0)))::bigint from pg_statio_user_tables where relname in ('active_runs', 'timers')",
    )
}

/// A foreign transaction keeps its snapshot: the cost of a run must not grow with the runs of other jobs.
pub(super) fn xmin(options: &Options) -> Outcome<Verdict> {
    let (jobs, windows) = if options.brief { (60, 4) } else { (200, 8) };
    let mut verdict =
        Verdict::new("xmin", format!("a foreign snapshot open for {} s, {jobs} jobs a second", windows * 10));
    let mut cluster = Cluster::start(options, &Plan { instances: 2, ..plan(options) })?;
    cluster.jobs("tick", jobs, "print", EVERY_SECOND, &strict())?;
    let mut foreign = cluster.database.session()?;
    foreign.execute("begin isolation level repeatable read; select count(*) from everbell.timers")?;
    let mut costs = Vec::new();
    for _ in 0..windows {
        let before = (blocks(&cluster)?, cluster.database.number("select count(*) from everbell.outcomes")?);
        pause_s(10.0);
        let after = (blocks(&cluster)?, cluster.database.number("select count(*) from everbell.outcomes")?);
        costs.push((after.0 - before.0) as f64 / ((after.1 - before.1).max(1)) as f64);
    }
    let (first, last) = (costs[0], costs[costs.len() - 1]);
    let each: Vec<String> = costs.iter().map(|cost| format!("{cost:.0}")).collect();
    // The rows of a run's own job cannot be cleaned up meanwhile, so that part grows with the fires of that job; the
    // part of all other jobs must not grow.
    let bound = 2.0 * first.max(20.0) + BLOCKS_PER_FIRE * 10.0 * f64::from(windows);
    let each = each.join(" ");
    verdict.check(last > bound, format!("blocks read for each run, by 10 s: {each} (bound {bound:.0})"));
    foreign.execute("rollback")?;
    cluster.stop_all(Duration::from_mins(1));
    Ok(verdict)
}

/// Statements are ended after 5 ms for a while: everything recovers afterwards.
pub(super) fn statement_timeout(options: &Options) -> Outcome<Verdict> {
    let jobs = if options.brief { 50 } else { 200 };
    let mut verdict =
        Verdict::new("statement_timeout", format!("statement_timeout = 5 ms for 20 s, {jobs} jobs a second"));
    let mut cluster = Cluster::start(options, &plan(options))?;
    cluster.jobs("load", jobs, "print", EVERY_SECOND, &strict())?;
    cluster.jobs("tick", 3, "quick", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(3, Duration::from_secs(30))?;
    let database = cluster.database.name().to_owned();
    let renew = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    cluster.database.execute(&format!("alter database {database} set statement_timeout = '5ms'; {renew}"))?;
    let (from, begun) = (true_time(), cluster.log.started());
    pause_s(20.0);
    verdict.saw(format!("{} starts in 20 s", cluster.log.started() - begun));
    cluster
        .database
        .execute(&format!("set statement_timeout = 0; alter database {database} reset statement_timeout; {renew}"))?;
    let healed = true_time();
    let bound = SILENCE_S * stretch();
    let fired = wait_for(Duration::from_secs_f64(60.0 * stretch()), || {
        cluster.log.last_start().filter(|at| *at > healed + 1.0)
    });
    let took = fired.unwrap_or_else(true_time) - healed;
    verdict.check(fired.is_none() || took > bound, format!("fired {took:.1} s after healing (bound {bound:.0} s)"));
    if cluster.log.started() == begun {
        let ready = ready_in_silence(&cluster, from, healed);
        verdict.check(!ready.is_empty(), format!("{} instances ready though nothing fired", ready.len()));
    }
    cluster.stop_all(Duration::from_mins(1));
    Ok(verdict)
}
