//! What answers of a server mean. Each check looks at documents and the time, and at nothing else.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::Zone;
use everbell_core::cron::WarningCode;
use everbell_wire as wire;
use everbell_wire::job::Scope;
use everbell_wire::run::Origin;
use jiff::{SignedDuration, Timestamp};

use super::Finding;
use crate::output::counted;
use crate::times::since;
use crate::words::filled;
use everbell_client::WithJson;
use everbell_wire::job_body as body;

/// So late is nothing that a server which works is.
const LATE: SignedDuration = SignedDuration::from_secs(60);
/// A transaction that is open for so long was forgotten.
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(10);
/// Clocks of hosts that differ more than this make logs hard to read.
const SKEW_MS: i64 = 1_000;
const AHEAD: SignedDuration = SignedDuration::from_hours(14 * 24);
/// How many names are told.
const TOLD: usize = 5;

/// The lines of `/readyz?verbose`: `[+] database: sqlite 3.50`.
pub(super) fn readiness(told: &str) -> Vec<Finding> {
    let finding = |line: &str| {
        let (sign, said) = line.split_once("] ")?;
        Some(match sign {
            "[+" => Finding::ok("readiness", said),
            _ => Finding::error("readiness", said, "the server is not ready until this is well; its log tells more"),
        })
    };
    told.lines().filter_map(finding).collect()
}

/// Jobs, timers, the database.
pub(super) fn status(status: &wire::Status, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (theirs, ours) = (status.tz_data.as_str(), Zone::data_version());
    if theirs != ours {
        let detail = format!("the server has time zone data {theirs}, this command {ours}");
        findings.push(Finding::warning("zoneData", detail, "use the same release on both sides"));
    }
    let wire::Status { active_jobs: active, paused_jobs: paused, errored_jobs: errored, .. } = *status;
    findings.push(Finding::ok("jobs", format!("{active} active, {paused} paused jobs")));
    if errored > 0 {
        let detail = format!("{} cannot fire: a schedule or a timer cannot be read", counted(errored as usize, "job"));
        findings.push(Finding::error("jobs", detail, "everbell jobs list --errored"));
    }
    let errored = status.errored_org_timers;
    if errored > 0 {
        let detail =
            format!("{} of orgs cannot fire: a zone or an override cannot be read", counted(errored as usize, "timer"));
        findings.push(Finding::warning("orgs", detail, "everbell orgs list --errored"));
    }
    findings.push(match status.oldest_due_at {
        Some(at) if late(at, now) => Finding::error(
            "backlog",
            format!("{} overdue, the oldest for {}", counted(status.due_timers as usize, "timer"), since(at, now)),
            "see that an instance with the role `all` or `scheduler` lives, and serves the targets",
        ),
        _ => Finding::ok("backlog", "no timer is overdue"),
    });
    findings.push(match status.oldest_transaction_at {
        Some(at) if now.duration_since(at) > FORGOTTEN => Finding::warning(
            "transactions",
            format!("a transaction is open for {}, so the database cannot clean up behind it", since(at, now)),
            "find it in pg_stat_activity, and end it",
        ),
        _ => Finding::ok("transactions", "no transaction is open for long"),
    });
    let notes = status.notes.iter().map(String::as_str);
    findings.extend(
        notes.map(|note| Finding::warning("database", note, "`everbell config show` tells which database is used")),
    );
    findings
}

fn late(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) > LATE
}

pub(super) fn instances(all: &[wire::Instance], now: Timestamp) -> Vec<Finding> {
    let (live, gone): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.alive);
    let mut findings = Vec::new();
    if live.iter().any(|one| one.roles.iter().any(|role| role == "scheduler")) {
        findings.push(Finding::ok("instances", format!("{} live", counted(live.len(), "instance"))));
    } else {
        let next = "start one: everbell serve";
        findings.push(Finding::error("instances", "no instance lives that fires jobs", next));
    }
    for one in gone {
        let detail = format!("instance {} was not heard of for {}", name(one), since(one.heartbeat_at, now));
        findings.push(Finding::warning("instances", detail, "if it was not stopped, see its host and its log"));
    }
    let versions: BTreeSet<&str> = live.iter().map(|one| one.version.as_str()).collect();
    if versions.len() > 1 {
        let detail =
            format!("instances of different versions: {}", versions.into_iter().collect::<Vec<_>>().join(", "));
        findings.push(Finding::warning("versions", detail, "finish the upgrade"));
    }
    for one in live.iter().filter(|one| one.draining) {
        let detail = format!("instance {} drains and takes no work", name(one));
        let next = format!("everbell instances undrain {}", one.id);
        findings.push(Finding::warning("draining", detail, next));
    }
    let skewed: Vec<_> = live.iter().filter(|one| one.clock_skew_ms.abs() > SKEW_MS).collect();
    for one in &skewed {
        let detail = format!("the clock of {} is {} ms off", name(one), one.clock_skew_ms);
        let next = "jobs follow the clock of the database, but logs of that host do not: set its clock";
        findings.push(Finding::warning("clock", detail, next));
    }
    if skewed.is_empty() && !live.is_empty() {
        findings.push(Finding::ok("clock", "clocks of all hosts agree with the database's within a second"));
    }
    findings
}

fn name(instance: &wire::Instance) -> String {
    format!("{}:{}", instance.host, instance.pid)
}

