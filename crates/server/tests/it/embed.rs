//! The API inside of somebody's own program.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::time::Duration;

use everbell::core::InstanceId;
use everbell::core::store::Instance;
use everbell::{Everbell, Schedule, TraceContext};
use everbell_http::{Embedded, WeakToken};
use serde_json::{Value, json};
use tracing::Instrument;
use tracing_subscriber::util::SubscriberInitExt;

/// The API with a token for admins.
fn router(bell: &Everbell, token: &str) -> Result<axum::Router, WeakToken> {
    Ok(Embedded::new(bell).admin_token(token)?.router())
}

const TOKEN: &str = "evb_0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn an_application_nests_the_api_where_it_likes() {
    let bell = Everbell::builder()
        .database("sqlite::memory:")
        .target("greet", async || Ok::<_, std::io::Error>(()))
        .schedule(Schedule::cron("morning", "0 8 * * *").target("greet"))
        .build()
        .await
        .unwrap();
    let app = axum::Router::new()
        .route("/own", axum::routing::get(async || "own"))
        .nest("/admin/cron", router(&bell, TOKEN).unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::new();

    let send = async |method: reqwest::Method, path: &str, token: Option<&str>, body: Value| {
        let mut request = client.request(method, format!("{base}{path}")).header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = request.body(body.to_string()).send().await.unwrap();
        let location = answer.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
        (answer.status().as_u16(), location, answer.text().await.unwrap())
    };
    let (get, post) = (reqwest::Method::GET, reqwest::Method::POST);
    assert_eq!(send(get.clone(), "/own", None, Value::Null).await.2, "own");
    assert_eq!(send(get.clone(), "/admin/cron/jobs", None, Value::Null).await.0, 401);
    assert_eq!(send(get.clone(), "/admin/cron/nothing", None, Value::Null).await.0, 401);
    let (status, _, text) = send(get.clone(), "/admin/cron/jobs", Some(TOKEN), Value::Null).await;
    assert!(status == 200 && text.contains("\"jobKey\":\"morning\""), "{text}");
    let body = json!({ "jobKey": "noon", "target": "greet", "cronExpression": "0 12 * * *" });
    let (status, location, _) = send(post, "/admin/cron/jobs", Some(TOKEN), body).await;
    let location = location.unwrap();
    assert!(status == 201 && location.starts_with("/admin/cron/jobs/"), "{location}");
    assert_eq!(send(get, &location, Some(TOKEN), Value::Null).await.0, 200);
}

/// An address without the prefix belongs to the application.
#[tokio::test]
async fn the_type_of_a_problem_is_an_address_below_the_prefix() {
    let bell = Everbell::builder().database("sqlite::memory:").build().await.unwrap();
    let app = axum::Router::new().nest("/admin/cron", router(&bell, TOKEN).unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::new();
    let get = async |path: &str, token: &str| {
        let request = client.get(format!("{base}{path}")).header("authorization", format!("Bearer {token}"));
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let kind = |text: &str| serde_json::from_str::<Value>(text).unwrap()["type"].as_str().unwrap().to_owned();

    for (path, token, slug) in [
        ("/admin/cron/jobs/key:none", TOKEN, "not-found"),
        ("/admin/cron/jobs?limit=0", TOKEN, "invalid-input"),
        ("/admin/cron/nothing", TOKEN, "not-found"),
        ("/admin/cron/jobs", "evb_unknown", "unauthenticated"),
    ] {
        let named = kind(&get(path, token).await.1);
        assert_eq!(named, format!("/admin/cron/docs/problems/{slug}"), "{path}");
        let (status, text) = get(&named, TOKEN).await;
        assert_eq!((status, kind(&text)), (200, named), "{path}");
    }
    let once = async |text: &'static str| {
        let request =
            client.post(format!("{base}/admin/cron/jobs/key:none/run-now")).header("idempotency-key", "twice");
        let request = request.header("authorization", format!("Bearer {TOKEN}"));
        let answer = request.header("content-type", "application/json").body(text).send().await.unwrap();
        (answer.headers().contains_key("idempotency-replayed"), kind(&answer.text().await.unwrap()))
    };
    let named = "/admin/cron/docs/problems/not-found".to_owned();
    assert_eq!([once("{}").await, once("{}").await], [(false, named.clone()), (true, named)]);
}

/// Finds the trace of a request by the name of its span, as OpenTelemetry does by its data.
struct OwnTraces;

impl everbell::Tracing for OwnTraces {
    fn current(&self) -> Option<TraceContext> {
        let span = tracing::Span::current();
        let is_request = span.metadata().is_some_and(|span| span.name() == "request");
        is_request.then(|| TraceContext::parse(&format!("00-{OWN_TRACE}-00f067aa0ba902b7-01"), None).unwrap())
    }

    fn set_parent(&self, _span: &tracing::Span, _parent: &TraceContext) {}
}

const OWN_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn a_run_continues_the_span_in_which_the_application_handles_the_request() {
    tracing_subscriber::registry().init();
    let bell = Everbell::builder()
        .database("sqlite::memory:")
        .target("greet", async || Ok::<_, std::io::Error>(()))
        .schedule(Schedule::cron("morning", "0 8 * * *").target("greet"))
        .tracing(OwnTraces)
        .build()
        .await
        .unwrap();
    let in_span = async |request: axum::extract::Request, next: axum::middleware::Next| {
        next.run(request).instrument(tracing::info_span!("request")).await
    };
    let app = router(&bell, TOKEN).unwrap().layer(axum::middleware::from_fn(in_span));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    rustls::crypto::ring::default_provider().install_default().ok();
    let asked = reqwest::Client::new()
        .post(format!("http://{address}/jobs/key:morning/run-now"))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        // The caller of the application is further away.
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let text = asked.body("{}").send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["run"]["traceId"], OWN_TRACE, "{text}");
}

