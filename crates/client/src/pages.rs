//! [`Pages`]: a list that the server returns in parts.

use std::collections::VecDeque;
use std::marker::PhantomData;

use everbell_wire as wire;
use futures_util::stream::{Stream, try_unfold};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::Error;
use crate::call::{Call, Response, parse};
use crate::client::Client;

/// The largest page that a server returns.
pub const MAX_PAGE_SIZE: usize = 200;

/// A list that is read page by page.
#[derive(Debug)]
#[must_use = "no page is read until it is asked for"]
pub struct Pages<T> {
    client: Client,
    path: String,
    query: Result<Vec<(String, String)>, Error>,
    page_size: usize,
    cursor: Option<String>,
    is_finished: bool,
    item: PhantomData<fn() -> T>,
}

/// Items of a list, with the JSON that they were read from.
#[derive(Debug)]
pub struct List<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the list continues; `None` at its end.
    pub next_cursor: Option<String>,
    raw: Vec<Box<RawValue>>,
    /// The response itself, if there was only one.
    text: Option<String>,
}

/// A page whose items are parsed later, one by one, so that their text is kept.
type RawPage = wire::Page<Box<RawValue>>;

impl<T: DeserializeOwned> Pages<T> {
    pub(crate) fn new(client: &Client, path: &str, query: &impl Serialize) -> Pages<T> {
        Pages {
            client: client.clone(),
            path: path.to_owned(),
            query: crate::query::parameters(query),
            page_size: MAX_PAGE_SIZE,
            cursor: None,
            is_finished: false,
            item: PhantomData,
        }
    }

    /// Reads the items as another type, such as [`WithJson<T>`](crate::WithJson).
    pub fn read_as<U>(self) -> Pages<U> {
        let Pages { client, path, query, page_size, cursor, is_finished, .. } = self;
        Pages { client, path, query, page_size, cursor, is_finished, item: PhantomData }
    }

    /// Reads at most this many items at once.
    pub fn page_size(mut self, items: usize) -> Pages<T> {
        self.page_size = items.clamp(1, MAX_PAGE_SIZE);
        self
    }

    /// Reads the next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<List<T>>, Error> {
        if self.is_finished {
            return Ok(None);
        }
        let page = self.read(self.page_size).await?;
        Ok(Some(page))
    }

    /// Reads the first items, from as many pages as needed.
    pub async fn take(mut self, max_items: usize) -> Result<List<T>, Error> {
        let mut list = self.read(max_items).await?;
        while !self.is_finished && list.items.len() < max_items {
            let page = self.read(max_items - list.items.len()).await?;
            list.items.extend(page.items);
            list.raw.extend(page.raw);
            list.next_cursor = page.next_cursor;
            list.text = None;
        }
        Ok(list)
    }

    /// Every item as a stream, which reads a page when it needs one.
    pub fn into_stream(self) -> impl Stream<Item = Result<T, Error>> {
        try_unfold((self, VecDeque::new()), async |(mut pages, mut items)| {
            while items.is_empty() {
                match pages.next().await? {
                    Some(page) => items.extend(page.items),
                    None => return Ok(None),
                }
            }
            Ok(items.pop_front().map(|item| (item, (pages, items))))
        })
    }

    async fn read(&mut self, max_items: usize) -> Result<List<T>, Error> {
        let query = match &mut self.query {
            Ok(query) => query.clone(),
            Err(_) => std::mem::replace(&mut self.query, Ok(Vec::new()))?,
        };
        let limit = max_items.clamp(1, self.page_size).to_string();
        let call: Call<RawPage> =
            query.iter().fold(self.client.get(&self.path), |call, (name, value)| call.parameter(name, value));
        let call = call.parameter("limit", &limit);
        let call = self.cursor.take().iter().fold(call, |call, cursor| call.parameter("cursor", cursor));
        let Response { document, text, .. } = call.send().await?;
        self.cursor.clone_from(&document.next_cursor);
        self.is_finished = self.cursor.is_none();
        List::read(&self.client, &self.path, document.items, document.next_cursor, text)
    }
}

impl<T: DeserializeOwned> Call<wire::Items<T>> {
    /// Sends the request, and returns the items together with their JSON.
    pub async fn list(self) -> Result<List<T>, Error> {
        let (client, path) = self.origin();
        let Response { document, text, .. } = self.read_as::<wire::Items<Box<RawValue>>>().send().await?;
        List::read(&client, &path, document.items, None, text)
    }
}

impl<T: DeserializeOwned> List<T> {
    fn read(
        client: &Client,
        path: &str,
        raw: Vec<Box<RawValue>>,
        next_cursor: Option<String>,
        text: String,
    ) -> Result<List<T>, Error> {
        let call = format!("GET {path}");
        let items = raw.iter().map(|item| parse(client, &call, item.get())).collect::<Result<_, _>>()?;
        Ok(List { items, next_cursor, raw, text: Some(text) })
    }
}

impl<T> List<T> {
    /// The list as JSON: the response as it came, or all of them as one.
    pub fn json(&self) -> String {
        let page =
            || RawPage { items: self.raw.clone(), next_cursor: self.next_cursor.clone(), unreadable: Vec::new() };
        let joined = || serde_json::to_string(&page()).unwrap_or_default();
        self.text.clone().unwrap_or_else(joined)
    }

    /// The JSON of each item, as it came.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.raw.iter().map(|item| item.get())
    }
}
