//! An instance that cannot reach its database, or cannot do anything, while its programs run.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::{judge, plan};
use crate::chaos::checks::failed_with;
use crate::chaos::clock::pause_s;
use crate::chaos::proxy::Network;
use crate::chaos::{Cluster, Options, Outcome, Plan, Verdict};

const JOBS: usize = 12;

pub(super) fn cut(options: &Options) -> Outcome<Verdict> {
    apart("partition_cut", options, false)
}

pub(super) fn stop(options: &Options) -> Outcome<Verdict> {
    apart("partition_stop", options, true)
}

fn apart(name: &str, options: &Options, freeze: bool) -> Outcome<Verdict> {
    let lease = options.lease_s();
    let apart_s = lease * 2.5;
    let how = if freeze { "frozen" } else { "cut off" };
    let mut verdict = Verdict::new(
        name,
        format!("{JOBS} jobs with {:.0} s programs, their instance {how} for {apart_s:.0} s", lease * 3.5),
    );
    let mut cluster = Cluster::prepare(options, &Plan { long_s: lease * 3.5, ..plan(options) })?;
    cluster.nodes[0].start()?;
    let policies = json!({ "overlap": "skip", "catchUp": "none", "timeout": "30m" });
    cluster.jobs("slow", JOBS, "long", "*/5 * * * * *", &policies)?;
    cluster.wait_until_started(JOBS, Duration::from_mins(1))?;
    for node in &mut cluster.nodes[1..] {
        node.start()?;
    }
    if freeze {
        cluster.nodes[0].running()?.signal(Signal::STOP);
    } else {
        cluster.nodes[0].proxy()?.set(Network::Cut);
    }
    pause_s(apart_s);
    if freeze {
        cluster.nodes[0].running()?.signal(Signal::CONT);
    } else {
        cluster.nodes[0].proxy()?.set(Network::Open);
    }
    pause_s(5.0);
    judge(&mut verdict, &mut cluster)?;
    let snapshot = cluster.database.snapshot()?;
    verdict.saw(format!("{} lost, {} fenced", failed_with(&snapshot, "lost"), failed_with(&snapshot, "fenced")));
    Ok(verdict)
}
