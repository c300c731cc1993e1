//! Events as they happen, as a stream (Server-Sent Events).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::stream;
use tokio::sync::broadcast::error::RecvError;

use crate::form::{Field, Kind as Value, TEXT, optional};
use crate::http::App;
use crate::http::call::{Answer, Call, Payload};
use crate::http::live::{Listening, Told};
use crate::http::problem::Problem;

pub(crate) const STREAM: &[Field] = &[
    optional("types", Value::List { of: &TEXT, max: 20 }, "Only these, such as `run.failed`, `run.*` or `job.*`."),
    optional("jobKey", TEXT, "Only of this job."),
];

/// A stream that says nothing for so long says a comment, so that proxies keep it open and the end of either side shows.
const QUIET: Duration = Duration::from_secs(15);

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
pub(crate) async fn follow(call: Call, named: bool) -> Result<Answer, Problem> {
    let form = call.query(STREAM);
    let wanted = Wanted {
        types: form.list("types").into_iter().map(str::to_owned).collect(),
        job_key: form.text("jobKey").map(str::to_owned),
        named,
    };
    let open = call.app.streams.open(&call.actor.name)?;
    let last_id = call.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let Listening { missed, events } = call.app.live.listen(last_id);
    call.app.live.ready().await;
    let mut beginning = String::from("retry: 2000\n: everbell\n\n");
    match missed {
        Some(missed) => {
            missed
                .iter()
                .filter(|told| wanted.covers(told))
                .for_each(|told| beginning.push_str(&wanted.written(&call.app, told)));
        }
        None => beginning.push_str(RESET),
    }
    let ended = call.app.live.ended();
    let state = (Arc::clone(&call.app), wanted, events, ended, open);
    let rest = stream::unfold(state, |(app, wanted, mut events, mut ended, open)| async move {
        let text = tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return None,
            text = next(&app, &wanted, &mut events) => text?,
        };
        Some((Ok::<_, Infallible>(Bytes::from(text)), (app, wanted, events, ended, open)))
    });
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from(beginning))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    Ok(Answer { status: StatusCode::OK, headers: Vec::new(), body: Payload::Events(body) })
}

/// Events were lost: who shows something reads it again.
const RESET: &str = "event: reset\ndata: {}\n\n";

async fn next(app: &App, wanted: &Wanted, events: &mut tokio::sync::broadcast::Receiver<Arc<Told>>) -> Option<String> {
    loop {
        match tokio::time::timeout(QUIET, events.recv()).await {
            Err(_) => return Some(": \n\n".to_owned()),
            Ok(Ok(told)) if wanted.covers(&told) => return Some(wanted.written(app, &told)),
            Ok(Ok(_)) => {}
            Ok(Err(RecvError::Lagged(_))) => return Some(RESET.to_owned()),
            Ok(Err(RecvError::Closed)) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
