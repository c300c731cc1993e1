//! What happens, as it happens: the stream of the API for who has a session.

use crate::visit::{Content, Reply, Visit};
use everbell_http::api::events;
use everbell_http::call::Payload;
use everbell_http::problem::Problem;

pub(crate) async fn stream(visit: Visit) -> Result<Reply, Problem> {
    let answer = events::follow(visit.call(), false).await?;
    let body = match answer.body {
        Payload::Events(body) => Content::Stream("text/event-stream", body),
        Payload::Text(kind, text) => Content::Text(kind, text),
        Payload::Nothing => Content::Text("text/plain; charset=utf-8", String::new()),
    };
    Ok(Reply::of(body).header("x-accel-buffering", "no"))
}
