//! SQLite keeps the contract, in a file and in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use everbell_core::store::Store;
use everbell_store::conformance::faults::Fault;
use everbell_store::conformance::{Database, Fresh};
use everbell_store::memory::FaultPoint;
use everbell_store::sqlite::{self, SqliteStore};

/// A folder of one test, gone with it.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("everbell-sqlite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // No test survives a crash of the machine, so none has to wait for a disk.
        let memory = Some(PathBuf::from("/dev/shm")).filter(|path| path.is_dir());
        let path = memory.unwrap_or_else(std::env::temp_dir).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn file(&self) -> PathBuf {
        self.0.join("everbell.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left in a folder for temporary files does not fail a test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A database in a file, and what a fault before a call looks like.
struct InFile {
    store: Arc<SqliteStore>,
    folder: Folder,
    before: sqlite::Fault,
}

#[async_trait]
impl Database for InFile {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn reconnect(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.folder.file()).await.unwrap())
    }

    async fn failing(&self, fault: Fault) -> Option<Arc<dyn Store>> {
        let store = SqliteStore::open(&self.folder.file()).await.unwrap();
        let how = if fault.point == FaultPoint::Before { self.before } else { sqlite::Fault::Unheard };
        store.fail_after(fault.at, how);
        Some(Arc::new(store))
    }
}

pub(super) async fn in_file(before: sqlite::Fault) -> Fresh {
    let folder = Folder::new();
    let store = Arc::new(SqliteStore::open(&folder.file()).await.unwrap());
    Fresh::with(InFile { store, folder, before })
}

mod file {
    use super::{Fresh, in_file, sqlite};

    async fn fresh() -> Fresh {
        in_file(sqlite::Fault::Refused).await
    }

    everbell_store::conformance_tests!(fresh);
}

/// A database in memory differs from a file in how connections share it; the rest is the same code.
mod in_memory {
    use everbell_store::conformance::cases;

    use super::{Arc, Fresh, SqliteStore};

    async fn run_family(family: &str) {
        for case in cases().iter().filter(|case| case.family == family) {
            (case.run)(Fresh::new(Arc::new(SqliteStore::in_memory().await.unwrap()))).await;
        }
    }

    macro_rules! families {
        ($($family:ident)+) => {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $family() {
                run_family(stringify!($family)).await;
            })+
        };
    }

    families! { jobs change planning recording concurrency races text waking }
}