/// A page follows such a stream as long as it is open.
#[tokio::test]
async fn a_graceful_shutdown_of_the_application_ends_event_streams() {
    let bell = Everbell::builder().database("sqlite::memory:").build().await.unwrap();
    let stop = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let stopped = || {
        let stop = std::sync::Arc::clone(&stop);
        async move { drop(stop.acquire_owned().await) }
    };
    let api = Embedded::new(&bell).admin_token(TOKEN).unwrap().with_graceful_shutdown(stopped()).router();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/events", listener.local_addr().unwrap());
    let serving = tokio::spawn(axum::serve(listener, api).with_graceful_shutdown(stopped()).into_future());
    rustls::crypto::ring::default_provider().install_default().ok();
    let request = reqwest::Client::new().get(url).header("authorization", format!("Bearer {TOKEN}"));
    let mut stream = request.send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some(), "the stream begins");
    stop.add_permits(2);
    let ended = tokio::time::timeout(Duration::from_secs(30), serving).await;
    ended.expect("the open stream keeps the server").unwrap().unwrap();
    while stream.chunk().await.unwrap().is_some() {}
}

#[tokio::test]
async fn a_token_that_could_be_guessed_is_refused() {
    let bell = Everbell::builder().database("sqlite::memory:").build().await.unwrap();
    for weak in ["", "admin", "evb_", "evb_short"] {
        let told = router(&bell, weak).err().unwrap().to_string();
        assert!(told.starts_with("the admin token must be `evb_`"), "{told}");
    }
}

#[tokio::test]
async fn who_is_alive_is_judged_by_the_lease_that_is_configured() {
    let mut options = everbell::EngineOptions::default();
    options.lease.duration = Duration::from_mins(10);
    options.lease.heartbeat = Duration::from_mins(3);
    let bell = Everbell::builder().database("sqlite::memory:").options(options).build().await.unwrap();
    let now = bell.now();
    for (number, minutes) in [(1, 2), (2, 11)] {
        let heard = now - jiff::SignedDuration::from_mins(minutes);
        let instance = Instance::new(
            InstanceId::new(heard, [number; 10]),
            format!("host-{minutes}"),
            1,
            "0.1.0".to_owned(),
            heard,
        );
        bell.store().heartbeat(&instance, None, false).await.unwrap();
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/instances", listener.local_addr().unwrap());
    let app = router(&bell, TOKEN).unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    rustls::crypto::ring::default_provider().install_default().ok();
    let request = reqwest::Client::new().get(url).header("authorization", format!("Bearer {TOKEN}"));
    let list: Value = serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
    let alive: Vec<_> = list["items"].as_array().unwrap().iter().map(|one| (&one["host"], &one["alive"])).collect();
    assert!(
        alive.contains(&(&json!("host-2"), &json!(true))) && alive.contains(&(&json!("host-11"), &json!(false))),
        "{alive:?}"
    );
}
