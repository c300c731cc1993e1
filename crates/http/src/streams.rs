//! How many event streams each caller holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::problem::{Kind, Problem};

/// The most streams of one token.
const MAX_STREAMS: u32 = 16;
/// The `Retry-After` of a refused stream in seconds.
const RETRY_AFTER_SECS: u64 = 15;

/// The open streams, by the name of their caller.
#[derive(Debug, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<String, u32>>>);

/// An open stream. Dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    open: Arc<Mutex<HashMap<String, u32>>>,
    caller: String,
}

impl Streams {
    /// Counts one more stream of this caller, or refuses it.
    pub(crate) fn open(&self, caller: &str) -> Result<StreamPermit, Problem> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(caller.to_owned()).or_default();
        if *count >= MAX_STREAMS {
            let detail = format!("`{caller}` has reached the limit of {MAX_STREAMS} open streams. Close one first.");
            return Err(Problem { retry_after: Some(RETRY_AFTER_SECS), ..Problem::new(Kind::RateLimited, detail) });
        }
        *count += 1;
        Ok(StreamPermit { open: Arc::clone(&self.0), caller: caller.to_owned() })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_ends_makes_room() {
        let streams = Streams::default();
        let mut open: Vec<StreamPermit> = (0..MAX_STREAMS).map(|_| streams.open("ana").unwrap()).collect();
        assert_eq!(streams.open("ana").unwrap_err().kind, Kind::RateLimited);
        assert!(streams.open("ben").is_ok());
        open.pop();
        assert!(streams.open("ana").is_ok());
        open.clear();
        assert!(streams.0.lock().unwrap().is_empty());
    }
}
