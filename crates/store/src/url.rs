//! The address of a store.

use std::path::PathBuf;

use everbell_core::Invalid;

#[cfg(feature = "postgres")]
use crate::schema_name::check_name;

/// The servers that are acceptable.
#[cfg(feature = "postgres")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Any,
    /// One that accepts changes.
    ReadWrite,
    /// One that is no standby.
    Primary,
}

/// The database that a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A server and a database on it.
    Postgres,
    /// A file.
    SqliteFile(PathBuf),
    /// A database that is gone with the process.
    SqliteMemory,
}

impl Address {
    /// Reads `postgres://…`, `postgresql://…`, `sqlite:PATH`, `sqlite://PATH` or `sqlite::memory:`. A refusal does not
    /// repeat the address, which may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Address, Invalid> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Address::Postgres);
        }
        let Some(path) = url.strip_prefix("sqlite:") else {
            let reason = "must be `sqlite:PATH`, `sqlite::memory:` or `postgres://user:password@host/database`";
            return Err(Invalid::new("database", reason));
        };
        if path == ":memory:" || path == "//:memory:" {
            return Ok(Address::SqliteMemory);
        }
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains('\0') {
            return Err(Invalid::new("database", "`sqlite:` needs the path of a file, such as `sqlite:everbell.db`"));
        }
        Ok(Address::SqliteFile(PathBuf::from(path)))
    }

    /// Why a program cannot open it that was compiled without its database.
    #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
    pub(crate) fn left_out(&self) -> Invalid {
        let (name, feature) = match self {
            Address::Postgres => ("PostgreSQL", "postgres"),
            Address::SqliteFile(_) | Address::SqliteMemory => ("SQLite", "sqlite"),
        };
        let reason =
            format!("is {name}, which this program was compiled without: turn on the feature `{feature}` of everbell");
        Invalid::new("database", reason)
    }
}

/// The address of one or several PostgreSQL servers, with what is meant for everbell taken out of it.
#[cfg(feature = "postgres")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostgresAddress {
    /// One for each host, in their order.
    pub(crate) urls: Vec<String>,
    pub(crate) behind_pooler: bool,
    pub(crate) max_connections: Option<u32>,
    pub(crate) wanted: Wanted,
    pub(crate) schema: Option<String>,
}

/// How many connections an instance may have: one listens, one reads, one works.
pub(crate) const CONNECTION_LIMITS: std::ops::RangeInclusive<u32> = 3..=1_000;

#[cfg(feature = "postgres")]
impl PostgresAddress {
    /// Reads `postgres://user:password@host:port,host:port/database?…`. A refusal does not repeat the address.
    pub(crate) fn parse(url: &str) -> Result<PostgresAddress, Invalid> {
        let (before, query) = url.split_once('?').unwrap_or((url, ""));
        let urls = split_hosts(before);
        // Everbell cannot work on a server that accepts no changes.
        let wanted = if urls.len() > 1 { Wanted::ReadWrite } else { Wanted::Any };
        let mut address = PostgresAddress { urls, behind_pooler: false, max_connections: None, wanted, schema: None };
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("pooler", "transaction") => address.behind_pooler = true,
                ("pooler", _) => {
                    let reason = "`pooler` must be `transaction`, or absent where there is no pooler";
                    return Err(Invalid::new("database", reason));
                }
                ("max_connections", number) => {
                    let count = number.parse().ok().filter(|count| CONNECTION_LIMITS.contains(count));
                    let reason = "`max_connections` must be a number from 3 to 1000";
                    address.max_connections = Some(count.ok_or_else(|| Invalid::new("database", reason))?);
                }
                ("schema", name) => {
                    check_name(name).map_err(|error| Invalid::new("database", format!("`schema` {}", error.reason)))?;
                    address.schema = Some(name.to_owned());
                }
                ("target_session_attrs", "any") => address.wanted = Wanted::Any,
                ("target_session_attrs", "read-write") => address.wanted = Wanted::ReadWrite,
                ("target_session_attrs", "primary") => address.wanted = Wanted::Primary,
                ("target_session_attrs", _) => {
                    let reason = "`target_session_attrs` must be `any`, `read-write` or `primary`";
                    return Err(Invalid::new("database", reason));
                }
                _ => rest.push(pair),
            }
        }
        if !rest.is_empty() {
            let rest = rest.join("&");
            address.urls = address.urls.iter().map(|url| format!("{url}?{rest}")).collect();
        }
        Ok(address)
    }
}

