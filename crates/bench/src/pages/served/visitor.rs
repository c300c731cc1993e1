//! A client of the pages: a connection for each request, and the cookie of the session.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::child::{Served, TOKEN};
use crate::engine::Outcome;

/// A client that has signed in.
pub(super) struct Visitor<'a> {
    server: &'a Served,
    cookie: String,
}

impl Visitor<'_> {
    pub(super) fn new(server: &Served) -> Outcome<Visitor<'_>> {
        let nobody = Visitor { server, cookie: String::new() };
        let (head, _) = nobody.asked("POST", "/sign-in", &format!("token={TOKEN}"))?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
        let cookie = cookie.ok_or_else(|| format!("nobody is let in: {head}"))?.to_owned();
        Ok(Visitor { cookie, ..nobody })
    }

    /// A page that must be there.
    pub(super) fn page(&self, path: &str) -> Outcome<String> {
        self.answered("GET", path, "")
    }

    /// Sends a form and returns the page that it leads to.
    pub(super) fn send(&self, path: &str, body: &str) -> Outcome<String> {
        self.answered("POST", path, body)
    }

    fn answered(&self, method: &str, path: &str, body: &str) -> Outcome<String> {
        let (head, text) = self.asked(method, path, body)?;
        if head.starts_with("HTTP/1.1 200 ") {
            return Ok(text);
        }
        Err(format!("{method} {path}: {}", head.lines().next().unwrap_or_default()).into())
    }

    fn asked(&self, method: &str, path: &str, body: &str) -> Outcome<(String, String)> {
        let mut stream = TcpStream::connect(&self.server.address)?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\naccept: text/html\r\ncookie: {}\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
            self.server.address,
            self.cookie,
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, text) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("{method} {path}: no answer"))?;
        Ok((head.to_owned(), text.to_owned()))
    }
}
