//! The stream of events.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::Server;

/// A stream that is being read.
struct Stream(BufReader<TcpStream>);

#[derive(Debug)]
struct Told {
    id: String,
    event: String,
    data: Value,
}

impl Stream {
    fn open(server: &Server, query: &str, last_id: Option<&str>) -> Stream {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let last = last_id.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "GET /api/v1/events?{query} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n{last}\r\n",
            server.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = Stream(BufReader::new(stream));
        // The beginning has come when the comment has.
        while !stream.line().starts_with(": everbell") {}
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
        line
    }

    /// The next event of one of these kinds.
    fn next(&mut self, kinds: &[&str]) -> Told {
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
                return Told { id, event, data: serde_json::from_str(text.trim()).unwrap() };
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
    let told = loop {
        let told = stream.next(&["run.succeeded"]);
        if told.data["runId"] == run {
            break told;
        }
    };
    assert_eq!((&told.data["jobKey"], &told.data["target"]), (&json!("daily"), &json!("print")));

    // Who comes back hears what it missed.
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
