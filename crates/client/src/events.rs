//! [`Events`]: changes as they happen, as Server-Sent Events.

use std::time::Duration;

use everbell_wire::RunEvent;
use futures_util::stream::{Stream, try_unfold};
use reqwest::Response;
use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;
use crate::query::EventQuery;
use crate::{Error, Refusal};

/// The server sends something at least every 15 seconds; a stream that is silent for longer than this is broken.
const MAX_SILENCE: Duration = Duration::from_secs(45);
/// The wait before a broken stream is opened again.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// A change that the server reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its type, such as `run.succeeded`; `reset` if events may have been lost.
    pub kind: String,
    /// Its document.
    pub data: Value,
}

impl Event {
    /// Reads the change of a run; `None` if the event is about something else.
    pub fn run(&self) -> Option<RunEvent> {
        self.kind.starts_with("run.").then(|| RunEvent::deserialize(&self.data).ok()).flatten()
    }
}

/// A stream of events, which reconnects and continues after the last event if it breaks.
#[derive(Debug)]
pub struct Events {
    client: Client,
    query: EventQuery,
    response: Option<Response>,
    received: Received,
}

/// Bytes that were received and not parsed yet.
#[derive(Debug, Default)]
struct Received {
    bytes: Vec<u8>,
    last_id: Option<String>,
}

impl Client {
    /// Subscribes to events. Subscribe before you read a state that you want to follow, so that no change is missed.
    pub async fn events(&self, query: &EventQuery) -> Result<Events, Error> {
        let received = Received::default();
        let mut events = Events { client: self.clone(), query: query.clone(), response: None, received };
        events.connect().await?;
        Ok(events)
    }
}

impl Events {
    /// Waits for the next event. After a `reset`, read again what you follow: events may have been lost.
    pub async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.receive(None).await? {
                return Ok(event);
            }
        }
    }

    /// Waits for the next event; `None` if there is none in time.
    pub async fn next_within(&mut self, wait: Duration) -> Result<Option<Event>, Error> {
        self.receive(Some(wait)).await
    }

    /// The events as a stream, which ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, Error>> {
        try_unfold(self, async |mut events| Ok(Some((events.next().await?, events))))
    }

    async fn receive(&mut self, wait: Option<Duration>) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.received.take() {
                return Ok(Some(event));
            }
            let Some(response) = &mut self.response else {
                tokio::time::sleep(RECONNECT_DELAY).await;
                self.connect().await?;
                return Ok(Some(Event { kind: "reset".to_owned(), data: Value::Null }));
            };
            let silence = wait.unwrap_or(MAX_SILENCE).min(MAX_SILENCE);
            match tokio::time::timeout(silence, response.chunk()).await {
                Ok(Ok(Some(chunk))) => self.received.bytes.extend_from_slice(&chunk),
                Err(_) if wait.is_some() => return Ok(None),
                _ => self.response = None,
            }
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let client = &self.client;
        let mut request = client.get::<()>("/events").query(&self.query).into_request()?;
        if let Some(id) = self.received.last_id.as_ref().and_then(|id| id.parse().ok()) {
            request.headers_mut().insert("last-event-id", id);
        }
        self.received.bytes.clear();
        let call = format!("GET {}", request.url().path());
        let response = client.execute(request).await?;
        let status = response.status();
        if status.is_success() {
            self.response = Some(response);
            return Ok(());
        }
        let headers = response.headers().clone();
        let text = response.text().await.unwrap_or_default();
        Err(Refusal::new(call, status.as_u16(), &headers, &text).into())
    }
}

impl Received {
    /// Takes the first event that is complete.
    fn take(&mut self) -> Option<Event> {
        loop {
            let end = self.bytes.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.bytes.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&block);
            let field = |name: &str| {
                text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_start)
            };
            if let Some(id) = field("id") {
                self.last_id = Some(id.to_owned());
            }
            if let (Some(kind), Some(data)) = (field("event"), field("data")) {
                return Some(Event { kind: kind.to_owned(), data: serde_json::from_str(data).unwrap_or_default() });
            }
        }
    }
}

#[test]
fn events_are_parsed_when_they_are_complete() {
    let mut received = Received::default();
    received.bytes.extend(b"retry: 2000\n: everbell\n\nid: a-1\nevent: run.failed\ndata: {\"x\":1}\n");
    assert_eq!(received.take(), None);
    received.bytes.extend(b"\n: \n\nevent: reset\ndata: {}\n\n");
    let event = |kind: &str, data| Some(Event { kind: kind.to_owned(), data });
    assert_eq!(received.take(), event("run.failed", serde_json::json!({"x": 1})));
    assert_eq!(received.last_id.as_deref(), Some("a-1"));
    assert_eq!(received.take(), event("reset", serde_json::json!({})));
    assert_eq!(received.take(), None);
}
