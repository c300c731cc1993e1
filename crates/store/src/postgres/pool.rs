//! Connections with and without a pooler between.
//!
//! A pooler in transaction mode gives each transaction whichever connection to the server is free, so nothing may outlive
//! a transaction. Behind one (`pooler=transaction` in the address) every statement is unnamed, because a prepared one
//! would be looked for on another connection, and every statement is in a transaction, because an unnamed one takes two
//! messages that must reach the same connection. Settings are made for each transaction, in the message that begins it.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    AssertSqlSafe, Connection, Either, Execute, Executor, PgConnection, Postgres, SqlSafeStr, SqlStr, Transaction,
};

use super::lending::{Connections, Lent};

/// Connections to take turns with.
#[derive(Debug)]
pub(super) struct Pool {
    connections: Connections,
    begin: SqlStr,
    /// Then statements have no name, and none stands alone.
    behind_pooler: bool,
}

/// A transaction, and how its statements are sent.
#[derive(Debug)]
pub(super) struct Session<'t> {
    work: Work<'t>,
    unnamed: bool,
}

#[derive(Debug)]
enum Work<'t> {
    Own(Lent),
    /// A part of somebody else's.
    Inside(Transaction<'t, Postgres>),
}

impl Pool {
    pub(super) fn direct(connections: Connections) -> Pool {
        Pool { connections, begin: "begin".into_sql_str(), behind_pooler: false }
    }

    /// Behind a pooler in transaction mode, with these settings in each transaction.
    pub(super) fn behind_pooler(connections: Connections, settings: &[(&str, &str)]) -> Pool {
        let settings: Vec<String> =
            settings.iter().map(|(name, value)| format!("; set local {name} = {value}")).collect();
        let begin = AssertSqlSafe(format!("begin{}", settings.concat())).into_sql_str();
        Pool { connections, begin, behind_pooler: true }
    }

    pub(super) async fn begin(&self) -> sqlx::Result<Session<'static>> {
        let mut lent = self.connections.lend().await?;
        lent.begin(self.begin.clone()).await?;
        Ok(Session { work: Work::Own(lent), unnamed: self.behind_pooler })
    }

    /// For one statement, which is its own transaction where it can be.
    async fn alone(&self) -> sqlx::Result<Session<'static>> {
        if self.behind_pooler {
            return self.begin().await;
        }
        Ok(Session { work: Work::Own(self.connections.lend().await?), unnamed: false })
    }
}

impl<'t> Session<'t> {
    /// A part of somebody else's transaction: what it does is undone with it, or alone.
    pub(super) async fn inside(connection: &'t mut PgConnection, pool: &Pool) -> sqlx::Result<Session<'t>> {
        Ok(Session { work: Work::Inside(connection.begin().await?), unnamed: pool.behind_pooler })
    }

    pub(super) async fn commit(self) -> sqlx::Result<()> {
        match self.work {
            Work::Own(lent) => lent.end("commit").await,
            Work::Inside(transaction) => transaction.commit().await,
        }
    }

    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        match self.work {
            Work::Own(lent) => lent.end("rollback").await,
            Work::Inside(transaction) => transaction.rollback().await,
        }
    }

    fn connection(&mut self) -> &mut PgConnection {
        match &mut self.work {
            Work::Own(lent) => lent.connection(),
            Work::Inside(transaction) => transaction,
        }
    }
}

type Step = Either<PgQueryResult, PgRow>;

impl<'c> Executor<'c> for &'c mut Session<'_> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Step>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let unnamed = self.unnamed;
        self.connection().fetch_many(Sent { query, unnamed })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let unnamed = self.unnamed;
        self.connection().fetch_optional(Sent { query, unnamed })
    }

    fn prepare_with<'e>(self, sql: SqlStr, types: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        self.connection().prepare_with(sql, types)
    }
}

impl<'c> Executor<'c> for &'c Pool {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Step>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let work = async move {
            let mut session = self.alone().await?;
            let steps: Vec<Step> = session.fetch_many(query).try_collect().await?;
            session.commit().await?;
            Ok::<_, sqlx::Error>(stream::iter(steps.into_iter().map(Ok)))
        };
        stream::once(work).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let mut session = self.alone().await?;
            let row = session.fetch_optional(query).await?;
            session.commit().await?;
            Ok(row)
        })
    }

    fn prepare_with<'e>(self, sql: SqlStr, types: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let mut session = self.alone().await?;
            let statement = session.prepare_with(sql, types).await?;
            session.commit().await?;
            Ok(statement)
        })
    }
}

/// A query that may have no name on the server.
struct Sent<E> {
    query: E,
    unnamed: bool,
}

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Sent<E> {
    fn sql(self) -> SqlStr {
        self.query.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.query.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.query.take_arguments()
    }

    fn persistent(&self) -> bool {
        !self.unnamed && self.query.persistent()
    }
}
