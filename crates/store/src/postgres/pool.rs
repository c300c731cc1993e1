//! Connections with and without a pooler between.
//!
//! A pooler in transaction mode gives each transaction whichever connection to the server is free, so nothing may outlive
//! a transaction. Behind one (`pooler=transaction` in the address) every statement is unnamed, because a prepared one
//! would be looked for on another connection, and every statement is in a transaction, because an unnamed one takes two
//! messages that must reach the same connection. Settings are made for each transaction, in the message that begins it.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgPool, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{AssertSqlSafe, Connection, Either, Execute, Executor, PgConnection, Postgres, SqlStr, Transaction};

/// Connections to take turns with.
#[derive(Debug)]
pub(super) struct Pool {
    connections: PgPool,
    /// What begins a transaction behind a pooler; without one, statements are named and may stand alone.
    begin: Option<String>,
}

/// A transaction, and how its statements are sent.
#[derive(Debug)]
pub(super) struct Session<'t> {
    transaction: Transaction<'t, Postgres>,
    unnamed: bool,
}

impl Pool {
    pub(super) fn direct(connections: PgPool) -> Pool {
        Pool { connections, begin: None }
    }

    /// Behind a pooler in transaction mode, with these settings in each transaction.
    pub(super) fn behind_pooler(connections: PgPool, settings: &[(&str, &str)]) -> Pool {
        let settings: Vec<String> =
            settings.iter().map(|(name, value)| format!("; set local {name} = {value}")).collect();
        Pool { connections, begin: Some(format!("begin{}", settings.concat())) }
    }

    pub(super) async fn begin(&self) -> sqlx::Result<Session<'static>> {
        let transaction = match &self.begin {
            Some(begin) => self.connections.begin_with(AssertSqlSafe(begin.clone())).await?,
            None => self.connections.begin().await?,
        };
        Ok(Session { transaction, unnamed: self.begin.is_some() })
    }
}

impl<'t> Session<'t> {
    /// A part of somebody else's transaction: what it does is undone with it, or alone.
    pub(super) async fn inside(connection: &'t mut PgConnection, pool: &Pool) -> sqlx::Result<Session<'t>> {
        Ok(Session { transaction: connection.begin().await?, unnamed: pool.begin.is_some() })
    }

    pub(super) async fn commit(self) -> sqlx::Result<()> {
        self.transaction.commit().await
    }

    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        self.transaction.rollback().await
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
        self.transaction.fetch_many(Sent { query, unnamed })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let unnamed = self.unnamed;
        self.transaction.fetch_optional(Sent { query, unnamed })
    }

    fn prepare_with<'e>(self, sql: SqlStr, types: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        self.transaction.prepare_with(sql, types)
    }
}

impl<'c> Executor<'c> for &'c Pool {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Step>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        if self.begin.is_none() {
            return (&self.connections).fetch_many(query);
        }
        let work = async move {
            let mut session = self.begin().await?;
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
        if self.begin.is_none() {
            return (&self.connections).fetch_optional(query);
        }
        Box::pin(async move {
            let mut session = self.begin().await?;
            let row = session.fetch_optional(query).await?;
            session.commit().await?;
            Ok(row)
        })
    }

    fn prepare_with<'e>(self, sql: SqlStr, types: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        (&self.connections).prepare_with(sql, types)
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
