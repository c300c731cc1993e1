//! How statements are sent: each with its deadline, in the schema of the store, unnamed behind a pooler.
//!
//! [`Statement`] adds methods to the queries of sqlx. Its own methods want an `sqlx::Executor`, and that trait has one more
//! required method when another crate of the program turns on sqlx's macros, so no type of ours can implement it.
//!
//! All of them become one type, [`Sent`], before they are sent: else the compiler would generate the whole way to the driver
//! again for each type of row, which is most of the time that this crate needs in a program that embeds it.

use std::future::Future;

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow, PgStatement};
use sqlx::query::{Query, QueryAs, QueryScalar};
use sqlx::{Either, Execute, FromRow, Postgres, RawSql, SqlStr};

use super::schema::Schema;

/// One part of an answer: the end of a statement, or a row.
pub(super) type Step = Either<PgQueryResult, PgRow>;

/// A receiver of statements: a transaction, or a pool, in which each statement is its own transaction.
pub(super) trait Backend: Send {
    /// Sends a statement, and waits for the whole answer.
    fn send(self, statement: Sent) -> impl Future<Output = sqlx::Result<Vec<Step>>> + Send;
}

/// A query of sqlx that is sent to a [`Backend`].
pub(super) trait Statement<'q>: Execute<'q, Postgres> + 'q {
    /// A row as the caller wants it.
    type Output: Send;

    fn read(row: PgRow) -> sqlx::Result<Self::Output>;

    /// The statement as it is sent.
    fn into_sent(mut self) -> sqlx::Result<Sent> {
        let persistent = self.persistent();
        let arguments = self.take_arguments().map_err(sqlx::Error::Encode)?;
        Ok(Sent { sql: self.sql(), arguments, persistent })
    }

    /// Sends the statement, and returns the number of rows that it changed.
    fn execute_on(self, backend: impl Backend) -> impl Future<Output = sqlx::Result<PgQueryResult>> + Send {
        async move {
            let mut result = PgQueryResult::default();
            result.extend(backend.send(self.into_sent()?).await?.into_iter().filter_map(Either::left));
            Ok(result)
        }
    }

    /// Sends the statement, and returns all rows.
    fn fetch_all_on(self, backend: impl Backend) -> impl Future<Output = sqlx::Result<Vec<Self::Output>>> + Send {
        async move { backend.send(self.into_sent()?).await?.into_iter().filter_map(Either::right).map(Self::read).collect() }
    }

    /// Sends the statement, and returns its first row, if there is one.
    fn fetch_optional_on(
        self,
        backend: impl Backend,
    ) -> impl Future<Output = sqlx::Result<Option<Self::Output>>> + Send {
        async move { backend.send(self.into_sent()?).await?.into_iter().find_map(Either::right).map(Self::read).transpose() }
    }

    /// Sends the statement, and returns its first row.
    fn fetch_one_on(self, backend: impl Backend) -> impl Future<Output = sqlx::Result<Self::Output>> + Send {
        async move { self.fetch_optional_on(backend).await?.ok_or(sqlx::Error::RowNotFound) }
    }
}

impl<'q, A> Statement<'q> for Query<'q, Postgres, A>
where
    A: 'q,
    Query<'q, Postgres, A>: Execute<'q, Postgres>,
{
    type Output = PgRow;

    fn read(row: PgRow) -> sqlx::Result<PgRow> {
        Ok(row)
    }
}

impl<'q, O, A> Statement<'q> for QueryAs<'q, Postgres, O, A>
where
    A: 'q,
    O: for<'r> FromRow<'r, PgRow> + Send + 'q,
    QueryAs<'q, Postgres, O, A>: Execute<'q, Postgres>,
{
    type Output = O;

    fn read(row: PgRow) -> sqlx::Result<O> {
        O::from_row(&row)
    }
}

impl<'q, O, A> Statement<'q> for QueryScalar<'q, Postgres, O, A>
where
    A: 'q,
    O: Send + 'q,
    (O,): for<'r> FromRow<'r, PgRow>,
    QueryScalar<'q, Postgres, O, A>: Execute<'q, Postgres>,
{
    type Output = O;

    fn read(row: PgRow) -> sqlx::Result<O> {
        <(O,)>::from_row(&row).map(|(value,)| value)
    }
}

impl Statement<'_> for RawSql {
    type Output = PgRow;

    fn read(row: PgRow) -> sqlx::Result<PgRow> {
        Ok(row)
    }
}

/// A statement as it is sent.
pub(super) struct Sent {
    sql: SqlStr,
    arguments: Option<PgArguments>,
    persistent: bool,
}

impl Sent {
    /// In this schema, and without a name on the server if that is wanted.
    pub(super) fn within(self, schema: &Schema, unnamed: bool) -> Sent {
        Sent { sql: schema.qualify(self.sql), persistent: self.persistent && !unnamed, ..self }
    }
}

impl Execute<'_, Postgres> for Sent {
    fn sql(self) -> SqlStr {
        self.sql
    }

    fn statement(&self) -> Option<&PgStatement> {
        None
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        Ok(self.arguments.take())
    }

    fn persistent(&self) -> bool {
        self.persistent
    }
}
