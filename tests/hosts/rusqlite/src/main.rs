//! Counts the rows of its own SQLite file every night, by a schedule in PostgreSQL.

use everbell::{Everbell, Schedule};

async fn count() -> rusqlite::Result<i64> {
    let own = rusqlite::Connection::open("notes.db")?;
    own.query_row("select count(*) from notes", [], |row| row.get(0))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bell = Everbell::builder()
        .database("postgres://app@localhost/app")
        .target("count", count)
        .schedule(Schedule::cron("nightly", "0 3 * * *").tz("Europe/Paris").target("count"))
        .build()
        .await?;
    bell.run_until(everbell::shutdown_signal()).await?;
    Ok(())
}
