//! The checkers of the suite complain about what they are for, and its list has every case.

use std::collections::BTreeSet;
use std::path::Path;

use everbell_core::{JobStatus, RunId};
use everbell_store::conformance::cases;
use everbell_store::conformance::checkers::Snapshot;
use everbell_store::memory::MemoryStore;

use super::sqlite_world::{at, create, finish, plan_due, start};

/// A job with a gap and two runs, of which the first has ended.
async fn sound() -> Snapshot {
    let store = MemoryStore::new();
    create(&store, "hourly", "0 * * * *").await;
    let now = at("03:00:05");
    plan_due(&store, now, 10).await.unwrap();
    let claims = start(&store, 1, now, 10).await.unwrap();
    finish(&store, &claims, now).await.unwrap();
    plan_due(&store, at("04:00:00"), 10).await.unwrap();
    Snapshot::read(&store).await
}

#[track_caller]
fn assert_complains(snapshot: &Snapshot, about: &str) {
    let complaints = snapshot.complaints();
    assert!(complaints.iter().any(|complaint| complaint.contains(about)), "not `{about}` but {complaints:?}");
}

#[tokio::test]
async fn a_sound_store_gives_no_reason_to_complain() {
    let snapshot = sound().await;
    assert_eq!(snapshot.complaints(), [""; 0]);
    assert_eq!(snapshot.unfinished_runs().len(), 1);
}

#[tokio::test]
async fn a_lost_slot_is_seen() {
    let mut snapshot = sound().await;
    snapshot.runs.pop();
    assert_complains(&snapshot, "03:00:00Z of hourly@1 is in 0 run(s) and 0 gap(s)");
    let mut snapshot = sound().await;
    snapshot.gaps.clear();
    assert_complains(&snapshot, "02:00:00Z of hourly@1 is in 0 run(s)");
}

#[tokio::test]
async fn a_doubled_slot_is_seen() {
    let mut snapshot = sound().await;
    snapshot.gaps[0].2.last_slot_at = at("03:00:00");
    assert_complains(&snapshot, "03:00:00Z of hourly@1 is in 1 run(s) and 1 gap(s)");
    let mut snapshot = sound().await;
    let mut twin = snapshot.runs[0].clone();
    twin.id = RunId::by_hand(at("03:00:00"), [1; 10]);
    snapshot.runs.push(twin);
    assert_complains(&snapshot, "has the runs");
}

#[tokio::test]
async fn a_run_that_is_no_slot_or_beyond_the_mark_is_seen() {
    for slot in ["03:30:00", "05:00:00"] {
        let mut snapshot = sound().await;
        let mut stray = snapshot.runs[0].clone();
        stray.id = RunId::by_hand(at(slot), [2; 10]);
        stray.slot_at = Some(at(slot));
        snapshot.runs.push(stray);
        assert_complains(&snapshot, "beyond the mark or no slot");
    }
}

#[tokio::test]
async fn contradictions_are_seen() {
    let mut snapshot = sound().await;
    snapshot.runs[0].lease_until = Some(at("05:00:00"));
    assert_complains(&snapshot, "impossible");
    let mut snapshot = sound().await;
    snapshot.jobs[0].job.state.status = JobStatus::Retired;
    assert_complains(&snapshot, "is retired and armed");
    let mut snapshot = sound().await;
    snapshot.jobs.push(snapshot.jobs[0].clone());
    assert_complains(&snapshot, "two living versions");
}

#[test]
fn every_case_of_every_file_is_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let mut written = BTreeSet::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let Some(family) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let names = text.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split_once("(fresh: Fresh)"));
        written.extend(names.map(|(name, _)| format!("{family}::{name}")));
    }
    let listed: BTreeSet<String> = cases().iter().map(|case| format!("{case:?}")).collect();
    assert!(listed.len() > 200, "only {} cases", listed.len());
    let difference: Vec<_> = written.symmetric_difference(&listed).collect();
    assert!(difference.is_empty(), "in one of files and list only: {difference:?}");
}
