//! A client of the REST API that measures how long each answer takes.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::Outcome;
use super::clock::instant;

/// The admin token of every server of an experiment.
pub(crate) const TOKEN: &str = "evb_chaos0123456789012345678901234567890123456789";

/// The answer to one request.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) seconds: f64,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The document of an answer with this status.
    pub(crate) fn expect(&self, status: u16) -> Outcome<Value> {
        if self.status == status {
            return Ok(self.json());
        }
        Err(format!("expected {status}, got {}: {}", self.status, self.body).into())
    }

    /// The reason that a refusal gives, in one line.
    pub(crate) fn reason(&self) -> String {
        let json = self.json();
        json["detail"].as_str().or(json["title"].as_str()).unwrap_or(&self.body).chars().take(160).collect()
    }
}

/// Sends a request with the admin token. An error is a missing answer: refused, cut off, or none within the limit.
pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
    limit: Duration,
) -> Outcome<Response> {
    let begun = instant();
    let socket: SocketAddr = address.parse()?;
    let mut stream = TcpStream::connect_timeout(&socket, limit)?;
    stream.set_write_timeout(Some(limit))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\n\
         content-length: {}\r\n",
        body.len()
    );
    if !body.is_empty() {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n")?;
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 16_384]);
    loop {
        let left = limit.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or_else(|| format!("no answer within {limit:?}"))?))?;
        match stream.read(&mut buffer)? {
            0 => break,
            read => answer.extend_from_slice(&buffer[..read]),
        }
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, text) = answer.split_once("\r\n\r\n").ok_or("the connection was closed without an answer")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("no status line")?;
    Ok(Response { status, body: text.to_owned(), seconds: begun.elapsed().as_secs_f64() })
}
