//! [`UiRequest`], a request for a page as a handler sees it, and [`UiResponse`], its response.

use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode};
use everbell::{Jobs, Orgs, Runs};
use everbell_core::Target;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cache::UiCache;
use super::choices::Choices;
use super::clock::Clock;
use super::prefix::Prefix;
use super::session::{Cookies, Session};
use everbell_http::access::{Actor, Role};
use everbell_http::denials::{Attempt, Denied};
use everbell_http::internal_call::{InternalCall, perform};
use everbell_http::problem::{Kind, Problem};
use everbell_http::request::ApiRequest;
use everbell_http::{App, User, proxy};
use everbell_wire::form::{Field, Form, Naming};

/// A request for a page.
#[derive(Clone)]
pub(crate) struct UiRequest {
    pub(crate) app: Arc<App>,
    pub(crate) cache: Arc<UiCache>,
    pub(crate) actor: Actor,
    pub(crate) session: Option<Session>,
    /// The person whom the application around these pages has authenticated.
    pub(crate) user: Option<User>,
    /// Where the pages are mounted.
    pub(crate) prefix: Prefix,
    pub(crate) cookies: Cookies,
    pub(crate) choices: Choices,
    pub(crate) headers: HeaderMap,
    pub(crate) peer: Option<std::net::IpAddr>,
    /// The id of the request.
    pub(crate) id: String,
    /// The path and query, for coming back.
    pub(crate) here: String,
    pub(crate) path: Vec<(String, String)>,
    /// The valid query parameters of the page. Empty ones are absent.
    pub(crate) query: Value,
    /// The submitted fields of a form, in order.
    pub(crate) sent: Vec<(String, String)>,
    /// One moment for the whole page.
    pub(crate) now: Timestamp,
}

impl UiRequest {
    /// Returns the jobs client of the actor.
    pub(crate) fn jobs(&self) -> Jobs {
        self.actor.jobs(&self.app.bell)
    }

    /// Returns the runs client of the actor.
    pub(crate) fn runs(&self) -> Runs {
        self.actor.runs(&self.app.bell)
    }

    /// Returns the orgs client of the actor.
    pub(crate) fn orgs(&self) -> Orgs {
        self.actor.orgs(&self.app.bell)
    }

