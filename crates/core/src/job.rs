//! A job is two things: a [`Definition`], which never changes, and a [`JobState`], which operators change.
//!
//! Keeping them apart is what lets a deploy re-apply every definition without undoing a pause.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::calendar::Calendar;
use crate::cron::Dst;
use crate::declaration::Declaration;
use crate::ids::{Invalid, JobId, JobKey, OrgId, Target};
use crate::json::Json;
use crate::policy::{Policies, words};
use crate::spec::{Spec, When};
use crate::trace_context::TraceContext;

/// One version of a job: immutable, so an instance may keep it as long as it likes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Definition {
    /// The id of this version.
    pub id: JobId,
    /// The name that all versions share.
    pub key: JobKey,
    /// 1, 2, 3, …
    pub version: u32,
    /// The label of what to do.
    pub target: Target,
    /// The JSON that the handler receives.
    pub payload: Json,
    /// When it fires; or why a stored schedule can no longer be read.
    pub spec: Result<Spec, Unschedulable>,
    /// Its policies: lateness, overlap, retries and the like.
    pub policies: Policies,
    /// One timer, or one for each org.
    pub scope: Scope,
    /// For people.
    pub description: String,
    /// For filters.
    pub labels: BTreeMap<String, String>,
    /// The owner of the definition.
    pub source: Source,
    /// The version that this one replaced.
    pub supersedes: Option<JobId>,
    /// Its author.
    pub created_by: String,
    /// When it was created. Its slots start after this.
    pub created_at: Timestamp,
    /// The trace of the request that created a one-time job, which its run continues. Recurring jobs have none: their slots
    /// follow from the clock, not from a request of long ago.
    pub trace_context: Option<TraceContext>,
}

/// A stored schedule that can no longer be read, for instance because a zone left the IANA database.
///
/// It never silently falls back to UTC: the job is `errored` until it is repaired.
///
/// The parts that can be read are kept, so that a repaired schedule has them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unschedulable {
    /// The stored expression, if it is recurring.
    pub expression: Option<String>,
    /// The stored time, if it fires once.
    pub run_at: Option<Timestamp>,
    /// The stored zone.
    pub timezone: String,
    /// The stored behavior when clocks change; the default for a rule that cannot be read.
    pub dst: Dst,
    /// The stored time before which there are no slots.
    pub start_at: Option<Timestamp>,
    /// The stored time after which there are no slots.
    pub end_at: Option<Timestamp>,
    /// The stored time that a fixed rate (`@every`) counts from. Other expressions do not need it.
    pub anchor: Option<Timestamp>,
    /// Why it cannot be read.
    pub reason: String,
}

/// Whether a job has one timer or one for each org.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One timer, in the job's zone.
    #[default]
    Global,
    /// One timer for each eligible org, in that org's zone.
    PerOrg,
}
words!(Scope { Global = "global", PerOrg = "per_org" });

/// The owner of a definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// Made by a call: of the API, the CLI or the UI, or of a program (`create`, `enqueue`). No declaration owns it, and
    /// `created_by` says who made it.
    #[default]
    Api,
    /// A `[[job]]` block of the configuration file.
    Config,
    /// Declared in a program that embeds the library.
    Code,
}
words!(Source { Api = "api", Config = "config", Code = "code" });

impl Definition {
    /// Version 1 of a global job without payload, policies, description and labels. [`with!`](crate::with!) sets the rest.
    pub fn new(
        id: JobId,
        key: JobKey,
        target: Target,
        spec: Result<Spec, Unschedulable>,
        created_at: Timestamp,
    ) -> Definition {
        Definition {
            id,
            key,
            version: 1,
            target,
            payload: Json::empty(),
            spec,
            policies: Policies::default(),
            scope: Scope::default(),
            description: String::new(),
            labels: BTreeMap::new(),
            source: Source::default(),
            supersedes: None,
            created_by: String::new(),
            created_at,
            trace_context: None,
        }
    }

    /// How its schedule behaves when clocks change, also if the schedule can no longer be read.
    pub fn dst(&self) -> Dst {
        self.spec.as_ref().map_or_else(|broken| broken.dst, Spec::dst)
    }

