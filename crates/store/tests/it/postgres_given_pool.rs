//! The PostgreSQL store in a pool of the application, of which it may use two connections.

use std::sync::Arc;

use everbell_core::store::Store;
use everbell_store::conformance::{Case, Database, Fresh};
use everbell_store::postgres::{PgPool, PostgresStore};
use everbell_store::testing::TestDatabase;
use sqlx::postgres::PgPoolOptions;

use crate::chosen::{family, sample};

struct Given {
    store: Arc<dyn Store>,
    pool: PgPool,
    _database: TestDatabase,
}

impl Given {
    async fn new() -> Given {
        let database = TestDatabase::create().await;
        let pool = PgPoolOptions::new().max_connections(4).connect(database.url()).await.unwrap();
        Given { store: open(&pool).await, pool, _database: database }
    }
}

async fn open(pool: &PgPool) -> Arc<dyn Store> {
    Arc::new(PostgresStore::from_pool(pool.clone()).await.unwrap())
}

#[async_trait::async_trait]
impl Database for Given {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn reconnect(&self) -> Arc<dyn Store> {
        open(&self.pool).await
    }
}

async fn keeps(cases: Vec<Case>) {
    for case in cases {
        (case.run)(Fresh::with(Given::new().await)).await;
    }
}

/// Statements and transactions go the same way through borrowed connections, whatever they say: a sample is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sample() {
    keeps(sample(4)).await;
}

/// Races meet fewer connections than they ask for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrency() {
    keeps(family("concurrency")).await;
}
