//! New credentials for the database of a store that is open.

use everbell_core::Invalid;
use everbell_core::store::{Store, StoreResult};

#[cfg(feature = "postgres")]
use crate::postgres::{PostgresStore, differ_in_credentials_only};
#[cfg(feature = "postgres")]
use crate::url::{Address, PostgresAddress};

/// Connects this store with the credentials of another address of its database from now on. Nothing changes unless they
/// work. [`PostgresStore::renew_credentials`](crate::postgres::PostgresStore::renew_credentials) has the details; other stores
/// have no credentials and refuse.
pub async fn renew_credentials(store: &dyn Store, url: &str) -> StoreResult<()> {
    #[cfg(feature = "postgres")]
    if let Some(store) = store.as_any().downcast_ref::<PostgresStore>() {
        return store.renew_credentials(url).await;
    }
    let (_, _) = (store, url);
    Err(Invalid::new("database", "has no credentials; only those of a PostgreSQL database can be renewed").into())
}

/// Whether two addresses name the same PostgreSQL database with different credentials, so that
/// [`renew_credentials`] can lead from one to the other.
pub fn changes_only_credentials(before: &str, after: &str) -> bool {
    #[cfg(feature = "postgres")]
    if let (Ok(Address::Postgres), Ok(Address::Postgres)) = (Address::parse(before), Address::parse(after))
        && let (Ok(one), Ok(other)) = (PostgresAddress::parse(before), PostgresAddress::parse(after))
    {
        return before != after && differ_in_credentials_only(&one, &other);
    }
    let (_, _) = (before, after);
    false
}

#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_user_password_and_tls() {
        let before = "postgres://shop:one@db:5432/app?schema=cron";
        for (after, expected) in [
            (before, false),
            ("postgres://shop:two@db:5432/app?schema=cron", true),
            ("postgres://shop:two@DB/app?schema=cron", true),
            ("postgres://other@db:5432/app?schema=cron&sslmode=require", true),
            ("postgres://shop:two@db:5432/app", false),
            ("postgres://shop:two@db:5433/app?schema=cron", false),
            ("postgres://shop:two@db2:5432/app?schema=cron", false),
            ("postgres://shop:two@db:5432/app2?schema=cron", false),
            ("postgres://shop:two@db:5432/app?schema=cron&pooler=transaction", false),
            ("postgres://shop:two@db:5432/app?schema=cron&max_connections=9", false),
            ("postgres://shop:two@db:5432,db2:5432/app?schema=cron", false),
            ("sqlite:app.db", false),
            ("nonsense", false),
        ] {
            assert_eq!(changes_only_credentials(before, after), expected, "{after}");
            assert_eq!(changes_only_credentials(after, before), expected, "{after}");
        }
        assert!(!changes_only_credentials("sqlite:a.db", "sqlite:b.db"));
        assert!(
            !changes_only_credentials("postgres://ana@db", "postgres://bob@db"),
            "the database is called as its user"
        );
    }
}