    /// The first and the last time of its slots, also if the schedule can no longer be read.
    pub fn bounds(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        match &self.spec {
            Ok(spec) => (spec.start_at(), spec.end_at()),
            Err(broken) => (broken.start_at, broken.end_at),
        }
    }

    /// A hash of everything that decides what the job does. Equal hashes mean that a sync has nothing to do.
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        part(self.key.as_str());
        part(self.target.as_str());
        part(self.payload.as_str());
        match &self.spec {
            Ok(spec) => {
                match spec.when() {
                    // The anchor of a rate is the time of creation unless the schedule names a start.
                    When::Cron(expression) | When::Every { expression, .. } => part(expression.normalized()),
                    When::Once(at) => part(&at.to_string()),
                    When::After(after) => part(&after.to_string()),
                    When::AfterAll(fan_in) => part(&fan_in.to_string()),
                }
                part(spec.zone().name());
                part(spec.dst().gap.as_str());
                part(spec.dst().fold.as_str());
                for bound in [spec.start_at(), spec.end_at()] {
                    part(&bound.map_or(String::new(), |at| at.to_string()));
                }
            }
            Err(broken) => {
                part(broken.expression.as_deref().unwrap_or("once"));
                part(&broken.timezone);
            }
        }
        for (name, value) in self.policies.changed() {
            part(name);
            part(&value);
        }
        part(self.scope.as_str());
        part(&self.description);
        for (name, value) in &self.labels {
            part(name);
            part(value);
        }
        hash.finalize().into()
    }

    /// The definition with the days of the current calendars. A calendar that is not there is refused.
    pub fn with_calendars(self, current: &[Arc<Calendar>]) -> Result<Definition, Invalid> {
        let policies = self.policies.with_calendars(current)?;
        let spec = self.spec.map(|spec| spec.with_calendars(&policies.calendars));
        Ok(Definition { spec, policies, ..self })
    }

    /// Whether every calendar that it names has the days of this list.
    pub fn is_current(&self, calendars: &[Arc<Calendar>]) -> bool {
        let is_current = |own: &Arc<Calendar>| {
            calendars.iter().any(|current| (current.name(), current.version()) == (own.name(), own.version()))
        };
        self.policies.calendars.all().all(is_current)
    }

    /// Adds the trace of its creator, unless it has one. A recurring job stays without.
    #[must_use]
    pub fn in_trace(self, creator: Option<TraceContext>) -> Definition {
        let creator = creator.filter(|_| self.is_one_time());
        Definition { trace_context: self.trace_context.or(creator), ..self }
    }

    /// Whether it fires once and then retires.
    pub fn is_one_time(&self) -> bool {
        matches!(&self.spec, Ok(spec) if matches!(spec.when(), When::Once(_)))
    }
}

/// The status of a job: `active <-> paused`, and `retired`, which is final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum JobStatus {
    /// Its slots fire.
    #[default]
    Active,
    /// Its slots become a gap.
    Paused,
    /// Replaced, deleted or done.
    Retired,
}
words!(JobStatus { Active = "active", Paused = "paused", Retired = "retired" });

/// The part of a job that operators and the engine change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobState {
    /// Active, paused or retired.
    pub status: JobStatus,
    /// Why an active job cannot fire, shown as `errored`.
    pub error: Option<String>,
    /// Present while paused.
    pub pause: Option<Pause>,
    /// Grows with every change, also from one version of a key to the next; the ETag.
    pub revision: u64,
    /// Failed runs since the last success.
    pub consecutive_failures: u32,
    /// The last sync of a job that is declared in code or in a configuration file; missing for jobs that were not synced
    /// since programs have names.
    pub declaration: Option<Declaration>,
    /// The actor who changed it last.
    pub updated_by: String,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

/// Why, by whom and how long a job is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Mandatory text.
    pub reason: String,
    /// The actor who paused it.
    pub by: String,
    /// When it was paused.
    pub at: Timestamp,
    /// When it resumes automatically, if ever.
    pub until: Option<Timestamp>,
}

/// A definition together with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// The immutable part.
    pub definition: Arc<Definition>,
    /// The changing part.
    pub state: JobState,
}

