//! Time on a processor, of this process and of the server's backends: what a life costs, also on a busy machine.

use std::fs;
use std::time::Duration;

use sqlx::PgConnection;

/// What this process has used so far, in user and kernel, with threads that have ended; `/proc` tells it in hundredths of a
/// second.
pub(crate) fn own() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// What this process and the backends of the database have used so far; those that ended are not counted.
pub(crate) async fn with_backends(connection: &mut PgConnection) -> sqlx::Result<Duration> {
    let query =
        "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'";
    let pids: Vec<i32> = sqlx::query_scalar(query).fetch_all(connection).await?;
    Ok(own() + pids.iter().map(|pid| threads(&format!("/proc/{pid}/task"))).sum::<Duration>())
}

/// The first number of `schedstat` is the time of a thread in nanoseconds.
fn threads(folder: &str) -> Duration {
    let of_thread = |entry: fs::DirEntry| {
        let said = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        said.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| of_thread(entry.ok()?)).sum()
}
