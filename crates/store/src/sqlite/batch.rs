//! Batches as one JSON array, which `json_each` unpacks: several times as fast as a statement for each row. And back: where
//! there are many rows, one array of them is faster than each.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::micros::Micros;

/// An id as hex text, for `unhex` and from `hex`.
#[derive(Clone, Copy)]
pub(super) struct Hex(pub(super) Uuid);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.simple().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hex, D::Error> {
        Uuid::try_parse(<&str>::deserialize(deserializer)?).map(Hex).map_err(Error::custom)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Micros, D::Error> {
        i64::deserialize(deserializer).map(Micros)
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

/// Rows as the text of one array, each in the order that its statement reads.
pub(super) fn rows<T: Serialize>(rows: impl IntoIterator<Item = T>) -> String {
    let rows: Vec<T> = rows.into_iter().collect();
    // Texts, numbers and lists of them always have a form in JSON.
    serde_json::to_string(&rows).unwrap_or_default()
}

/// Ids as the text of one array.
pub(super) fn ids(ids: impl IntoIterator<Item = Uuid>) -> String {
    rows(ids.into_iter().map(Hex))
}

/// Words as the text of one array; none at all ask for nothing.
pub(super) fn wanted<T: ToString>(words: &[T]) -> Option<String> {
    (!words.is_empty()).then(|| rows(words.iter().map(ToString::to_string)))
}
