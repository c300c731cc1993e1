//! The decision about one job: a pure function of the declared and the existing job.

use everbell_core::change::{self, Edit, JobView, NewJob};
use everbell_core::store::JobRow;
use everbell_core::{
    App, Comparison, DeclarationHash, Definition, Job, JobStatus, ReleaseStatus, Source, When, compare,
};
use jiff::Timestamp;

use super::Removed;
use super::plan::SyncAction;

/// A declared job: the definition that it would get if it were created now.
pub(crate) type Declared = Definition;

/// The rules of a sync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// The kind of owner of the jobs.
    pub(crate) source: Source,
    /// The program that owns them.
    pub(crate) app: &'a App,
    /// The actor who writes.
    pub(crate) actor: &'a str,
    pub(crate) removed: Removed,
    pub(crate) adopt: bool,
    /// Whether this release of the program decides.
    pub(crate) status: ReleaseStatus,
}

/// Decides the action for a key. `None` if it is neither declared nor there. A release that another one replaced changes
/// nothing.
pub(crate) fn diff(declared: Option<&Declared>, existing: Option<&JobRow>, rules: &Rules<'_>) -> Option<SyncAction> {
    let action = wanted_action(declared, existing, rules)?;
    Some(match rules.status {
        ReleaseStatus::Outdated { since } if action.is_change() => {
            SyncAction::Held { version: existing.map(|row| row.job.definition.version), since }
        }
        ReleaseStatus::Outdated { .. } | ReleaseStatus::Current => action,
    })
}

fn wanted_action(declared: Option<&Declared>, existing: Option<&JobRow>, rules: &Rules<'_>) -> Option<SyncAction> {
    match (declared, existing) {
        (None, None) => None,
        (None, Some(row)) => undeclared(&row.job, rules),
        (Some(wanted), None) => Some(created(wanted, 1)),
        (Some(wanted), Some(row)) if row.job.state.status == JobStatus::Retired => {
            Some(retired(wanted, &row.job, rules))
        }
        (Some(wanted), Some(row)) => Some(living(wanted, row, rules)),
    }
}

/// Returns the job to create for a declaration without a current version.
pub(super) fn first(wanted: &Declared, last: Option<&JobRow>) -> NewJob {
    let mut definition = wanted.clone();
    let Some(last) = last else { return change::create(definition) };
    definition.version = last.job.definition.version + 1;
    definition.supersedes = Some(last.job.definition.id);
    change::create(definition).following(&last.job.state)
}

fn created(wanted: &Declared, version: u32) -> SyncAction {
    let next_run_at = change::create(wanted.clone()).next_run_at();
    match (next_run_at, once(wanted)) {
        (None, Some(run_at)) => SyncAction::Past { run_at },
        _ => SyncAction::Create { version, next_run_at },
    }
}

fn once(definition: &Definition) -> Option<Timestamp> {
    match definition.spec.as_ref().ok()?.when() {
        When::Once(at) => Some(*at),
        When::Cron(_) | When::Every { .. } | When::After(_) | When::AfterAll(_) => None,
    }
}

fn retired(wanted: &Declared, job: &Job, rules: &Rules<'_>) -> SyncAction {
    let Job { definition, state, .. } = job;
    let record = state.declaration.as_ref();
    let own = definition.source == rules.source && record.is_none_or(|record| record.app == *rules.app);
    let hash = record.map_or_else(|| DeclarationHash::new(definition), |record| record.hash.clone());
    let same = hash == DeclarationHash::new(wanted);
    // The last writer is the one who retired it: nothing is written about a retired job.
    if own && same && state.updated_by != rules.actor {
        return SyncAction::StaysRetired { version: definition.version, by: state.updated_by.clone() };
    }
    created(wanted, definition.version + 1)
}

