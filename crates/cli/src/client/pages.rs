//! Lists, page by page.

use everbell_wire as wire;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Answer, Client, Parameter};
use crate::CliError;

/// The most that a page may have.
const PAGE: usize = 200;

/// A list, as far as it was wanted.
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    raw: Vec<Box<RawValue>>,
    /// Where it would go on.
    pub(crate) next: Option<String>,
    /// The answer itself, if one was enough.
    whole: Option<String>,
}

/// A page whose items are not read yet, so that programs get them as they came.
type RawPage = wire::Page<Box<RawValue>>;

impl Client {
    /// The items of a list without pages.
    pub(crate) fn items<T: DeserializeOwned>(&self, path: &str) -> Result<List<T>, CliError> {
        self.items_like(path, &[])
    }

    /// The items of a list without pages that match a query.
    pub(crate) fn items_like<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[Parameter<'_>],
    ) -> Result<List<T>, CliError> {
        let Answer { document, text, .. } = self.get::<wire::Items<Box<RawValue>>>(path, query)?;
        self.list(path, document.items, None, Some(text))
    }

    /// The first items of a list, from as many pages as needed.
    pub(crate) fn all<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[Parameter<'_>],
        most: usize,
    ) -> Result<List<T>, CliError> {
        let (mut raw, mut cursor, mut first) = (Vec::new(), None, None);
        for number in 0..most.div_ceil(PAGE).max(1) {
            let mut query = query.to_vec();
            query.push(("limit", PAGE.min(most - raw.len()).max(1).to_string()));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let Answer { document, text, .. } = self.get::<RawPage>(path, &query)?;
            raw.extend(document.items);
            cursor = document.next_cursor;
            first = (number == 0).then_some(text);
            if cursor.is_none() || raw.len() >= most {
                break;
            }
        }
        self.list(path, raw, cursor, first)
    }

    fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        raw: Vec<Box<RawValue>>,
        next: Option<String>,
        whole: Option<String>,
    ) -> Result<List<T>, CliError> {
        let items = raw.iter().map(|item| self.read_text(&Method::GET, path, item.get())).collect::<Result<_, _>>()?;
        Ok(List { items, raw, next, whole })
    }
}

impl<T> List<T> {
    /// The document: the answer as it came, or all of them as one.
    pub(crate) fn document(&self) -> String {
        let page = || RawPage { items: self.raw.clone(), next_cursor: self.next.clone(), unreadable: Vec::new() };
        let joined = || serde_json::to_string(&page());
        self.whole.clone().unwrap_or_else(|| joined().unwrap_or_default())
    }

    /// Each item as it came.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.raw.iter().map(|item| item.get())
    }
}
