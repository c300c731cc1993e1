//! The database of an experiment, and looking at it past the servers.

use std::path::{Path, PathBuf};

use everbell_store::conformance::checkers::Snapshot;
use everbell_store::testing::{OwnServer, OwnSetup, TestDatabase, postgres_url};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::runtime::Runtime;

use super::Outcome;

/// The database under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A private PostgreSQL.
    Postgres,
    /// A file.
    Sqlite,
}

impl Engine {
    /// As it is written on the command line.
    pub(crate) fn read(name: &str) -> Option<Engine> {
        match name {
            "postgres" => Some(Engine::Postgres),
            "sqlite" => Some(Engine::Sqlite),
            _ => None,
        }
    }
}

/// A database that goes with the experiment.
pub(crate) struct Database {
    kind: Kind,
    runtime: Runtime,
}

enum Kind {
    Shared(TestDatabase),
    Own(OwnServer),
    Sqlite(PathBuf),
}

impl Database {
    /// An empty database on the server that all experiments share, or a file in this folder.
    pub(crate) fn create(engine: Engine, folder: &Path) -> Outcome<Database> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let kind = match engine {
            Engine::Postgres => Kind::Shared(runtime.block_on(TestDatabase::empty_on(&postgres_url()))),
            Engine::Sqlite => Kind::Sqlite(folder.join("everbell.db")),
        };
        Ok(Database { kind, runtime })
    }

    /// A dedicated PostgreSQL server.
    pub(crate) fn own(setup: &OwnSetup) -> Outcome<Database> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Database { kind: Kind::Own(OwnServer::start_with(setup)), runtime })
    }

    pub(crate) fn url(&self) -> String {
        match &self.kind {
            Kind::Shared(database) => database.url().to_owned(),
            Kind::Own(server) => server.url().to_owned(),
            Kind::Sqlite(path) => format!("sqlite:{}", path.display()),
        }
    }

    /// The socket of the server; none for a file.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        let url = self.url();
        let (_, folder) = url.split_once("?host=")?;
        Some(Path::new(folder).join(".s.PGSQL.5432"))
    }

    /// The name of the database on its server.
    pub(crate) fn name(&self) -> &str {
        match &self.kind {
            Kind::Shared(database) => database.name(),
            Kind::Own(_) => "postgres",
            Kind::Sqlite(_) => "main",
        }
    }

    /// The log of the server.
    pub(crate) fn log(&self) -> String {
        everbell_store::testing::postgres_log(&self.url()).unwrap_or_default()
    }

    /// Every job, run and gap.
    pub(crate) fn snapshot(&self) -> Outcome<Snapshot> {
        self.runtime.block_on(async {
            let store = everbell_store::connect(&self.url()).await?;
            Ok(Snapshot::read(&*store).await)
        })
    }

    /// One number, past the servers.
    pub(crate) fn number(&self, sql: &str) -> Outcome<i64> {
        self.runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.url()).await?;
            let number = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut connection).await?;
            connection.close().await?;
            Ok(number)
        })
    }

    /// Statements, past the servers.
    pub(crate) fn execute(&self, sql: &str) -> Outcome<()> {
        self.session()?.execute(sql)
    }

    /// A foreign session, which may hold locks.
    pub(crate) fn session(&self) -> Outcome<Foreign<'_>> {
        let connection = self.runtime.block_on(PgConnection::connect(&self.url()))?;
        Ok(Foreign { runtime: &self.runtime, connection })
    }
}

/// A session that everbell knows nothing of.
pub(crate) struct Foreign<'a> {
    runtime: &'a Runtime,
    connection: PgConnection,
}

impl Foreign<'_> {
    pub(crate) fn execute(&mut self, sql: &str) -> Outcome<()> {
        self.runtime.block_on(self.connection.execute(AssertSqlSafe(sql.to_owned())))?;
        Ok(())
    }
}
