//! Calls to SQLite that fail, connections that go, answers that are lost, callers that lose interest.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use everbell_core::store::{AccessStore, JobRef, JobStore, Store, StoreError};
use everbell_store::conformance;
use everbell_store::conformance::checkers::assert_sound;
use everbell_store::sqlite::{Fault, SqliteStore};

use super::sqlite::{Folder, in_file};
use super::sqlite_world::{LEASE, at, audit, create, finish, job, plan_due, start};

#[test]
fn a_connection_that_goes_inside_of_a_verb_loses_and_doubles_nothing() {
    conformance::run(in_file(Fault::Cut), conformance::faults::a_failure_inside_of_a_verb_loses_and_doubles_nothing);
}

/// A failed call leaves everything or nothing behind. If it may have taken effect, its error says so.
#[tokio::test]
async fn a_verb_that_fails_has_changed_nothing_or_says_that_it_may_have() {
    for fault in [Fault::Refused, Fault::Cut, Fault::Unheard] {
        let folder = Folder::new();
        let store = SqliteStore::open(&folder.file()).await.unwrap();
        for calls in 0.. {
            let new = job(&format!("job-{calls}"), "0 * * * *");
            let entry = audit(calls.into());
            store.fail_after(calls, fault);
            let answer = store.create_job(&new, &entry).await;
            if store.is_fault_pending() {
                assert!(answer.is_ok() && calls >= 5, "{fault:?} after {calls}: {answer:?}");
                break;
            }
            let Err(StoreError::Unavailable { maybe_done, .. }) = answer else { panic!("{calls}: {answer:?}") };
            let there = store.get_job(&JobRef::Id(new.definition.id)).await.is_ok();
            assert_eq!(there, fault == Fault::Unheard && maybe_done, "{fault:?} after {calls} calls");
            let audited = store.list_audit(None, &page()).await.unwrap().items.iter().any(|one| one.id == entry.id);
            assert_eq!(audited, there, "{fault:?} after {calls} calls");
        }
    }
}

fn page() -> everbell_core::store::PageRequest {
    everbell_core::store::PageRequest { limit: 1_000, after: None }
}

/// Plan, start and record, with a fault at every call of the three in turn; each is asked again until it is done.
#[tokio::test]
async fn the_way_of_a_run_survives_a_fault_at_every_call() {
    for fault in [Fault::Refused, Fault::Cut, Fault::Unheard] {
        let folder = Folder::new();
        let store = SqliteStore::open(&folder.file()).await.unwrap();
        for number in 0..5 {
            create(&store, &format!("job-{number}"), "* * * * *").await;
        }
        let mut now = at("00:00:00");
        for calls in 0.. {
            now += jiff::SignedDuration::from_mins(1);
            reap(&store, now).await;
            store.fail_after(calls, fault);
            while plan_due(&store, now, 100).await.is_err() {}
            let claims = loop {
                if let Ok(claims) = start(&store, 1, now, 100).await {
                    break claims;
                }
            };
            while finish(&store, &claims, now).await.is_err() {}
            if store.is_fault_pending() {
                assert!(calls >= 15, "only {calls} calls");
                break;
            }
        }
        // Without the fault that nobody met.
        let store = SqliteStore::open(&folder.file()).await.unwrap();
        let rounds = usize::try_from(now.duration_since(at("00:00:00")).as_mins()).unwrap();
        now += LEASE * 2;
        reap(&store, now).await;
        let snapshot = conformance::checkers::Snapshot::read(&store).await;
        assert_eq!(snapshot.runs.len(), 5 * rounds, "{fault:?}");
        assert_eq!(snapshot.unfinished_runs(), [""; 0]);
        assert_sound(&store).await;
    }
}

/// Claims whose answer was lost are found by their leases.
async fn reap(store: &dyn Store, now: jiff::Timestamp) {
    for lost in store.expired_leases(now, 100).await.unwrap() {
        let settled = everbell_core::settle::settle(&lost, everbell_core::settle::Outcome::Lost(None), now).unwrap();
        store.record(&[settled], now).await.unwrap();
    }
}

/// Polls at the most so often.
async fn impatient<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test]
async fn a_caller_that_is_gone_leaves_no_half_of_anything() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    for polls in 0..1_000 {
        let new = job(&format!("job-{polls}"), "0 * * * *");
        let entry = audit(polls as u128);
        let answer = impatient(polls, store.create_job(&new, &entry)).await;
        let there = store.get_job(&JobRef::Id(new.definition.id)).await.is_ok();
        let audited = store.list_audit(None, &page()).await.unwrap().items.iter().any(|one| one.id == entry.id);
        assert_eq!(audited, there, "after {polls} polls");
        if let Some(answer) = answer {
            assert!(answer.is_ok() && there, "{answer:?}");
            return;
        }
    }
    panic!("it never ends");
}
