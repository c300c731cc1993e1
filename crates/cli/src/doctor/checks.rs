//! The checks of the doctor: pure functions of documents and the time.

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

/// A working server is never later than this.
const MAX_DELAY: SignedDuration = SignedDuration::from_secs(60);
/// A transaction that is open for longer is reported.
const MAX_TRANSACTION_AGE: SignedDuration = SignedDuration::from_mins(10);
/// Logs of hosts whose clocks differ more than this are hard to compare.
const MAX_CLOCK_SKEW_MS: i64 = 1_000;
const CLOCK_CHANGE_WINDOW: SignedDuration = SignedDuration::from_hours(14 * 24);
/// The most names in a finding.
const MAX_NAMES: usize = 5;

/// The lines of `/readyz?verbose`: `[+] database: sqlite 3.50`.
pub(super) fn readiness(report: &str) -> Vec<Finding> {
    let finding = |line: &str| {
        let (sign, check) = line.split_once("] ")?;
        Some(match sign {
            "[+" => Finding::ok("readiness", check),
            _ => Finding::error("readiness", check, "the server is not ready until this is fixed; see its log"),
        })
    };
    report.lines().filter_map(finding).collect()
}

/// Returns since when an instance has fired jobs without a break: the start of the oldest live one that does. A server that
/// was down needs some time to catch up, so nothing is late that long after its start.
pub(super) fn scheduling_since(all: &[wire::Instance]) -> Option<Timestamp> {
    all.iter().filter(|one| fires_jobs(one)).map(|one| one.started_at).min()
}

fn fires_jobs(instance: &wire::Instance) -> bool {
    instance.alive && instance.roles.iter().any(|role| role == "scheduler")
}

/// Checks the numbers of jobs, the timers and the database.
pub(super) fn status(status: &wire::Status, up_since: Option<Timestamp>, now: Timestamp) -> Vec<Finding> {
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
        Some(at) if late(at, up_since, now) => Finding::error(
            "backlog",
            format!("{} overdue, the oldest for {}", counted(status.due_timers as usize, "timer"), since(at, now)),
            "check that an instance with the role `all` or `scheduler` is running and serves the targets",
        ),
        _ => Finding::ok("backlog", "no timer is overdue"),
    });
    findings.push(match status.oldest_transaction_at {
        Some(at) if now.duration_since(at) > MAX_TRANSACTION_AGE => Finding::warning(
            "transactions",
            format!("a transaction has been open for {}, so the database cannot clean up", since(at, now)),
            "find it in pg_stat_activity and end it",
        ),
        _ => Finding::ok("transactions", "no transaction has been open for long"),
    });
    let notes = status.notes.iter().map(String::as_str);
    findings.extend(
        notes.map(|note| Finding::warning("database", note, "see which database is used: everbell config show")),
    );
    findings
}

/// Whether a working server would have noticed this, if it was not down at that time.
fn late(at: Timestamp, up_since: Option<Timestamp>, now: Timestamp) -> bool {
    now.duration_since(up_since.map_or(at, |up_since| up_since.max(at))) > MAX_DELAY
}

pub(super) fn instances(all: &[wire::Instance], now: Timestamp) -> Vec<Finding> {
    let (live, lost): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.alive);
    let mut findings = Vec::new();
    if live.iter().any(|one| fires_jobs(one)) {
        findings.push(Finding::ok("instances", format!("{} live", counted(live.len(), "instance"))));
    } else {
        let next = "start one with the role `all` or `scheduler`: everbell serve";
        findings.push(Finding::error("instances", "no live instance fires jobs", next));
    }
    for one in lost {
        let detail = format!("instance {} sent no heartbeat for {}", name(one), since(one.heartbeat_at, now));
        findings.push(Finding::warning(
            "instances",
            detail,
            "if it was not stopped on purpose, check its host and its log",
        ));
    }
    let versions: BTreeSet<&str> = live.iter().map(|one| one.version.as_str()).collect();
    if versions.len() > 1 {
        let detail =
            format!("instances of different versions: {}", versions.into_iter().collect::<Vec<_>>().join(", "));
        findings.push(Finding::warning("versions", detail, "finish the upgrade"));
    }
    for one in live.iter().filter(|one| one.draining) {
        let detail = format!("instance {} is draining and accepts no work", name(one));
        let next = format!("everbell instances undrain {}", one.id);
        findings.push(Finding::warning("draining", detail, next));
    }
    let skewed: Vec<_> = live.iter().filter(|one| one.clock_skew_ms.abs() > MAX_CLOCK_SKEW_MS).collect();
    for one in &skewed {
        let detail = format!("the clock of {} is {} ms off", name(one), one.clock_skew_ms);
        let next = "jobs follow the clock of the database, but the logs of that host do not: correct its clock";
        findings.push(Finding::warning("clock", detail, next));
    }
    if skewed.is_empty() && !live.is_empty() {
        findings.push(Finding::ok("clock", "the clocks of all hosts are within a second of the database"));
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
        // With many jobs, only some of them are named.
        let waiting: Vec<&str> = target.waiting_jobs.iter().map(String::as_str).collect();
        let count = target.jobs as usize;
        if let Some(problem) = &target.problem {
            findings.push(Finding::warning(
                "targets",
                format!("the server that responded does not serve `{}`: {problem}", target.target),
                "give every instance the secrets of its targets, or correct the definition: everbell targets edit",
            ));
        }
        if !target.instances.is_empty() || count == 0 {
            continue;
        }
        let verb = if count == 1 { "targets" } else { "target" };
        let named = if waiting.is_empty() { String::new() } else { format!(": {}", first_names_of(&waiting, count)) };
        let detail =
            format!("{} {verb} `{}`, which no live instance serves{named}", counted(count, "job"), target.target);
        findings.push(Finding::error(
            "targets",
            detail,
            "start an instance that serves it, or change the target of these jobs",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("targets", "every job has a live target"));
    }
    findings
}

