//! A reminder that lives and dies with its order: both are written in one transaction of the program.
//!
//! `cargo run -p everbell --example transaction`. It ends by itself, or in order on ctrl-c or SIGTERM, and leaves no file
//! behind. With PostgreSQL it is the same; `axum_app` shows that, in one pool with the application.

use std::path::Path;
use std::time::Duration;

use everbell::{Event, Everbell, Payload, Schedule, StoreError, Timestamp};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn remind(Payload(order): Payload<i64>) {
    println!("reminding of order {order}");
}

fn reminder(order: i64, at: Timestamp) -> Schedule {
    Schedule::once(format!("reminder-{order}"), at).target("remind").payload(order)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("everbell-transaction-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = shop(&folder.join("shop.db")).await;
    std::fs::remove_dir_all(&folder)?;
    done
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn shop(file: &Path) -> anyhow::Result<()> {
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(file).create_if_missing(true)).await?;
    sqlx::query("create table orders (id integer primary key)").execute(&pool).await?;
    let database = format!("sqlite:{}", file.display());
    let bell = Everbell::builder().database(database).target("remind", remind).build().await?;
    let (mut events, running) = (bell.events(), bell.start());
    let soon = bell.now() + Duration::from_secs(1);

    // Three orders, each with its reminder. SQLite has one writer: `begin immediate` waits for its turn.
    for order in [1, 2, 3] {
        let mut tx = pool.begin_with("begin immediate").await?;
        sqlx::query("insert into orders values (?)").bind(order).execute(&mut *tx).await?;
        bell.jobs().by("web").create_in(&mut tx, &reminder(order, soon)).await?;
        if order == 2 {
            // The payment failed: neither the order nor its reminder has ever been there.
            tx.rollback().await?;
        } else {
            tx.commit().await?;
        }
    }

    // The third order is canceled, and its reminder with it.
    let mut tx = pool.begin_with("begin immediate").await?;
    sqlx::query("delete from orders where id = 3").execute(&mut *tx).await?;
    bell.jobs().by("web").because("canceled by the customer").retire_in(&mut tx, "reminder-3").await?;
    tx.commit().await?;

    let finished = async { while !matches!(events.recv().await.as_deref(), Some(Event::Finished { .. }) | None) {} };
    tokio::select! {
        () = finished => {}
        () = everbell::shutdown_signal() => {}
    }
    for key in ["reminder-1", "reminder-2", "reminder-3"] {
        match bell.jobs().get(key).await {
            Ok(job) => println!("{key} is {}", job.status()),
            Err(StoreError::NotFound { .. }) => println!("{key} has never been there"),
            Err(error) => return Err(error.into()),
        }
    }
    running.shutdown().await?;
    pool.close().await;
    Ok(())
}
