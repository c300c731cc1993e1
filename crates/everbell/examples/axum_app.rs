//! Inside of a web application: both begin and end together.
//!
//! `EVERBELL_EXAMPLE_ADDRESS=127.0.0.1:8080 cargo run -p everbell --example axum_app`, then `curl 127.0.0.1:8080/` and
//! `curl -X POST 127.0.0.1:8080/run/report`. Ctrl-c or SIGTERM stops it: requests and runs that have begun are
//! finished.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use everbell::{Everbell, JobFilter, Run, Schedule, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;

async fn report(run: Run) {
    run.log("counted everything");
}

/// `GET /`: the jobs and when they fire next.
async fn jobs(State(bell): State<Everbell>) -> Result<String, (StatusCode, String)> {
    let jobs = bell.jobs().stream(JobFilter::default()).all().await.map_err(|error| answer(&error))?;
    let lines = jobs.iter().map(|job| {
        let next = job.next_run_at().map_or_else(|| "never".to_owned(), |at| at.to_string());
        format!("{} {} next {next}\n", job.key(), job.status())
    });
    Ok(lines.collect())
}

/// `POST /run/{key}`: a run by hand.
async fn run(State(bell): State<Everbell>, Path(key): Path<String>) -> Result<String, (StatusCode, String)> {
    let asked = bell.jobs().by("visitor").run_now(key).await.map_err(|error| answer(&error))?;
    Ok(format!("{}\n", asked.run().id))
}

fn answer(error: &StoreError) -> (StatusCode, String) {
    let status = match error {
        StoreError::NotFound { .. } => StatusCode::NOT_FOUND,
        StoreError::Invalid(_) => StatusCode::BAD_REQUEST,
        StoreError::Conflict { .. } => StatusCode::CONFLICT,
        StoreError::Stale { .. } => StatusCode::PRECONDITION_FAILED,
        StoreError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::Corrupt { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{error}\n"))
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> anyhow::Result<()> {
    let bell = Everbell::builder()
        .database("sqlite::memory:")
        .target("report", report)
        .schedule(Schedule::cron("report", "*/5 * * * *").target("report"))
        .build()
        .await?;

    let app = Router::new().route("/", get(jobs)).route("/run/{key}", post(run)).with_state(bell.clone());
    let address = std::env::var("EVERBELL_EXAMPLE_ADDRESS").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);

    // One signal for both: no request comes in any more, and no run begins.
    let (stop, stopping) = watch::channel(false);
    tokio::spawn(async move {
        stopped().await;
        stop.send_replace(true);
    });
    let server = axum::serve(listener, app).with_graceful_shutdown(wait(stopping.clone())).into_future();
    let engine = bell.run_until(wait(stopping));
    let (server, engine) = tokio::join!(server, engine);
    server?;
    engine?;
    println!("stopped");
    Ok(())
}

async fn wait(mut stopping: watch::Receiver<bool>) {
    // An error means that nobody is left who could say so: then it is time as well.
    let _told = stopping.wait_for(|stop| *stop).await;
}

/// SIGTERM, ctrl-c, or so many seconds as `EVERBELL_EXAMPLE_SECONDS` says.
async fn stopped() {
    let seconds = std::env::var("EVERBELL_EXAMPLE_SECONDS").ok().and_then(|text| text.parse().ok());
    tokio::select! {
        () = everbell::shutdown_signal() => {}
        () = tokio::time::sleep(Duration::from_secs(seconds.unwrap_or(u64::MAX / 2))) => {}
    }
}
