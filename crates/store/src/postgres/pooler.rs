//! Connections with and without a pooler between.
//!
//! A pooler in transaction mode gives each transaction whichever connection to the server is free, so nothing may outlive
//! a transaction. Behind one (`pooler=transaction` in the address) every statement is unnamed, because a prepared one
//! would be looked for on another connection, and every statement is in a transaction, because an unnamed one takes two
//! messages that must reach the same connection. Settings are made for each transaction, in the message that begins it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::TryStreamExt;
use sqlx::{AssertSqlSafe, Executor, PgConnection, Postgres, SqlSafeStr, SqlStr};

use super::given_pool::{GivenConnection, GivenPool};
use super::hosts::code;
use super::pool::{Connections, PooledConnection};
use super::schema::Schema;
use super::statement::{Backend, Sent, Step};
use crate::deadline::{Budget, Stage};
use crate::part::Part;

/// Connections to take turns with.
#[derive(Debug)]
pub(super) struct Pool {
    connections: Source,
    begin: SqlStr,
    /// How long a verb may take, from waiting for a connection to its commit.
    limit: Duration,
    /// Then statements have no name, and none stands alone.
    behind_pooler: bool,
    schema: Arc<Schema>,
}

/// The pool that connections come from.
#[derive(Debug)]
enum Source {
    Own(Connections),
    /// That of the application.
    Given(GivenPool),
}

/// The notification that a transaction sends to every instance when it commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    None,
    /// Timers became runs, as they do all the time: look again.
    Planned,
    /// A change by a caller, perhaps about the past: look again everywhere.
    Changes,
}

/// A transaction, and how its statements are sent.
#[derive(Debug)]
pub(super) struct Session<'t> {
    connection: SessionConnection<'t>,
    unnamed: bool,
    budget: Budget,
    schema: Arc<Schema>,
}

#[derive(Debug)]
enum SessionConnection<'t> {
    Own(PooledConnection),
    Given(GivenConnection),
    /// A part of the caller's transaction.
    Inside(Part<'t, Postgres>),
}

impl Pool {
    /// Connections that have their settings already.
    pub(super) fn direct(connections: Connections, limit: Duration, schema: Arc<Schema>) -> Pool {
        let (connections, begin) = (Source::Own(connections), "begin".into_sql_str());
        Pool { connections, begin, limit, behind_pooler: false, schema }
    }

    /// Behind a pooler in transaction mode, with these settings in each transaction.
    pub(super) fn behind_pooler(
        connections: Connections,
        settings: &[(&str, String)],
        limit: Duration,
        schema: Arc<Schema>,
    ) -> Pool {
        let (connections, begin) = (Source::Own(connections), begin_with("begin", settings));
        Pool { connections, begin, limit, behind_pooler: true, schema }
    }

    /// In the application's pool, with these settings in each transaction. Its sessions may have another default than the
    /// isolation that the statements are written for.
    pub(super) fn given(
        connections: GivenPool,
        settings: &[(&str, String)],
        limit: Duration,
        schema: Arc<Schema>,
    ) -> Pool {
        let begin = begin_with("begin isolation level read committed, read write", settings);
        Pool { connections: Source::Given(connections), begin, limit, behind_pooler: true, schema }
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(super) async fn begin(&self) -> sqlx::Result<Session<'static>> {
        self.begin_within(self.limit).await
    }

    /// A transaction that may take this long as a whole.
    pub(super) async fn begin_within(&self, limit: Duration) -> sqlx::Result<Session<'static>> {
        let budget = Budget::new(limit);
        let begin = self.begin.clone();
        let connection = match &self.connections {
            Source::Own(connections) => {
                let mut connection = budget.spend(Stage::Connecting, connections.acquire()).await?;
                budget.spend(Stage::Sent, connection.begin(begin)).await?;
                SessionConnection::Own(connection)
            }
            Source::Given(connections) => {
                let mut connection = budget.spend(Stage::Connecting, connections.acquire()).await?;
                budget.spend(Stage::Sent, connection.begin(begin)).await?;
                SessionConnection::Given(connection)
            }
        };
        Ok(Session { connection, unnamed: self.behind_pooler, budget, schema: Arc::clone(&self.schema) })
    }

    /// For one statement, which is its own transaction where it can be.
    async fn alone(&self) -> sqlx::Result<Session<'static>> {
        let connections = match &self.connections {
            Source::Own(connections) if !self.behind_pooler => connections,
            _ => return self.begin().await,
        };
        let budget = Budget::new(self.limit);
        let connection = budget.spend(Stage::Connecting, connections.acquire()).await?;
        let schema = Arc::clone(&self.schema);
        Ok(Session { connection: SessionConnection::Own(connection), unnamed: false, budget, schema })
    }
}

