//! The pages inside somebody's own program, which has users of its own.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::{BTreeSet, VecDeque};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use everbell::{Everbell, JobStatus, Schedule};
use everbell_http::access::Role;
use everbell_http::{Embedded, User};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};

use super::browser::Browser;

const PREFIX: &str = "/admin/cron";

/// The application believes a header: the tests are its only clients.
async fn sign_in(mut request: Request, next: Next) -> Response {
    let named = request.headers().get("x-role").and_then(|role| Role::from_word(role.to_str().ok()?));
    if let Some(role) = named {
        request.extensions_mut().insert(User::new("anna@example.com", role));
    }
    next.run(request).await
}

async fn everybody_is_anna(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(User::new("anna@example.com", Role::Admin));
    next.run(request).await
}

async fn bell() -> Everbell {
    Everbell::builder()
        .database("sqlite::memory:")
        .target("greet", async || Ok::<_, std::io::Error>(()))
        .schedule(Schedule::cron("morning", "0 8 * * *").target("greet"))
        .schedule(Schedule::cron("per-org", "0 9 * * *").target("greet").per_org())
        .build()
        .await
        .unwrap()
}

async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    base
}

async fn application(bell: &Everbell) -> (String, reqwest::Client) {
    let pages = everbell_ui::router(Embedded::new(bell)).layer(middleware::from_fn(sign_in));
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    (serve(Router::new().nest(PREFIX, pages)).await, client)
}

/// The values of these attributes.
fn addresses(page: &str) -> BTreeSet<String> {
    let names = [" href=\"", " src=\"", " action=\"", " formaction=\"", " data-preview=\""];
    let values = names.iter().flat_map(|name| page.split(name).skip(1)).filter_map(|rest| rest.split('"').next());
    values.map(|value| value.replace("&amp;", "&").replace("&#38;", "&")).collect()
}

#[tokio::test]
async fn every_address_of_every_page_is_below_the_prefix() {
    let bell = bell().await;
    bell.jobs().run_now("morning").await.unwrap();
    let (base, client) = application(&bell).await;
    let (mut seen, mut next) = (BTreeSet::new(), VecDeque::from([PREFIX.to_owned()]));
    while let Some(address) = next.pop_front() {
        let path = address.split(['?', '#']).next().unwrap().to_owned();
        if !seen.insert(path.clone()) || seen.len() > 120 {
            continue;
        }
        let answer = client.get(format!("{base}{address}")).header("x-role", "admin").send().await.unwrap();
        let kind = answer.headers().get("content-type").map_or("", |kind| kind.to_str().unwrap()).to_owned();
        let status = answer.status().as_u16();
        // Forms that take no GET, or nothing to show without a choice.
        assert!([200, 303, 405].contains(&status), "{address}: {status}");
        if let Some(to) = answer.headers().get(LOCATION) {
            assert!(to.to_str().unwrap().starts_with(PREFIX), "{address} leads to {to:?}");
        }
        if status != 200 || !kind.starts_with("text/html") {
            continue;
        }
        let page = answer.text().await.unwrap();
        for found in addresses(&page).into_iter().filter(|found| !found.starts_with('#')) {
            let is_below =
                found.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
            assert!(is_below, "{found} on {address}");
            if !found.contains("/events") {
                next.push_back(found);
            }
        }
    }
    for page in ["/jobs", "/jobs/morning", "/runs", "/settings", "/timeline", "/ui/everbell.js", "/jobs/morning/pause"]
    {
        assert!(seen.contains(&format!("{PREFIX}{page}")), "{page} is not among {seen:?}");
    }
}

#[tokio::test]
async fn the_application_says_who_somebody_is() {
    let bell = bell().await;
    let (base, client) = application(&bell).await;
    let get =
        |path: &str, role: &'static str| client.get(format!("{base}{PREFIX}{path}")).header("x-role", role).send();

    // Somebody whom it does not name has to sign in with a token, and comes back.
    let answer = client.get(format!("{base}{PREFIX}/jobs")).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers()[LOCATION].to_str().unwrap()),
        (303, "/admin/cron/sign-in?to=%2Fjobs")
    );
    let unnamed = client.get(format!("{base}{PREFIX}/api/v1/jobs")).send().await.unwrap();
    assert_eq!(unnamed.status().as_u16(), 401);

    // A viewer sees that pausing needs another role, and cannot.
    let page = get("/jobs/morning/pause", "viewer").await.unwrap();
    let cookie = page.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("everbell-session"), "{cookie}");
    let page = page.text().await.unwrap();
    assert!(page.contains("user:anna@example.com") && !page.contains("/sign-out"), "{page}");

    // The form of an operator is tied to the browser that got it.
    let own = client.get(format!("{base}{PREFIX}/jobs/morning/pause")).header("x-role", "operator");
    let page = own.header(COOKIE, &cookie).send().await.unwrap();
    assert!(!page.headers().contains_key(SET_COOKIE), "the cookie stays the same");
    let page = page.text().await.unwrap();
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let send = async |csrf: &str, role: &str| {
        let form = client.post(format!("{base}{PREFIX}/jobs/morning/pause")).header("x-role", role);
        let form = form.header("content-type", "application/x-www-form-urlencoded").header(COOKIE, &cookie);
        form.body(format!("csrf={csrf}&once=1&reason=trip")).send().await.unwrap()
    };
    assert_eq!(send("wrong", "operator").await.status().as_u16(), 403);
    assert_eq!(send(&csrf, "viewer").await.status().as_u16(), 403);
    assert_eq!(bell.jobs().get("morning").await.unwrap().status(), JobStatus::Active);
    let answer = send(&csrf, "operator").await;
    assert_eq!(answer.status().as_u16(), 303);
    let location = answer.headers()[LOCATION].to_str().unwrap();
    assert!(location.starts_with("/admin/cron/jobs/morning"), "{location}");
    assert_eq!(bell.jobs().get("morning").await.unwrap().status(), JobStatus::Paused);
    let entries = client.get(format!("{base}{PREFIX}/api/v1/audit")).header("x-role", "admin").send().await.unwrap();
    let entries = entries.text().await.unwrap();
    assert!(entries.contains("\"actor\":\"user:anna@example.com\""), "{entries}");
}