    /// Returns the clock with the display preferences of the browser.
    pub(crate) fn clock(&self) -> Clock {
        self.choices.clock(self.now)
    }

    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
    }

    /// The query, which fits its fields.
    pub(crate) fn query(&self, fields: &'static [Field]) -> Form<'_> {
        Form::read(&self.query, fields, Naming::Camel)
    }

    /// Returns the trimmed value of a submitted field, or `None` if it is empty.
    pub(crate) fn sent(&self, name: &str) -> Option<&str> {
        let sent = self.sent.iter().find(|(own, _)| own == name);
        sent.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns all submitted values of this name.
    pub(crate) fn sent_all(&self, name: &str) -> Vec<&str> {
        self.sent.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Converts this request, so that the code of the API can read its query and cursor.
    pub(crate) fn to_api_request(&self) -> ApiRequest {
        ApiRequest {
            app: Arc::clone(&self.app),
            actor: self.actor.clone(),
            prefix: String::new(),
            mount: String::new(),
            path: self.path.clone(),
            query: self.query.clone(),
            body: Value::Null,
            text: String::new(),
            if_match: None,
            headers: self.headers.clone(),
            peer: self.peer,
            request_key: None,
        }
    }

    /// Calls the API on behalf of the actor and returns the document of the response. The revision and the
    /// idempotency key, which makes a double click one request, come from the form.
    pub(crate) async fn perform<T: DeserializeOwned>(
        &self,
        method: Method,
        route: &str,
        path: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<T, Problem> {
        let call = InternalCall::new(method, route, path);
        self.ask(InternalCall { revision: self.revision(), once: self.sent("once"), ..call }, body).await
    }

    /// Calls the API with exactly what the call says, such as a query.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        call: InternalCall<'_>,
        body: &impl Serialize,
    ) -> Result<T, Problem> {
        let (method, route) = (call.method.clone(), call.route.to_owned());
        let done = perform(&self.app, &self.actor, call, body).await;
        if let Err(problem) = &done {
            self.denied(problem, method.as_str(), &route).await;
        }
        done
    }

    /// The revision for which the form was made.
    pub(crate) fn revision(&self) -> Option<u64> {
        self.sent("revision").and_then(|text| text.parse().ok())
    }

    /// The address of the client.
    pub(crate) fn address(&self) -> Option<std::net::IpAddr> {
        proxy::client_address(&self.app.options(), &self.headers, self.peer)
    }

    /// Records a denial, if the problem is one.
    pub(crate) async fn denied(&self, problem: &Problem, method: &str, route: &str) {
        let actor = Some(&self.actor).filter(|actor| actor.is_known());
        let (address, request_id) = (self.address(), self.id.as_str());
        let denied = Denied { attempt: Attempt::Request, problem, method, route, address, request_id, actor };
        self.app.denials.note(&self.app.bell, &denied).await;
    }

    /// Records a failed sign-in.
    pub(crate) async fn sign_in_failed(&self, problem: &Problem) {
        let (address, request_id) = (self.address(), self.id.as_str());
        let (method, route) = ("POST", "/sign-in");
        let denied = Denied { attempt: Attempt::SignIn, problem, method, route, address, request_id, actor: None };
        self.app.denials.note(&self.app.bell, &denied).await;
    }

    /// Returns the base address of the API for equivalent commands.
    pub(crate) fn api_base(&self) -> String {
        let options = self.app.options();
        let host = self.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:7070");
        let base = options.public_url.clone().unwrap_or_else(|| format!("http://{host}"));
        format!("{base}{}{}", self.prefix.as_str(), options.settings.mounts.first().map_or("", String::as_str))
    }

    /// Returns the reason why the actor lacks this role, or `None` if it has it.
    pub(crate) fn barred(&self, needed: Role) -> Option<String> {
        let (own, needed_word) = (self.actor.role.as_str(), needed.as_str());
        (self.actor.role < needed).then(|| format!("Requires the {needed_word} role. Your role is {own}."))
    }

    /// Whether the role of the actor may read runs, as configured.
    pub(crate) fn may_read_runs(&self) -> bool {
        self.actor.role >= self.app.options().run_history
    }

    /// Whether a live instance serves this target; without one nothing of it fires or starts.
    pub(crate) async fn is_served(&self, target: &Target) -> Result<bool, Problem> {
        let since = self.app.bell.alive_since();
        let instances = self.app.bell.instances().await?;
        Ok(instances.iter().any(|one| one.heartbeat_at >= since && one.targets.contains(target)))
    }

    /// Whether a script asks for a dialog or a part of a page.
    pub(crate) fn is_scripted(&self) -> bool {
        self.headers.contains_key("x-everbell")
    }
}

/// The response of a page.
pub(crate) struct UiResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Content,
}

/// The content of a response.
pub(crate) enum Content {
    Html(String),
    /// Another kind of text.
    Text(&'static str, String),
    /// A file that is no text.
    Bytes(&'static str, &'static [u8]),
    /// A stream of this media type.
    Stream(&'static str, Body),
    /// A redirect, with an optional message.
    Redirect {
        to: String,
        flash: Option<Flash>,
    },
}

/// A message that the next page shows once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flash {
    pub(crate) good: bool,
    pub(crate) text: String,
}

impl UiResponse {
    /// A page.
    pub(crate) fn page(template: &impl Template) -> Result<UiResponse, Problem> {
        let html = template.render().map_err(|error| {
            tracing::error!(%error, "a page cannot be written");
            Problem::new(Kind::Internal, "The page cannot be rendered.")
        })?;
        Ok(UiResponse::new(Content::Html(html)))
    }

    /// A page with this status, such as a form with errors.
    pub(crate) fn with_status(template: &impl Template, status: StatusCode) -> Result<UiResponse, Problem> {
        Ok(UiResponse { status, ..UiResponse::page(template)? })
    }

    /// Redirects with a success message.
    pub(crate) fn done(to: impl Into<String>, text: impl Into<String>) -> UiResponse {
        let flash = Some(Flash { good: true, text: text.into() });
        UiResponse::new(Content::Redirect { to: to.into(), flash })
    }

    /// Builds a redirect.
    pub(crate) fn redirect(to: impl Into<String>) -> UiResponse {
        UiResponse::new(Content::Redirect { to: to.into(), flash: None })
    }

    pub(crate) fn new(body: Content) -> UiResponse {
        UiResponse { status: StatusCode::OK, headers: Vec::new(), body }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> UiResponse {
        self.headers.push((name, value.into()));
        self
    }
}

/// Returns a path of this server; anything else becomes `/`.
pub(crate) fn safe_return_path(to: &str) -> &str {
    let is_own = to.starts_with('/') && !to.starts_with("//") && !to.contains('\\') && !to.contains(char::is_control);
    if is_own { to } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_elsewhere() {
        assert_eq!(safe_return_path("/jobs?status=paused"), "/jobs?status=paused");
        for bad in
            ["", "https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nb: c"]
        {
            assert_eq!(safe_return_path(bad), "/", "{bad}");
        }
    }
}
