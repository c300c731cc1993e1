//! Values as both databases hold them, and sums over rows that are the same on both.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The kind of a column, whatever each database calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// A text that PostgreSQL has no null for: there it is empty.
    TextOrEmpty,
    Uuid,
    Bytes,
    Bool,
    /// 64 bits.
    Int,
    /// 32 bits in PostgreSQL.
    Int4,
    /// Microseconds in SQLite, `timestamptz` in PostgreSQL.
    Time,
    /// A time that others wrote as text into SQLite, `timestamptz` in PostgreSQL.
    TimeText,
}

impl Kind {
    /// Reads a kind of the list of tables.
    pub(crate) fn parse(word: &str) -> Kind {
        match word {
            "text" => Kind::Text,
            "text_or_empty" => Kind::TextOrEmpty,
            "uuid" => Kind::Uuid,
            "bytes" => Kind::Bytes,
            "bool" => Kind::Bool,
            "int" => Kind::Int,
            "int4" => Kind::Int4,
            "time" => Kind::Time,
            "time_text" => Kind::TimeText,
            other => unreachable!("the list of tables has no kind `{other}`"),
        }
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Text(String),
    Uuid(Uuid),
    Bytes(Vec<u8>),
    Bool(bool),
    Int(i64),
    /// Microseconds since 1970.
    Time(i64),
}

/// The values of a row, in the order of the columns of its table.
pub(crate) type Row = Vec<Value>;

impl Value {
    /// The bytes that it takes, about.
    pub(crate) fn size(&self) -> usize {
        match self {
            Value::Text(text) => text.len() + 16,
            Value::Bytes(bytes) => bytes.len() + 16,
            Value::Null | Value::Uuid(_) | Value::Bool(_) | Value::Int(_) | Value::Time(_) => 16,
        }
    }

    /// Adds it to a hash. Each value has a tag, and what varies in length begins with that.
    fn hash_into(&self, hash: &mut Sha256) {
        let mut tagged = |tag: u8, bytes: &[u8]| {
            hash.update([tag]);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        match self {
            Value::Null => tagged(0, &[]),
            Value::Text(text) => tagged(1, text.as_bytes()),
            Value::Uuid(id) => tagged(2, id.as_bytes()),
            Value::Bytes(bytes) => tagged(3, bytes),
            Value::Bool(value) => tagged(4, &[u8::from(*value)]),
            Value::Int(number) => tagged(5, &number.to_le_bytes()),
            Value::Time(micros) => tagged(6, &micros.to_le_bytes()),
        }
    }
}

/// A count and a checksum of rows that does not depend on their order: the sum of their SHA-256 hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowSum {
    pub(crate) rows: u64,
    lanes: [u64; 4],
}

impl RowSum {
    pub(crate) fn add(&mut self, row: &[Value]) {
        let mut hash = Sha256::new();
        for value in row {
            value.hash_into(&mut hash);
        }
        let hash = hash.finalize();
        for (lane, bytes) in self.lanes.iter_mut().zip(hash.chunks_exact(8)) {
            let bytes: [u8; 8] = bytes.try_into().unwrap_or_default();
            *lane = lane.wrapping_add(u64::from_le_bytes(bytes));
        }
        self.rows += 1;
    }

    /// The checksum, in hexadecimal digits.
    pub(crate) fn checksum(&self) -> String {
        self.lanes.iter().fold(String::new(), |mut text, lane| {
            let _ = write!(text, "{lane:016x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: &[&[Value]]) -> RowSum {
        let mut sum = RowSum::default();
        for row in rows {
            sum.add(row);
        }
        sum
    }

    #[test]
    fn sum_depends_on_rows_and_not_on_their_order() {
        let (a, b) = ([Value::Int(1), Value::Text("a".into())], [Value::Int(2), Value::Null]);
        assert_eq!(sum(&[&a, &b]), sum(&[&b, &a]));
        assert_eq!(sum(&[&a, &b]).rows, 2);
        assert_ne!(sum(&[&a, &b]).checksum(), sum(&[&a]).checksum());
        assert_ne!(sum(&[&a, &a]).checksum(), sum(&[&b, &b]).checksum());
        assert_eq!(sum(&[]).checksum(), "0".repeat(64));
    }

    #[test]
    fn values_that_look_alike_have_different_sums() {
        let alike: [&[Value]; 8] = [
            &[Value::Null, Value::Null],
            &[Value::Null],
            &[Value::Text(String::new())],
            &[Value::Text("ab".into()), Value::Text(String::new())],
            &[Value::Text("a".into()), Value::Text("b".into())],
            &[Value::Int(1)],
            &[Value::Time(1)],
            &[Value::Bytes(1_i64.to_le_bytes().to_vec())],
        ];
        let sums: std::collections::BTreeSet<String> = alike.iter().map(|row| sum(&[row]).checksum()).collect();
        assert_eq!(sums.len(), alike.len());
    }
}