/// Jobs whose target no live instance serves.
pub(super) fn targets(all: &[wire::Target]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for target in all {
        // Of very many, only some have a name here, or none.
        let waiting: Vec<&str> = target.waiting_jobs.iter().map(String::as_str).collect();
        let count = target.jobs as usize;
        if !target.instances.is_empty() || count == 0 {
            continue;
        }
        let verb = if count == 1 { "targets" } else { "target" };
        let named = if waiting.is_empty() { String::new() } else { format!(": {}", first_of(&waiting, count)) };
        let detail =
            format!("{} {verb} `{}`, which no live instance serves{named}", counted(count, "job"), target.target);
        findings.push(Finding::error(
            "targets",
            detail,
            "start an instance that serves it, or give them another target",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("targets", "every job has a live target"));
    }
    findings
}

/// The first of them, and how many more there are.
fn some(names: &[&str]) -> String {
    first_of(names, names.len())
}

/// The first of so many, of which these have a name, and how many more there are.
fn first_of(names: &[&str], count: usize) -> String {
    let more = count.saturating_sub(TOLD.min(names.len()));
    let told = names.iter().take(TOLD).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{told} and {more} more") } else { told }
}

/// Active jobs without a next fire: errored ones are told elsewhere, and a schedule may have ended.
pub(super) fn resting_jobs(resting: &[WithJson<wire::Job>], now: Timestamp) -> Finding {
    let stopped = |WithJson { document: job, json }: &&WithJson<wire::Job>| {
        let global = job.scope != Scope::PerOrg && filled(job.error.as_ref()).is_none();
        let spec = body::shown(json, now).ok().and_then(|own| own.spec.ok());
        global && spec.is_some_and(|spec| spec.next_after(now).is_some())
    };
    let stopped: Vec<&str> = resting.iter().filter(stopped).map(|job| job.document.job_key.as_str()).collect();
    if stopped.is_empty() {
        return Finding::ok("timers", "every active job with slots ahead has a next fire");
    }
    let verb = if stopped.len() == 1 { "has" } else { "have" };
    let count = counted(stopped.len(), "active job");
    let detail = format!("{count} {verb} slots ahead and no next fire: {}", some(&stopped));
    Finding::error("timers", detail, "a scheduler repairs them within 5 minutes; if they stay, see its log")
}

/// Running runs whose lease ran out, and which nobody takes over.
pub(super) fn leases(running: &[wire::Run], now: Timestamp) -> Finding {
    let stuck = |run: &&wire::Run| run.lease_until.is_some_and(|until| late(until, now));
    let stuck: Vec<&str> = running.iter().filter(stuck).map(|run| run.id.as_str()).collect();
    if stuck.is_empty() {
        return Finding::ok("leases", format!("{} running, none without a lease", counted(running.len(), "run")));
    }
    let detail = format!(
        "{} of a dead instance that no other instance has taken over: {}",
        counted(stuck.len(), "run"),
        some(&stuck)
    );
    Finding::error("leases", detail, "see that an instance with the role `all` or `scheduler` lives")
}

/// Two runs of one slot: must be none, whatever happened.
pub(super) fn slots(newest: &[wire::Run]) -> Finding {
    let mut seen: BTreeMap<_, u32> = BTreeMap::new();
    for run in newest.iter().filter(|run| matches!(run.origin, Origin::Slot | Origin::CatchUp)) {
        if let Some(slot) = run.slot_at {
            *seen.entry((&run.job_definition_id, &run.org_id, slot)).or_default() += 1;
        }
    }
    let twice = seen.iter().filter(|(_, runs)| **runs > 1);
    let twice: Vec<String> =
        twice.map(|((job, _, slot), _)| format!("{} at {slot}", job.as_deref().unwrap_or_default())).collect();
    if twice.is_empty() {
        return Finding::ok("slots", format!("no slot has two runs among the newest {}", newest.len()));
    }
    let twice: Vec<&str> = twice.iter().map(String::as_str).collect();
    let detail = format!("{} has more than one run: {}", counted(twice.len(), "slot"), some(&twice));
    Finding::error("slots", detail, "this must not be: keep the database as it is, and report it")
}

/// Jobs with a fire that a clock change moves, doubles or drops in the next two weeks.
pub(super) fn clock_changes(jobs: &[WithJson<wire::Job>], more: bool, now: Timestamp) -> Finding {
    let until = now.checked_add(AHEAD).unwrap_or(now);
    let touched = |job: &&WithJson<wire::Job>| {
        let Ok(Ok(spec)) = body::shown(&job.json, now).map(|own| own.spec) else { return false };
        let last = until.to_zoned(spec.zone().as_jiff().clone()).date();
        spec.warnings(now).iter().any(|warning| {
            matches!(warning.code, WarningCode::DstGap | WarningCode::DstFold)
                && warning.local_date.is_some_and(|date| date <= last)
        })
    };
    let touched: Vec<&str> = jobs.iter().filter(touched).map(|job| job.document.job_key.as_str()).collect();
    let of = if more { format!(" among the first {}", jobs.len()) } else { String::new() };
    if touched.is_empty() {
        return Finding::ok("dst", format!("no job{of} fires in a clock change within 14 days"));
    }
    let verb = if touched.len() == 1 { "has" } else { "have" };
    let count = counted(touched.len(), "job");
    let detail = format!("{count}{of} {verb} a fire in a clock change within 14 days: {}", some(&touched));
    Finding::warning("dst", detail, format!("see what happens: everbell next {}", touched[0]))
}

#[cfg(test)]
mod tests;
