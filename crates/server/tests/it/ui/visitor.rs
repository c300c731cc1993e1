//! [`Visitor`]: a signed-in client that runs no scripts.

use std::cell::RefCell;
use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::server::{Response, Server};

/// A text that must stay text wherever it is shown: HTML, quotes, another direction, more than one code unit.
pub(crate) const NASTY: &str = "<script>\"'&\u{5d0}\u{1f514}";

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A signed-in client without JavaScript, and its cookies.
pub(crate) struct Visitor<'a> {
    server: &'a Server,
    cookies: RefCell<BTreeMap<String, String>>,
}

impl<'a> Visitor<'a> {
    /// The first admin.
    pub(crate) fn admin(server: &'a Server) -> Visitor<'a> {
        Visitor::new(server, &server.token)
    }

    /// A visitor of this role, with a token of their own.
    pub(crate) fn sign_in(server: &'a Server, role: &str) -> Visitor<'a> {
        Visitor::new(server, &server.token_of(role))
    }

    /// A visitor with this token.
    pub(crate) fn new(server: &'a Server, token: &str) -> Visitor<'a> {
        let visitor = Visitor { server, cookies: RefCell::default() };
        let reply = visitor.post_exactly("/sign-in", &[("token", token)]);
        assert_eq!(reply.status, 303, "{}", reply.text);
        visitor
    }

    /// The answer to the form of the page for signing in, sent with these headers.
    pub(crate) fn signed_in_by(server: &Server, token: &str, headers: &[(&str, &str)]) -> Response {
        let reply = server.raw("POST", "/sign-in", &[headers, &[FORM]].concat(), format!("token={token}").as_bytes());
        assert_eq!(reply.status, 303, "{}", reply.text);
        reply
    }

    /// The cookies of the next request.
    pub(crate) fn cookies(&self) -> String {
        let pairs: Vec<String> = self.cookies.borrow().iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.asked("GET", path, &[], "")
    }

    /// The text of a page that must be there.
    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> String {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        reply.text
    }

    /// Opens the page at this path and sends its form with these fields.
    #[track_caller]
    pub(crate) fn send(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let page = self.page(path);
        self.submit(path.split('?').next().unwrap(), &page, fields)
    }

    /// Sends a form of a page that is open, with what the page hides in it.
    pub(crate) fn submit(&self, path: &str, page: &str, fields: &[(&str, &str)]) -> Response {
        let hidden = ["csrf", "once", "revision", "version"].map(|name| (name, value(page, name)));
        let own = hidden.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        self.post_exactly(path, &own.chain(fields.iter().copied()).collect::<Vec<_>>())
    }

    /// Sends a form that was made for this session.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let csrf_token = self.csrf_token();
        self.post_exactly(path, &[fields, &[("csrf", csrf_token.as_str())]].concat())
    }

    /// Sends exactly these fields.
    pub(crate) fn post_exactly(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{}={}", part(name), part(value))).collect();
        self.asked("POST", path, &[FORM], &pairs.join("&"))
    }

    /// Returns the CSRF token of this session.
    pub(crate) fn csrf_token(&self) -> String {
        hidden(&self.page("/settings"), "csrf")
    }

    /// Goes where a form that was accepted leads, and reads the page there.
    #[track_caller]
    pub(crate) fn follow(&self, reply: &Response) -> String {
        assert_eq!(reply.status, 303, "{}", reply.text);
        self.page(&reply.headers["location"])
    }

    fn asked(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let cookies = self.cookies();
        let headers = [headers, &[("cookie", cookies.as_str())]].concat();
        let reply = self.server.raw(method, path, &headers, body.as_bytes());
        let set = reply.headers.get("set-cookie").and_then(|text| text.split(';').next()?.split_once('='));
        if let Some((name, value)) = set {
            self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
        }
        reply
    }
}

/// A text as a part of a path or query.
pub(crate) fn part(text: &str) -> String {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Returns the value of a hidden field.
#[track_caller]
pub(crate) fn hidden(page: &str, name: &str) -> String {
    value(page, name).unwrap_or_else(|| panic!("there is no hidden `{name}` in {page}"))
}

fn value(page: &str, name: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\""))?;
    rest.split('"').next().map(str::to_owned)
}

/// The first text between two others.
#[track_caller]
pub(crate) fn between<'p>(page: &'p str, begin: &str, end: &str) -> &'p str {
    let rest = page.split_once(begin).unwrap_or_else(|| panic!("`{begin}` is not in {page}")).1;
    rest.split_once(end).unwrap().0
}

/// Where an answer leads, and what the page there will say first.
#[track_caller]
pub(crate) fn led(reply: &Response) -> (String, String) {
    assert_eq!(reply.status, 303, "{}", reply.text);
    let cookie = reply.headers["set-cookie"].split(';').next().unwrap();
    let text = cookie.split_once('=').unwrap().1;
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte.unwrap()).to_digit(16).unwrap() as u8;
        bytes.push(if byte == b'%' { digit(rest.next()) * 16 + digit(rest.next()) } else { byte });
    }
    (reply.headers["location"].clone(), String::from_utf8(bytes).unwrap())
}

/// A page that has all of these parts.
#[track_caller]
pub(crate) fn assert_has(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "`{part}` is missing: {page}");
    }
}

/// A page that shows this text: escaped, and nowhere as it is.
#[track_caller]
pub(crate) fn assert_shown(page: &str, nasty: &str) {
    assert!(!page.contains("<script>\""), "{page}");
    let escaped = nasty.replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;");
    let escaped = escaped.replace('"', "&#34;").replace('\'', "&#39;");
    let ours = nasty.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let ours = ours.replace('"', "&quot;").replace('\'', "&#39;");
    assert!(page.contains(&escaped) || page.contains(&ours), "{nasty} is not shown in {page}");
}
