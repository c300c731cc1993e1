//! The stream of events.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::Server;

/// A stream that is being read.
pub(crate) struct Stream(BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct StreamEvent {
    id: String,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Stream {
    fn open(server: &Server, query: &str, last_id: Option<&str>) -> Stream {
        let last = last_id.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!("authorization: Bearer {}\r\n{last}", server.token);
        Stream::with(server, &format!("/api/v1/events?{query}"), &head)
    }

    /// As the holder of this token.
    pub(crate) fn with_token(server: &Server, token: &str) -> Stream {
        Stream::with(server, "/api/v1/events", &format!("authorization: Bearer {token}\r\n"))
    }

    /// At this path, with these headers.
    pub(crate) fn with(server: &Server, path: &str, headers: &str) -> Stream {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{headers}\r\n", server.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = Stream(BufReader::new(stream));
        // The beginning has come when the comment has.
        while !stream.line().starts_with(": everbell") {}
        stream
    }

    fn line(&mut self) -> String {
        self.next_line().expect("the stream ended")
    }

    /// The next line; nothing when the stream has ended.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.0.read_line(&mut line).unwrap() > 0).then_some(line)
    }

    /// Everything that comes until the server ends the stream, or until this many comments of a quiet stream came.
    pub(crate) fn rest(&mut self, quiet: usize) -> Option<String> {
        let mut rest = String::new();
        while let Some(line) = self.next_line() {
            rest.push_str(&line);
            // The end of a chunked body is a chunk of no length.
            if line.trim() == "0" {
                return Some(rest);
            }
            if rest.lines().filter(|line| line.trim() == ":").count() >= quiet {
                return None;
            }
        }
        Some(rest)
    }

    /// The next event of one of these kinds.
    pub(crate) fn next(&mut self, kinds: &[&str]) -> StreamEvent {
        let (mut id, mut event) = (String::new(), String::new());
        loop {
            let line = self.line();
            if let Some(text) = line.strip_prefix("id: ") {
                text.trim().clone_into(&mut id);
            } else if let Some(text) = line.strip_prefix("event: ") {
                text.trim().clone_into(&mut event);
            } else if let Some(text) = line.strip_prefix("data: ")
                && kinds.contains(&event.as_str())
            {
                return StreamEvent { id, event, data: serde_json::from_str(text.trim()).unwrap() };
            }
        }
    }
}

fn check(server: &Server) {
    let mut stream = Stream::open(server, "", None);
    server.job("daily", &json!({}));
    let created = stream.next(&["job.create"]);
    assert_eq!(created.data["jobKey"], "daily", "{created:?}");
    let run = server.post("/jobs/key:daily/run-now", &json!({})).expect(202)["run"]["id"].clone();
    let event = loop {
        let event = stream.next(&["run.succeeded"]);
        if event.data["runId"] == run {
            break event;
        }
    };
    assert_eq!((&event.data["jobKey"], &event.data["target"]), (&json!("daily"), &json!("print")));

    // A client that reconnects gets the events that it missed.
    drop(stream);
    let mut again = Stream::open(server, "types=run.*&jobKey=daily", Some(&created.id));
    assert_eq!(again.next(&["run.succeeded"]).data["runId"], run);
    let mut lost = Stream::open(server, "", Some("elsewhere-7"));
    assert_eq!(lost.next(&["reset"]).event, "reset");
}

#[test]
fn what_happens_is_told() {
    check(&Server::start());
}

#[test]
fn what_happens_is_told_on_postgres() {
    check(&Server::postgres(crate::server::TARGETS));
}
