//! Jobs, and a little engine for tests of SQLite alone.

use everbell_core::change::{self, NewJob};
use everbell_core::plan::Plan;
use everbell_core::settle::{Outcome, Settling, Transition, settle};
use everbell_core::store::{
    AuditEntry, Claim, Due, PlanDue, Planned, Recorded, StartRuns, Store, StoreResult, TargetRoom,
};
use everbell_core::{Definition, InstanceId, JobId, JobKey, RunStatus, Spec, Target, Zone};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

pub(super) const LEASE: SignedDuration = SignedDuration::from_secs(30);

pub(super) fn at(time: &str) -> Timestamp {
    format!("2026-11-15T{time}Z").parse().unwrap()
}

pub(super) fn target() -> Target {
    Target::new("log").unwrap()
}

/// A job that was made at midnight.
pub(super) fn job(key: &str, expression: &str) -> NewJob {
    let mut tail = [0; 10];
    let end = key.len().min(10);
    tail[..end].copy_from_slice(&key.as_bytes()[key.len() - end..]);
    let created_at = at("00:00:00");
    change::create(everbell_core::with!(Definition {
        created_by: "ana".to_owned(),
        ..Definition::new(
            JobId::new(created_at, tail),
            JobKey::new(key).unwrap(),
            target(),
            Ok(Spec::recurring(expression.parse().unwrap(), Zone::get("UTC").unwrap(), created_at)),
            created_at
        )
    }))
}

pub(super) fn audit(number: u128) -> AuditEntry {
    AuditEntry {
        id: Uuid::from_u128(number),
        at: at("00:00:00"),
        actor: "ana".to_owned(),
        action: "job.create".to_owned(),
        object: "job".to_owned(),
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: everbell_core::store::Origin::default(),
    }
}

pub(super) async fn create(store: &dyn Store, key: &str, expression: &str) -> JobId {
    let new = job(key, expression);
    let number = new.definition.id.as_uuid().as_u128();
    store.create_job(&new, &audit(number)).await.unwrap().job.definition.id
}

fn decide(due: &Due, now: Timestamp) -> Plan {
    due.plan(now)
}

pub(super) async fn plan_due(store: &dyn Store, now: Timestamp, limit: u32) -> StoreResult<Planned> {
    store.plan_due(&PlanDue::new(now, limit, &[target()]), &decide).await
}

pub(super) async fn start(store: &dyn Store, instance: u8, now: Timestamp, limit: u32) -> StoreResult<Vec<Claim>> {
    let targets = [TargetRoom { target: target(), room: limit, backfills: true }];
    let instance = InstanceId::new(at("00:00:00"), [instance; 10]);
    store.start_runs(&StartRuns { instance, targets: &targets, limit, now, lease_until: now + LEASE }).await
}

pub(super) async fn finish(store: &dyn Store, claims: &[Claim], now: Timestamp) -> StoreResult<Vec<Recorded>> {
    let transitions: Vec<Transition> = claims.iter().filter_map(|claim| success(claim, now)).collect();
    store.record(&transitions, now).await
}

fn success(claim: &Claim, now: Timestamp) -> Option<Transition> {
    let settling = Settling::new(claim.run.id, RunStatus::Running, claim.run.attempt, None);
    settle(&settling, Outcome::Succeeded { result: None }, now)
}
