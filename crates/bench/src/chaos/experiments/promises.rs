//! Promises of the API: a request with a key is carried out once, a paused job starts nothing.

use std::time::Duration;

use everbell_store::conformance::dice::Dice;
use rustix::process::Signal;
use serde_json::json;

use super::{EVERY_SECOND, judge, plan, strict};
use crate::chaos::clock::{pause_s, stretch, wait_for};
use crate::chaos::http;
use crate::chaos::proxy::{Action, Network, Point, Rule};
use crate::chaos::statement::Statement;
use crate::chaos::{Cluster, Options, Outcome, Plan, Verdict, true_time};

/// How long a start after the answer to a pause is put down to a program that was being spawned, in seconds.
const SPAWNING_S: f64 = 1.0;

/// Kills the server at each statement of a run-now, then sends the same request again.
pub(super) fn idempotency(options: &Options) -> Outcome<Verdict> {
    let most = if options.brief { 6 } else { 14 };
    let mut verdict =
        Verdict::new("idempotency_crash", "kill -9 before and after each statement of a run-now, then again");
    let mut cluster = Cluster::prepare(options, &Plan { instances: 2, ..plan(options) })?;
    // One answers, the other one works.
    cluster.nodes[0].launch.environment.push(("EVERBELL_ROLE".into(), "api".into()));
    cluster.nodes[1].start()?;
    cluster.nodes[0].start()?;
    let (mut kills, mut blocked, mut twice, mut never) = (0, 0, 0, 0);
    for point in [Point::Request, Point::Answer] {
        for number in 0..most {
            let key = format!("{point:?}-{number}").to_lowercase();
            cluster.job(&key, "quick", "0 0 1 1 *", &json!({ "overlap": "allow" }))?;
            let armed = cluster.nodes[0].proxy()?.arm(Rule::new(Statement::Any, point, Action::Kill).after(number));
            let first = run_once(&cluster, &key);
            if armed.acted().is_empty() {
                first?;
                break;
            }
            kills += 1;
            restart(&mut cluster)?;
            let limit = Duration::from_secs(20).mul_f64(stretch());
            let repeated = wait_for(limit, || run_once(&cluster, &key).ok().filter(|status| *status < 300));
            blocked += usize::from(repeated.is_none());
            let started = |key: &str| cluster.log.executions().iter().filter(|one| one.job == key).count();
            let seen = wait_for(limit, || (started(&key) > 0).then_some(()));
            never += usize::from(seen.is_none() && repeated.is_some());
            pause_s(1.0);
            twice += usize::from(started(&key) > 1);
        }
        cluster.nodes[0].proxy()?.disarm();
    }
    verdict.check(kills == 0, format!("{kills} kills"));
    verdict.check(blocked > 0, format!("{blocked} repeats refused"));
    verdict.check(twice > 0, format!("{twice} done twice"));
    verdict.check(never > 0, format!("{never} never done"));
    Ok(verdict)
}

/// Sends the request with its key to the first instance.
fn run_once(cluster: &Cluster, key: &str) -> Outcome<u16> {
    let instance = cluster.nodes[0].running()?;
    let path = format!("/api/v1/jobs/key:{key}/run-now");
    let headers = [("idempotency-key", key)];
    let limit = Duration::from_secs(20).mul_f64(stretch());
    Ok(http::request(&instance.address, "POST", &path, &headers, Some(&json!({})), limit)?.status)
}

fn restart(cluster: &mut Cluster) -> Outcome<()> {
    drop(cluster.nodes[0].instance.take());
    let proxy = cluster.nodes[0].proxy()?;
    proxy.disarm();
    proxy.set(Network::Open);
    cluster.nodes[0].start()
}

