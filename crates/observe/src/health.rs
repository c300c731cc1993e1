//! Readiness: whether this process can do its work now, and what is in the way if not.

use std::time::Duration;

use everbell::{Everbell, StoreResult, Timestamp};
use everbell_core::store::{JobFilter, JobSort, PageRequest, StoreStatus};
use everbell_core::{JobKey, JobStatus, Target, Zone};
use jiff::SignedDuration;

use super::pulse::{ClockNews, Pulse};

/// How long the database may take to answer.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of polls without a look for due timers after which the scheduler counts as stuck.
const MAX_MISSED_POLLS: u32 = 3;
/// The number of failed heartbeats after which the database counts as read-only for this instance.
const MAX_MISSED_HEARTBEATS: u32 = 4;
/// A job that a live instance serves is planned within this time, unless the whole cluster is stuck.
const MAX_OVERDUE: Duration = Duration::from_secs(15);
/// For how long a step of the clock is shown.
const STEP_SHOWN_FOR: Duration = Duration::from_hours(1);

/// The duties of this process.
#[derive(Clone, Copy, Debug)]
pub struct Duties {
    /// Whether it plans: its role says so, and it serves a target. Without any there is nothing to look for.
    pub schedules: bool,
    /// The longest time between two looks.
    pub poll: Duration,
    /// How often it writes a heartbeat at least.
    pub heartbeat: Duration,
}

/// The content of `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether every check passed.
    pub ok: bool,
    /// The checks, each with its result.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub ok: bool,
    /// In words, also when it is well.
    pub detail: String,
}

/// Looks at everything that the work needs. Takes at most two seconds.
pub async fn readiness(bell: &Everbell, pulse: &Pulse, duties: &Duties) -> Report {
    let begun = bell.clock().monotonic();
    let status = match tokio::time::timeout(DATABASE_TIMEOUT, bell.store().status()).await {
        Ok(Ok(status)) => Ok(status),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", DATABASE_TIMEOUT.as_secs())),
    };
    // A database that does not answer is not asked again.
    let left = DATABASE_TIMEOUT.saturating_sub(bell.clock().monotonic().saturating_sub(begun));
    let left = status.as_ref().ok().map(|_| left);
    let mut checks = vec![database(status.as_ref())];
    checks.extend(status.ok().map(|status| schema(&status)));
    if duties.schedules {
        let now = bell.clock().monotonic();
        checks.push(scheduler(pulse, duties.poll, now));
        checks.push(heartbeat(pulse, duties.heartbeat, now));
    }
    if let Some(left) = left {
        checks.extend(overdue(bell, duties.heartbeat.saturating_mul(MAX_MISSED_HEARTBEATS), left).await);
    }
    checks.push(clock(bell.clock().host_skew(), &pulse.clock(), bell.clock().monotonic()));
    checks.push(good("zoneData", format!("{} (embedded)", Zone::data_version())));
    checks.push(draining(pulse.is_draining()));
    Report { ok: checks.iter().all(|check| check.ok), checks }
}

fn good(name: &'static str, detail: impl Into<String>) -> Check {
    Check { name, ok: true, detail: detail.into() }
}

fn bad(name: &'static str, detail: impl Into<String>) -> Check {
    Check { name, ok: false, detail: detail.into() }
}

fn database(status: Result<&StoreStatus, &String>) -> Check {
    match status {
        Ok(StoreStatus { write_failure: Some(why), .. }) => bad("database", format!("cannot write: {why}")),
        Ok(status) if status.notes.is_empty() => good("database", status.product.clone()),
        Ok(status) => good("database", format!("{}; {}", status.product, status.notes.join("; "))),
        Err(why) => bad("database", why.clone()),
    }
}

/// Reports the schema version. A store with an unknown schema is not opened, so the version is always good.
fn schema(status: &StoreStatus) -> Check {
    good("schema", format!("version {}", status.schema_version))
}

