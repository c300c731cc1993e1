//! [`Client`]: the API of a server, called from a command.
//!
//! A command asks one thing after the other, so the calls are plain functions; the runtime below them is nobody else's
//! business. What the server says no to becomes a [`Refusal`], which knows its exit code.

mod answer;
mod events;
mod matching;
mod pages;
mod place;
mod probe;
mod refusal;

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_MATCH};
use reqwest::redirect::Policy;
use reqwest::{Method, Request, Url};
use rustls::crypto::{CryptoProvider, ring};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use super::{CliError, OnlineArgs};
use everbell_wire::JSON_LINES;
use place::{Given, Place};

pub(crate) use answer::{Answer, Nothing, Response, WithJson};
pub(crate) use events::Events;
pub(crate) use pages::List;
pub use place::TOKEN_FILE;
pub(crate) use place::{first_token_file, job_path, segment};
pub(crate) use probe::probe;
pub(crate) use refusal::Asked;
pub use refusal::Refusal;

/// The most that an answer may have.
const LONGEST_ANSWER: usize = 64 << 20;

/// A parameter of a query and its value.
pub(crate) type Parameter<'a> = (&'a str, String);

/// A server and who calls it.
pub(crate) struct Client {
    http: reqwest::Client,
    runtime: Runtime,
    place: Place,
    timeout: Duration,
}

impl Client {
    /// The server and the token that flags, the environment or the data folder name. Nothing is sent yet.
    pub(crate) fn new(args: &OnlineArgs) -> Result<Client, CliError> {
        let given = Given::from_process(args);
        let place = Place::find(&given)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Client { http: http(&place.server)?, runtime, place, timeout: args.request_timeout })
    }

    /// Where the server is, as people reach it.
    pub(crate) fn server(&self) -> &str {
        self.place.server.as_str().trim_end_matches('/')
    }

    /// Whether the token leaves this machine without encryption.
    pub(crate) fn sends_token_in_clear(&self) -> bool {
        self.place.token.is_some() && self.place.server.scheme() == "http" && !self.place.is_loopback()
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str, query: &[Parameter<'_>]) -> Result<Answer<T>, CliError> {
        self.send(self.request(Method::GET, path, query)?)
    }

    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<Answer<T>, CliError> {
        self.send(self.with_body(Method::POST, path, body)?)
    }

    pub(crate) fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<Answer<T>, CliError> {
        self.send(self.with_body(Method::PUT, path, body)?)
    }

    pub(crate) fn delete<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[Parameter<'_>],
    ) -> Result<Answer<T>, CliError> {
        self.send(self.request(Method::DELETE, path, query)?)
    }

    /// Posts many JSON documents, one on each line.
    pub(crate) fn post_lines<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[Parameter<'_>],
        lines: String,
    ) -> Result<Answer<T>, CliError> {
        let mut request = self.request(Method::POST, path, query)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_LINES));
        *request.body_mut() = Some(lines.into());
        self.send(request)
    }

    /// Any call, with a body that is JSON already and an answer that is not read.
    pub(crate) fn call(
        &self,
        method: Method,
        path: &str,
        query: &[Parameter<'_>],
        body: Option<String>,
    ) -> Result<Response, CliError> {
        let mut request = self.request(method, path, query)?;
        if let Some(body) = body {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.into());
        }
        self.exchange(request)
    }

    /// Waits, unless somebody interrupts.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), CliError> {
        self.block(async {
            tokio::time::sleep(time).await;
            Ok(())
        })
    }

    fn with_body(&self, method: Method, path: &str, body: &impl Serialize) -> Result<Request, CliError> {
        let mut request = self.request(method, path, &[])?;
        let body = serde_json::to_vec(body).map_err(|error| CliError::invalid(error.to_string()))?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(body.into());
        Ok(request)
    }

    fn request(&self, method: Method, path: &str, query: &[Parameter<'_>]) -> Result<Request, CliError> {
        let mut url = self.place.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query.iter().map(|(name, value)| (*name, value.as_str())));
        }
        let changes = method != Method::GET;
        let mut request = Request::new(method, url);
        if let Some(token) = &self.place.token {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.text.reveal()))
                .map_err(|_| CliError::invalid(format!("the token of {} is no token", token.source)))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        if changes {
            // A person decides by what they see now; a server that wants to know which revision that is hears: any.
            request.headers_mut().insert(IF_MATCH, HeaderValue::from_static("*"));
        }
        Ok(request)
    }

    /// Sends a request and reads the response as a document.
    fn send<T: DeserializeOwned>(&self, request: Request) -> Result<Answer<T>, CliError> {
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = self.exchange(request)?;
        self.read(&method, &path, response)
    }

    fn exchange(&self, request: Request) -> Result<Response, CliError> {
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let exchange = async {
            let response = self.http.execute(request).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            Ok::<_, reqwest::Error>((status, headers, read(response).await?))
        };
        let within = self.block(async { Ok(tokio::time::timeout(self.timeout, exchange).await) })?;
        let (status, headers, body) = match within {
            Err(_) => return Err(self.too_late()),
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Ok(Ok(read)) => read,
        };
        let text = String::from_utf8_lossy(&body).into_owned();
        if (200..300).contains(&status) {
            return Ok(Response { status, headers, text });
        }
        Err(Refusal::new(format!("{method} {path}"), status, &headers, &text, &self.place).into())
    }

    /// Drives a call, unless somebody interrupts.
    fn block<T>(&self, call: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
        self.runtime.block_on(async {
            tokio::select! {
                done = call => done,
                _ = tokio::signal::ctrl_c() => Err(CliError::Interrupted),
            }
        })
    }

    fn too_late(&self) -> CliError {
        let waited = everbell_wire::elapsed::wait(self.timeout.as_secs() as i64);
        CliError::Unreachable {
            message: format!("{} did not answer within {waited}", self.server()),
            hint: "see that the server is well, or wait longer with `--request-timeout 2m`".to_owned(),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> CliError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let named = match self.place.server_from {
            Some(from) => format!("see that the server runs there; {from} names that address"),
            None => "start one with `everbell serve`, or name another with `--server` or EVERBELL_SERVER".to_owned(),
        };
        CliError::Unreachable { message: format!("cannot reach the server at {}: {cause}", self.server()), hint: named }
    }
}

/// Redirects would take the token elsewhere, and a proxy of the environment would see it.
fn http(server: &Url) -> Result<reqwest::Client, CliError> {
    // Somebody else's provider does as well; without any, a client cannot be made.
    drop(CryptoProvider::install_default(ring::default_provider()));
    let builder = reqwest::ClientBuilder::new()
        .user_agent(concat!("everbell/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .no_proxy()
        .referer(false);
    // Without TLS there is no need for the certificates of the machine, which may have none.
    let builder = if server.scheme() == "https" { builder } else { builder.tls_certs_only([]) };
    builder.build().map_err(|error| CliError::Failed { message: format!("cannot set up TLS: {error}"), hint: None })
}

async fn read(mut response: reqwest::Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST_ANSWER {
            break;
        }
    }
    Ok(body)
}