impl Job {
    /// A definition and its state.
    pub fn new(definition: Arc<Definition>, state: JobState) -> Job {
        Job { definition, state }
    }

    /// Whether the job was edited since its declaration was synced, and differs from it.
    pub fn is_edited(&self) -> bool {
        self.state.declaration.as_ref().is_some_and(|declaration| declaration.is_edited(&self.definition))
    }
}

/// The shortest and longest reason, in characters.
const REASON_LENGTH: std::ops::RangeInclusive<usize> = 3..=500;

impl JobState {
    /// The state of a job that was just made.
    pub fn new(created_by: &str, now: Timestamp) -> JobState {
        JobState {
            status: JobStatus::Active,
            error: None,
            pause: None,
            revision: 1,
            consecutive_failures: 0,
            declaration: None,
            updated_by: created_by.to_owned(),
            updated_at: now,
        }
    }

    /// `active -> paused`. A paused job may get another reason and another end, but keeps its actor and start time; a
    /// retired one stays retired.
    pub fn paused(&self, pause: Pause) -> Result<JobState, Invalid> {
        let length = pause.reason.trim().chars().count();
        if length == 0 {
            return Err(Invalid::new("reason", "must be 3 to 500 characters, but is blank"));
        }
        if !REASON_LENGTH.contains(&length) {
            return Err(Invalid::new("reason", format!("must be 3 to 500 characters, not {length}")));
        }
        if pause.reason.contains('\0') {
            return Err(Invalid::new("reason", "must not contain NUL"));
        }
        if pause.until.is_some_and(|until| until <= pause.at) {
            return Err(Invalid::new("until", "must be in the future"));
        }
        let next = self.changed(&pause.by, pause.at)?;
        let pause = match &self.pause {
            Some(first) => Pause { by: first.by.clone(), at: first.at, ..pause },
            None => pause,
        };
        Ok(JobState { status: JobStatus::Paused, pause: Some(pause), ..next })
    }

    /// `paused -> active`, and an errored job tries again.
    pub fn resumed(&self, by: &str, now: Timestamp) -> Result<JobState, Invalid> {
        let next = self.changed(by, now)?;
        Ok(JobState { status: JobStatus::Active, error: None, pause: None, consecutive_failures: 0, ..next })
    }

    /// `active | paused -> retired`, for good.
    pub fn retired(&self, by: &str, now: Timestamp) -> Result<JobState, Invalid> {
        let next = self.changed(by, now)?;
        Ok(JobState { status: JobStatus::Retired, pause: None, ..next })
    }

    /// An active job that cannot fire. It stays active, so that mending the cause is enough.
    pub fn errored(&self, error: &str, by: &str, now: Timestamp) -> Result<JobState, Invalid> {
        let next = self.changed(by, now)?;
        Ok(JobState { error: Some(error.to_owned()), ..next })
    }

    fn changed(&self, by: &str, now: Timestamp) -> Result<JobState, Invalid> {
        if self.status == JobStatus::Retired {
            return Err(Invalid::retired());
        }
        Ok(JobState { revision: self.revision + 1, updated_by: by.to_owned(), updated_at: now, ..self.clone() })
    }
}

/// The hot cursor of a job: its next fire time and its high-water mark. One per job, or one per org.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timer {
    /// The version it belongs to.
    pub job_id: JobId,
    /// The org, for a job with one timer for each.
    pub org: Option<OrgId>,
    /// When to look at it again; `None` means disarmed: paused, retired, finished or errored.
    pub next_run_at: Option<Timestamp>,
    /// The high-water mark: every slot up to here has its outcome. Never goes back.
    pub last_slot_at: Timestamp,
    /// The slot whose fire an operator moved to `next_run_at`.
    pub rescheduled_from: Option<Timestamp>,
    /// The latest org-local date that got a run, for schedules that fire at most once a day.
    pub last_local_date: Option<jiff::civil::Date>,
}

impl Timer {
    /// A timer that is disarmed. [`with!`](crate::with!) sets the rest.
    pub fn new(job_id: JobId, last_slot_at: Timestamp) -> Timer {
        Timer { job_id, org: None, next_run_at: None, last_slot_at, rescheduled_from: None, last_local_date: None }
    }
}
