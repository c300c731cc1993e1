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
use crate::call::{Answer, Call, Payload};
use crate::live::{Listening, Told};
use crate::problem::Problem;
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

/// An event as this role may see it: what admins do with access is for admins, and who did something for operators.
fn visible(role: Role, told: &Arc<Told>) -> Option<Arc<Told>> {
    if role < Role::Admin && FOR_ADMINS.iter().any(|start| told.kind.starts_with(start)) {
        return None;
    }
    if role >= Role::Operator || told.data.get("actor").is_none() {
        return Some(Arc::clone(told));
    }
    let mut data = told.data.clone();
    data["actor"] = json!(null);
    Some(Arc::new(Told { data, ..Told::clone(told) }))
}

/// What a listener wants.
struct Wanted {
    types: Vec<String>,
    job_key: Option<String>,
    named: bool,
}

impl Wanted {
    fn covers(&self, told: &Told) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => told.kind.starts_with(start),
            None => told.kind == *pattern,
        };
        (self.types.is_empty() || self.types.iter().any(fits))
            && self.job_key.as_ref().is_none_or(|key| told.job_key.as_ref() == Some(key))
    }

    /// JSON has no line breaks, so one line of data is enough.
    fn written(&self, app: &App, told: &Told) -> String {
        let name = if self.named { format!("event: {}\n", told.kind) } else { String::new() };
        format!("id: {}\n{name}data: {}\n\n", app.live.id(told.number), told.data)
    }
}

pub(crate) async fn stream(call: Call) -> Result<Answer, Problem> {
    follow(call, true).await
}

/// A stream whose events have names, for who wants some; or none, for a browser that wants any.
pub async fn follow(call: Call, named: bool) -> Result<Answer, Problem> {
    let form = call.query(STREAM);
    let wanted = Wanted {
        types: form.list("types").into_iter().map(str::to_owned).collect(),
        job_key: form.text("jobKey").map(str::to_owned),
        named,
    };
    let permit = call.app.streams.open(&call.actor.name)?;
    let last_id = call.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let Listening { missed, events } = call.app.live.listen(last_id);
    call.app.live.ready().await;
    let mut beginning = String::from("retry: 2000\n: everbell\n\n");
    match missed {
        Some(missed) => {
            let seen = missed.iter().filter_map(|told| visible(call.actor.role, told));
            seen.filter(|told| wanted.covers(told))
                .for_each(|told| beginning.push_str(&wanted.written(&call.app, &told)));
        }
        None => beginning.push_str(RESET),
    }
    let ended = call.app.live.ended();
    let (app, actor) = (Arc::clone(&call.app), call.actor.clone());
    let listener = Listener { app, actor, wanted, events, ended, checked: Instant::now(), _permit: permit };
    let rest = stream::unfold(listener, |mut listener| async move {
        let text = listener.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), listener))
    });
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from(beginning))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    Ok(Answer { status: StatusCode::OK, headers: Vec::new(), body: Payload::Events(body) })
}

/// Events were lost: who shows something reads it again.
const RESET: &str = "event: reset\ndata: {}\n\n";

/// An open stream.
struct Listener {
    app: Arc<App>,
    actor: Actor,
    wanted: Wanted,
    events: broadcast::Receiver<Arc<Told>>,
    ended: watch::Receiver<bool>,
    /// When the token was last known to be valid.
    checked: Instant,
    _permit: StreamPermit,
}

impl Listener {
    /// What the stream says next; nothing at its end.
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
            let told = match event {
                Ok(told) => told,
                Err(RecvError::Lagged(_)) if self.is_still_valid().await => return Some(RESET.to_owned()),
                Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
            };
            let may_end = ENDS_ACCESS.contains(&told.kind.as_str()) || Instant::now() >= check_at;
            if may_end && !self.is_still_valid().await {
                return None;
            }
            if let Some(told) = visible(self.actor.role, &told).filter(|told| self.wanted.covers(told)) {
                return Some(self.wanted.written(&self.app, &told));
            }
        }
    }

    /// When to check next: after a while, or when the token ends by itself.
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
        match self.app.gate.is_still_valid(&self.actor, &self.app.bell).await {
            Ok(is_valid) => is_valid,
            Err(error) => {
                tracing::debug!(%error, "a stream could not check its token; it tries again");
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
        let told = |kind: &str| {
            let data = json!({ "actor": "token:ana", "object": "x" });
            Arc::new(Told { number: 1, kind: kind.to_owned(), job_key: None, data })
        };
        for kind in ["token.create", "session.end", "auth.denied", "instance.drain"] {
            assert!(visible(Role::Admin, &told(kind)).is_some(), "{kind}");
            assert!(visible(Role::Operator, &told(kind)).is_none(), "{kind}");
        }
        assert_eq!(visible(Role::Operator, &told("job.pause")).unwrap().data["actor"], "token:ana");
        let seen = visible(Role::Viewer, &told("job.pause")).unwrap();
        assert_eq!((&seen.data["actor"], &seen.data["object"]), (&json!(null), &json!("x")));
    }

    #[test]
    fn patterns_choose_events() {
        let told = |kind: &str, key: &str| Told {
            number: 1,
            kind: kind.to_owned(),
            job_key: Some(key.to_owned()),
            data: serde_json::Value::Null,
        };
        let wanted = |types: &[&str], key: Option<&str>| Wanted {
            types: types.iter().map(|text| (*text).to_owned()).collect(),
            job_key: key.map(str::to_owned),
            named: true,
        };
        assert!(wanted(&[], None).covers(&told("run.failed", "a")));
        assert!(wanted(&["job.*", "run.*"], Some("a")).covers(&told("run.failed", "a")));
        assert!(!wanted(&["run.failed"], None).covers(&told("run.succeeded", "a")));
        assert!(!wanted(&[], Some("b")).covers(&told("run.failed", "a")));
    }
}
