//! Time on a processor, of this process and of the server's backends: what a life costs, also on a busy machine.

use std::fs;
use std::ops::Sub;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sqlx::PgConnection;

/// Returns the processor time of this process so far, in user and kernel mode, with threads that have ended.
pub(crate) fn own() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Time on processors, here and at the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) client: Duration,
    pub(crate) server: Duration,
}

impl Sub for Spent {
    type Output = Spent;

    fn sub(self, before: Spent) -> Spent {
        Spent { client: self.client.saturating_sub(before.client), server: self.server.saturating_sub(before.server) }
    }
}

/// Measures the processor time spent so far.
#[derive(Debug)]
pub(crate) enum Meter {
    /// Only this process works.
    Client,
    /// The backends of this connection's database work too. Those that ended are not counted.
    WithBackends(PgConnection),
}

impl Meter {
    pub(crate) async fn read(&mut self) -> sqlx::Result<Spent> {
        let server = match self {
            Meter::Client => Duration::ZERO,
            Meter::WithBackends(connection) => backends(connection).await?,
        };
        Ok(Spent { client: own(), server })
    }
}

async fn backends(connection: &mut PgConnection) -> sqlx::Result<Duration> {
    let query =
        "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'";
    let pids: Vec<i32> = sqlx::query_scalar(query).fetch_all(connection).await?;
    Ok(pids.iter().map(|pid| threads(&format!("/proc/{pid}/task"))).sum())
}

/// The first number of `schedstat` is the time of a thread in nanoseconds.
fn threads(folder: &str) -> Duration {
    let of_thread = |entry: fs::DirEntry| {
        let said = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        said.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| of_thread(entry.ok()?)).sum()
}

/// Returns the load average of the machine in the last minute, to stand beside a figure.
pub(crate) fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split_whitespace().next().unwrap_or("?").to_owned()
}
