//! The `http` target: what is called.

use everbell::{RunRecord, RunStatus};
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::given::{failure, fired, fired_for_org, http, perform, result};
use crate::targets::HttpSettings;
use everbell_wire::secret::Secret;

/// A server that answers everything with this.
pub(super) async fn server(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

/// The one call that the slot of a job with this key makes.
async fn call(key: &str, change: impl FnOnce(&mut HttpSettings)) -> (RunRecord, Request) {
    let server = server(ResponseTemplate::new(200)).await;
    let settings = http(format!("{}/hooks/brief?a=b", server.uri()), change);
    let run = Box::pin(fired(settings, key, json!({ "to": "é" }))).await;
    assert_eq!((run.status, result(&run)), (RunStatus::Succeeded, Some(r#"{"status":200}"#)), "{run:?}");
    let mut calls = server.received_requests().await.unwrap();
    assert_eq!(calls.len(), 1);
    (run, calls.remove(0))
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let mut values = request.headers.get_all(name).iter();
    let value = values.next().map(|value| value.to_str().unwrap());
    assert!(values.next().is_none(), "`{name}` is there twice");
    value
}

#[tokio::test]
async fn a_call_tells_everything_about_the_run() {
    let (run, request) = call("daily-briefing", |http| {
        http.headers.insert("Authorization".to_owned(), Secret::new("Bearer hunter2"));
    })
    .await;
    assert_eq!(
        (request.method.as_str(), request.url.path(), request.url.query()),
        ("POST", "/hooks/brief", Some("a=b"))
    );
    let id = run.id.to_string();
    for (name, value) in [
        ("content-type", "application/json"),
        ("user-agent", concat!("everbell/", env!("CARGO_PKG_VERSION"))),
        ("authorization", "Bearer hunter2"),
        ("ce-specversion", "1.0"),
        ("ce-id", &id),
        ("ce-type", "dev.everbell.run.fire"),
        ("ce-source", "/everbell/jobs/daily-briefing"),
        ("ce-subject", "daily-briefing"),
        ("ce-time", "2026-11-16T07:00:00Z"),
        ("webhook-id", &id),
        ("webhook-timestamp", "1794812400"),
        ("idempotency-key", "\"schedule:daily-briefing:1794812400\""),
    ] {
        assert_eq!(header(&request, name), Some(value), "{name}");
    }
    assert_eq!(header(&request, "webhook-signature"), None);
    let trace = header(&request, "traceparent").unwrap();
    assert_eq!((trace.len(), trace.get(..3), trace.get(52..)), (55, Some("00-"), Some("-01")), "a new trace: {trace}");
    assert_eq!(header(&request, "tracestate"), None);
    let body: Value = request.body_json().unwrap();
    let wanted = json!({
        "type": "run.fire",
        "timestamp": "2026-11-16T07:00:00Z",
        "data": {
            "runId": id,
            "jobKey": "daily-briefing",
            "version": 1,
            "attempt": 1,
            "slotAt": "2026-11-16T07:00:00Z",
            "slotAtLocal": "2026-11-16T08:00:00+01:00[Europe/Paris]",
            "scheduledAt": "2026-11-16T07:00:00Z",
            "catchUp": false,
            "folded": 0,
            "orgId": null,
            "localDate": null,
            "payload": { "to": "é" },
        },
    });
    assert_eq!(body, wanted);
}

#[tokio::test]
async fn a_call_for_an_org_names_it_and_its_local_date() {
    let server = server(ResponseTemplate::new(200)).await;
    Box::pin(fired_for_org(http(server.uri(), |_| {}), "daily", "café")).await;
    let request = server.received_requests().await.unwrap().remove(0);
    assert_eq!(
        (header(&request, "ce-orgid"), header(&request, "ce-localdate")),
        (Some("caf%C3%A9"), Some("2026-11-15"))
    );
    let data = &request.body_json::<Value>().unwrap()["data"];
    assert_eq!(
        (&data["orgId"], &data["localDate"], &data["slotAtLocal"]),
        (&json!("café"), &json!("2026-11-15"), &Value::Null)
    );
}

#[tokio::test]
async fn a_job_may_have_any_name() {
    let (_, request) = call("café \"⏰\"/50%", |_| {}).await;
    let encoded = "caf%C3%A9%20%22%E2%8F%B0%22";
    assert_eq!(header(&request, "ce-subject"), Some(format!("{encoded}/50%25").as_str()));
    assert_eq!(header(&request, "ce-source"), Some(format!("/everbell/jobs/{encoded}%2F50%25").as_str()));
    let key = format!("\"schedule:{encoded}/50%25:1794812400\"");
    assert_eq!(header(&request, "idempotency-key"), Some(key.as_str()));
    assert_eq!(request.body_json::<Value>().unwrap()["data"]["jobKey"], "café \"⏰\"/50%");
}

#[tokio::test]
async fn every_key_signs_what_is_sent() {
    use base64::Engine;
    use hmac::{Hmac, KeyInit, Mac};

    let (run, request) = call("daily", |http| {
        http.signing_keys = vec![Secret::new("whsec_aHVudGVyMg=="), Secret::new("old key")];
    })
    .await;
    let expected = |key: &[u8]| {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
        mac.update(&[format!("{}.1794812400.", run.id).as_bytes(), &request.body].concat());
        format!("v1,{}", base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes()))
    };
    let wanted = format!("{} {}", expected(b"hunter2"), expected(b"old key"));
    assert_eq!(header(&request, "webhook-signature"), Some(wanted.as_str()));
}

#[tokio::test]
async fn a_method_without_a_body_tells_in_its_headers() {
    for method in ["GET", "HEAD", "DELETE"] {
        let (run, request) = call("daily", |http| method.clone_into(&mut http.method)).await;
        assert_eq!((request.method.as_str(), request.body.len()), (method, 0));
        assert_eq!(header(&request, "content-type"), None);
        assert_eq!(header(&request, "ce-id"), Some(run.id.to_string().as_str()));
    }
    let (_, request) = call("daily", |http| "PUT".clone_into(&mut http.method)).await;
    assert!(!request.body.is_empty());
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_not_called() {
    let server = server(ResponseTemplate::new(200)).await;
    let url = format!("http://localhost:{}/secret-path?hunter2", server.address().port());
    let run = perform(http(&url, |http| http.allow_private = false)).await;
    let (code, message) = failure(&run);
    assert_eq!(code, "http_connect");
    let origin = format!("http://localhost:{}", server.address().port());
    let wanted = format!("{origin} cannot be reached: `localhost` must not be called: ");
    assert!(message.starts_with(&wanted) && message.ends_with("which needs `allow_private`"), "{message}");
    assert_eq!(server.received_requests().await.unwrap().len(), 0);
    assert_eq!(perform(http(&url, |_| {})).await.status, RunStatus::Succeeded);
}
