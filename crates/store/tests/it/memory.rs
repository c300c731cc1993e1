//! The model in memory keeps the contract that it is the model of; and what only the model can do.

use std::sync::Arc;

use everbell_core::store::{AccessStore, ClusterStore, RequestKey, StoreError};
use everbell_store::conformance::Fresh;
use everbell_store::memory::{FaultPoint, MemoryStore};

async fn fresh() -> Fresh {
    Fresh::new(Arc::new(MemoryStore::new()))
}

everbell_store::conformance_tests!(fresh);

#[tokio::test]
async fn its_clock_is_set_by_hand() {
    let store = MemoryStore::new();
    store.set_now("2026-11-15T12:00:00.123456789Z".parse().unwrap());
    assert_eq!(store.now().await.unwrap().to_string(), "2026-11-15T12:00:00.123456Z");
}

#[tokio::test]
async fn the_next_call_can_be_made_to_fail() {
    let store = MemoryStore::new();
    let now = store.now().await.unwrap();
    let request = RequestKey { key: "key".to_owned(), fingerprint: [1; 32] };
    let answer = async || store.remember_answer(&request, (200, ""), now).await.map_err(|error| error.to_string());
    let found = async || format!("{:?}", store.find_request(&request, now).await);
    store.fail_next(FaultPoint::Before);
    assert!(answer().await.unwrap_err().starts_with("the database is not available"));
    assert_eq!(found().await, "Ok(New)", "nothing had happened, and only one call fails");
    store.fail_next(FaultPoint::After);
    assert!(answer().await.unwrap_err().contains("may have happened"));
    assert_eq!(found().await, "Ok(Answered(200, \"\"))", "it had happened");
    store.fail_next(FaultPoint::After);
    let error = store.now().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { maybe_done: true, .. }) && error.is_transient());
}
