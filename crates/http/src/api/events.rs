//! Events as they happen, as a stream (Server-Sent Events).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::stream;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::App;
use crate::access::{Actor, Role};
use crate::live::{Listening, StreamEvent};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse, ResponseBody};
use crate::streams::StreamPermit;
use everbell_wire::form::{Field, Kind as Value, TEXT, optional};

pub(crate) const STREAM: &[Field] = &[
    optional(
        "types",
        Value::List { of: &TEXT, max: 20 },
        "Only events of these types, such as `run.failed`, `run.*` or `job.*`.",
    ),
    optional("jobKey", TEXT, "Only events of the job with this key."),
];

/// How often a stream checks that its token is still valid. If it has nothing to say by then it says a comment, so that
/// proxies keep it open and the end of either side shows.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// Events after which a token or a session may not be valid any more.
const ENDS_ACCESS: [&str; 2] = ["token.revoke", "session.end"];

/// Events about who has access and which machines there are begin with one of these.
const FOR_ADMINS: [&str; 4] = ["token.", "session.", "auth.", "instance."];

/// Returns the event as this role may see it. Only admins see events about access, and only operators see actors.
fn visible(role: Role, event: &Arc<StreamEvent>) -> Option<Arc<StreamEvent>> {
    if role < Role::Admin && FOR_ADMINS.iter().any(|start| event.kind.starts_with(start)) {
        return None;
    }
    if role >= Role::Operator || event.data.get("actor").is_none() {
        return Some(Arc::clone(event));
    }
    let mut data = event.data.clone();
    data["actor"] = json!(null);
    Some(Arc::new(StreamEvent { data, ..StreamEvent::clone(event) }))
}

/// The filter of a stream.
struct EventFilter {
    types: Vec<String>,
    job_key: Option<String>,
    named: bool,
}

impl EventFilter {
    fn matches(&self, event: &StreamEvent) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => event.kind.starts_with(start),
            None => event.kind == *pattern,
        };
        (self.types.is_empty() || self.types.iter().any(fits))
            && self.job_key.as_ref().is_none_or(|key| event.job_key.as_ref() == Some(key))
    }

    /// JSON has no line breaks, so one line of data is enough.
    fn to_frame(&self, app: &App, event: &StreamEvent) -> String {
        let name = if self.named { format!("event: {}\n", event.kind) } else { String::new() };
        format!("id: {}\n{name}data: {}\n\n", app.live.id(event.number), event.data)
    }
}

pub(crate) async fn stream(request: ApiRequest) -> Result<ApiResponse, Problem> {
    follow(request, true).await
}

/// Opens a stream. Events have names for API clients, and none for browsers, which handle all of them alike.
pub async fn follow(request: ApiRequest, named: bool) -> Result<ApiResponse, Problem> {
    let form = request.query(STREAM);
    let filter = EventFilter {
        types: form.list("types").into_iter().map(str::to_owned).collect(),
        job_key: form.text("jobKey").map(str::to_owned),
        named,
    };
    let permit = request.app.streams.open(&request.actor.name)?;
    let last_id = request.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let Listening { missed, events } = request.app.live.listen(last_id);
    request.app.live.ready().await;
    let mut beginning = String::from("retry: 2000\n: everbell\n\n");
    match missed {
        Some(missed) => {
            let seen = missed.iter().filter_map(|event| visible(request.actor.role, event));
            seen.filter(|event| filter.matches(event))
                .for_each(|event| beginning.push_str(&filter.to_frame(&request.app, &event)));
        }
        None => beginning.push_str(RESET),
    }
    let ended = request.app.live.ended();
    let (app, actor) = (Arc::clone(&request.app), request.actor.clone());
    let listener = Listener { app, actor, filter, events, ended, checked: Instant::now(), _permit: permit };
    let rest = stream::unfold(listener, |mut listener| async move {
        let text = listener.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), listener))
    });
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from(beginning))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    Ok(ApiResponse { status: StatusCode::OK, headers: Vec::new(), body: ResponseBody::Events(body) })
}

