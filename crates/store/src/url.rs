//! The address of a store.

use std::path::PathBuf;

use everbell_core::Invalid;

/// What an address names.
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
}

#[cfg(test)]
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
