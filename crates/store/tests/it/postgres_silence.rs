//! A network that falls silent, or a process that is frozen: the connections stay open, and nothing arrives any more. The
//! server has to notice by itself, because locked rows are skipped by everybody else.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::{ClusterStore, StoreError};
use everbell_store::postgres::PostgresStore;
use everbell_store::testing::TestDatabase;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::postgres_proxy::Proxy;
use super::sqlite_world::{at, create, finish, plan_due, start};

/// Ample on a busy machine, and far less than what a silent neighbor used to cost: minutes, or hours.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(25);

struct Pair {
    _database: TestDatabase,
    proxy: Proxy,
    silent: Arc<PostgresStore>,
    healthy: PostgresStore,
}

impl Pair {
    /// Two instances of one database with two jobs; the first instance is behind a proxy, and its statements are prepared.
    async fn new() -> Pair {
        let database = TestDatabase::create().await;
        let proxy = Proxy::start(database.url()).await;
        let silent = Arc::new(PostgresStore::connect(proxy.url()).await.unwrap());
        let healthy = PostgresStore::connect(database.url()).await.unwrap();
        while !silent.status().await.unwrap().notes.is_empty() {
            tokio::task::yield_now().await;
        }
        create(&*silent, "one", "0 * * * *").await;
        create(&*silent, "two", "0 * * * *").await;
        plan_due(&*silent, at("01:00:00"), 10).await.unwrap();
        let claims = start(&*silent, 1, at("01:00:00"), 10).await.unwrap();
        finish(&*silent, &claims, at("01:00:01")).await.unwrap();
        Pair { _database: database, proxy, silent, healthy }
    }
}

/// Falls silent after one request of a claim; the other instance plans both timers soon after.
async fn silence_in_a_claim(request: u32) {
    let pair = Pair::new().await;
    pair.proxy.silence_after(request);
    let silent = Arc::clone(&pair.silent);
    let claim = tokio::spawn(async move { plan_due(&*silent, at("02:00:00"), 10).await });
    pair.proxy.fell_silent().await;
    let began = Instant::now();
    while pair.healthy.counts(at("02:00:00")).await.unwrap().due_timers > 0 {
        assert!(began.elapsed() < MAX_ANSWER_TIME, "after request {request} the timers stay locked");
        plan_due(&pair.healthy, at("02:00:00"), 10).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ended = timeout(MAX_ANSWER_TIME, claim).await.expect("the silent instance gives up").unwrap();
    assert!(matches!(ended, Err(StoreError::Unavailable { .. })), "{ended:?}");
    // Each slot has one run, whoever planned it.
    let claims = start(&pair.healthy, 2, at("02:00:00"), 10).await.unwrap();
    assert_eq!(claims.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_instance_that_falls_silent_in_a_claim_holds_nobody_up() {
    let mut cases = JoinSet::new();
    for request in 0..6 {
        cases.spawn(silence_in_a_claim(request));
    }
    while let Some(case) = cases.join_next().await {
        case.unwrap();
    }
}