/// A pause holds what waits.
pub(super) fn pause_pending(options: &Options) -> Outcome<Verdict> {
    let mut verdict = Verdict::new("pause_pending", "a backfill of 25 slots, then a pause");
    let mut cluster = Cluster::start(options, &plan(options))?;
    cluster.job("filled", "short", "0 * * * * *", &strict())?;
    let at = |seconds: f64| jiff::Timestamp::from_second(seconds as i64).map(|time| time.to_string());
    let now = true_time();
    let body = json!({ "from": at(now - 25.0 * 60.0)?, "to": at(now)?, "reason": "experiment" });
    let filled = cluster.post("/jobs/key:filled/backfills", &body)?;
    if filled.status >= 300 {
        return Err(format!("the backfill was refused: {}", filled.body).into());
    }
    cluster.wait_for_starts(2, Duration::from_secs(30))?;
    let paused = cluster.post("/jobs/key:filled/pause", &json!({ "reason": "experiment" }))?;
    let answered = true_time();
    paused.expect(200)?;
    pause_s(12.0);
    late_starts(&mut verdict, &cluster, "filled", answered);
    cluster.stop_all(Duration::from_mins(1));
    Ok(verdict)
}

fn late_starts(verdict: &mut Verdict, cluster: &Cluster, job: &str, answered: f64) {
    let executions = cluster.log.executions();
    let late: Vec<f64> = executions
        .iter()
        .filter(|one| one.job == job)
        .map(|one| one.start - answered)
        .filter(|late| *late > 0.0)
        .collect();
    let most = late.iter().copied().fold(0.0, f64::max);
    let bound = SPAWNING_S * stretch();
    verdict
        .check(most > bound, format!("{} starts after the answer, up to {most:.2} s (bound {bound:.0} s)", late.len()));
}

/// Pauses at the moment of a fire.
pub(super) fn pause_race(options: &Options) -> Outcome<Verdict> {
    let rounds = if options.brief { 5 } else { 30 };
    let mut verdict = Verdict::new("pause_race", format!("{rounds} pauses at the moment of a fire"));
    let mut cluster = Cluster::start(options, &plan(options))?;
    let mut answers = Vec::new();
    for round in 0..rounds {
        let key = format!("raced-{round}");
        cluster.job(&key, "quick", EVERY_SECOND, &strict())?;
        cluster.wait_for_starts(1, Duration::from_secs(20))?;
        pause_s(1.0 - true_time().fract());
        let paused = cluster.post(&format!("/jobs/key:{key}/pause"), &json!({ "reason": "experiment" }))?;
        answers.push((key, true_time()));
        paused.expect(200)?;
    }
    pause_s(3.0);
    let executions = cluster.log.executions();
    let late = |(key, answered): &(String, f64)| {
        let late = executions.iter().filter(|one| one.job == *key).map(|one| one.start - answered).fold(0.0, f64::max);
        (late > 0.0).then_some(late)
    };
    let late: Vec<f64> = answers.iter().filter_map(late).collect();
    let (most, bound) = (late.iter().copied().fold(0.0, f64::max), SPAWNING_S * stretch());
    verdict.check(
        most > bound,
        format!("{} jobs started after the answer, up to {most:.2} s (bound {bound:.0} s)", late.len()),
    );
    judge(&mut verdict, &mut cluster)?;
    Ok(verdict)
}

/// Instances die and come back: nothing twice, nothing beside another, nothing without an outcome.
pub(super) fn kill_and_restart(options: &Options) -> Outcome<Verdict> {
    let rounds = if options.brief { 4 } else { 20 };
    let mut verdict = Verdict::new("kill_and_restart", format!("{rounds} times kill -9 and start, at random"));
    let mut cluster = Cluster::start(options, &plan(options))?;
    cluster.readiness.stop();
    cluster.jobs("tick", 8, "short", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(8, Duration::from_secs(30))?;
    let mut dice = Dice::new(options.seed);
    for _ in 0..rounds {
        pause_s(0.3 + 0.1 * f64::from(u32::try_from(dice.below(20)).unwrap_or(0)));
        let number = dice.below(cluster.nodes.len());
        let node = &mut cluster.nodes[number];
        if let Some(instance) = node.instance.take() {
            instance.signal(Signal::KILL);
        }
        node.start()?;
    }
    pause_s(options.lease_s() + 5.0);
    cluster.wait_for_starts(1, Duration::from_mins(1))?;
    judge(&mut verdict, &mut cluster)?;
    Ok(verdict)
}