fn living(wanted: &Declared, row: &JobRow, rules: &Rules<'_>) -> SyncAction {
    let Job { definition, state, .. } = &row.job;
    let version = definition.version;
    let app = state.declaration.as_ref().map(|record| &record.app);
    let same_source = definition.source == rules.source;
    let is_foreign = !same_source || app.is_some_and(|app| app != rules.app);
    if is_foreign && !rules.adopt {
        return SyncAction::Conflict { version, owner: definition.source, app: app.cloned() };
    }
    let is_own = same_source && app == Some(rules.app);
    let next_run_at = row.timer.as_ref().and_then(|timer| timer.next_run_at);
    let paused_here = state.pause.as_ref().is_some_and(|pause| pause.by == rules.actor);
    let paused_by = state.pause.as_ref().map(|pause| pause.by.clone());
    match (compare(&row.job, wanted), is_own) {
        (Comparison::Edited, true) if !paused_here => {
            let (by, changed) = (definition.created_by.clone(), changed(definition, wanted));
            return SyncAction::Edited { version, by, changed, next_run_at, paused_by };
        }
        (Comparison::Same | Comparison::Edited, true) | (Comparison::Same | Comparison::Unrecorded, _)
            if paused_here && same_source =>
        {
            return SyncAction::Resume { version };
        }
        (Comparison::Same, true) => return SyncAction::Unchanged { version, next_run_at, paused_by },
        (Comparison::Same | Comparison::Unrecorded, _) if same_source => {
            return SyncAction::Record { version, app: app.cloned().filter(|_| !is_own), is_new: !is_own };
        }
        _ => {}
    }
    let mut changed = changed(definition, wanted);
    if same_source && !is_own {
        changed.push("app");
    }
    let paused = state.pause.is_some() && !paused_here;
    let next = next_after_edit(row, wanted, rules.actor, !paused);
    let replaces_edit_by = row.job.is_edited().then(|| definition.created_by.clone());
    SyncAction::NewVersion {
        from: version,
        changed,
        old_next_run_at: next_run_at,
        next_run_at: next,
        paused,
        replaces_edit_by,
    }
}

/// Returns the differences of the next version. An unchanged schedule keeps the anchor of a fixed rate.
pub(super) fn edit(is: &Definition, wanted: &Declared) -> Edit {
    Edit {
        target: Some(wanted.target.clone()),
        payload: Some(wanted.payload.clone()),
        spec: wanted.spec.clone().ok().filter(|_| !same_schedule(is, wanted)),
        policies: Some(wanted.policies.clone()),
        description: Some(wanted.description.clone()),
        labels: Some(wanted.labels.clone()),
        source: Some(wanted.source),
        scope: Some(wanted.scope),
        // Read when it is written.
        calendars: Vec::new(),
    }
}

/// Returns when the next version would fire. Errors surface when it is written.
fn next_after_edit(row: &JobRow, wanted: &Declared, by: &str, activate: bool) -> Option<Timestamp> {
    let view = JobView {
        job: row.job.clone(),
        timer: row.timer.clone()?,
        org: None,
        active: Vec::new(),
        upstream_succeeded_at: None,
    };
    let edit = edit(&row.job.definition, wanted);
    let changed = change::new_version(&view, edit, wanted.id, activate, by, wanted.created_at).ok()?;
    changed.successor?.next_run_at()
}

fn undeclared(job: &Job, rules: &Rules<'_>) -> Option<SyncAction> {
    let Job { definition, state, .. } = job;
    let version = definition.version;
    if definition.source != rules.source || state.status == JobStatus::Retired {
        return None;
    }
    match &state.declaration {
        None => return Some(SyncAction::Unowned { version }),
        Some(record) if record.app != *rules.app => return None,
        Some(_) => {}
    }
    Some(match (rules.removed, state.status) {
        (Removed::Retire, _) => SyncAction::Retire { version },
        (Removed::Pause, JobStatus::Active) => SyncAction::Pause { version },
        _ => SyncAction::Undeclared { version },
    })
}

/// Returns the names of the parts that differ. Empty if the content hashes are equal, whatever a release adds to
/// definitions.
fn changed(is: &Definition, wanted: &Declared) -> Vec<&'static str> {
    let mut changed = Vec::new();
    if is.content_hash() != wanted.content_hash() {
        let parts = [
            ("schedule", !same_schedule(is, wanted)),
            ("target", is.target != wanted.target),
            ("payload", is.payload != wanted.payload),
            ("policies", is.policies != wanted.policies),
            ("description", is.description != wanted.description),
            ("labels", is.labels != wanted.labels),
            ("scope", is.scope != wanted.scope),
        ];
        changed.extend(parts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name));
        if changed.is_empty() {
            changed.push("content");
        }
    }
    if is.source != wanted.source {
        changed.push("source");
    }
    changed
}

/// Whether the schedule is the same, wherever a fixed rate is anchored: that is the time of creation.
fn same_schedule(is: &Definition, wanted: &Declared) -> bool {
    let alone = |definition: &Definition| {
        everbell_core::with!(Definition { spec: definition.spec.clone(), ..wanted.clone() }).content_hash()
    };
    alone(is) == alone(wanted)
}
