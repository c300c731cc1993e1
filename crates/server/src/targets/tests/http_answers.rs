//! The `http` target: outcomes of calls.

use std::time::Duration;

use everbell::{Backoff, Event, JobStatus, RunStatus};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wiremock::ResponseTemplate;

use super::given::{bell, details, failure, heard, http, perform, perform_with, result, within};
use super::http_calls::server;
use everbell_wire::secret::Secret;

/// The URL of a listener, and the listener.
async fn listener() -> (String, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (format!("http://{}", listener.local_addr().unwrap()), listener)
}

/// Takes one call and reads its head.
async fn taken(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut head).await.unwrap() > 0, "the call broke off");
    }
    stream
}

#[tokio::test]
async fn an_answer_in_json_is_the_result_and_its_text_the_output() {
    let server = server(ResponseTemplate::new(201).set_body_json(json!({ "sent": 3 }))).await;
    let run = perform(http(server.uri(), |_| {})).await;
    assert_eq!(result(&run), Some(r#"{"status":201,"body":{"sent":3}}"#));
    assert_eq!(run.output.as_deref(), Some(r#"{"sent":3}"#));
}

#[tokio::test]
async fn any_other_status_is_a_failure_that_shows_the_answer() {
    let server = server(ResponseTemplate::new(500).set_body_string("stack\u{0}trace")).await;
    let run = perform(http(format!("{}/path?hunter2", server.uri()), |_| {})).await;
    assert_eq!(failure(&run), ("http_status", format!("{} answered 500 Internal Server Error", server.uri()).as_str()));
    assert_eq!(details(&run), json!({ "status": 500, "body": "stack\u{fffd}trace" }));
    let wanted = perform(http(server.uri(), |http| http.success = vec![500..=500])).await;
    assert_eq!((wanted.status, result(&wanted)), (RunStatus::Succeeded, Some(r#"{"status":500}"#)));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = server(ResponseTemplate::new(200)).await;
    let there = format!("{}/login", elsewhere.uri());
    let server = server(ResponseTemplate::new(307).insert_header("location", format!("{there}?token=x"))).await;
    let run = perform(http(server.uri(), |_| {})).await;
    let wanted =
        format!("{} answered 307 Temporary Redirect and pointed to {there}: redirects are not followed", server.uri());
    assert_eq!(failure(&run), ("http_status", wanted.as_str()));
    assert!(elsewhere.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_busy_target_is_not_called_before_it_wants_to_be() {
    let server = server(ResponseTemplate::new(429).insert_header("retry-after", "3600")).await;
    let backoff = Backoff { initial: Duration::from_secs(1), ..Backoff::default() };
    let bell = bell(http(server.uri(), |_| {}), |schedule| schedule.retry(2, backoff)).await;
    let mut events = bell.events();
    let asked = bell.jobs().run_now("job").await.unwrap().run().clone();
    let story = async { heard(&mut events, |event| matches!(event, Event::Retrying { .. })).await };
    let mut not_before = None;
    let story = async {
        if let Event::Retrying { not_before: time, .. } = &*story.await {
            not_before = Some(*time);
        }
    };
    within(bell.run_until(story)).await.unwrap();
    let wait = not_before.unwrap().duration_since(asked.scheduled_at).as_secs();
    assert!((3600..3700).contains(&wait), "{wait}");
    let run = bell.runs().get(asked.id).await.unwrap();
    assert_eq!((run.status, run.attempt), (RunStatus::Pending, 1));
}

#[tokio::test]
async fn a_target_that_is_gone_pauses_the_job() {
    let server = server(ResponseTemplate::new(410)).await;
    let bell = bell(http(server.uri(), |_| {}), |schedule| schedule.retry(3, Backoff::default())).await;
    let mut events = bell.events();
    let asked = bell.jobs().run_now("job").await.unwrap().run().id;
    let paused = async { drop(heard(&mut events, |event| matches!(event, Event::Paused { .. })).await) };
    within(bell.run_until(paused)).await.unwrap();
    let run = bell.runs().get(asked).await.unwrap();
    assert_eq!((failure(&run).0, run.attempt), ("http_status", 1));
    let state = bell.jobs().get("job").await.unwrap().job.state;
    assert_eq!(state.status, JobStatus::Paused);
    let pause = state.pause.unwrap();
    assert_eq!((pause.reason.as_str(), pause.by.as_str()), ("target answered 410 Gone", "everbell"));
}

#[tokio::test]
async fn an_endless_answer_is_read_as_far_as_it_is_kept() {
    let (url, listener) = listener().await;
    let answering = tokio::spawn(async move {
        let mut stream = taken(&listener).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n").await.unwrap();
        // Writes until the reader is gone.
        while stream.write_all(&[b'1'; 8192]).await.is_ok() {}
    });
    let run = perform(http(url, |_| {})).await;
    assert_eq!((run.status, result(&run)), (RunStatus::Succeeded, Some(r#"{"status":200}"#)));
    assert_eq!(run.output.unwrap().len(), 64 * 1024);
    within(answering).await.unwrap();
}

#[tokio::test]
async fn whoever_does_not_answer_in_time_fails_with_a_timeout() {
    for head in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"] {
        let (url, listener) = listener().await;
        let answering = tokio::spawn(async move {
            let mut stream = taken(&listener).await;
            stream.write_all(head.as_bytes()).await.unwrap();
            // The rest of the body, then the end: the call is dropped.
            while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
        });
        let run = perform(http(&url, |http| http.timeout = Duration::from_millis(200))).await;
        assert_eq!(failure(&run), ("timeout", format!("{url} did not answer within 0.2 s").as_str()));
        within(answering).await.unwrap();
    }
}

#[tokio::test]
async fn whoever_cannot_be_reached_is_named() {
    let (url, listener) = listener().await;
    drop(listener);
    let run = perform(http(format!("{url}/path?hunter2"), |_| {})).await;
    let (code, message) = failure(&run);
    assert_eq!(code, "http_connect");
    let wanted = format!("{url} cannot be reached: the connection failed: Connection refused");
    assert!(message.starts_with(&wanted), "{message}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_none() {
    for head in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"] {
        let (url, listener) = listener().await;
        let answering = tokio::spawn(async move {
            let mut stream = taken(&listener).await;
            stream.write_all(head.as_bytes()).await.unwrap();
        });
        let run = perform(http(&url, |_| {})).await;
        let (code, message) = failure(&run);
        assert_eq!(code, "http_connect", "{message}");
        assert!(message.starts_with(&format!("{url} sent an incomplete response: ")), "{message}");
        answering.await.unwrap();
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_drops_its_call() {
    let (url, listener) = listener().await;
    let bell = bell(http(url, |_| {}), |schedule| schedule).await;
    let mut events = bell.events();
    let id = bell.jobs().run_now("job").await.unwrap().run().id;
    let story = async {
        let mut stream = taken(&listener).await;
        bell.runs().cancel(id).await.unwrap();
        while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
        heard(&mut events, |event| matches!(event, Event::Finished { .. })).await;
    };
    within(bell.run_until(story)).await.unwrap();
    assert_eq!(bell.runs().get(id).await.unwrap().status, RunStatus::Canceled);
}

#[tokio::test]
async fn another_attempt_is_the_same_message_with_another_number() {
    let server = server(ResponseTemplate::new(500)).await;
    let backoff = Backoff { initial: Duration::from_secs(1), ..Backoff::default() };
    let run = perform_with(http(server.uri(), |_| {}), 7, |schedule| schedule.retry(2, backoff)).await;
    assert_eq!((failure(&run).0, run.attempt), ("http_status", 2));
    let calls = server.received_requests().await.unwrap();
    let told: Vec<(String, Value)> = calls
        .iter()
        .map(|call| {
            let body: Value = call.body_json().unwrap();
            (call.headers["webhook-id"].to_str().unwrap().to_owned(), body["data"]["attempt"].clone())
        })
        .collect();
    let id = run.id.to_string();
    assert_eq!(told, [(id.clone(), json!(1)), (id, json!(2))]);
}

#[tokio::test]
async fn a_secret_that_a_target_sends_back_is_hidden_everywhere() {
    let (token, key) = ("CANARY-header-1", "CANARY-query-22");
    let body = json!({ "headers": { "authorization": format!("Bearer {token}") }, "url": format!("/p?key={key}") });
    for status in [200, 302, 500] {
        let answer = ResponseTemplate::new(status).set_body_json(&body);
        let server = server(answer.insert_header("location", format!("/{token}/x"))).await;
        let run = perform(http(format!("{}/p?key={key}", server.uri()), |http| {
            http.headers.insert("authorization".to_owned(), Secret::new(format!("Bearer {token}")));
        }))
        .await;
        assert!(!format!("{run:?}").contains("CANARY"), "{run:?}");
        assert!(run.output.as_deref().unwrap().contains("***"), "{run:?}");
        match status {
            200 => assert!(result(&run).unwrap().contains(r#""authorization":"***""#), "{run:?}"),
            302 => assert!(failure(&run).1.contains("pointed to /***/x"), "{run:?}"),
            _ => assert!(details(&run)["body"].as_str().unwrap().contains("***"), "{run:?}"),
        }
    }
}
