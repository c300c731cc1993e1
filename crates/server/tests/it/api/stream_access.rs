//! Streams of events: who sees what, for how long, and how many at once.

use std::time::Duration;

use serde_json::{Value, json};

use super::events::Stream;
use crate::server::{Server, time};
use crate::ui::visitor::Visitor;

/// Makes a token of this name and role.
fn token(server: &Server, name: &str, role: &str) -> String {
    let made = server.post("/tokens", &json!({ "name": name, "role": role }));
    made.expect(201)["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_stream_ends_when_its_token_is_revoked() {
    let server = Server::start();
    let mut stream = Stream::with_token(&server, &token(&server, "ana", "viewer"));
    server.delete("/tokens/ana").expect(204);
    server.job("daily", &json!({}));
    let rest = stream.rest(3).expect("the stream goes on");
    assert!(!rest.contains("job.create"), "{rest}");
}

#[test]
fn a_stream_of_the_web_pages_ends_when_its_token_is_revoked() {
    let server = Server::start();
    let visitor = Visitor::new(&server, &token(&server, "ana", "viewer"));
    let mut stream = Stream::with(&server, "/ui/events", &format!("cookie: {}\r\n", visitor.cookies()));
    server.delete("/tokens/ana").expect(204);
    server.job("daily", &json!({}));
    let rest = stream.rest(3).expect("the stream goes on");
    assert!(!rest.contains("job.create"), "{rest}");
}

#[test]
fn a_stream_ends_when_its_token_expires() {
    let server = Server::start();
    let now = || time(&server.get("/status").expect(200)["now"]);
    let end = now() + Duration::from_secs(10);
    let body = json!({ "name": "ana", "role": "viewer", "expiresAt": end.to_string() });
    let made = server.post("/tokens", &body).expect(201);
    let mut stream = Stream::with_token(&server, made["token"].as_str().unwrap());
    stream.rest(6).expect("the stream goes on");
    assert!(now() >= end);
}

#[test]
fn a_stream_shows_what_its_role_may_see() {
    let server = Server::start();
    let mut viewer = Stream::with_token(&server, &token(&server, "v", "viewer"));
    let mut operator = Stream::with_token(&server, &token(&server, "o", "operator"));
    let mut admin = Stream::with_token(&server, &server.token);
    token(&server, "secret-contractor", "viewer");
    server.job("daily", &json!({}));

    let mut event = admin.next(&["token.create", "job.create"]);
    // The tokens of the others may be told as well.
    while event.event == "token.create" && event.data["object"] != "token:secret-contractor" {
        event = admin.next(&["token.create", "job.create"]);
    }
    assert_eq!((event.event.as_str(), &event.data["object"]), ("token.create", &json!("token:secret-contractor")));
    let event = operator.next(&["token.create", "job.create"]);
    assert_eq!((event.event.as_str(), &event.data["actor"]), ("job.create", &json!("token:admin")));
    let event = viewer.next(&["token.create", "job.create"]);
    assert_eq!((event.event.as_str(), &event.data["actor"]), ("job.create", &Value::Null));
    assert_eq!(event.data["object"], "job:daily");
}

#[test]
fn a_token_holds_sixteen_streams_at_once() {
    let server = Server::start();
    let ana = token(&server, "ana", "viewer");
    let mut open: Vec<Stream> = (0..16).map(|_| Stream::with_token(&server, &ana)).collect();
    let header = format!("Bearer {ana}");
    let reply = server.request("GET", "/events", &[("authorization", &header)], b"");
    let problem = reply.problem(429, "RateLimited");
    assert!(problem["detail"].as_str().unwrap().contains("16"), "{problem}");
    assert!(reply.headers.contains_key("retry-after"), "{reply:?}");
    // Others are not in its way, and one that ends makes room.
    drop(Stream::with_token(&server, &server.token));
    open.pop();
    let freed = crate::server::eventually(|| {
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head =
            format!("GET /api/v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: {header}\r\n\r\n", server.address);
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut line).unwrap();
        line.contains("200").then_some(())
    });
    assert!(freed.is_some());
}