/// An address for each host of a list.
fn split_hosts(url: &str) -> Vec<String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A password may hold a comma; the hosts are behind the last `@`.
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    hosts.split(',').map(|host| format!("{scheme}://{user}{host}{path}")).collect()
}

#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let file = |path: &str| Ok(Address::SqliteFile(PathBuf::from(path)));
        assert_eq!(Address::parse("postgres://u:p@h/d"), Ok(Address::Postgres));
        assert_eq!(Address::parse("postgresql:///d"), Ok(Address::Postgres));
        assert_eq!(Address::parse("sqlite:a/b.db"), file("a/b.db"));
        assert_eq!(Address::parse("sqlite://a/b.db"), file("a/b.db"));
        assert_eq!(Address::parse("sqlite:///var/a.db"), file("/var/a.db"));
        assert_eq!(Address::parse("sqlite::memory:"), Ok(Address::SqliteMemory));
    }

    fn parse(url: &str) -> PostgresAddress {
        PostgresAddress::parse(url).unwrap()
    }

    #[test]
    fn what_is_meant_for_everbell_is_not_passed_on() {
        let plain = parse("postgres://h/d?host=/x");
        assert_eq!((plain.urls, plain.behind_pooler), (vec!["postgres://h/d?host=/x".to_owned()], false));
        for (url, rest) in [
            ("postgres://h/d?pooler=transaction", "postgres://h/d"),
            ("postgres://h/d?pooler=transaction&host=/x", "postgres://h/d?host=/x"),
            ("postgres://h/d?host=/x&pooler=transaction&max_connections=4", "postgres://h/d?host=/x"),
        ] {
            let address = parse(url);
            assert_eq!((address.urls, address.behind_pooler), (vec![rest.to_owned()], true));
        }
        assert_eq!(parse("postgres://h/d?max_connections=4").max_connections, Some(4));
        let other = parse("postgres://h/d?schema=billing");
        assert_eq!((other.schema.as_deref(), other.urls), (Some("billing"), vec!["postgres://h/d".to_owned()]));
    }

    #[test]
    fn several_hosts_are_told_apart() {
        let address = parse("postgres://u:a,b@h1:1,h2:2,[::1]:3/d?sslmode=disable");
        let expected = ["h1:1", "h2:2", "[::1]:3"].map(|host| format!("postgres://u:a,b@{host}/d?sslmode=disable"));
        assert_eq!((address.urls, address.wanted), (expected.to_vec(), Wanted::ReadWrite));
        assert_eq!(parse("postgres://h1,h2/d?target_session_attrs=any").wanted, Wanted::Any);
        assert_eq!(parse("postgres://h1/d?target_session_attrs=primary").wanted, Wanted::Primary);
        assert_eq!(parse("postgres://h1/d").wanted, Wanted::Any, "who names one server gets it");
        assert_eq!(parse("postgres:///d").urls, ["postgres:///d"]);
        assert_eq!(parse("postgres://u:p@").urls, ["postgres://u:p@"]);
    }

    #[test]
    fn what_an_address_asks_for_is_checked_without_a_secret_in_the_answer() {
        for (query, said) in [
            ("pooler=session", "`pooler` must be `transaction`"),
            ("max_connections=2", "`max_connections` must be a number from 3 to 1000"),
            ("max_connections=many", "`max_connections` must be a number"),
            ("schema=a-b", "`schema` has the character '-'; allowed are letters"),
            ("target_session_attrs=standby", "`target_session_attrs` must be `any`, `read-write` or `primary`"),
        ] {
            let error = PostgresAddress::parse(&format!("postgres://u:secret@h/d?{query}")).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_address_is_checked_without_being_opened() {
        for url in ["sqlite::memory:", "sqlite:/nowhere/a.db", "postgres://u:p@nowhere/d?pooler=transaction"] {
            assert_eq!(crate::check_address(url), Ok(()), "{url}");
        }
        for url in ["mysql://h/d", "postgres://u:secret@h/d?pooler=session"] {
            assert!(!crate::check_address(url).unwrap_err().to_string().contains("secret"), "{url}");
        }
    }

    #[test]
    fn refusals_say_what_is_allowed_and_no_secret() {
        for url in ["", "mysql://u:secret@h/d", "everbell.db", "sqlite:", "sqlite://"] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(
                error.starts_with("database: ") && error.contains("sqlite:") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
