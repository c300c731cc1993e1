//! Locks of others, and a database that does not answer: how long people and signals wait.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{EVERY_SECOND, plan, strict};
use crate::chaos::clock::{pause_s, stretch};
use crate::chaos::cluster::{Cluster, ask};
use crate::chaos::proxy::Network;
use crate::chaos::{Options, Outcome, Plan, Verdict, instant};

/// The longest time of a request, in seconds, on a quiet machine.
const REQUEST_BOUND_S: f64 = 10.0;
/// The longest time of a stop, in seconds, on a quiet machine. The unit file allows 90.
const STOP_BOUND_S: f64 = 60.0;

/// Sends a request while a lock is held, and judges the time and the words of its answer.
fn answered(verdict: &mut Verdict, cluster: &Cluster, method: &str, path: &str, body: Option<&Value>) -> Outcome<()> {
    let begun = instant();
    let answer = ask(cluster.any()?, method, path, body);
    let (took, bound) = (begun.elapsed().as_secs_f64(), REQUEST_BOUND_S + 4.0 * stretch());
    let said =
        answer.as_ref().map_or_else(ToString::to_string, |answer| format!("{} \"{}\"", answer.status, answer.reason()));
    verdict.check(took > bound, format!("{method} {path}: {took:.1} s, {said}"));
    if said.contains("cannot be reached") {
        verdict.check(true, "a lock was reported as a database that cannot be reached");
    }
    Ok(())
}

pub(super) fn row_lock(options: &Options) -> Outcome<Verdict> {
    let mut verdict = Verdict::new("row_lock", "a foreign transaction holds the row of a timer");
    let cluster = Cluster::start(options, &Plan { instances: 1, ..plan(options) })?;
    cluster.job("locked", "quick", "0 0 1 1 *", &strict())?;
    let mut foreign = cluster.database.session()?;
    foreign.execute("begin; select * from everbell.timers for update")?;
    answered(&mut verdict, &cluster, "POST", "/api/v1/jobs/key:locked/run-now", Some(&json!({})))?;
    answered(&mut verdict, &cluster, "GET", "/api/v1/jobs/key:locked", None)?;
    foreign.execute("rollback")?;
    Ok(verdict)
}

pub(super) fn table_lock(options: &Options) -> Outcome<Verdict> {
    let mut verdict = Verdict::new("table_lock", "a foreign transaction locks `timers` in share mode");
    let cluster = Cluster::start(options, &Plan { instances: 1, ..plan(options) })?;
    let mut foreign = cluster.database.session()?;
    foreign.execute("begin; lock table everbell.timers in share mode")?;
    let job = json!({ "jobKey": "late", "target": "quick", "cronExpression": "0 0 1 1 *" });
    answered(&mut verdict, &cluster, "POST", "/api/v1/jobs", Some(&job))?;
    foreign.execute("rollback; begin; lock table everbell.active_runs in access exclusive mode")?;
    answered(&mut verdict, &cluster, "GET", "/api/v1/runs", None)?;
    foreign.execute("rollback")?;
    Ok(verdict)
}

/// SIGTERM to every instance while the database is silent and programs run.
pub(super) fn stop_in_outage(options: &Options) -> Outcome<Verdict> {
    let mut verdict = Verdict::new("stop_in_outage", "black hole for all, SIGTERM after 3 s, 25 s programs in flight");
    let mut cluster = Cluster::start(options, &Plan { long_s: 25.0, ..plan(options) })?;
    cluster.jobs("slow", 6, "long", EVERY_SECOND, &strict())?;
    cluster.wait_until_started(6, Duration::from_secs(30))?;
    for node in &cluster.nodes {
        node.proxy()?.set(Network::Silent);
    }
    pause_s(3.0);
    cluster.readiness.stop();
    let mut instances: Vec<_> = cluster.nodes.iter_mut().filter_map(|node| node.instance.take()).collect();
    let begun = instant();
    for instance in &instances {
        instance.signal(Signal::TERM);
    }
    let bound = STOP_BOUND_S + 5.0 * stretch();
    for instance in &mut instances {
        let left = Duration::from_secs_f64(bound).saturating_sub(begun.elapsed());
        let stopped = instance.ends_within(left).is_some();
        let took = begun.elapsed().as_secs_f64();
        verdict.check(
            !stopped,
            format!("{} after {took:.0} s (bound {bound:.0} s)", if stopped { "ended" } else { "alive" }),
        );
    }
    Ok(verdict)
}
