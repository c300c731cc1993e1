//! Claims whose answer is late.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::{EVERY_SECOND, judge, plan, strict};
use crate::chaos::clock::{pause_s, stretch, wait_for};
use crate::chaos::proxy::{Action, Point, Rule};
use crate::chaos::statement::Statement;
use crate::chaos::{Cluster, Options, Outcome, Verdict};

const JOBS: usize = 10;

pub(super) fn late_claim(options: &Options) -> Outcome<Verdict> {
    kept_back("late_claim", options, 3.0, true)
}

pub(super) fn late_claim_long(options: &Options) -> Outcome<Verdict> {
    kept_back("late_claim_long", options, 14.0, false)
}

/// Keeps back answers to claims of one instance, with or without another program at work there.
fn kept_back(name: &str, options: &Options, seconds: f64, busy: bool) -> Outcome<Verdict> {
    let times = if options.brief { 2 } else { 6 };
    let mut verdict = Verdict::new(name, format!("{times} answers to start_runs of one instance {seconds} s late"));
    let mut cluster = Cluster::prepare(options, &plan(options))?;
    // The first instance is alone until its long program runs.
    cluster.nodes[0].start()?;
    if busy {
        let policies = json!({ "timeout": "30m" });
        cluster.job("busy", "long", "0 0 1 1 *", &policies)?;
        cluster.post("/jobs/key:busy/run-now", &json!({}))?.expect(202)?;
        cluster.wait_until_started(1, Duration::from_secs(20))?;
    }
    for node in &mut cluster.nodes[1..] {
        node.start()?;
    }
    cluster.jobs("tick", JOBS, "quick", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(2 * JOBS, Duration::from_secs(30))?;
    let delay = Action::Delay(Duration::from_secs_f64(seconds));
    let proxy = cluster.nodes[0].proxy()?;
    let armed = proxy.arm(Rule::new(Statement::StartRuns, Point::AnswerWithRows, delay).times(times));
    let limit = Duration::from_secs_f64((seconds + 20.0) * f64::from(times) * stretch());
    let done = wait_for(limit, || {
        run_by_hand(&cluster);
        (armed.acted().len() >= times as usize).then_some(())
    });
    verdict.check(done.is_none(), format!("{} answers kept back", armed.acted().len()));
    // Wait for the last answer, and its consequences.
    pause_s(seconds + 3.0);
    proxy.disarm();
    cluster.wait_for_starts(JOBS, Duration::from_mins(1))?;
    judge(&mut verdict, &mut cluster)?;
    Ok(verdict)
}

/// Asks for runs, which wait for a claim: slots start with their plan. A refusal is left to the next time, because the
/// instance that is asked may be the one whose answers are kept back.
fn run_by_hand(cluster: &Cluster) {
    for number in 0..JOBS {
        drop(cluster.post(&format!("/jobs/key:tick-{number}/run-now"), &json!({})));
    }
    pause_s(0.5);
}

/// Freezes an instance when its claim is committed and the answer is on its way, for longer than the lease.
pub(super) fn zombie_claim(options: &Options) -> Outcome<Verdict> {
    let frozen_s = options.lease_s() * 1.5 + 10.0;
    let did = format!("SIGSTOP at the answer to start_runs, SIGCONT after {frozen_s:.0} s");
    let mut verdict = Verdict::new("zombie_claim", did);
    let mut cluster = Cluster::start(options, &plan(options))?;
    cluster.jobs("tick", JOBS, "quick", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(2 * JOBS, Duration::from_secs(30))?;
    let rule = Rule::new(Statement::StartRuns, Point::AnswerWithRows, Action::Signal(Signal::STOP));
    let armed = cluster.nodes[0].proxy()?.arm(rule);
    let limit = Duration::from_secs(30).mul_f64(stretch());
    let frozen = wait_for(limit, || {
        run_by_hand(&cluster);
        (!armed.acted().is_empty()).then_some(())
    });
    verdict.check(frozen.is_none(), format!("{} frozen", armed.acted().len()));
    pause_s(frozen_s);
    cluster.nodes[0].running()?.signal(Signal::CONT);
    pause_s(8.0);
    judge(&mut verdict, &mut cluster)?;
    Ok(verdict)
}
