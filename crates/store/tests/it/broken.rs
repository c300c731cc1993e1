//! A database in which a test breaks rows by hand, of each kind that keeps rows.

use std::sync::Arc;

use everbell_core::store::Store;
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::TestDatabase;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

use super::sqlite::Folder;

pub(super) enum Broken {
    InFile(Folder),
    OnServer(TestDatabase),
}

impl Broken {
    pub(super) fn in_file() -> Broken {
        Broken::InFile(Folder::new())
    }

    pub(super) async fn on_server() -> Broken {
        Broken::OnServer(TestDatabase::create().await)
    }

    /// A store that has read nothing before, like that of another process.
    pub(super) async fn open(&self) -> Arc<dyn Store> {
        match self {
            Broken::InFile(folder) => Arc::new(SqliteStore::open(&folder.file()).await.unwrap()),
            Broken::OnServer(database) => Arc::new(PostgresStore::connect(database.url()).await.unwrap()),
        }
    }

    /// Damages the database, with SQL that both understand but for the names of tables: `everbell.jobs` is
    /// `everbell_jobs` on SQLite.
    pub(super) async fn run(&self, sql: &'static str) {
        match self {
            Broken::InFile(folder) => {
                let options = SqliteConnectOptions::new().filename(folder.file()).foreign_keys(false);
                let sql = AssertSqlSafe(sql.replace("everbell.", "everbell_"));
                sqlx::raw_sql(sql).execute(&mut options.connect().await.unwrap()).await.unwrap();
            }
            Broken::OnServer(database) => {
                let mut connection = PgConnection::connect(database.url()).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            }
        }
    }
}

/// Each case as a test of both databases.
macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case($crate::broken::Broken::in_file()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $case() {
                super::$case($crate::broken::Broken::on_server().await).await;
            })*
        }
    };
}
pub(super) use on_both;
