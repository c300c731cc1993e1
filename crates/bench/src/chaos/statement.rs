//! Statements of the PostgreSQL store, recognized by a distinctive part of their text.

/// A statement to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// Starts pending runs: the claim of the claimer.
    StartRuns,
    /// Locks due timers: the beginning of a plan.
    LockDueTimers,
    /// Every statement.
    Any,
}

impl Statement {
    pub(crate) fn is(self, text: &str) -> bool {
        let has = |part: &str| text.contains(part);
        match self {
            Statement::StartRuns => has("active_runs") && has("status = 'running'") && has("attempt + 1"),
            Statement::LockDueTimers => has("from everbell.timers") && has("skip locked") && has("next_run_at <= $"),
            Statement::Any => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Statement;

    /// An experiment whose statement is never recognized would prove nothing.
    #[test]
    fn each_statement_recognizes_its_own_text_only() {
        let start = include_str!("../../../store/src/postgres/sql/start_runs.sql");
        let lock = include_str!("../../../store/src/postgres/sql/lock_due_timers.sql");
        let others = [
            include_str!("../../../store/src/postgres/sql/extend_leases.sql"),
            include_str!("../../../store/src/postgres/sql/end_runs.sql"),
            include_str!("../../../store/src/postgres/sql/next_due.sql"),
        ];
        assert!(Statement::StartRuns.is(start) && !Statement::StartRuns.is(lock));
        assert!(Statement::LockDueTimers.is(lock) && !Statement::LockDueTimers.is(start));
        for other in others {
            assert!(!Statement::StartRuns.is(other) && !Statement::LockDueTimers.is(other), "{other}");
        }
    }
}
