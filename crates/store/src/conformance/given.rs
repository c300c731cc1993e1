//! Jobs, times and requests for cases, from short texts. Nothing here is random: names and numbers make ids.

use std::sync::atomic::{AtomicU64, Ordering};

use everbell_core::org::OrgWrite;
use everbell_core::plan::Plan;
use everbell_core::settle::Settling;
use everbell_core::store::{AuditEntry, Claim, Due, Instance, PageRequest, StoreError, StoreResult};
use everbell_core::{
    Definition, InstanceId, JobId, JobKey, Json, OrgId, Policies, PolicyValues, Run, RunId, Scope, Spec, Target,
    Trigger, Zone,
};
use jiff::Timestamp;
use uuid::Uuid;

/// The target of the suite's jobs, unless they name another.
pub(super) const LOG: &str = "log";
/// A second target.
pub(super) const MAIL: &str = "mail";

/// `12:00` of the day on which cases play, or a whole timestamp.
pub(super) fn at(text: &str) -> Timestamp {
    let whole = if text.contains('T') { text.to_owned() } else { format!("2026-11-15T{text}Z") };
    let whole = if whole.len() == "2026-11-15T12:00Z".len() { whole.replace('Z', ":00Z") } else { whole };
    whole.parse().unwrap_or_else(|error| panic!("`{whole}` is no time: {error}"))
}

/// A job of version 1, made at midnight, that logs. The schedule is `<expression> [in <zone>]` or `once <time>`.
pub(super) fn job(key: &str, schedule: &str) -> Definition {
    job_at(key, schedule, at("00:00"))
}

/// A job that was created at this time.
pub(super) fn job_at(key: &str, schedule: &str, created_at: Timestamp) -> Definition {
    let (expression, zone) = schedule.split_once(" in ").unwrap_or((schedule, "UTC"));
    let zone = Zone::get(zone).unwrap();
    let spec = match expression.strip_prefix("once ") {
        Some(time) => Spec::once(at(time), zone).unwrap(),
        None => Spec::recurring(expression.parse().unwrap(), zone, created_at),
    };
    everbell_core::with!(Definition {
        labels: std::collections::BTreeMap::new(),
        created_by: "ana".to_owned(),
        ..Definition::new(job_id(key, 1), JobKey::new(key).unwrap(), target(LOG), Ok(spec), created_at)
    })
}

/// With other policies.
pub(super) fn with(definition: Definition, change: impl FnOnce(&mut PolicyValues)) -> Definition {
    let mut values = (*definition.policies).clone();
    change(&mut values);
    everbell_core::with!(Definition { policies: Policies::new(values).unwrap(), ..definition })
}

/// With another target.
pub(super) fn to(definition: Definition, label: &str) -> Definition {
    everbell_core::with!(Definition { target: target(label), ..definition })
}

/// A job with a timer for each org.
pub(super) fn per_org(definition: Definition) -> Definition {
    everbell_core::with!(Definition { scope: Scope::PerOrg, ..definition })
}

pub(super) fn org_id(name: &str) -> OrgId {
    OrgId::new(name).unwrap()
}

/// An org in this zone.
pub(super) fn org(name: &str, zone: &str) -> OrgWrite {
    OrgWrite { timezone: Some(zone.to_owned()), ..OrgWrite::new(org_id(name)) }
}

pub(super) fn job_id(key: &str, version: u32) -> JobId {
    JobId::new(at("00:00"), tail(&format!("{key}@{version}")))
}

pub(super) fn target(label: &str) -> Target {
    Target::new(label).unwrap()
}

pub(super) fn json(text: &str) -> Json {
    Json::parse("payload", text).unwrap()
}

pub(super) fn instance_id(number: u8) -> InstanceId {
    InstanceId::new(at("00:00"), [number; 10])
}

/// An instance with its last heartbeat at `heartbeat_at`.
pub(super) fn instance(number: u8, heartbeat_at: Timestamp) -> Instance {
    everbell_core::with!(Instance {
        roles: vec!["scheduler".to_owned(), "api".to_owned()],
        targets: vec![target(LOG)],
        heartbeat_at,
        clock_skew_ms: -3,
        ..Instance::new(
            instance_id(number),
            format!("host-{number}"),
            1_000 + u32::from(number),
            "0.1.0".to_owned(),
            at("00:00")
        )
    })
}

/// The id of a run by hand.
pub(super) fn by_hand(requested_at: Timestamp, name: &str) -> RunId {
    RunId::by_hand(requested_at, tail(name))
}

/// A trial of a target: a run that belongs to no job.
pub(super) fn trial(name: &str, label: &str, requested_at: Timestamp) -> Run {
    let trigger = Trigger::AdHoc("ana".to_owned());
    let mut run = Run::new(by_hand(requested_at, name), target(label), trigger, requested_at, requested_at);
    run.payload = json(r#"{"trial":true}"#);
    run
}

/// A new entry: no two have the same id, and later ones sort after earlier ones of the same time.
pub(super) fn audit(action: &str, object: &str, at: Timestamp) -> AuditEntry {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut tail = [0; 10];
    tail[2..].copy_from_slice(&NUMBER.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    AuditEntry {
        id: time_ordered(at, tail),
        at,
        actor: "ana".to_owned(),
        action: action.to_owned(),
        object: object.to_owned(),
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: everbell_core::store::Origin::default(),
    }
}

pub(super) fn page(limit: u32) -> PageRequest {
    PageRequest { limit, after: None }
}

/// Plans a timer that is due, as the engine does.
pub(super) fn core_plan(due: &Due, now: Timestamp) -> Plan {
    due.plan(now)
}

/// Describes a claim to `settle`, as the engine does.
pub(super) fn settling(claim: &Claim) -> Settling {
    let policies = claim.job.as_ref().map(|job| &job.policies);
    Settling::new(claim.run.id, claim.run.status, claim.run.attempt, policies).after(claim.run.earlier_attempts.clone())
}

/// Returns the kind of an error, in one word.
pub(super) fn kind(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable { .. } => "unavailable",
        StoreError::Conflict { .. } => "conflict",
        StoreError::Stale { .. } => "stale",
        StoreError::NotFound { .. } => "not found",
        StoreError::Invalid(_) => "invalid",
        StoreError::Corrupt { .. } => "corrupt",
        _ => "another one",
    }
}

/// Fails unless the answer is an error of this kind.
#[track_caller]
pub(super) fn assert_refused<T: std::fmt::Debug>(answer: StoreResult<T>, expected: &str) {
    match answer {
        Ok(answer) => panic!("expected an error, `{expected}`, and got {answer:?}"),
        Err(error) => assert_eq!(kind(&error), expected, "{error}"),
    }
}

/// An id like those of core: the time, then bytes that distinguish it from others of that time.
pub(super) fn time_ordered(at: Timestamp, tail: [u8; 10]) -> Uuid {
    RunId::by_hand(at, tail).as_uuid()
}

/// 80 bits that a name decides: FNV-1a, twice.
fn tail(name: &str) -> [u8; 10] {
    let hash =
        |seed: u64| name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut tail = [0; 10];
    tail[..8].copy_from_slice(&hash(0xcbf2_9ce4_8422_2325).to_be_bytes());
    tail[8..].copy_from_slice(&hash(17).to_be_bytes()[..2]);
    tail
}