/// The message that begins a transaction with these settings.
fn begin_with(begin: &str, settings: &[(&str, String)]) -> SqlStr {
    let settings: Vec<String> = settings.iter().map(|(name, value)| format!("; set local {name} = {value}")).collect();
    AssertSqlSafe(format!("{begin}{}", settings.concat())).into_sql_str()
}

impl<'t> Session<'t> {
    /// Starts a part of the caller's transaction: it is undone with it, or alone.
    pub(super) async fn inside(connection: &'t mut PgConnection, pool: &Pool) -> sqlx::Result<Session<'t>> {
        let budget = Budget::new(pool.limit);
        // If the beginning of a savepoint fails, sqlx rolls back the whole transaction of the caller. So what an earlier
        // statement has left comes first, and an aborted transaction is refused here.
        budget.spend(Stage::Sent, connection.execute("select 1")).await?;
        let part = Part::savepoint(connection).await?;
        let schema = Arc::clone(&pool.schema);
        Ok(Session { connection: SessionConnection::Inside(part), unnamed: pool.behind_pooler, budget, schema })
    }

    /// Commits, and notifies every instance: in one message, because locks are held meanwhile.
    pub(super) async fn commit(self, news: News) -> sqlx::Result<()> {
        let notify = match news {
            News::None => None,
            News::Planned => Some(self.schema.planned()),
            News::Changes => Some(self.schema.changes()),
        };
        let how = notify.map_or("commit".into_sql_str(), |[_, with_commit]| with_commit.clone());
        match self.connection {
            SessionConnection::Own(connection) => self.budget.spend(Stage::Sent, connection.end(how)).await,
            SessionConnection::Given(connection) => self.budget.spend(Stage::Sent, connection.end(how)).await,
            SessionConnection::Inside(mut part) => {
                let done = async {
                    if let Some([notify, _]) = notify {
                        part.execute(notify.clone()).await?;
                    }
                    part.commit().await
                };
                self.budget.spend(Stage::Sent, done).await
            }
        }
    }

    /// Rolls back at once. What takes too long is closed in the background.
    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        let how = "rollback".into_sql_str();
        match self.connection {
            SessionConnection::Own(connection) => self.budget.spend(Stage::Sent, connection.end(how)).await,
            SessionConnection::Given(connection) => self.budget.spend(Stage::Sent, connection.end(how)).await,
            SessionConnection::Inside(part) => self.budget.spend(Stage::Sent, part.rollback()).await,
        }
    }

    /// Marks the connection after an error that affects it, and recognizes a statement that was canceled by its time
    /// budget.
    fn judge(&self, error: sqlx::Error) -> sqlx::Error {
        if let SessionConnection::Own(connection) = &self.connection {
            connection.note(&error);
        }
        if code(&error).as_deref() == Some("57014") { self.budget.canceled() } else { error }
    }

    fn connection(&mut self) -> &mut PgConnection {
        match &mut self.connection {
            SessionConnection::Own(connection) => connection.connection(),
            SessionConnection::Given(connection) => connection.connection(),
            SessionConnection::Inside(part) => part,
        }
    }
}

impl Backend for &mut Session<'_> {
    async fn send(self, statement: Sent) -> sqlx::Result<Vec<Step>> {
        let budget = self.budget;
        let statement = statement.within(&self.schema, self.unnamed);
        let sent = self.connection().fetch_many(statement).try_collect();
        budget.spend(Stage::Sent, sent).await.map_err(|error| self.judge(error))
    }
}

impl Backend for &Pool {
    async fn send(self, statement: Sent) -> sqlx::Result<Vec<Step>> {
        let mut session = self.alone().await?;
        let steps = session.send(statement).await?;
        session.commit(News::None).await?;
        Ok(steps)
    }
}
