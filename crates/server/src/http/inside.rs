//! The API from inside: what a page does goes the same way as a request, with the same roles, checks and words.

use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, HeaderValue, Method};
use serde::Serialize;
use serde_json::Value;

use super::access::{Actor, expect_role};
use super::body::checked_off_workers;
use super::call::{Call, Payload};
use super::pipeline::{finished, needed_role};
use super::problem::{Kind, Problem};
use super::route::{Route, Shape};
use super::{App, mounted_routes};
use crate::form::{Form, Naming};

/// A request that a page makes.
pub(crate) struct Inside<'a> {
    pub(crate) method: Method,
    /// As the table of routes spells it: `/jobs/{jobId}/pause`.
    pub(crate) route: &'a str,
    /// The parts of the path, by their names.
    pub(crate) path: &'a [(&'a str, &'a str)],
    /// What stands behind `?`: the same fields as in the table.
    pub(crate) query: Value,
    /// Only if the job is still at this revision.
    pub(crate) revision: Option<u64>,
    /// Sent twice, it is done once.
    pub(crate) once: Option<&'a str>,
}

impl<'a> Inside<'a> {
    pub(crate) fn new(method: Method, route: &'a str, path: &'a [(&'a str, &'a str)]) -> Inside<'a> {
        Inside { method, route, path, query: Value::Object(serde_json::Map::new()), revision: None, once: None }
    }
}

/// Does what the route does, for this actor. The answer is its document; `null` if it has none.
pub(crate) async fn perform(
    app: &Arc<App>,
    actor: &Actor,
    request: Inside<'_>,
    body: &impl Serialize,
) -> Result<Value, Problem> {
    let route = find(&request.method, request.route)?;
    expect_role(actor, needed_role(app, route.access))?;
    let unreadable =
        |error: serde_json::Error| Problem::new(Kind::InvalidInput, format!("The form cannot be read: {error}."));
    let mut text = serde_json::to_string(body).map_err(unreadable)?;
    if route.shape == Shape::Lines {
        // They are given as one text.
        text = serde_json::from_str(&text).map_err(unreadable)?;
    }
    let (text, value) = checked_off_workers(text, &route).await?;
    let faults = Form::read(&request.query, route.query, Naming::Camel).faults();
    if !faults.is_empty() {
        return Err(Problem::query(faults));
    }
    let mut headers = HeaderMap::new();
    if let Some(once) = request.once.and_then(|once| HeaderValue::from_str(once).ok()) {
        headers.insert("idempotency-key", once);
    }
    let path: Vec<(String, String)> =
        request.path.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let key =
        path.iter().fold(request.route.to_owned(), |key, (name, value)| key.replace(&format!("{{{name}}}"), value));
    let mount = app.options.settings.mounts.first().cloned().unwrap_or_default();
    let call = Call {
        app: Arc::clone(app),
        actor: actor.clone(),
        mount,
        path,
        query: request.query,
        body: value,
        text,
        if_match: request.revision,
        headers,
        peer: None,
        request: None,
    };
    let answer = finished(&route, &key, call, "page").await?;
    match answer.body {
        Payload::Text("application/json", text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
        // Sent twice, what was refused is refused again in the same words.
        Payload::Text("application/problem+json", text) => {
            let told = serde_json::from_str(&text).ok().and_then(|document| Problem::told(&document));
            Err(told.unwrap_or_else(|| Problem::new(Kind::Internal, "The remembered answer cannot be read.")))
        }
        _ => Ok(Value::Null),
    }
}

fn find(method: &Method, path: &str) -> Result<Arc<Route>, Problem> {
    static ROUTES: OnceLock<Vec<Arc<Route>>> = OnceLock::new();
    let routes = ROUTES.get_or_init(|| mounted_routes().into_iter().map(Arc::new).collect());
    let found = routes.iter().find(|route| route.method == *method && route.path == path);
    found.cloned().ok_or_else(|| {
        tracing::error!(%method, path, "a page asks for a route that does not exist");
        Problem::new(Kind::Internal, "This page asks for something that does not exist.")
    })
}