fn scheduler(pulse: &Pulse, poll: Duration, now: Duration) -> Check {
    const NAME: &str = "scheduler";
    if pulse.is_draining() {
        return good(NAME, "draining: does not look for due jobs");
    }
    let Some(tick) = pulse.tick() else { return bad(NAME, "has not looked for due jobs yet") };
    let age = now.saturating_sub(tick.begun);
    let detail = format!("last looked for due jobs {:.1} s ago", age.as_secs_f64());
    if age <= poll.saturating_mul(MAX_MISSED_POLLS) {
        good(NAME, detail)
    } else {
        bad(NAME, format!("{detail}; expected every {:.1} s", poll.as_secs_f64()))
    }
}

fn heartbeat(pulse: &Pulse, every: Duration, now: Duration) -> Check {
    const NAME: &str = "heartbeat";
    let (last, error) = pulse.heartbeat();
    let error = error.map_or_else(String::new, |error| format!(": {error}"));
    let Some(last) = last else { return bad(NAME, format!("none written yet{error}")) };
    let age = now.saturating_sub(last);
    let detail = format!("written {:.1} s ago", age.as_secs_f64());
    if age <= every.saturating_mul(MAX_MISSED_HEARTBEATS) {
        good(NAME, detail)
    } else {
        bad(NAME, format!("{detail}; expected every {:.1} s{error}", every.as_secs_f64()))
    }
}

/// Whether a job is due that no instance plans, although a live one serves its target. Without a live target there is nothing
/// to say: that no instance fires jobs is no fault of this one.
async fn overdue(bell: &Everbell, alive: Duration, patience: Duration) -> Option<Check> {
    const NAME: &str = "due";
    let overdue = async {
        match live_targets(bell, alive).await? {
            targets if targets.is_empty() => Ok(None),
            targets => oldest_overdue(bell, targets).await.map(Some),
        }
    };
    match tokio::time::timeout(patience, overdue).await {
        Ok(Ok(Some(None))) => Some(good(NAME, "no job whose target a live instance serves is overdue")),
        Ok(Ok(Some(Some((key, late))))) => {
            let late = late.as_secs();
            Some(bad(
                NAME,
                format!(
                    "job `{key}` has been due for {late} s, but no instance plans it although one serves its target"
                ),
            ))
        }
        Ok(Err(error)) => Some(bad(NAME, error.to_string())),
        // No live target, or a database that does not answer, which its own check says.
        Ok(Ok(None)) | Err(_) => None,
    }
}

/// How long ago something was.
fn age(bell: &Everbell, at: Timestamp) -> Duration {
    Duration::try_from(bell.now().duration_since(at)).unwrap_or_default()
}

/// The targets that instances serve whose heartbeat is younger than `alive`.
async fn live_targets(bell: &Everbell, alive: Duration) -> StoreResult<Vec<Target>> {
    let live = bell.store().list_instances().await?.into_iter();
    let live = live.filter(|instance| !instance.draining && age(bell, instance.heartbeat_at) < alive);
    let mut targets: Vec<Target> = live.flat_map(|instance| instance.targets).collect();
    targets.sort_unstable();
    targets.dedup();
    Ok(targets)
}

/// The job of these targets that is overdue for longest.
async fn oldest_overdue(bell: &Everbell, target: Vec<Target>) -> StoreResult<Option<(JobKey, Duration)>> {
    let filter = JobFilter {
        status: vec![JobStatus::Active],
        target,
        scheduled: Some(true),
        sort: JobSort::NextRunAt,
        ..JobFilter::default()
    };
    let first = bell.store().list_jobs(&filter, &PageRequest { limit: 1, after: None }).await?.items.into_iter().next();
    let overdue = first.and_then(|row| Some((row.job.definition.key.clone(), row.timer?.next_run_at?)));
    Ok(overdue.map(|(key, at)| (key, age(bell, at))).filter(|(_, late)| *late > MAX_OVERDUE))
}

/// Reported for people: time comes from the database, so a host whose clock is wrong works as well as any other, and a step
/// of the database's clock is followed.
fn clock(skew: SignedDuration, news: &ClockNews, now: Duration) -> Check {
    let side = if skew.is_negative() { "behind" } else { "ahead of" };
    let seconds = skew.as_secs_f64().abs();
    let mut parts = vec![format!("the host's clock is {seconds:.3} s {side} the database's, which is authoritative")];
    if let Some((by, noticed)) = news.step.filter(|(_, at)| now.saturating_sub(*at) < STEP_SHOWN_FOR) {
        let direction = if by.is_negative() { "back" } else { "forward" };
        let (by, ago) = (by.unsigned_abs().as_secs_f64(), now.saturating_sub(noticed).as_secs());
        parts.push(format!("it was set {direction} by {by:.1} s, {ago} s ago"));
    }
    parts.extend(
        news.future
            .map(|newest| format!("the database has entries from {newest}, which was in the future at the start")),
    );
    parts.extend(news.pruning_held.map(|trusted| {
        format!("it jumped, so history is only pruned as of {trusted} until it has been steady for a day")
    }));
    good("clock", parts.join("; "))
}