/// Notifies the client that events were lost and that it has to reload.
const RESET: &str = "event: reset\ndata: {}\n\n";

/// An open stream.
struct Listener {
    app: Arc<App>,
    actor: Actor,
    filter: EventFilter,
    events: broadcast::Receiver<Arc<StreamEvent>>,
    ended: watch::Receiver<bool>,
    /// The time of the last check of the token.
    checked: Instant,
    _permit: StreamPermit,
}

impl Listener {
    /// Returns the next frame of the stream, or `None` at its end.
    async fn next(&mut self) -> Option<String> {
        loop {
            let check_at = self.check_at();
            let event = tokio::select! {
                _ = self.ended.wait_for(|ended| *ended) => return None,
                event = tokio::time::timeout_at(check_at, self.events.recv()) => event,
            };
            let Ok(event) = event else {
                return self.is_still_valid().await.then(|| ": \n\n".to_owned());
            };
            let event = match event {
                Ok(event) => event,
                Err(RecvError::Lagged(_)) if self.is_still_valid().await => return Some(RESET.to_owned()),
                Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
            };
            let may_end = ENDS_ACCESS.contains(&event.kind.as_str()) || Instant::now() >= check_at;
            if may_end && !self.is_still_valid().await {
                return None;
            }
            if let Some(event) = visible(self.actor.role, &event).filter(|event| self.filter.matches(event)) {
                return Some(self.filter.to_frame(&self.app, &event));
            }
        }
    }

    /// Returns the time of the next check: after the interval, or when the token expires.
    fn check_at(&self) -> Instant {
        let usual = self.checked + CHECK_INTERVAL;
        self.left().map_or(usual, |left| usual.min(Instant::now() + left))
    }

    /// How long the token lasts; nothing if it does not end by itself.
    fn left(&self) -> Option<Duration> {
        let left = self.actor.expires_at?.duration_since(self.app.bell.now());
        Some(Duration::try_from(left).unwrap_or_default())
    }

    /// Whether the token is still valid. A database that does not answer ends nothing: it is asked again soon.
    async fn is_still_valid(&mut self) -> bool {
        self.checked = Instant::now();
        if self.left().is_some_and(|left| left.is_zero()) {
            return false;
        }
        match self.app.authenticator.is_still_valid(&self.actor, &self.app.bell).await {
            Ok(is_valid) => is_valid,
            Err(error) => {
                tracing::debug!(%error, "a stream could not check its token; retrying");
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_choose_what_is_seen() {
        let event = |kind: &str| {
            let data = json!({ "actor": "token:ana", "object": "x" });
            Arc::new(StreamEvent { number: 1, kind: kind.to_owned(), job_key: None, data })
        };
        for kind in ["token.create", "session.end", "auth.denied", "instance.drain"] {
            assert!(visible(Role::Admin, &event(kind)).is_some(), "{kind}");
            assert!(visible(Role::Operator, &event(kind)).is_none(), "{kind}");
        }
        assert_eq!(visible(Role::Operator, &event("job.pause")).unwrap().data["actor"], "token:ana");
        let seen = visible(Role::Viewer, &event("job.pause")).unwrap();
        assert_eq!((&seen.data["actor"], &seen.data["object"]), (&json!(null), &json!("x")));
    }

    #[test]
    fn patterns_choose_events() {
        let event = |kind: &str, key: &str| StreamEvent {
            number: 1,
            kind: kind.to_owned(),
            job_key: Some(key.to_owned()),
            data: serde_json::Value::Null,
        };
        let filter = |types: &[&str], key: Option<&str>| EventFilter {
            types: types.iter().map(|text| (*text).to_owned()).collect(),
            job_key: key.map(str::to_owned),
            named: true,
        };
        assert!(filter(&[], None).matches(&event("run.failed", "a")));
        assert!(filter(&["job.*", "run.*"], Some("a")).matches(&event("run.failed", "a")));
        assert!(!filter(&["run.failed"], None).matches(&event("run.succeeded", "a")));
        assert!(!filter(&[], Some("b")).matches(&event("run.failed", "a")));
    }
}
