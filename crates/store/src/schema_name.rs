//! Names of PostgreSQL schemas.

use everbell_core::Invalid;

/// The longest name that PostgreSQL does not cut, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 63;

/// Whether a schema may have this name. Letters are those of ASCII, so that a name can be cut anywhere and needs no escape.
pub(crate) fn check_name(name: &str) -> Result<(), Invalid> {
    let refused = |why: &str| {
        let reason = format!(
            "{why}; allowed are letters, digits and underscores, at most {MAX_NAME_BYTES}, with no digit and no `pg_` in front"
        );
        Err(Invalid::new("schema", reason))
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() {
        return refused("is empty");
    }
    if let Some(other) = name.chars().find(|c| !is_allowed(*c)) {
        return refused(&format!("has the character {other:?}"));
    }
    if name.len() > MAX_NAME_BYTES {
        return refused(&format!("has {} characters", name.len()));
    }
    let lower = name.to_ascii_lowercase();
    if name.starts_with(|c: char| c.is_ascii_digit()) || lower.starts_with("pg_") || lower == "information_schema" {
        return refused(&format!("`{name}` is not a name that a schema can have"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for name in ["everbell", "_a1", "Jobs", &"a".repeat(63)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for (name, said) in [
            ("", "schema: is empty"),
            ("a b", "has the character ' '"),
            ("a\"b", "has the character '\"'"),
            ("tür", "has the character 'ü'"),
            (&"a".repeat(64), "has 64 characters"),
            ("1a", "`1a` is not a name"),
            ("pg_mine", "`pg_mine` is not a name"),
            ("information_schema", "is not a name"),
        ] {
            let error = check_name(name).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("allowed are letters"), "{name}: {error}");
        }
    }
}
