//! Counters of all jobs, cached for a while: pages that follow events ask for them again and again.

use std::sync::Arc;
use std::time::Duration;

use everbell::client::WindowCounters;
use everbell::{Everbell, StoreError, StoreResult};
use everbell_core::store::UnavailableReason;
use tokio::sync::Mutex;

/// An answer is used again for this many times as long as it took to read: nothing where that is quick, and some seconds
/// where there are very many runs. So reading takes a small share of the time, however many pages ask.
const TTL_FACTOR: u32 = 20;
/// How long an answer is used again at most.
const MAX_TTL: Duration = Duration::from_mins(1);
/// The pause after a failure.
const FAILURE_TTL: Duration = Duration::from_secs(5);

/// A window of statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// 24 hours.
    #[default]
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
}

impl Window {
    /// All of them, the shortest first.
    pub const ALL: [Window; 3] = [Window::Day, Window::Week, Window::Month];
    /// Their words, in the same order.
    pub const WORDS: &[&str] = &["24h", "7d", "30d"];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Window::Day => "24h",
            Window::Week => "7d",
            Window::Month => "30d",
        }
    }

    /// Its length in words.
    pub fn label(self) -> &'static str {
        match self {
            Window::Day => "24 hours",
            Window::Week => "7 days",
            Window::Month => "30 days",
        }
    }

    /// The window of a word.
    pub fn from_word(word: &str) -> Option<Window> {
        Window::ALL.into_iter().find(|window| window.as_str() == word)
    }

    /// Its length.
    pub fn length(self) -> Duration {
        Duration::from_hours(match self {
            Window::Day => 24,
            Window::Week => 7 * 24,
            Window::Month => 30 * 24,
        })
    }
}

/// The cached answers, one for each window.
#[derive(Debug, Default)]
pub(crate) struct CountedWindows(Arc<[Mutex<Option<Cached>>; 3]>);

#[derive(Debug)]
struct Cached {
    /// By the monotonic clock.
    until: Duration,
    /// Nothing if they could not be read.
    counters: Option<Arc<WindowCounters>>,
}

impl CountedWindows {
    /// Returns the counters of all jobs. One task reads them for all callers that wait, and goes on if they give up: the next
    /// one finds its answer.
    pub(crate) async fn read(&self, bell: &Everbell, window: Window) -> StoreResult<Arc<WindowCounters>> {
        let (cells, bell) = (Arc::clone(&self.0), bell.clone());
        let read = tokio::spawn(async move { load(&cells[window as usize], &bell, window).await });
        read.await.unwrap_or_else(|_| Err(unreadable()))
    }
}

async fn load(cell: &Mutex<Option<Cached>>, bell: &Everbell, window: Window) -> StoreResult<Arc<WindowCounters>> {
    let mut cached = cell.lock().await;
    let begun = bell.clock().monotonic();
    if let Some(cached) = cached.as_ref().filter(|cached| begun < cached.until) {
        return cached.counters.clone().ok_or_else(unreadable);
    }
    let now = bell.now();
    let since = now.checked_sub(window.length()).unwrap_or(now);
    let counters = bell.runs().counters(since, None).await.map(Arc::new);
    let ended = bell.clock().monotonic();
    let ttl = if counters.is_ok() { ended.saturating_sub(begun) * TTL_FACTOR } else { FAILURE_TTL };
    *cached = Some(Cached { until: ended + ttl.min(MAX_TTL), counters: counters.as_ref().ok().cloned() });
    counters
}

fn unreadable() -> StoreError {
    let what = "reading the counters of runs failed a moment ago".to_owned();
    StoreError::Unavailable { what, reason: UnavailableReason::default(), maybe_done: false, source: None }
}
