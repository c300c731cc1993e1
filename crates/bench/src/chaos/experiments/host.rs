//! One machine: files that disappear, a log that is not read, a helper that is frozen.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::{EVERY_SECOND, plan, strict};
use crate::chaos::clock::{pause_s, stretch, wait_for};
use crate::chaos::instance::{Instance, signal_process};
use crate::chaos::{Cluster, Options, Outcome, Plan, Verdict};

/// How long an answer may take on a quiet machine.
const ANSWER: Duration = Duration::from_secs(10);
/// How long trouble may go unnoticed on a quiet machine.
const NOTICE: Duration = Duration::from_secs(15);

pub(super) fn removed_file(options: &Options) -> Outcome<Verdict> {
    damaged("removed_file", options, |file| fs::remove_file(file))
}

pub(super) fn removed_wal(options: &Options) -> Outcome<Verdict> {
    damaged("removed_wal", options, |file| fs::remove_file(file.with_extension("db-wal")))
}

pub(super) fn truncated_file(options: &Options) -> Outcome<Verdict> {
    damaged("truncated_file", options, |file| fs::File::options().write(true).open(file)?.set_len(0))
}

/// Does something to the file of the database: writes must be refused and `/readyz` must say why, both soon.
fn damaged(name: &str, options: &Options, damage: impl Fn(&Path) -> std::io::Result<()>) -> Outcome<Verdict> {
    let mut verdict = Verdict::new(name, "damage the files of a running SQLite server, then write");
    let mut cluster = Cluster::start(options, &plan(options))?;
    cluster.jobs("tick", 3, "quick", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(6, Duration::from_secs(30))?;
    damage(&database_file(&cluster))?;
    let limit = NOTICE.mul_f64(stretch());
    let ready = || cluster.any().ok()?.get("/readyz", ANSWER.mul_f64(stretch())).ok();
    let noticed = wait_for(limit, || ready().filter(|answer| answer.status != 200));
    let text = noticed.as_ref().map(|answer| answer.body.lines().take(2).collect::<Vec<_>>().join(" "));
    verdict.check(noticed.is_none(), format!("/readyz says no: {}", text.as_deref().unwrap_or("never")));
    let job = json!({ "jobKey": "after", "target": "quick", "cronExpression": "0 0 1 1 *" });
    let answer = cluster.post("/jobs", &job)?;
    verdict.check(answer.status < 400, format!("POST /jobs: {} \"{}\"", answer.status, answer.reason()));
    cluster.stop_all(Duration::from_mins(1));
    Ok(verdict)
}

fn database_file(cluster: &Cluster) -> PathBuf {
    cluster.folder().join("everbell.db")
}

/// `/livez` answers, programs start, and SIGTERM is obeyed.
fn is_alive(verdict: &mut Verdict, cluster: &mut Cluster, seconds: f64) -> Outcome<()> {
    let livez = cluster.any()?.get("/livez", ANSWER.mul_f64(stretch()));
    let told = livez
        .as_ref()
        .map_or_else(ToString::to_string, |answer| format!("{} in {:.1} s", answer.status, answer.seconds));
    verdict.check(livez.is_err(), format!("/livez: {told}"));
    let before = cluster.log.started();
    let fired =
        wait_for(Duration::from_secs_f64(seconds * stretch()), || (cluster.log.started() > before).then_some(()));
    verdict.check(fired.is_none(), format!("{} starts meanwhile", cluster.log.started() - before));
    let stopped = cluster.nodes[0].instance.take().and_then(|mut instance| {
        instance.signal(Signal::TERM);
        instance.ends_within(Duration::from_secs_f64(60.0 * stretch()))
    });
    verdict.check(stopped.is_none(), format!("SIGTERM obeyed after {stopped:.1?} s"));
    Ok(())
}

/// The log is not read: the server must go on.
pub(super) fn full_stderr(options: &Options) -> Outcome<Verdict> {
    let mut verdict = Verdict::new("full_stderr", "standard error is a pipe that nobody reads, 20 `log` jobs a second");
    let plan = Plan { unread_stderr: true, ..plan(options) };
    let mut cluster = Cluster::prepare(options, &plan)?;
    cluster.nodes[0].start()?;
    cluster.jobs("tick", 2, "quick", EVERY_SECOND, &strict())?;
    cluster.jobs("loud", 20, "print", EVERY_SECOND, &strict())?;
    // 64 kB are full after some seconds.
    pause_s(if options.brief { 20.0 } else { 30.0 });
    is_alive(&mut verdict, &mut cluster, 15.0)?;
    Ok(verdict)
}

/// The supervisor hears of each program and does not read: the server must go on.
pub(super) fn supervisor_stopped(options: &Options) -> Outcome<Verdict> {
    let frozen_s = if options.brief { 20.0 } else { 150.0 };
    let mut verdict = Verdict::new(
        "supervisor_stopped",
        format!("SIGSTOP to the supervisor for {frozen_s:.0} s, 40 programs a second"),
    );
    let mut cluster = Cluster::start(options, &plan(options))?;
    cluster.jobs("tick", 40, "quick", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(40, Duration::from_secs(30))?;
    let supervisor = cluster.nodes[0].running().map(Instance::supervisor)?.ok_or("the server has no supervisor")?;
    signal_process(supervisor, Signal::STOP);
    pause_s(frozen_s);
    let judged = is_alive(&mut verdict, &mut cluster, 15.0);
    signal_process(supervisor, Signal::CONT);
    judged.map(|()| verdict)
}
