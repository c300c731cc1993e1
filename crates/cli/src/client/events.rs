//! Events as they happen (Server-Sent Events).

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::Value;

use super::{Client, Parameter, Refusal};
use crate::CliError;

/// The server says something at least every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);
/// The wait before it is asked again after a stream broke.
const PAUSE: Duration = Duration::from_secs(2);

/// Something that happened.
#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    /// Such as `run.succeeded`; `reset` if some were lost.
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// A stream of events, which goes on where it was if it breaks.
pub(crate) struct Events<'a> {
    client: &'a Client,
    query: Vec<Parameter<'a>>,
    response: Option<Response>,
    lines: Lines,
}

/// What has come and was not read yet.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    last_id: Option<String>,
}

impl Client {
    /// Listens from now on: who reads a state afterwards misses nothing.
    pub(crate) fn events<'a>(&'a self, query: Vec<Parameter<'a>>) -> Result<Events<'a>, CliError> {
        let mut events = Events { client: self, query, response: None, lines: Lines::default() };
        events.connect()?;
        Ok(events)
    }
}

impl Events<'_> {
    /// The next event; nothing if none came in time. A broken stream tells `reset`: read again what you show.
    pub(crate) fn next(&mut self, within: Option<Duration>) -> Result<Option<Event>, CliError> {
        loop {
            if let Some(event) = self.lines.take() {
                return Ok(Some(event));
            }
            let Some(response) = &mut self.response else {
                self.client.sleep(PAUSE)?;
                self.connect()?;
                return Ok(Some(Event { kind: "reset".to_owned(), data: Value::Null }));
            };
            let patience = within.unwrap_or(SILENCE).min(SILENCE);
            match self.client.block(async { Ok(tokio::time::timeout(patience, response.chunk()).await) })? {
                Ok(Ok(Some(chunk))) => self.lines.bytes.extend_from_slice(&chunk),
                Err(_) if within.is_some() => return Ok(None),
                _ => self.response = None,
            }
        }
    }

    fn connect(&mut self) -> Result<(), CliError> {
        let client = self.client;
        let mut request = client.request(Method::GET, "/events", &self.query)?;
        if let Some(id) = self.lines.last_id.as_ref().and_then(|id| id.parse().ok()) {
            request.headers_mut().insert("last-event-id", id);
        }
        self.lines.bytes.clear();
        let answer = async { Ok(tokio::time::timeout(client.timeout, client.http.execute(request)).await) };
        let response = match client.block(answer)? {
            Err(_) => return Err(client.too_late()),
            Ok(Err(error)) => return Err(client.unreachable(&error)),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status.is_success() {
            self.response = Some(response);
            return Ok(());
        }
        let headers = response.headers().clone();
        let text = client.block(async { Ok(response.text().await.unwrap_or_default()) })?;
        Err(Refusal::new("follow events".to_owned(), status.as_u16(), &headers, &text, &client.place).into())
    }
}

impl Lines {
    /// The first event that is complete.
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
fn events_are_read_as_they_come() {
    let mut lines = Lines::default();
    lines.bytes.extend(b"retry: 2000\n: everbell\n\nid: a-1\nevent: run.failed\ndata: {\"x\":1}\n");
    assert_eq!(lines.take(), None);
    lines.bytes.extend(b"\n: \n\nevent: reset\ndata: {}\n\n");
    let told = |kind: &str, data| Some(Event { kind: kind.to_owned(), data });
    assert_eq!(lines.take(), told("run.failed", serde_json::json!({"x": 1})));
    assert_eq!(lines.last_id.as_deref(), Some("a-1"));
    assert_eq!(lines.take(), told("reset", serde_json::json!({})));
    assert_eq!(lines.take(), None);
}