#[tokio::test]
async fn another_site_cannot_write_in_the_name_of_a_person() {
    let bell = bell().await;
    let (base, client) = application(&bell).await;
    let pause = |name: &'static str, value: String| {
        let request = client.post(format!("{base}{PREFIX}/api/v1/jobs/key:morning/pause")).header("x-role", "admin");
        request.header("content-type", "application/json").header(name, value).body(r#"{"reason":"a trip"}"#).send()
    };
    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("origin", "null")] {
        assert_eq!(pause(name, value.to_owned()).await.unwrap().status().as_u16(), 403, "{name} {value}");
    }
    assert_eq!(bell.jobs().get("morning").await.unwrap().status(), JobStatus::Active);
    assert_eq!(pause("origin", base.clone()).await.unwrap().status().as_u16(), 200);
    assert_eq!(bell.jobs().get("morning").await.unwrap().status(), JobStatus::Paused);
}

/// A connection in HTTP/2 without TLS, as from a proxy that knows that the application speaks it.
async fn http2(base: &str) -> SendRequest<String> {
    let stream = tokio::net::TcpStream::connect(base.strip_prefix("http://").unwrap()).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

#[tokio::test]
async fn forms_in_http2_are_those_of_the_host_in_the_address() {
    let bell = bell().await;
    let (base, _) = application(&bell).await;
    let mut sender = http2(&base).await;
    // The host is in `:authority` only: a browser sends no header `Host` in HTTP/2.
    let form = axum::http::Request::builder().uri(format!("{base}{PREFIX}/jobs/morning/pause"));
    let page = form.header("x-role", "operator").body(String::new()).unwrap();
    let page = sender.send_request(page).await.unwrap();
    assert_eq!((page.status().as_u16(), page.version()), (200, axum::http::Version::HTTP_2));
    let cookie = page.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = String::from_utf8(page.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let mut send = async |origin: &str| {
        let form = axum::http::Request::post(format!("{base}{PREFIX}/jobs/morning/pause")).header("x-role", "operator");
        let form = form.header("content-type", "application/x-www-form-urlencoded").header(COOKIE, &cookie);
        let form = form.header("origin", origin).body(format!("csrf={csrf}&once=1&reason=trip")).unwrap();
        sender.send_request(form).await.unwrap().status().as_u16()
    };
    // A neighboring site can set cookies for this one, so the token alone proves nothing.
    for foreign in ["https://evil.example", "http://127.0.0.1:1", "null"] {
        assert_eq!(send(foreign).await, 403, "{foreign}");
    }
    assert_eq!(bell.jobs().get("morning").await.unwrap().status(), JobStatus::Active);
    assert_eq!(send(&base).await, 303);
    assert_eq!(bell.jobs().get("morning").await.unwrap().status(), JobStatus::Paused);
}

#[tokio::test]
async fn the_public_address_of_the_application_is_its_own_site() {
    let bell = bell().await;
    for (public, status, is_secure) in
        [(Some("https://app.example/"), 200, true), (Some("http://app.example"), 200, false), (None, 403, false)]
    {
        let embedded = Embedded::new(&bell);
        let embedded = public.into_iter().fold(embedded, Embedded::public_url);
        let pages = everbell_ui::router(embedded).layer(middleware::from_fn(everybody_is_anna));
        let base = serve(Router::new().nest(PREFIX, pages)).await;
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::new();
        let page = client.get(format!("{base}{PREFIX}/jobs/morning")).send().await.unwrap();
        let cookie = page.headers()[SET_COOKIE].to_str().unwrap();
        assert_eq!(cookie.contains("; Secure"), is_secure, "{public:?}: {cookie}");
        assert_eq!(page.headers().contains_key("strict-transport-security"), is_secure, "{public:?}");
        let pause = client.post(format!("{base}{PREFIX}/api/v1/jobs/key:morning/skip-next"));
        let pause = pause.header("content-type", "application/json").header("origin", "https://app.example");
        assert_eq!(pause.body("{}").send().await.unwrap().status().as_u16(), status, "{public:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_work_below_the_prefix() {
    let bell = bell().await;
    let pages = everbell_ui::router(Embedded::new(&bell)).layer(middleware::from_fn(everybody_is_anna));
    let base = serve(Router::new().nest(PREFIX, pages)).await;
    let running = bell.start();
    let (url, jobs) = (format!("{base}{PREFIX}"), bell.jobs());
    tokio::task::spawn_blocking(move || {
        let browser = Browser::start();
        browser.visit(&url);
        browser.see("Live");
        browser.press("g j");
        browser.see("per-org");
        assert!(browser.url().ends_with("/admin/cron/jobs"), "{}", browser.url());
        browser.click("morning");
        // A dialog, its answer, and the page that follows.
        browser.click("Pause…");
        browser.fill("Reason", "a trip");
        browser.click("Pause morning");
        browser.see("paused");
        assert!(browser.url().contains("/admin/cron/jobs/morning"), "{}", browser.url());
        browser.flawless();
        browser.finish();
    })
    .await
    .unwrap();
    assert_eq!(jobs.get("morning").await.unwrap().status(), JobStatus::Paused);
    running.shutdown().await.unwrap();
}