/// The first names, and how many more there are.
fn first_names(names: &[&str]) -> String {
    first_names_of(names, names.len())
}

/// The first names of `count` objects, not all of which may be named, and how many more there are.
fn first_names_of(names: &[&str], count: usize) -> String {
    let more = count.saturating_sub(MAX_NAMES.min(names.len()));
    let first = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// Active jobs without a next run although their schedule has not ended. Errored jobs have a finding of their own.
pub(super) fn jobs_without_timer(jobs: &[WithJson<wire::Job>], now: Timestamp) -> Finding {
    let stopped = |WithJson { document: job, json }: &&WithJson<wire::Job>| {
        let global = job.scope != Scope::PerOrg && filled(job.error.as_ref()).is_none();
        let spec = body::read_definition(json, now).ok().and_then(|definition| definition.spec.ok());
        global && spec.is_some_and(|spec| spec.next_after(now).is_some())
    };
    let stopped: Vec<&str> = jobs.iter().filter(stopped).map(|job| job.document.job_key.as_str()).collect();
    if stopped.is_empty() {
        return Finding::ok("timers", "every active job with future slots has a next run");
    }
    let verb = if stopped.len() == 1 { "has" } else { "have" };
    let count = counted(stopped.len(), "active job");
    let detail = format!("{count} {verb} future slots but no next run: {}", first_names(&stopped));
    Finding::error("timers", detail, "a scheduler repairs them within 5 minutes; if they stay, see its log")
}

/// Running runs whose lease expired and that no instance has taken over.
pub(super) fn leases(running: &[wire::Run], up_since: Option<Timestamp>, now: Timestamp) -> Finding {
    let stuck = |run: &&wire::Run| run.lease_until.is_some_and(|until| late(until, up_since, now));
    let stuck: Vec<&str> = running.iter().filter(stuck).map(|run| run.id.as_str()).collect();
    if stuck.is_empty() {
        return Finding::ok("leases", format!("{} running, none without a lease", counted(running.len(), "run")));
    }
    let detail = format!(
        "{} of a dead instance that no other instance has taken over: {}",
        counted(stuck.len(), "run"),
        first_names(&stuck)
    );
    Finding::error("leases", detail, "check that an instance with the role `all` or `scheduler` is running")
}

/// Slots with two runs, which must never happen.
pub(super) fn slots(newest: &[wire::Run]) -> Finding {
    let mut seen: BTreeMap<_, u32> = BTreeMap::new();
    for run in newest.iter().filter(|run| matches!(run.origin, Origin::Slot | Origin::CatchUp)) {
        if let Some(slot) = run.slot_at {
            *seen.entry((&run.job_id, &run.org_id, slot)).or_default() += 1;
        }
    }
    let twice = seen.iter().filter(|(_, runs)| **runs > 1);
    let twice: Vec<String> =
        twice.map(|((job, _, slot), _)| format!("{} at {slot}", job.as_deref().unwrap_or_default())).collect();
    if twice.is_empty() {
        return Finding::ok("slots", format!("no slot has two runs among the newest {}", newest.len()));
    }
    let twice: Vec<&str> = twice.iter().map(String::as_str).collect();
    let detail = format!("{} has more than one run: {}", counted(twice.len(), "slot"), first_names(&twice));
    Finding::error("slots", detail, "this must never happen: keep the database as it is, and report it")
}

/// Jobs with a run that a clock change moves, repeats or drops in the next two weeks.
pub(super) fn clock_changes(jobs: &[WithJson<wire::Job>], more: bool, now: Timestamp) -> Finding {
    let until = now.checked_add(CLOCK_CHANGE_WINDOW).unwrap_or(now);
    let touched = |job: &&WithJson<wire::Job>| {
        let Ok(Ok(spec)) = body::read_definition(&job.json, now).map(|definition| definition.spec) else {
            return false;
        };
        let last = until.to_zoned(spec.zone().as_jiff().clone()).date();
        spec.warnings(now).iter().any(|warning| {
            matches!(warning.code, WarningCode::DstGap | WarningCode::DstFold)
                && warning.local_date.is_some_and(|date| date <= last)
        })
    };
    let touched: Vec<&str> = jobs.iter().filter(touched).map(|job| job.document.job_key.as_str()).collect();
    let of = if more { format!(" among the first {}", jobs.len()) } else { String::new() };
    if touched.is_empty() {
        return Finding::ok("dst", format!("no job{of} fires during a clock change within 14 days"));
    }
    let verb = if touched.len() == 1 { "has" } else { "have" };
    let count = counted(touched.len(), "job");
    let detail = format!("{count}{of} {verb} a run during a clock change within 14 days: {}", first_names(&touched));
    Finding::warning("dst", detail, format!("see what happens: everbell next {}", touched[0]))
}

#[cfg(test)]
mod tests;
