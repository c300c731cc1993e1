//! Deadlines: every verb ends in time, and a request that calls several verbs has one budget for all of them.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs `work` with a deadline for every verb of a PostgreSQL store that it calls. Each verb also has its own limit;
/// the earlier of the two ends it. A task that `work` spawns does not inherit the deadline.
pub async fn with_deadline<F: Future>(deadline: Instant, work: F) -> F::Output {
    DEADLINE.scope(deadline, work).await
}

/// The deadline of the caller, for a task that it spawns.
pub fn deadline() -> Option<Instant> {
    DEADLINE.try_with(|deadline| *deadline).ok()
}

/// The time that one verb has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    began: Instant,
    ends: Instant,
}

impl Budget {
    /// At most `limit` from now, and never beyond the deadline of the caller.
    pub(crate) fn new(limit: Duration) -> Budget {
        let began = Instant::now();
        let ends = began + limit;
        Budget { began, ends: deadline().map_or(ends, |deadline| ends.min(deadline)) }
    }

    /// The error of a statement that the server itself has canceled for taking too long.
    pub(crate) fn canceled(self) -> sqlx::Error {
        Late { after: self.began.elapsed(), stage: Stage::Canceled }.into()
    }

    /// Runs a part of the verb that begins at this stage.
    pub(crate) async fn spend<T>(
        self,
        stage: Stage,
        work: impl Future<Output = sqlx::Result<T>> + Send,
    ) -> sqlx::Result<T> {
        let late = |_| Err(Late { after: self.began.elapsed(), stage }.into());
        tokio::time::timeout_at(self.ends, work).await.unwrap_or_else(late)
    }
}

/// The database did not answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) after: Duration,
    pub(crate) stage: Stage,
}

/// How far a verb was when its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waited for a connection: the server was asked for nothing.
    Connecting,
    /// It was sent, and may have happened.
    Sent,
    /// The server has canceled it: it has not happened.
    Canceled,
}

impl Late {
    /// Finds it in a driver's error.
    pub(crate) fn find_in(error: &sqlx::Error) -> Option<Late> {
        let sqlx::Error::Io(error) = error else { return None };
        error.get_ref()?.downcast_ref::<Late>().copied()
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.stage {
            Stage::Connecting => "no connection",
            Stage::Sent => "no answer",
            Stage::Canceled => "the statement was not done",
        };
        write!(f, "{what} within {:.1} s", self.after.as_secs_f64())
    }
}

impl Error for Late {}

impl From<Late> for sqlx::Error {
    fn from(late: Late) -> sqlx::Error {
        sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, late))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn never() -> sqlx::Result<()> {
        std::future::pending().await
    }

    async fn late(limit: Duration) -> Late {
        let error = Budget::new(limit).spend(Stage::Sent, never()).await.unwrap_err();
        assert!(error.to_string().contains("no answer within"), "{error}");
        Late::find_in(&error).unwrap()
    }

    #[tokio::test]
    async fn the_earlier_of_two_deadlines_ends_a_verb() {
        let (short, long) = (Duration::from_millis(20), Duration::from_hours(1));
        let alone = late(short).await;
        assert!(alone.after >= short && alone.stage == Stage::Sent, "{alone:?}");
        let verbs = async { (late(long).await, late(long).await) };
        let (first, second) = with_deadline(Instant::now() + short, verbs).await;
        assert!(first.after < long && second.after < long, "one budget for both: {first:?} {second:?}");
        let shown = Late { after: Duration::from_millis(4_960), stage: Stage::Connecting };
        assert_eq!(shown.to_string(), "no connection within 5.0 s");
    }
}
