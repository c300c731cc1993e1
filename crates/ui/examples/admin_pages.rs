//! The pages and the API of everbell inside an application that has its own users.
//!
//! `EVERBELL_EXAMPLE_ADDRESS=127.0.0.1:8080 cargo run -p everbell-ui --example admin_pages`, then open
//! `http://127.0.0.1:8080/admin/cron` as `anna` or `bert` with the password `secret`. Anna may do everything, bert may
//! only look. The API is below `/admin/cron/api/v1`.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use everbell::{Everbell, Run, Schedule};
use everbell_http::access::Role;
use everbell_http::{Embedded, User};
use tokio::net::TcpListener;

async fn report(run: Run) {
    run.log("counted everything");
}

/// The users of the application. A real one asks its own sessions.
fn user(request: &Request) -> Option<User> {
    let header = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let decoded = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    match std::str::from_utf8(&decoded).ok()?.split_once(':')? {
        ("anna", "secret") => Some(User::new("anna", Role::Admin)),
        ("bert", "secret") => Some(User::new("bert", Role::Viewer)),
        _ => None,
    }
}

/// Lets users in, and tells everbell who they are.
async fn sign_in(mut request: Request, next: Next) -> Response {
    let Some(user) = user(&request) else {
        let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"admin\"")];
        return (StatusCode::UNAUTHORIZED, ask, "sign in as anna or bert\n").into_response();
    };
    request.extensions_mut().insert(user);
    next.run(request).await
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bell = Everbell::builder()
        .database("sqlite::memory:")
        .target("report", report)
        .schedule(Schedule::every("report", Duration::from_secs(20)).target("report"))
        .build()
        .await?;

    // The server waits for open requests, so the event streams of open pages end with the same signal.
    let embedded = Embedded::new(&bell).environment("example").with_graceful_shutdown(stopped());
    let pages = everbell_ui::router(embedded);
    let app = Router::new()
        .route("/", get(async || "the application\n"))
        // The first page is at the path without a slash behind it.
        .route("/admin/cron/", get(async || Redirect::permanent("/admin/cron")))
        .nest("/admin/cron", pages.layer(middleware::from_fn(sign_in)));
    let address = std::env::var("EVERBELL_EXAMPLE_ADDRESS").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("pages at http://{}/admin/cron", listener.local_addr()?);

    let running = bell.start();
    axum::serve(listener, app).with_graceful_shutdown(stopped()).await?;
    running.shutdown().await?;
    println!("stopped");
    Ok(())
}

/// SIGTERM, ctrl-c, or as many seconds as `EVERBELL_EXAMPLE_SECONDS` says.
async fn stopped() {
    let seconds = std::env::var("EVERBELL_EXAMPLE_SECONDS").ok().and_then(|text| text.parse().ok());
    tokio::select! {
        () = everbell::shutdown_signal() => {}
        () = tokio::time::sleep(Duration::from_secs(seconds.unwrap_or(u64::MAX / 2))) => {}
    }
}
