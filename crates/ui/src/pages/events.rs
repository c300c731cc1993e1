//! The event stream of the API, authenticated by a session.

use crate::request::{Content, UiRequest, UiResponse};
use everbell_http::api::events;
use everbell_http::problem::Problem;
use everbell_http::request::ResponseBody;

pub(crate) async fn stream(request: UiRequest) -> Result<UiResponse, Problem> {
    let answer = events::follow(request.to_api_request(), false).await?;
    let body = match answer.body {
        ResponseBody::Events(body) => Content::Stream("text/event-stream", body),
        ResponseBody::Text(kind, text) => Content::Text(kind, text),
        ResponseBody::Nothing => Content::Text("text/plain; charset=utf-8", String::new()),
    };
    Ok(UiResponse::new(body).header("x-accel-buffering", "no"))
}
