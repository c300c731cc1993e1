//! Clocks of the database and of the host that are wrong.

use std::time::Duration;

use everbell_store::testing::OwnSetup;
use rustix::process::Signal;
use serde_json::json;

use super::{EVERY_SECOND, judge, plan, strict};
use crate::chaos::checks::{SILENCE_S, failed_with, longest_silence, ready_in_silence};
use crate::chaos::clock::{pause_s, stretch, wait_for};
use crate::chaos::cluster::Folder;
use crate::chaos::database::Database;
use crate::chaos::faketime::FakeClock;
use crate::chaos::{Cluster, Options, Outcome, Plan, Verdict, true_time};

const JOBS: usize = 5;
/// How long fires are watched after a step.
const WATCHED_S: f64 = 45.0;
const YEAR_AND_MORE_S: i64 = 400 * 86_400;

/// A cluster on a PostgreSQL whose clock can be set. Its instances do not run yet.
fn with_clock(options: &Options, plan: &Plan) -> Outcome<(Cluster, FakeClock)> {
    let folder = Folder::new()?;
    let clock = FakeClock::new(folder.path())?;
    let setup = OwnSetup { environment: clock.environment(), ..OwnSetup::default() };
    let database = Database::own(&setup)?;
    Ok((Cluster::prepare_on(options, plan, database, folder)?, clock))
}

/// Fires must go on after a clock was put right again, or `/readyz` must say that they do not. Watched for a while, because
/// an instance notices a step only when it looks at the clock.
fn fires_again(verdict: &mut Verdict, cluster: &Cluster, from: f64) {
    pause_s(from + WATCHED_S - true_time());
    let (begin, end) = longest_silence(&cluster.log.executions(), None, from, true_time());
    let (silent, bound) = (end - begin, (SILENCE_S * stretch()).min(0.8 * WATCHED_S));
    verdict.check(silent > bound, format!("nothing fired for {silent:.1} s (bound {bound:.0} s)"));
    let ready = ready_in_silence(cluster, begin, end);
    verdict.check(!ready.is_empty(), format!("{} instances ready in that silence", ready.len()));
}

