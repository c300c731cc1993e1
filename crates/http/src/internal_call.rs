//! [`InternalCall`]: a call of the API within the process. A page acts through the same roles, checks and words as a
//! request over HTTP.

use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, HeaderValue, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::access::{Actor, expect_role};
use super::body::checked_off_workers;
use super::pipeline::{needed_role, run_to_completion};
use super::problem::{Kind, Problem};
use super::request::{ApiRequest, ResponseBody};
use super::route::{Route, Shape};
use super::{App, mounted_routes};
use everbell_wire::form::{Form, Naming};

/// A call of a route by a page.
pub struct InternalCall<'a> {
    /// The method of the route.
    pub method: Method,
    /// The path of the route as the table of routes spells it: `/jobs/{jobId}/pause`.
    pub route: &'a str,
    /// The values of the path parameters, by name.
    pub path: &'a [(&'a str, &'a str)],
    /// The query parameters, with the fields of the route.
    pub query: Value,
    /// The revision that the object must have, as in `If-Match`.
    pub revision: Option<u64>,
    /// The idempotency key: calls with the same key are carried out once.
    pub once: Option<&'a str>,
}

impl<'a> InternalCall<'a> {
    /// A call without a query, a revision or an idempotency key.
    pub fn new(method: Method, route: &'a str, path: &'a [(&'a str, &'a str)]) -> InternalCall<'a> {
        InternalCall { method, route, path, query: Value::Object(serde_json::Map::new()), revision: None, once: None }
    }

    /// The call with these query parameters.
    pub fn with_query(self, query: &impl Serialize) -> Result<InternalCall<'a>, Problem> {
        Ok(InternalCall { query: serde_json::to_value(query).map_err(|error| unwritable(&error))?, ..self })
    }
}

/// Calls the route on behalf of the actor and returns the document that it answers.
///
/// The body `()` is no body, and the document of a route without one is `()`.
pub async fn perform<T: DeserializeOwned>(
    app: &Arc<App>,
    actor: &Actor,
    call: InternalCall<'_>,
    body: &impl Serialize,
) -> Result<T, Problem> {
    let route = find(&call.method, call.route)?;
    expect_role(actor, needed_role(app, route.access))?;
    let mut text = serde_json::to_string(body).map_err(|error| unwritable(&error))?;
    if text == NO_DOCUMENT {
        text.clear();
    } else if route.shape == Shape::Lines {
        // They are given as one text.
        text = serde_json::from_str(&text).map_err(|error| unwritable(&error))?;
    }
    let (text, value) = checked_off_workers(text, &route).await?;
    let faults = Form::read(&call.query, route.query, Naming::Camel).faults();
    if !faults.is_empty() {
        return Err(Problem::query(faults));
    }
    let mut headers = HeaderMap::new();
    if let Some(once) = call.once.and_then(|once| HeaderValue::from_str(once).ok()) {
        headers.insert("idempotency-key", once);
    }
    let path: Vec<(String, String)> =
        call.path.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let key = path.iter().fold(call.route.to_owned(), |key, (name, value)| key.replace(&format!("{{{name}}}"), value));
    let mount = app.options().settings.mounts.first().cloned().unwrap_or_default();
    let request = ApiRequest {
        app: Arc::clone(app),
        actor: actor.clone(),
        prefix: String::new(),
        mount,
        path,
        query: call.query,
        body: value,
        text,
        if_match: call.revision,
        headers,
        peer: None,
        request_key: None,
    };
    let response = run_to_completion(&route, &key, request, "page").await?;
    match response.body {
        ResponseBody::Text("application/json", text) => read(&route, &text),
        // Sent twice, what was refused is refused again in the same words.
        ResponseBody::Text("application/problem+json", text) => {
            let problem = serde_json::from_str(&text).ok().and_then(|document| Problem::from_document(&document));
            Err(problem.unwrap_or_else(|| {
                tracing::error!(method = %route.method, route = route.path, "a stored problem cannot be read");
                Problem::new(Kind::Internal, "The stored response cannot be read.")
            }))
        }
        _ => read(&route, NO_DOCUMENT),
    }
}

/// The JSON of `()`.
const NO_DOCUMENT: &str = "null";

/// The document of an answer.
fn read<T: DeserializeOwned>(route: &Route, text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(%error, method = %route.method, route = route.path, "a page cannot read the response of a route");
        Problem::new(Kind::Internal, "The response cannot be read. See the server log for details.")
    })
}

fn unwritable(error: &serde_json::Error) -> Problem {
    Problem::new(Kind::InvalidInput, format!("The form cannot be read: {error}."))
}

fn find(method: &Method, path: &str) -> Result<Arc<Route>, Problem> {
    static ROUTES: OnceLock<Vec<Arc<Route>>> = OnceLock::new();
    let routes = ROUTES.get_or_init(|| mounted_routes().into_iter().map(Arc::new).collect());
    let found = routes.iter().find(|route| route.method == *method && route.path == path);
    found.cloned().ok_or_else(|| {
        tracing::error!(%method, path, "a page calls a route that does not exist");
        Problem::new(Kind::Internal, "This page calls an API route that does not exist.")
    })
}

#[cfg(test)]
mod tests {
    use everbell_wire as wire;

    use super::*;

    #[test]
    fn an_answer_that_cannot_be_read_is_an_internal_problem() {
        let route = find(&Method::DELETE, "/orgs/{orgId}").unwrap();
        assert!(read::<()>(&route, NO_DOCUMENT).is_ok());
        for text in [NO_DOCUMENT, "{}", "{\"id\":1}"] {
            assert_eq!(read::<wire::Job>(&route, text).unwrap_err().kind, Kind::Internal, "{text}");
        }
    }
}
