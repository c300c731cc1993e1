//! The versions of a job, and what each changed.

use everbell::{JobRow, Scope};
use everbell_wire as wire;

use crate::audit_line::plain;
use crate::badge;
use crate::clock::Clock;
use crate::markup::Markup;
use everbell_http::api::edits::changes;

/// One version.
pub(super) struct Version {
    pub(super) number: u32,
    pub(super) badge: Markup,
    pub(super) schedule: wire::job::Schedule,
    /// Whether it fires for each org, in whose zone.
    pub(super) for_each: bool,
    pub(super) target: String,
    pub(super) by: String,
    pub(super) at: Markup,
    pub(super) away: Markup,
    /// Field, before, now; nothing for the first.
    pub(super) changes: Vec<(String, String, String)>,
    pub(super) first: bool,
}

impl Version {
    /// All of them, the newest first, each against the one before.
    pub(super) fn all(rows: &[JobRow], clock: &Clock) -> Vec<Version> {
        let older = rows.iter().skip(1).map(Some).chain([None]);
        rows.iter().zip(older).map(|(row, older)| Version::new(row, older, clock)).collect()
    }

    fn new(row: &JobRow, older: Option<&JobRow>, clock: &Clock) -> Version {
        let (definition, state) = (&*row.job.definition, &row.job.state);
        let changed = older.map(|older| changes(older, row)).unwrap_or_default();
        Version {
            number: definition.version,
            badge: badge::job(state.status, state.error.is_some()),
            schedule: wire::job::Schedule::from(definition),
            for_each: definition.scope == Scope::PerOrg,
            target: definition.target.to_string(),
            by: definition.created_by.clone(),
            at: clock.second(definition.created_at, None),
            away: clock.away(definition.created_at),
            changes: changed.iter().map(|field| (field.field.clone(), plain(&field.from), plain(&field.to))).collect(),
            first: older.is_none(),
        }
    }
}
