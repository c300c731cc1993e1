//! Jitter: the same on every instance, within its bound, never past the next slot.

use std::time::Duration;

use everbell_core::{JobId, OrgId, fire_at, idempotency_key};
use jiff::{SignedDuration, Timestamp};

use crate::given;

#[test]
fn a_slot_has_one_fire_time_everywhere() {
    let job = given::job("0 * * * *", "", "2026-11-15T08:00:00Z".parse().unwrap());
    let spec = job.spec.as_ref().unwrap();
    let slot: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let fire = |most| fire_at(spec, job.id, None, slot, Duration::from_secs(most)).to_string();
    assert_eq!(fire(0), "2026-11-15T12:00:00Z");
    // Instances of different releases must agree, so these never change.
    assert_eq!(fire(600), "2026-11-15T12:06:50.325Z");
}

#[test]
fn jitter_spreads_but_keeps_the_order_of_slots() {
    let job = given::job("*/5 * * * *", "", "2026-11-15T08:00:00Z".parse().unwrap());
    let spec = job.spec.as_ref().unwrap();
    let most = Duration::from_hours(24);
    let mut delays = Vec::new();
    let mut previous = Timestamp::MIN;
    for slot in spec.slots_after("2026-11-15T08:00:00Z".parse().unwrap()).take(500) {
        let fire = fire_at(spec, job.id, None, slot, most);
        assert!(fire >= slot && fire < slot + SignedDuration::from_secs(300), "{slot}: {fire}");
        assert!(fire > previous);
        previous = fire;
        delays.push(fire.duration_since(slot).as_secs());
    }
    let (low, high) = (delays.iter().filter(|s| **s < 100).count(), delays.iter().filter(|s| **s >= 200).count());
    assert!(
        (100..250).contains(&low) && (100..250).contains(&high),
        "spread over the interval: {low} low, {high} high"
    );
}

#[test]
fn jobs_and_orgs_differ() {
    let job = given::job("0 * * * *", "", "2026-11-15T08:00:00Z".parse().unwrap());
    let spec = job.spec.as_ref().unwrap();
    let slot: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let most = Duration::from_mins(50);
    let org = OrgId::new("acme").unwrap();
    let other = JobId::new(slot, [8; 10]);
    let mut fires = [
        fire_at(spec, job.id, None, slot, most),
        fire_at(spec, other, None, slot, most),
        fire_at(spec, job.id, Some(&org), slot, most),
    ];
    fires.sort_unstable();
    assert!(fires.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn the_idempotency_key_names_the_slot() {
    let job = given::job("0 * * * *", "", "2026-11-15T08:00:00Z".parse().unwrap());
    let slot: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let id = everbell_core::RunId::for_slot(job.id, None, slot);
    let org = OrgId::new("acme").unwrap();
    assert_eq!(idempotency_key(Some(&job.key), None, Some(slot), id), "schedule:job:1794744000");
    assert_eq!(idempotency_key(Some(&job.key), Some(&org), Some(slot), id), "schedule:job:1794744000:acme");
    assert_eq!(idempotency_key(Some(&job.key), None, None, id), format!("run:{id}"));
}
