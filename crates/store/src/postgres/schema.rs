//! The schema of the database that holds everything of everbell.
//!
//! Statements are written with the default name, `everbell.jobs`, and name their schema always: an application's tables of
//! the same names and its `search_path` mean nothing to them. A store with a schema of another name replaces the prefix
//! where a statement is sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use everbell_core::Invalid;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::schema_name::{MAX_NAME_BYTES, check_name};

/// The name unless another one is asked for, and the one that statements are written with.
pub(crate) const DEFAULT_SCHEMA: &str = "everbell";

/// The prefix of names in statements.
const PREFIX: &str = "everbell.";

/// A schema, and the statements that depend on its name.
#[derive(Debug)]
pub(super) struct Schema {
    name: String,
    /// The notification when timers became runs, and with a commit behind it.
    planned: [SqlStr; 2],
    /// The notification of a change, and with a commit behind it.
    changes: [SqlStr; 2],
    /// Statements with the name of this schema, by their text; unused with the default name.
    qualified: Mutex<HashMap<SqlStr, Arc<str>>>,
}

impl Schema {
    /// A schema of this name, which [`check_name`] accepts.
    pub(super) fn new(name: &str) -> Result<Schema, Invalid> {
        check_name(name)?;
        let channel = channel(name);
        let both = |notify: String| {
            let commit = format!("{notify}; commit");
            [notify, commit].map(|sql| AssertSqlSafe(sql).into_sql_str())
        };
        Ok(Schema {
            name: name.to_owned(),
            planned: both(format!("notify \"{channel}\"")),
            changes: both(format!("notify \"{channel}\", 'changes'")),
            qualified: Mutex::default(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_default(&self) -> bool {
        self.name == DEFAULT_SCHEMA
    }

    /// The channel of notifications: two stores of one database do not wake each other.
    pub(super) fn channel(&self) -> String {
        channel(&self.name)
    }

    pub(super) fn planned(&self) -> &[SqlStr; 2] {
        &self.planned
    }

    pub(super) fn changes(&self) -> &[SqlStr; 2] {
        &self.changes
    }

    /// The statement with the name of this schema.
    pub(super) fn qualify(&self, sql: SqlStr) -> SqlStr {
        if self.is_default() || !sql.as_str().contains(PREFIX) {
            return sql;
        }
        let mut qualified = self.qualified.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = qualified.get(sql.as_str()) {
            return AssertSqlSafe(Arc::clone(known)).into_sql_str();
        }
        let text: Arc<str> = sql.as_str().replace(PREFIX, &format!("\"{}\".", self.name)).into();
        qualified.insert(sql, Arc::clone(&text));
        AssertSqlSafe(text).into_sql_str()
    }
}

/// At most as long as a name may be: names that are equal up to there only wake each other.
fn channel(schema: &str) -> String {
    if schema == DEFAULT_SCHEMA {
        return DEFAULT_SCHEMA.to_owned();
    }
    let mut channel = format!("{DEFAULT_SCHEMA}:{schema}");
    channel.truncate(MAX_NAME_BYTES);
    channel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qualified(schema: &Schema, sql: &'static str) -> String {
        schema.qualify(sql.into_sql_str()).as_str().to_owned()
    }

    #[test]
    fn a_statement_gets_the_name_of_the_schema() {
        let sql = "select * from everbell.jobs j join everbell.timers t on t.job_id = j.id";
        assert_eq!(qualified(&Schema::new("everbell").unwrap(), sql), sql);
        let other = Schema::new("Other").unwrap();
        for _ in 0..2 {
            let expected = "select * from \"Other\".jobs j join \"Other\".timers t on t.job_id = j.id";
            assert_eq!(qualified(&other, sql), expected);
        }
        assert_eq!(qualified(&other, "select 1"), "select 1");
    }

    #[test]
    fn each_schema_has_its_channel() {
        assert_eq!(Schema::new("everbell").unwrap().channel(), "everbell");
        let other = Schema::new("other").unwrap();
        assert_eq!(other.planned()[0].as_str(), "notify \"everbell:other\"");
        assert_eq!(other.changes()[1].as_str(), "notify \"everbell:other\", 'changes'; commit");
        assert_eq!(Schema::new(&"a".repeat(63)).unwrap().channel().len(), 63);
    }
}
