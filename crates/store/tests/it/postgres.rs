//! The PostgreSQL store: the contract, and what is PostgreSQL's own.

use std::sync::{Arc, Mutex};

use everbell_core::store::{ClusterStore, Store};
use everbell_store::conformance::faults::Fault;
use everbell_store::conformance::{Database, Fresh};
use everbell_store::postgres::PostgresStore;
use everbell_store::testing::TestDatabase;

use crate::postgres_proxy::Proxy;

struct OnServer {
    store: Arc<dyn Store>,
    database: TestDatabase,
    proxies: Mutex<Vec<Proxy>>,
}

#[async_trait::async_trait]
impl Database for OnServer {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn reconnect(&self) -> Arc<dyn Store> {
        Arc::new(PostgresStore::connect(self.database.url()).await.unwrap())
    }

    async fn failing(&self, fault: Fault) -> Option<Arc<dyn Store>> {
        let proxy = Proxy::start(self.database.url()).await;
        let store = PostgresStore::connect(proxy.url()).await.unwrap();
        // Its listener is connected by then, so that the next request is the store's.
        while !store.status().await.unwrap().notes.is_empty() {
            tokio::task::yield_now().await;
        }
        proxy.arm(fault);
        self.proxies.lock().unwrap().push(proxy);
        Some(Arc::new(store))
    }
}

async fn fresh() -> Fresh {
    let database = TestDatabase::create().await;
    let store = Arc::new(PostgresStore::connect(database.url()).await.unwrap());
    Fresh::with(OnServer { store, database, proxies: Mutex::default() })
}

everbell_store::conformance_tests!(fresh);
