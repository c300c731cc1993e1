//! Readiness: whether this process can do its work now, and what is in the way if not.

use std::time::Duration;

use everbell::Everbell;
use everbell_core::Zone;
use everbell_core::store::StoreStatus;
use jiff::SignedDuration;

use super::pulse::Pulse;

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many polls without a look for due timers, and the scheduler counts as stuck.
const MISSED_POLLS: u32 = 3;

/// What this process is meant to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duties {
    /// Whether it plans: its role says so, and it serves a target. Without any there is nothing to look for.
    pub(crate) schedules: bool,
    /// How often it looks at least.
    pub(crate) poll: Duration,
}

/// What `/readyz` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Whether every check is.
    pub(crate) ok: bool,
    pub(crate) checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) ok: bool,
    /// In words, also when it is well.
    pub(crate) detail: String,
}

/// Looks at everything that the work needs. Takes at most two seconds.
pub(crate) async fn readiness(bell: &Everbell, pulse: &Pulse, duties: &Duties) -> Report {
    let status = match tokio::time::timeout(PATIENCE, bell.store().status()).await {
        Ok(Ok(status)) => Ok(status),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    let mut checks = vec![database(status.as_ref())];
    checks.extend(status.ok().map(|status| schema(&status)));
    if duties.schedules {
        checks.push(scheduler(pulse, duties.poll, bell.clock().monotonic()));
    }
    checks.push(clock(bell.clock().host_skew()));
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
        Ok(status) if status.notes.is_empty() => good("database", status.product.clone()),
        Ok(status) => good("database", format!("{}; {}", status.product, status.notes.join("; "))),
        Err(why) => bad("database", why.clone()),
    }
}

/// A store with a schema that this binary does not know is not opened, so the version that it tells is a good one.
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
    let detail = format!("looked for due jobs {:.1} s ago", age.as_secs_f64());
    if age <= poll.saturating_mul(MISSED_POLLS) {
        good(NAME, detail)
    } else {
        bad(NAME, format!("{detail}, and should every {:.1} s", poll.as_secs_f64()))
    }
}

/// Told for people: time comes from the database, so a host whose clock is wrong works as well as any other.
fn clock(skew: SignedDuration) -> Check {
    let side = if skew.is_negative() { "behind" } else { "ahead of" };
    let seconds = skew.as_secs_f64().abs();
    good("clock", format!("the host's clock is {seconds:.3} s {side} the database's, which counts"))
}

fn draining(draining: bool) -> Check {
    if draining { bad("draining", "takes no more work") } else { good("draining", "takes work") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use everbell::testing::{ManualClock, TestBell};
    use everbell::{Event, Round, Schedule, Timestamp};
    use everbell_core::InstanceId;
    use everbell_store::memory::FaultPoint;

    use super::*;

    const START: &str = "2027-01-01T00:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn duties() -> Duties {
        Duties { schedules: true, poll: Duration::from_secs(5) }
    }

    /// A look of the planner, so many seconds after the start.
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
        assert_eq!(names, ["database", "schema", "scheduler", "clock", "zoneData", "draining"]);
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
        assert_eq!(check().await, good("scheduler", "looked for due jobs 15.0 s ago"));
        clock.set(at("2027-01-01T00:00:16Z"));
        looked(&pulse, 16, None);
        let stuck = "looked for due jobs 16.0 s ago, and should every 5.0 s";
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
        let check = clock(SignedDuration::from_secs(-3_600));
        assert_eq!(check, good("clock", "the host's clock is 3600.000 s behind the database's, which counts"));
    }
}
