//! How often a batch goes to the server and back. On few connections that decides how fast the way of a run is.

use everbell_core::store::{ClusterStore, Store};
use everbell_store::postgres::PostgresStore;
use everbell_store::testing::TestDatabase;

use super::postgres_proxy::Proxy;
use super::sqlite_world::{at, create, finish, plan_due, start};

/// The requests of a plan, a start and an end of two runs.
async fn requests(store: &dyn Store, proxy: &Proxy, hour: &str) -> [i64; 3] {
    let now = at(&format!("{hour}:00:00"));
    let mut so_far = proxy.requests();
    let mut more = || proxy.requests() - std::mem::replace(&mut so_far, proxy.requests());
    let planned = plan_due(store, now, 2).await.unwrap();
    let plan = more();
    let claims = start(store, 1, now, 2).await.unwrap();
    let start = more();
    let recorded = finish(store, &claims, now).await.unwrap();
    assert_eq!((planned.runs.len(), recorded.len()), (2, 2));
    [plan, start, more()]
}

#[tokio::test]
async fn a_batch_takes_nine_round_trips() {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(database.url()).await;
    let store = PostgresStore::connect(proxy.url()).await.unwrap();
    // Its listener is connected by then, and asks for nothing more.
    while !store.status().await.unwrap().notes.is_empty() {
        tokio::task::yield_now().await;
    }
    create(&store, "one", "0 * * * *").await;
    create(&store, "two", "0 * * * *").await;
    requests(&store, &proxy, "01").await;
    // Begin, timers, active runs, freezes, insert, advance, commit; start; end.
    assert_eq!(requests(&store, &proxy, "02").await, [7, 1, 1], "when statements are prepared and jobs are known");
}

#[tokio::test]
async fn runs_that_somebody_else_started_end_in_a_transaction() {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(database.url()).await;
    let other = PostgresStore::connect(database.url()).await.unwrap();
    let store = PostgresStore::connect(proxy.url()).await.unwrap();
    while !store.status().await.unwrap().notes.is_empty() {
        tokio::task::yield_now().await;
    }
    create(&store, "one", "0 * * * *").await;
    create(&store, "two", "0 * * * *").await;
    requests(&store, &proxy, "01").await;
    plan_due(&store, at("02:00:00"), 2).await.unwrap();
    let claims = start(&other, 1, at("02:00:00"), 2).await.unwrap();
    let so_far = proxy.requests();
    finish(&store, &claims, at("02:00:00")).await.unwrap();
    // Two of them prepare and send the question which jobs follow.
    assert_eq!(proxy.requests() - so_far, 5);
}
