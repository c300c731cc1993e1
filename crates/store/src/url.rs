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

/// Takes `pooler=transaction` out of the address of a server, which must not see it, and tells whether it was there.
pub(crate) fn pooler_of(url: &str) -> Result<(String, bool), Invalid> {
    let Some((before, query)) = url.split_once('?') else { return Ok((url.to_owned(), false)) };
    let (ours, theirs): (Vec<&str>, Vec<&str>) = query.split('&').partition(|pair| pair.starts_with("pooler="));
    if ours.iter().any(|pair| *pair != "pooler=transaction") {
        return Err(Invalid::new("database", "`pooler` must be `transaction`, or absent where there is no pooler"));
    }
    let query = if theirs.is_empty() { String::new() } else { format!("?{}", theirs.join("&")) };
    Ok((format!("{before}{query}"), !ours.is_empty()))
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
    fn a_pooler_is_named_in_the_address_and_not_passed_on() {
        let plain = |url: &str| Ok((url.to_owned(), false));
        assert_eq!(pooler_of("postgres://h/d"), plain("postgres://h/d"));
        assert_eq!(pooler_of("postgres://h/d?host=/x"), plain("postgres://h/d?host=/x"));
        for (url, rest) in [
            ("postgres://h/d?pooler=transaction", "postgres://h/d"),
            ("postgres://h/d?pooler=transaction&host=/x", "postgres://h/d?host=/x"),
            ("postgres://h/d?host=/x&pooler=transaction", "postgres://h/d?host=/x"),
        ] {
            assert_eq!(pooler_of(url), Ok((rest.to_owned(), true)));
        }
        let error = pooler_of("postgres://u:secret@h/d?pooler=session").unwrap_err().to_string();
        assert!(error.contains("`pooler` must be `transaction`") && !error.contains("secret"), "{error}");
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
