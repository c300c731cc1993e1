//! [`Fresh`]: an empty store for one case, and how a case is run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use everbell_core::store::Store;

use super::faults::Fault;

/// Something that holds a store's data: a database for one test, a file, or nothing but memory.
#[async_trait]
pub trait Database: Send + Sync {
    /// The store that a case works with.
    fn store(&self) -> Arc<dyn Store>;

    /// Another instance over the same data, as another process would open it. A store that cannot be opened twice
    /// answers with itself.
    async fn reconnect(&self) -> Arc<dyn Store> {
        self.store()
    }

    /// An instance over the same data that fails from inside, once, at this call: `at` counts what reaches the database,
    /// such as statements and commits. `None`: this store has no such place, and [`super::faults`] fails whole verbs.
    async fn failing(&self, fault: Fault) -> Option<Arc<dyn Store>> {
        let _ = fault;
        None
    }
}

/// An empty store. Its data goes when the last clone is dropped.
#[derive(Clone)]
pub struct Fresh {
    database: Arc<dyn Database>,
}

impl Fresh {
    /// A store that is its own and only connection.
    pub fn new(store: Arc<dyn Store>) -> Fresh {
        Fresh::with(Alone(store))
    }

    /// A database that can be connected to more than once, and that cleans up when it is dropped.
    pub fn with(database: impl Database + 'static) -> Fresh {
        Fresh { database: Arc::new(database) }
    }

    /// The store that a case works with.
    pub fn store(&self) -> Arc<dyn Store> {
        self.database.store()
    }

    /// Another instance over the same data.
    pub async fn reconnect(&self) -> Arc<dyn Store> {
        self.database.reconnect().await
    }

    /// An instance over the same data that fails from inside, if there is such a thing.
    pub async fn failing(&self, fault: Fault) -> Option<Arc<dyn Store>> {
        self.database.failing(fault).await
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fresh").field(&self.store()).finish()
    }
}

struct Alone(Arc<dyn Store>);

impl Database for Alone {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0)
    }
}

/// A case that is ready to be run.
pub type CaseFn = fn(Fresh) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// A case and what it is called.
#[derive(Clone, Copy)]
pub struct Case {
    /// The file that it stands in, such as `jobs`.
    pub family: &'static str,
    /// The sentence that it proves.
    pub name: &'static str,
    /// The case itself.
    pub run: CaseFn,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.family, self.name)
    }
}

/// Runs one case on a store, on a new runtime with several threads.
pub fn run<F: Future<Output = ()>>(fresh: impl Future<Output = Fresh>, case: impl FnOnce(Fresh) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.unwrap().block_on(async { case(fresh.await).await });
}
