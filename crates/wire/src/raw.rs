//! [`Raw`]: JSON as its owner wrote it.

use everbell_core::Json;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// JSON that the server passes on with its digits and the order of its members.
///
/// A reader gets an equal value: it may be read as part of a flattened document, where its text is not available.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Raw(Box<RawValue>);

impl Raw {
    /// The text, in one line.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }

    /// The text of a value; `None` if it cannot be written.
    pub fn from_value(value: &Value) -> Option<Raw> {
        RawValue::from_string(value.to_string()).ok().map(Raw)
    }

    /// Stored JSON in one line, so that a document is one too; `None` if the stored text is not JSON.
    pub fn from_stored(json: &Json) -> Option<Raw> {
        RawValue::from_string(json.to_single_line()).ok().map(Raw)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        let value = Value::deserialize(deserializer)?;
        RawValue::from_string(value.to_string()).map(Raw).map_err(serde::de::Error::custom)
    }
}

/// Stored JSON as a value; `None` if there is none.
pub(crate) fn parsed(json: Option<&Json>) -> Option<Value> {
    json.and_then(|json| serde_json::from_str(json.as_str()).ok())
}
