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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use axum::Extension;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use everbell::Everbell;
    use everbell::testing::ManualClock;
    use everbell_http::access::Role;
    use everbell_http::{Embedded, User};
    use everbell_store::memory::MemoryStore;
    use http_body_util::BodyExt;
    use jiff::Timestamp;
    use tower_service::Service;

    /// The next part of a stream, `None` at its end.
    async fn next(body: &mut Body) -> Option<String> {
        let frame = tokio::time::timeout(Duration::from_mins(1), body.frame()).await.expect("it says something");
        frame.map(|frame| String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_a_person_of_the_application_ends_after_five_minutes() {
        let begin: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for path in ["/ui/events", "/api/v1/events"] {
            let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(ManualClock::new(begin)));
            let bell = Everbell::builder().store(store).clock(Arc::clone(&clock) as _).build().await.unwrap();
            let person = Extension(User::new("anna@example.com", Role::Viewer));
            let mut app = crate::router(Embedded::new(&bell)).layer(person);
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let answer = app.call(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK, "{path}");
            let mut body = answer.into_body();
            assert!(next(&mut body).await.unwrap().contains("everbell"), "{path}");
            clock.set(begin + Duration::from_secs(299));
            assert_eq!(next(&mut body).await.as_deref(), Some(": \n\n"), "{path}: it is open, and says nothing");
            clock.set(begin + Duration::from_mins(5));
            assert_eq!(next(&mut body).await, None, "{path}: the application has to decide again");
        }
    }
}
