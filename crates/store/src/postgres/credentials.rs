//! New credentials for a store that is open: a rotated password, a short-lived role, another certificate.

use std::sync::Arc;

use everbell_core::Invalid;
use everbell_core::store::StoreResult;

use super::connect::{on, pool, schema_of};
use super::hosts::Hosts;
use super::statement::Statement;
use super::{PostgresStore, errors};
use crate::ConnectOptions;
use crate::url::{Address, PostgresAddress};

const READING: &str = "reading the address of the database";
const CHECKING: &str = "checking the new credentials of the database";

impl PostgresStore {
    /// Connects with the credentials of this address from now on: its user, password, and settings of TLS. It must name the
    /// same database on the same servers, behind the same pooler; its schema and `max_connections` do not count.
    ///
    /// Nothing changes unless a connection with them succeeds and may read the tables. Connections that are in use finish
    /// their transaction and are then closed; the one that listens stays until it is lost. A store in a pool of the
    /// application is refused: [`PgPool::set_connect_options`](super::PgPool::set_connect_options) updates that pool, and
    /// everbell follows.
    ///
    /// A password that comes from `PGPASSFILE` needs no call: the file is read for each connection.
    pub async fn renew_credentials(&self, url: &str) -> StoreResult<()> {
        if Address::parse(url)? != Address::Postgres {
            return Err(Invalid::new("database", "must be `postgres://user:password@host/database`").into());
        }
        let address = PostgresAddress::parse(url)?;
        if !self.hosts.is_from_address() {
            let reason = "is a pool of the application; give it new options with `PgPool::set_connect_options`";
            return Err(Invalid::new("database", reason).into());
        }
        let next = Hosts::parse(&address).map_err(|error| errors::unavailable(READING, error))?;
        if !self.hosts.same_servers(&next) {
            let reason =
                format!("is not {}; only credentials can be renewed, anything else needs a restart", self.hosts);
            return Err(Invalid::new("database", reason).into());
        }
        let next = Arc::new(next);
        let schema = schema_of(&address, Some(self.schema()))?;
        let pool = pool(&next, &schema, &[], ConnectOptions::default().request_timeout, 1);
        let mut session = on(CHECKING, pool.begin()).await?;
        on(CHECKING, sqlx::query("select from everbell.jobs limit 0").execute_on(&mut session)).await?;
        on(CHECKING, session.rollback()).await?;
        self.hosts.take_credentials(&next);
        tracing::info!(database = %self.hosts, "the credentials of the database were renewed");
        Ok(())
    }
}

/// Whether two addresses name the same database in the same way, apart from credentials.
pub(crate) fn differ_in_credentials_only(one: &PostgresAddress, other: &PostgresAddress) -> bool {
    let (Ok(one_hosts), Ok(other_hosts)) = (Hosts::parse(one), Hosts::parse(other)) else { return false };
    one_hosts.same_servers(&other_hosts) && (one.max_connections, &one.schema) == (other.max_connections, &other.schema)
}
