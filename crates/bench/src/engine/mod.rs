//! The whole engine: how fast it drains what is due, how late runs start, and what it costs to do nothing.
#![allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]

mod drain;
mod idle;
mod instances;
mod lag;
mod options;
mod queue;
mod start;

use std::path::PathBuf;

use everbell_store::testing::{Durability, TestDatabase, postgres_url_with};

use self::options::Options;
use crate::population::Database;

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Measures and prints everything, or the parts that are named; `--quick` leaves out what takes minutes.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = Options::read(arguments)?;
    let server = postgres_url_with(Durability::Durable);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    let measure = async {
        if options.wants("drain") {
            drain::measure(&server, &options).await?;
        }
        if options.wants("instances") && options.postgres {
            instances::measure(&server, &options).await?;
        }
        if options.wants("lag") {
            lag::measure(&server).await?;
        }
        if options.wants("idle") {
            idle::measure(&server).await?;
        }
        if options.wants("start") {
            start::measure(&server, options.quick).await?;
        }
        if options.wants("queue") {
            queue::measure(&server, options.quick).await?;
        }
        Ok(())
    };
    runtime.block_on(measure).map_err(|error: Box<dyn std::error::Error>| error.to_string())
}

/// A database for one measurement.
pub(crate) enum Fresh {
    Postgres(TestDatabase),
    Sqlite(PathBuf),
}

impl Fresh {
    pub(crate) async fn both(server: &str) -> [(&'static str, Fresh); 2] {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("everbell-bench-engine-{}-{number}", std::process::id()));
        let database = TestDatabase::empty_on(server).await;
        [("PostgreSQL", Fresh::Postgres(database)), ("SQLite", Fresh::Sqlite(folder.join("bench.db")))]
    }

    /// Those of both that are wanted.
    async fn wanted(server: &str, options: &Options) -> impl Iterator<Item = (&'static str, Fresh)> {
        let (postgres, sqlite) = (options.postgres, options.sqlite);
        let is_wanted = move |(_, database): &(_, Fresh)| match database {
            Fresh::Postgres(_) => postgres,
            Fresh::Sqlite(_) => sqlite,
        };
        Fresh::both(server).await.into_iter().filter(is_wanted)
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Fresh::Postgres(database) => database.url().to_owned(),
            Fresh::Sqlite(path) => format!("sqlite:{}", path.display()),
        }
    }

    pub(crate) fn place(&self) -> Database<'_> {
        match self {
            Fresh::Postgres(database) => Database::Postgres(database.url()),
            Fresh::Sqlite(path) => Database::Sqlite(path),
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Fresh::Sqlite(path) = self
            && let Some(folder) = path.parent()
        {
            let _best_effort = std::fs::remove_dir_all(folder);
        }
    }
}
