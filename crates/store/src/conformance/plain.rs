//! Values made comparable: JSON keeps its meaning in a store, not its spaces or the order of its members.

use std::sync::Arc;

use everbell_core::store::{AuditEntry, Changed, Claim, JobRow, Planned};
use everbell_core::{Definition, Failure, Json, Run};

/// Returns the value with every JSON text in one form.
pub(super) trait Plain {
    /// In that form.
    #[must_use]
    fn plain(self) -> Self;
}

impl Plain for Json {
    fn plain(self) -> Json {
        let value: serde_json::Value = serde_json::from_str(self.as_str()).unwrap();
        Json::parse("json", &value.to_string()).unwrap()
    }
}

impl<T: Plain> Plain for Option<T> {
    fn plain(self) -> Option<T> {
        self.map(Plain::plain)
    }
}

impl<T: Plain> Plain for Vec<T> {
    fn plain(self) -> Vec<T> {
        self.into_iter().map(Plain::plain).collect()
    }
}

impl<T: Plain + Clone> Plain for Arc<T> {
    fn plain(self) -> Arc<T> {
        Arc::new((*self).clone().plain())
    }
}

impl Plain for Definition {
    fn plain(self) -> Definition {
        let payload = self.payload.clone().plain();
        everbell_core::with!(Definition { payload, ..self })
    }
}

impl Plain for JobRow {
    fn plain(self) -> JobRow {
        let mut row = self;
        row.job.definition = row.job.definition.plain();
        row.last_run = row.last_run.plain();
        row
    }
}

impl Plain for Failure {
    fn plain(self) -> Failure {
        Failure { details: self.details.plain(), ..self }
    }
}

impl Plain for Run {
    fn plain(self) -> Run {
        let mut run = self;
        (run.payload, run.failure, run.result) = (run.payload.plain(), run.failure.plain(), run.result.plain());
        run
    }
}

impl Plain for Claim {
    fn plain(self) -> Claim {
        Claim { run: self.run.plain(), job: self.job.plain(), ..self }
    }
}

impl Plain for Changed {
    fn plain(self) -> Changed {
        let mut changed = self;
        changed.job = changed.job.plain();
        changed.successor = changed.successor.plain();
        changed.runs = changed.runs.plain();
        changed
    }
}

impl Plain for Planned {
    fn plain(self) -> Planned {
        let mut planned = self;
        for run in &mut planned.runs {
            run.job = Arc::clone(&run.job).plain();
        }
        planned.claims = planned.claims.plain();
        planned
    }
}

impl Plain for AuditEntry {
    fn plain(self) -> AuditEntry {
        AuditEntry { before: self.before.plain(), after: self.after.plain(), ..self }
    }
}