/// The clock of the database is ahead for a while, then right again.
pub(super) fn database_back(options: &Options) -> Outcome<Verdict> {
    let mut verdict = Verdict::new("db_clock_back", "PostgreSQL's clock +60 s for 12 s, then right again");
    let (mut cluster, clock) = with_clock(options, &plan(options))?;
    cluster.start_all()?;
    cluster.jobs("tick", JOBS, "quick", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(2 * JOBS, Duration::from_secs(30))?;
    clock.set(60)?;
    pause_s(12.0);
    clock.set(0)?;
    let from = true_time();
    fires_again(&mut verdict, &cluster, from);
    // Runs of the false future were early by the true clock, which is no fault of theirs.
    cluster.stop_all(Duration::from_secs(100));
    let twice = crate::chaos::checks::started_twice(&cluster.log.executions());
    verdict.check(!twice.is_empty(), format!("{} slots started twice", twice.len()));
    let mut snapshot = cluster.database.snapshot()?;
    // They stay, and their slots do not run again when they come; until then they are ahead of the mark.
    snapshot.forget_ahead();
    let complaints = snapshot.complaints();
    let first = complaints.first().cloned().unwrap_or_default();
    verdict.check(!complaints.is_empty(), format!("{} wrong rows {first}", complaints.len()));
    Ok(verdict)
}

/// The clock of the database jumps over the ends of all leases while living instances hold them.
pub(super) fn database_forward(options: &Options) -> Outcome<Verdict> {
    let (steps, ahead_s) = (if options.brief { 2 } else { 6 }, (options.lease_s() * 1.5) as i64);
    let did =
        format!("{steps} steps of +{ahead_s} s, 14 s apart, with long programs on {} instances", options.instances);
    let mut verdict = Verdict::new("db_clock_forward", did);
    let (mut cluster, clock) = with_clock(options, &Plan { long_s: 14.0 * f64::from(steps) + 30.0, ..plan(options) })?;
    for node in &mut cluster.nodes {
        node.start()?;
        pause_s(1.7);
    }
    cluster.watch_readiness();
    let policies = json!({ "overlap": "skip", "catchUp": "none", "timeout": "60m" });
    for number in 0..9 {
        cluster.job(&format!("slow-{number}"), "long", "0 0 1 1 *", &policies)?;
        let path = format!("/api/v1/jobs/key:slow-{number}/run-now");
        let node = &cluster.nodes[number % options.instances];
        node.running()?.post(&path, &json!({}), crate::chaos::cluster::REQUEST_LIMIT)?.expect(202)?;
    }
    cluster.wait_until_started(9, Duration::from_secs(40))?;
    for step in 1..=steps {
        clock.set(ahead_s * i64::from(step))?;
        pause_s(14.0);
    }
    let lost = failed_with(&cluster.database.snapshot()?, "lost");
    verdict.check(lost > 0, format!("{lost} of 9 living runs recorded as lost"));
    cluster.stop_all(Duration::from_mins(1));
    Ok(verdict)
}

/// An instance starts while each request takes a second; then the network is fast. No run may begin before its slot.
pub(super) fn early(options: &Options) -> Outcome<Verdict> {
    let rounds = if options.brief { 1 } else { 3 };
    let mut verdict = Verdict::new("early", format!("{rounds} starts with 1 s for each request, then none"));
    for _ in 0..rounds {
        let mut cluster = Cluster::prepare(options, &Plan { instances: 2, ..plan(options) })?;
        cluster.nodes[1].start()?;
        cluster.jobs("tick", JOBS, "quick", EVERY_SECOND, &strict())?;
        cluster.wait_for_starts(JOBS, Duration::from_secs(30))?;
        cluster.nodes[0].proxy()?.delay_requests(Duration::from_secs(1));
        cluster.nodes[0].start()?;
        // The engine reads the clock for the first time a moment after the server listens.
        pause_s(4.0);
        cluster.nodes[0].proxy()?.delay_requests(Duration::ZERO);
        // Only the late starter is left.
        if let Some(mut other) = cluster.nodes[1].instance.take() {
            other.kill();
        }
        pause_s(10.0);
        judge(&mut verdict, &mut cluster)?;
    }
    Ok(verdict)
}

/// One start of a server on SQLite with a clock that is far ahead: afterwards jobs fire, and no history is gone.
pub(super) fn host_ahead(options: &Options) -> Outcome<Verdict> {
    let mut verdict =
        Verdict::new("host_clock_ahead", "start, stop, start with the clock +400 d for 12 s, stop, start");
    let folder = Folder::new()?;
    let clock = FakeClock::new(folder.path())?;
    let database = Database::create(options.database, folder.path())?;
    let plan = Plan { environment: clock.environment(), ..plan(options) };
    let mut cluster = Cluster::prepare_on(options, &plan, database, folder)?;
    cluster.start_all()?;
    cluster.jobs("tick", JOBS, "quick", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(3 * JOBS, Duration::from_secs(30))?;
    cluster.stop_all(Duration::from_mins(1));
    let before = cluster.database.snapshot()?.runs.len();
    clock.set(YEAR_AND_MORE_S)?;
    cluster.start_all()?;
    pause_s(12.0);
    cluster.stop_all(Duration::from_mins(1));
    clock.set(0)?;
    let kept = cluster
        .database
        .snapshot()?
        .runs
        .iter()
        .filter(|run| crate::chaos::target_log::seconds(run.created_at) < true_time())
        .count();
    verdict.check(kept < before, format!("{kept} of {before} runs of history kept"));
    let from = true_time();
    cluster.start_all()?;
    fires_again(&mut verdict, &cluster, from);
    let next = cluster.get("/jobs/key:tick-0")?.expect(200)?;
    verdict.saw(format!("next run at {}", next["nextRunAt"].as_str().unwrap_or("none")));
    cluster.stop_all(Duration::from_mins(1));
    let twice = crate::chaos::checks::started_twice(&cluster.log.executions());
    verdict.check(!twice.is_empty(), format!("{} slots started twice", twice.len()));
    Ok(verdict)
}

/// The clock of a host with SQLite goes back by an hour: fires, timeouts and SIGTERM must go on.
pub(super) fn host_back(options: &Options) -> Outcome<Verdict> {
    let mut verdict = Verdict::new("host_clock_back", "the clock -1 h under a running server, a run with timeout 8 s");
    let folder = Folder::new()?;
    let clock = FakeClock::new(folder.path())?;
    let database = Database::create(options.database, folder.path())?;
    let plan = Plan { environment: clock.environment(), long_s: 1000.0, ..plan(options) };
    let mut cluster = Cluster::prepare_on(options, &plan, database, folder)?;
    cluster.start_all()?;
    cluster.jobs("tick", JOBS, "quick", EVERY_SECOND, &strict())?;
    cluster.job("hanging", "long", "0 0 1 1 *", &json!({ "timeout": "8s" }))?;
    cluster.wait_for_starts(2 * JOBS, Duration::from_secs(30))?;
    cluster.post("/jobs/key:hanging/run-now", &json!({}))?.expect(202)?;
    let hanging = |cluster: &Cluster| cluster.log.executions().into_iter().find(|one| one.job == "hanging");
    let started = wait_for(Duration::from_secs(20).mul_f64(stretch()), || hanging(&cluster));
    verdict.check(started.is_none(), "the long program started");
    clock.set(-3600)?;
    let from = true_time();
    fires_again(&mut verdict, &cluster, from);
    let limit = Duration::from_secs(40).mul_f64(stretch());
    let ended = wait_for(limit, || hanging(&cluster)?.end);
    let took = ended.zip(started).map(|(end, one)| end - one.start);
    verdict.check(took.is_none(), format!("the timeout of 8 s ended its program after {took:.1?} s"));
    cluster.post("/jobs/key:hanging/run-now", &json!({ "force": true }))?;
    pause_s(2.0);
    cluster.readiness.stop();
    let mut instance = cluster.nodes[0].instance.take().ok_or("the instance does not run")?;
    instance.signal(Signal::TERM);
    let stopped = instance.ends_within(Duration::from_mins(1).mul_f64(stretch()));
    verdict.check(stopped.is_none(), format!("SIGTERM obeyed after {stopped:.1?} s"));
    Ok(verdict)
}
