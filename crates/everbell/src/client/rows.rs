//! [`Rows`]: all rows of a list, read a page at a time.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Waker, Poll, ready};

use everbell_core::Run as RunRecord;
use everbell_core::store::{Cursor, JobFilter, JobRow, JobSort, Page, PageRequest, RunFilter, StoreResult};
use futures_core::Stream;

use super::{Jobs, Runs};
use crate::clock::BoxFuture;

/// The number of rows in one read.
const PAGE_ROWS: u32 = 200;

impl Jobs {
    /// Returns all jobs that match, by key, read a page at a time while the stream is read. The order of the filter is not
    /// used: a job that fires meanwhile would change its place in most orders.
    ///
    /// ```
    /// # use everbell::{Everbell, JobFilter};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let bell = Everbell::builder().database("sqlite::memory:").build().await?;
    /// let mut jobs = bell.jobs().stream(JobFilter::default());
    /// while let Some(job) = jobs.next().await {
    ///     let job = job?;
    ///     println!("{} v{} is {}, next {:?}", job.key(), job.version(), job.status(), job.next_run_at());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self, filter: JobFilter) -> Rows<JobRow> {
        let filter = JobFilter { sort: JobSort::Key, ..filter };
        let (store, filter) = (Arc::clone(&self.context.parts.store), Arc::new(filter));
        Rows::new(move |page| {
            let (store, filter) = (Arc::clone(&store), Arc::clone(&filter));
            Box::pin(async move { store.list_jobs(&filter, &page).await })
        })
    }
}

impl Runs {
    /// Returns all runs that match, newest first, without their output, read a page at a time while the stream is read.
    pub fn stream(&self, filter: RunFilter) -> Rows<RunRecord> {
        let (store, filter) = (Arc::clone(&self.context.parts.store), Arc::new(filter));
        Rows::new(move |page| {
            let (store, filter) = (Arc::clone(&store), Arc::clone(&filter));
            Box::pin(async move { store.list_runs(&filter, &page).await })
        })
    }
}

type Reading<T> = BoxFuture<'static, StoreResult<Page<T>>>;

/// All rows of a list, as a stream. It reads the next page when it needs one, and ends after an error.
///
/// Rows that are added or removed in the meantime neither repeat nor hide others.
#[must_use = "nothing is read until it is polled"]
pub struct Rows<T> {
    read: Box<dyn Fn(PageRequest) -> Reading<T> + Send>,
    limit: u32,
    buffer: VecDeque<T>,
    unreadable: Vec<String>,
    state: State<T>,
}

enum State<T> {
    /// The next page begins behind this row; `None` is the first page.
    Between(Option<Cursor>),
    Reading(Reading<T>),
    Ended,
}

impl<T> Rows<T> {
    fn new(read: impl Fn(PageRequest) -> Reading<T> + Send + 'static) -> Rows<T> {
        let (buffer, unreadable) = (VecDeque::new(), Vec::new());
        Rows { read: Box::new(read), limit: PAGE_ROWS, buffer, unreadable, state: State::Between(None) }
    }

    /// Sets the number of rows in one read, 1 to 1,000: default 200.
    pub fn page_rows(self, rows: u32) -> Rows<T> {
        Rows { limit: rows, ..self }
    }

    /// Returns the next row; `None` at the end.
    pub async fn next(&mut self) -> Option<StoreResult<T>> {
        poll_fn(|waker| self.poll_row(waker)).await
    }

    /// Returns all rows that are left. They must fit into memory.
    pub async fn all(mut self) -> StoreResult<Vec<T>> {
        let mut all = Vec::new();
        while let Some(row) = self.next().await {
            all.push(row?);
        }
        Ok(all)
    }

    /// Returns the ids of rows so far that could not be read and were left out.
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    fn poll_row(&mut self, waker: &mut Waker<'_>) -> Poll<Option<StoreResult<T>>> {
        loop {
            if let Some(row) = self.buffer.pop_front() {
                return Poll::Ready(Some(Ok(row)));
            }
            match &mut self.state {
                State::Ended => return Poll::Ready(None),
                State::Between(after) => {
                    let page = PageRequest { limit: self.limit, after: after.take() };
                    self.state = State::Reading((self.read)(page));
                }
                State::Reading(reading) => match ready!(reading.as_mut().poll(waker)) {
                    Ok(page) => {
                        self.buffer.extend(page.items);
                        self.unreadable.extend(page.unreadable);
                        self.state = page.next.map_or(State::Ended, |next| State::Between(Some(next)));
                    }
                    Err(error) => {
                        self.state = State::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
            }
        }
    }
}

impl<T: Unpin> Stream for Rows<T> {
    type Item = StoreResult<T>;

    fn poll_next(self: Pin<&mut Self>, waker: &mut Waker<'_>) -> Poll<Option<StoreResult<T>>> {
        self.get_mut().poll_row(waker)
    }
}

impl<T> fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_ended = matches!(self.state, State::Ended) && self.buffer.is_empty();
        f.debug_struct("Rows").field("has_ended", &has_ended).finish_non_exhaustive()
    }
}
