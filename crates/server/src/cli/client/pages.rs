//! Lists, page by page.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Client, Parameter};
use crate::cli::CliError;

/// The most that a page may have.
const PAGE: usize = 200;

/// A list, as far as it was wanted.
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    raw: Vec<Box<RawValue>>,
    /// Where it would go on.
    pub(crate) next: Option<String>,
    /// The answer itself, if one was enough.
    whole: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Joined<'a> {
    items: &'a [Box<RawValue>],
    next_cursor: Option<&'a str>,
}

impl Client {
    /// The items of a list without pages.
    pub(crate) fn items(&self, path: &str) -> Result<List, CliError> {
        self.items_like(path, &[])
    }

    /// The same, with this query.
    pub(crate) fn items_like(&self, path: &str, query: &[Parameter<'_>]) -> Result<List, CliError> {
        let text = self.get(path, query)?.text;
        let page = page(&text)?;
        List::new(page.items, None, Some(text))
    }

    /// The first items of a list, from as many pages as needed.
    pub(crate) fn all(&self, path: &str, query: &[Parameter<'_>], most: usize) -> Result<List, CliError> {
        let (mut raw, mut cursor, mut first) = (Vec::new(), None, None);
        for number in 0..most.div_ceil(PAGE).max(1) {
            let mut query = query.to_vec();
            query.push(("limit", PAGE.min(most - raw.len()).max(1).to_string()));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let text = self.get(path, &query)?.text;
            let page = page(&text)?;
            raw.extend(page.items);
            cursor = page.next_cursor;
            first = (number == 0).then_some(text);
            if cursor.is_none() || raw.len() >= most {
                break;
            }
        }
        List::new(raw, cursor, first)
    }
}

fn page(text: &str) -> Result<Page, CliError> {
    serde_json::from_str(text).map_err(|_| CliError::Failed {
        message: "the answer is not a list".to_owned(),
        hint: Some("see that the address is that of an everbell server".to_owned()),
    })
}

impl List {
    fn new(raw: Vec<Box<RawValue>>, next: Option<String>, whole: Option<String>) -> Result<List, CliError> {
        let items: Result<Vec<Value>, _> = raw.iter().map(|item| serde_json::from_str(item.get())).collect();
        let items = items.map_err(|error| CliError::Failed { message: error.to_string(), hint: None })?;
        Ok(List { items, raw, next, whole })
    }

    /// The document: the answer as it came, or all of them as one.
    pub(crate) fn document(&self) -> String {
        let joined = || serde_json::to_string(&Joined { items: &self.raw, next_cursor: self.next.as_deref() });
        self.whole.clone().unwrap_or_else(|| joined().unwrap_or_default())
    }

    /// Each item as it came.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.raw.iter().map(|item| item.get())
    }
}
