//! An instance that holds locks on timers and does nothing any more.

use std::time::Duration;

use rustix::process::Signal;

use super::{EVERY_SECOND, judge, plan, strict};
use crate::chaos::checks::{longest_silence, ready_in_silence, slowest_job};
use crate::chaos::clock::{pause_s, stretch, wait_for};
use crate::chaos::proxy::{Action, Network, Point, Rule};
use crate::chaos::statement::Statement;
use crate::chaos::{Cluster, Options, Outcome, Verdict, true_time};

const JOBS: usize = 20;

pub(super) fn stop(options: &Options) -> Outcome<Verdict> {
    starve("lock_starve_stop", options, Action::Signal(Signal::STOP))
}

pub(super) fn silent(options: &Options) -> Outcome<Verdict> {
    starve("lock_starve_silent", options, Action::Silence)
}

fn starve(name: &str, options: &Options, action: Action) -> Outcome<Verdict> {
    let watched_s = if options.brief { 40.0 } else { 60.0 };
    let mut verdict = Verdict::new(name, format!("{} between lock_due_timers and its commit", how(action)));
    let mut cluster = Cluster::start(options, &plan(options))?;
    cluster.jobs("tick", JOBS, "quick", EVERY_SECOND, &strict())?;
    let jobs: Vec<String> = (0..JOBS).map(|number| format!("tick-{number}")).collect();
    cluster.wait_for_starts(2 * JOBS, Duration::from_secs(30))?;
    let armed = cluster.nodes[0].proxy()?.arm(Rule::new(Statement::LockDueTimers, Point::AnswerWithRows, action));
    let limit = Duration::from_secs(40).mul_f64(stretch());
    let acted = wait_for(limit, || armed.acted().first().copied());
    let from = acted.ok_or("no instance locked timers")?;
    pause_s(watched_s);
    let (to, executions) = (true_time(), cluster.log.executions());
    let (begin, end) = longest_silence(&executions, None, from, to);
    let (longest, job) = slowest_job(&executions, &jobs, from, to);
    // However busy the machine is: no start in most of the time is none.
    let bound = (10.0 * stretch()).min(0.8 * watched_s);
    verdict.check(longest > bound, format!("{job} did not fire for {longest:.1} s (bound {bound:.0} s)"));
    let ready = ready_in_silence(&cluster, begin, end);
    verdict.check(!ready.is_empty(), format!("{} instances ready in a silence of {:.0} s", ready.len(), end - begin));
    cluster.nodes[0].running()?.signal(Signal::CONT);
    cluster.nodes[0].proxy()?.set(Network::Open);
    pause_s(3.0);
    judge(&mut verdict, &mut cluster)?;
    Ok(verdict)
}

fn how(action: Action) -> &'static str {
    if matches!(action, Action::Silence) { "black hole" } else { "SIGSTOP" }
}