fn draining(draining: bool) -> Check {
    if draining { bad("draining", "accepts no more work") } else { good("draining", "not draining") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use everbell::testing::{ManualClock, TestBell};
    use everbell::{Event, Round, Schedule};
    use everbell_core::InstanceId;
    use everbell_store::memory::FaultPoint;

    use super::*;

    const START: &str = "2027-01-01T00:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn duties() -> Duties {
        Duties { schedules: true, poll: Duration::from_secs(5), heartbeat: Duration::from_secs(5) }
    }

    /// Simulates a look of the planner, this many seconds after the start.
    fn looked(pulse: &Pulse, second: u64, claimed: Option<u32>) {
        let (instance, begun) = (InstanceId::new(at(START), [1; 10]), Duration::from_secs(second));
        let at = at(START) + begun;
        pulse.observe(&Event::Round { instance, round: Round::Plan, at, begun, claimed, took: Duration::ZERO });
    }

    fn found<'a>(report: &'a Report, name: &str) -> &'a Check {
        report.checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no {name}: {report:?}"))
    }

    #[tokio::test]
    async fn an_instance_at_work_is_ready() {
        let pulse = Pulse::default();
        let observer = pulse.clone();
        let builder = Everbell::builder().target("nothing", || async {}).observe(move |event| observer.observe(event));
        let daily = Schedule::cron("daily", "0 9 * * *").target("nothing");
        let test = TestBell::start(builder.schedule(daily), START).await;
        let report = readiness(test.bell(), &pulse, &duties()).await;
        assert!(report.ok, "{report:?}");
        let names: Vec<&str> = report.checks.iter().map(|check| check.name).collect();
        assert_eq!(names, ["database", "schema", "scheduler", "heartbeat", "due", "clock", "zoneData", "draining"]);
        assert_eq!(found(&report, "database").detail, "memory; nothing outlives the process");
        assert!(found(&report, "zoneData").detail.starts_with("20"), "{report:?}");
    }

    #[tokio::test]
    async fn a_database_that_does_not_answer_is_told_and_the_rest_is_still_there() {
        let test = TestBell::start(Everbell::builder(), START).await;
        test.fail_next(FaultPoint::Before);
        let report = readiness(test.bell(), &Pulse::default(), &Duties { schedules: false, ..duties() }).await;
        assert!(!report.ok && !found(&report, "database").ok, "{report:?}");
        let names: Vec<&str> = report.checks.iter().map(|check| check.name).collect();
        assert_eq!(
            names,
            ["database", "clock", "zoneData", "draining"],
            "an instance that only serves has no scheduler"
        );
    }

    #[tokio::test]
    async fn a_scheduler_must_have_looked_within_three_polls() {
        let clock = Arc::new(ManualClock::new(at(START)));
        let store = Arc::new(everbell_store::memory::MemoryStore::new());
        let bell = Everbell::builder().store(store).clock(Arc::clone(&clock) as _).build().await.unwrap();
        let pulse = Pulse::default();
        let check = async || found(&readiness(&bell, &pulse, &duties()).await, "scheduler").clone();
        assert_eq!(check().await, bad("scheduler", "has not looked for due jobs yet"));
        looked(&pulse, 0, Some(0));
        clock.set(at("2027-01-01T00:00:15Z"));
        assert_eq!(check().await, good("scheduler", "last looked for due jobs 15.0 s ago"));
        clock.set(at("2027-01-01T00:00:16Z"));
        looked(&pulse, 16, None);
        let stuck = "last looked for due jobs 16.0 s ago; expected every 5.0 s";
        assert_eq!(check().await, bad("scheduler", stuck), "a look that failed does not count");
        looked(&pulse, 16, Some(3));
        assert!(check().await.ok);
        pulse.observe(&Event::Draining(true));
        clock.set(at("2027-01-01T01:00:00Z"));
        assert!(check().await.ok, "who drains need not look");
        let report = readiness(&bell, &pulse, &duties()).await;
        assert!(!report.ok && !found(&report, "draining").ok, "{report:?}");
        pulse.observe(&Event::Draining(false));
        assert!(found(&readiness(&bell, &pulse, &duties()).await, "draining").ok);
    }

    #[test]
    fn the_clock_of_the_host_never_makes_it_unready() {
        let check = clock(SignedDuration::from_secs(-3_600), &ClockNews::default(), Duration::ZERO);
        assert_eq!(
            check,
            good("clock", "the host's clock is 3600.000 s behind the database's, which is authoritative")
        );
    }

    #[test]
    fn a_step_of_the_clock_is_named_for_an_hour() {
        let pulse = Pulse::default();
        let second = Duration::from_secs;
        pulse.observe(&Event::ClockStepped { by: SignedDuration::from_hours(-1), noticed: second(100) });
        let check = clock(SignedDuration::ZERO, &pulse.clock(), second(107));
        assert!(check.ok && check.detail.ends_with("; it was set back by 3600.0 s, 7 s ago"), "{check:?}");
        let check = clock(SignedDuration::ZERO, &pulse.clock(), second(4_000));
        assert!(!check.detail.contains("set back"), "{check:?}");
        pulse.observe(&Event::PruningHeld { trusted: Some(at(START)) });
        assert!(clock(SignedDuration::ZERO, &pulse.clock(), second(4_000)).detail.contains("pruned as of 2027-01-01"));
        pulse.observe(&Event::PruningHeld { trusted: None });
        assert!(!clock(SignedDuration::ZERO, &pulse.clock(), second(4_000)).detail.contains("pruned"));
    }

    #[test]
    fn a_heartbeat_that_is_not_written_makes_it_unready_and_says_why() {
        let pulse = Pulse::default();
        let second = Duration::from_secs;
        let check = |now| heartbeat(&pulse, second(5), second(now));
        assert_eq!(check(0), bad("heartbeat", "none written yet"));
        pulse.observe(&Event::Heartbeat { begun: second(10), error: None });
        assert_eq!(check(30), good("heartbeat", "written 20.0 s ago"));
        pulse.observe(&Event::Heartbeat { begun: second(29), error: Some("the disk is full".to_owned()) });
        let wanted = "written 21.0 s ago; expected every 5.0 s: the disk is full";
        assert_eq!(check(31), bad("heartbeat", wanted));
        pulse.observe(&Event::Heartbeat { begun: second(31), error: None });
        assert!(check(31).ok);
    }

    #[tokio::test]
    async fn a_job_that_is_due_and_that_no_instance_plans_is_named() {
        let builder = Everbell::builder().target("nothing", || async {});
        let hourly = Schedule::cron("hourly", "0 * * * *").target("nothing");
        let test = TestBell::start(builder.schedule(hourly), START).await;
        let store = test.bell().store();
        let mut instance = store.list_instances().await.unwrap().remove(0);
        for (now, is_ok) in [("01:00:15", true), ("01:00:16", false)] {
            let now = at(&format!("2027-01-01T{now}Z"));
            instance.heartbeat_at = now;
            store.heartbeat(&instance, None, false).await.unwrap();
            let clock = Arc::new(ManualClock::new(now));
            let bell = Everbell::builder().store(Arc::clone(store)).clock(clock as _).build().await.unwrap();
            let check = overdue(&bell, Duration::from_secs(20), DATABASE_TIMEOUT).await.unwrap();
            assert_eq!(check.ok, is_ok, "{check:?}");
            assert_eq!(check.detail.contains("`hourly` has been due for 16 s"), !is_ok, "{check:?}");
        }
        let clock = Arc::new(ManualClock::new(at("2027-01-01T02:00:00Z")));
        let bell = Everbell::builder().store(Arc::clone(store)).clock(clock as _).build().await.unwrap();
        let check = overdue(&bell, Duration::from_secs(20), DATABASE_TIMEOUT).await;
        assert_eq!(check, None, "no live instance serves it, which the doctor and the overview say");
    }
}
