//! Inside of a web application, in its own pool: both begin and end together, and a reminder is created in the transaction
//! of the order that it belongs to.
//!
//! `DATABASE_URL=postgres://… EVERBELL_EXAMPLE_ADDRESS=127.0.0.1:8080 cargo run -p everbell --example axum_app`, then
//! `curl -X POST 127.0.0.1:8080/orders/tea`, `curl 127.0.0.1:8080/`, `curl -X DELETE 127.0.0.1:8080/orders/1` and
//! `curl -X POST 127.0.0.1:8080/run/report`. Ctrl-c or SIGTERM stops it: requests and runs that have begun are finished.

use std::time::Duration;

use anyhow::Context;
use axum::Router;
// Both axum and everbell have a `State`. The name of the module in front of one of them keeps them apart.
use axum::extract::{self, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use everbell::{Everbell, JobFilter, Payload, Run, Schedule, State, StoreError};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::net::TcpListener;

/// The state of the web application.
#[derive(Clone)]
struct Shop {
    bell: Everbell,
    pool: PgPool,
}

async fn report(run: Run) {
    run.log("counted everything");
}

/// The target `remind`. Its order is there: they were written together.
#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn remind(Payload(order): Payload<i64>, State(pool): State<PgPool>) -> anyhow::Result<()> {
    let item = sqlx::query_scalar("select item from example_orders where id = $1").bind(order);
    let item: String = item.fetch_one(&pool).await?;
    println!("reminding of order {order}: {item}");
    Ok(())
}

/// `POST /orders/{item}`: an order and its reminder, or none of them.
async fn order(extract::State(shop): extract::State<Shop>, Path(item): Path<String>) -> Result<String, Problem> {
    let mut tx = shop.pool.begin().await?;
    let insert = sqlx::query_scalar("insert into example_orders (item) values ($1) returning id").bind(item);
    let id: i64 = insert.fetch_one(&mut *tx).await?;
    let soon = shop.bell.now() + Duration::from_secs(1);
    let reminder = Schedule::once(format!("reminder-{id}"), soon).target("remind").payload(id);
    shop.bell.jobs().by("visitor").create_in(&mut tx, &reminder).await?;
    tx.commit().await?;
    Ok(format!("{id}\n"))
}

/// `DELETE /orders/{id}`: the reminder goes with its order.
async fn cancel(extract::State(shop): extract::State<Shop>, Path(id): Path<i64>) -> Result<StatusCode, Problem> {
    let mut tx = shop.pool.begin().await?;
    sqlx::query("delete from example_orders where id = $1").bind(id).execute(&mut *tx).await?;
    shop.bell.jobs().by("visitor").retire_in(&mut tx, format!("reminder-{id}")).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /`: the jobs and when they fire next.
async fn jobs(extract::State(shop): extract::State<Shop>) -> Result<String, Problem> {
    let jobs = shop.bell.jobs().stream(JobFilter::default()).all().await?;
    let lines = jobs.iter().map(|job| {
        let next = job.next_run_at().map_or_else(|| "never".to_owned(), |at| at.to_string());
        format!("{} {} next {next}\n", job.key(), job.status())
    });
    Ok(lines.collect())
}

/// `POST /run/{key}`: a run by hand.
async fn run(extract::State(shop): extract::State<Shop>, Path(key): Path<String>) -> Result<String, Problem> {
    let asked = shop.bell.jobs().by("visitor").run_now(key).await?;
    Ok(format!("{}\n", asked.run().id))
}

/// A request that failed.
struct Problem(StatusCode, String);

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let status = match error {
            StoreError::NotFound { .. } => StatusCode::NOT_FOUND,
            StoreError::Invalid(_) => StatusCode::BAD_REQUEST,
            StoreError::Conflict { .. } => StatusCode::CONFLICT,
            StoreError::Stale { .. } => StatusCode::PRECONDITION_FAILED,
            StoreError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem(status, format!("{error}\n"))
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Problem {
        Problem(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> anyhow::Result<()> {
    let url = std::env::var("DATABASE_URL").context("DATABASE_URL must be the address of a PostgreSQL database")?;
    // Everbell borrows at most a half of it.
    let pool = PgPoolOptions::new().max_connections(10).connect(&url).await?;
    let table =
        "create table if not exists example_orders (id bigint generated always as identity, item text not null)";
    sqlx::query(table).execute(&pool).await?;
    let bell = Everbell::builder()
        .pool(pool.clone())
        .state(pool.clone())
        .target("report", report)
        .target("remind", remind)
        .schedule(Schedule::cron("report", "*/5 * * * *").target("report"))
        .build()
        .await?;

    let app = Router::new()
        .route("/", get(jobs))
        .route("/orders/{name}", post(order))
        .route("/orders/{name}", delete(cancel))
        .route("/run/{key}", post(run))
        .with_state(Shop { bell: bell.clone(), pool: pool.clone() });
    let address = std::env::var("EVERBELL_EXAMPLE_ADDRESS").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);

    let running = bell.start();
    // First the server, so that its last requests still find everbell at work.
    axum::serve(listener, app).with_graceful_shutdown(stopped()).await?;
    running.shutdown().await?;
    // Last, because everbell needs it until the end.
    pool.close().await;
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
