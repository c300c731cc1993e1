//! How many event streams a token has open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::problem::{Kind, Problem};

/// The most streams of one token.
const MAX_STREAMS_PER_TOKEN: u32 = 16;
const RETRY_AFTER_SECONDS: u64 = 5;

/// Counts streams by the name of their token.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<String, u32>>);

/// An open stream, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    streams: Arc<Streams>,
    token: String,
}

impl Streams {
    /// Opens a stream, unless the token has too many.
    pub(crate) fn open(self: &Arc<Streams>, token: &str) -> Result<OpenStream, Problem> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(token.to_owned()).or_default();
        if *count >= MAX_STREAMS_PER_TOKEN {
            let detail = format!("This token has {MAX_STREAMS_PER_TOKEN} event streams open; close one first.");
            return Err(Problem { retry_after: Some(RETRY_AFTER_SECONDS), ..Problem::new(Kind::RateLimited, detail) });
        }
        *count += 1;
        drop(open);
        Ok(OpenStream { streams: Arc::clone(self), token: token.to_owned() })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_so_many_streams_and_others_have_theirs() {
        let streams = Arc::new(Streams::default());
        let mut held: Vec<OpenStream> = (0..16).map(|_| streams.open("ann").unwrap()).collect();
        assert_eq!(streams.open("ann").unwrap_err().status(), 429);
        assert!(streams.open("bob").is_ok());
        held.pop();
        assert!(streams.open("ann").is_ok());
        drop(held);
        assert!(streams.0.lock().unwrap().is_empty());
    }
}
