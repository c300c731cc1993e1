//! Lists.

use serde::{Deserialize, Serialize};

/// A part of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The documents of this part.
    pub items: Vec<T>,
    /// Where the next page begins; null at the end.
    pub next_cursor: Option<String>,
    /// Ids of rows that cannot be read and are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A whole list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Items<T> {
    /// All documents.
    pub items: Vec<T>,
}
