//! The `http` target: calls a URL with a description of the run.
//!
//! ```text
//!   checked    settings -> a call that can be made, or every problem
//!   request    a run -> headers (CloudEvents, Standard Webhooks) and body; signature signs it
//!   guard      names -> addresses that may be called
//!   response   the response -> result, or failure; `failure` covers calls without a response
//! ```
//!
//! A call is exactly what the configuration says: no redirect is followed, no proxy of the environment is used, and no
//! response is read without a bound.

mod checked;
mod failure;
mod guard;
mod request;
mod response;
mod signature;

use std::sync::Arc;
use std::time::Duration;

use everbell::{Action, FailureCode, IntoOutcome, Run, RunError, Timestamp};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Request, StatusCode};
use rustls::crypto::{CryptoProvider, ring};
use tracing::debug;

use self::checked::Checked;
use self::response::{BoundedResponse, Success};
use super::redact::Redactor;
use super::{HttpSettings, Problem};
use everbell_observe::Metrics;

/// How long a connection waits for another call. Shorter than any server keeps one, so that no call begins on a connection
/// that the other side is just closing.
const MAX_IDLE_TIME: Duration = Duration::from_secs(2);

/// A URL that can be called.
#[derive(Debug)]
pub(crate) struct Http {
    client: Client,
    checked: Checked,
    redactor: Redactor,
}

pub(super) fn action(settings: &HttpSettings, metrics: &Metrics) -> Result<Action, Problem> {
    let unknown = || ("url", "cannot be called".to_owned());
    let http = Http::new(settings).map_err(|problems| problems.into_iter().next().unwrap_or_else(unknown))?;
    let (http, metrics) = (Arc::new(http), metrics.clone());
    Ok(Arc::new(move |run| {
        let (http, metrics) = (Arc::clone(&http), metrics.clone());
        Box::pin(async move { http.call(&run, &metrics).await.into_outcome() })
    }))
}

impl Http {
    /// Reads the settings and the certificates that they name.
    pub(crate) fn new(settings: &HttpSettings) -> Result<Http, Vec<Problem>> {
        let checked = checked::check(settings)?;
        let client = client(&checked).map_err(|error| {
            let field = if settings.ca_file.is_some() { "ca_file" } else { "url" };
            vec![(field, format!("TLS cannot be set up: {}", failure::innermost(&error)))]
        })?;
        Ok(Http { client, checked, redactor: Redactor::for_http(settings) })
    }

    async fn call(&self, run: &Run, metrics: &Metrics) -> Result<Success, RunError> {
        let Checked { timeout, success, origin, .. } = &self.checked;
        let request = request::request(&self.checked, run)?;
        let answer = tokio::select! {
            biased;
            () = run.canceled() => {
                return Err(RunError::fail(FailureCode::CANCELED.as_str(), "stopped before there was an answer"));
            }
            answer = tokio::time::timeout(*timeout, self.exchange(request)) => answer,
        };
        // A target may echo the token of the run, too.
        let hidden = Redactor::new(run.token());
        let answer = answer.map(|answer| answer.map(|answer| answer.redacted(&hidden)));
        metrics.http_target(answer.as_ref().ok().and_then(|answer| Some(answer.as_ref().ok()?.status.as_u16())));
        let late = |_| failure::timed_out(origin, *timeout);
        let answer = answer.map_err(late)?.map_err(|error| failure::unreachable(origin, &error))?;
        debug!(run = %run.id(), status = answer.status.as_u16(), "{origin} answered");
        run.write_output(&answer.body);
        if answer.status == StatusCode::ACCEPTED && run.hand_over() {
            debug!(run = %run.id(), "{origin} is working on it");
        }
        answer.judge(success, origin, run.started_at())
    }

    /// Sends a message that is about no run, signed like a call for one. The error is for people, and names no secret.
    pub(crate) async fn send(
        &self,
        id: &str,
        at: Timestamp,
        about: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> Result<(), String> {
        let Checked { timeout, success, origin, .. } = &self.checked;
        let request = request::message(&self.checked, id, at.as_second(), about, body);
        let answer = tokio::time::timeout(*timeout, self.exchange(request)).await;
        let answer = answer.map_err(|_| failure::timed_out(origin, *timeout).message().to_owned())?;
        let answer = answer.map_err(|error| failure::unreachable(origin, &error).message().to_owned())?;
        answer.judge(success, origin, at).map(drop).map_err(|error| error.message().to_owned())
    }

    async fn exchange(&self, request: Request) -> Result<BoundedResponse, reqwest::Error> {
        Ok(BoundedResponse::read(self.client.execute(request).await?).await?.redacted(&self.redactor))
    }
}

fn client(checked: &Checked) -> Result<Client, reqwest::Error> {
    // Another provider will do as well; without any, no client can be created.
    drop(CryptoProvider::install_default(ring::default_provider()));
    let certificates = checked.certificates.clone();
    let builder = ClientBuilder::new()
        .user_agent(concat!("everbell/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .pool_idle_timeout(MAX_IDLE_TIME)
        .dns_resolver(checked.guard);
    // Without TLS there is no need for the certificates of the machine, which may have none.
    let builder = if checked.url.scheme() == "https" {
        builder.tls_certs_merge(certificates)
    } else {
        builder.tls_certs_only(certificates)
    };
    builder.build()
}
