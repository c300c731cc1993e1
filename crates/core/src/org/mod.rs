//! Orgs: tenants with their own zone, for whom one job fires at each one's own local time.
//!
//! ```text
//!   orgs, overrides, jobs ──► eligibility ──► eligible: fires by this schedule
//!        (what is stored)                  off: its timer rests    over: its timer goes    broken: shown, alone
//! ```
//!
//! A job with [`Scope::PerOrg`](crate::Scope) has a timer for each org that is eligible. Two pure decisions maintain
//! them, and every computation with a zone is in them: [`plan`] for a timer that is due, and [`reconcile`] after a
//! change of the org, the job or an override. Both start with [`eligibility`], so a timer that is due is judged by the
//! current state, even if it has not been moved yet.
//!
//! Presence and next fire of a timer can always be computed again. Its high-water mark and the last local date that got a
//! run are facts, and are kept as long as the org and the job are there.

mod eligibility;
mod org_update;
mod reconcile;
mod schedule;
mod slots;
mod what_if;
mod write;

use jiff::Timestamp;

pub use eligibility::{Eligibility, JobLifecycle, OffReason, OrgFacts, eligibility, plan, spec_for};
pub use org_update::{OrgTask, OrgUpdate, OrgUpdateStep, backfill_size, take_step};
pub use reconcile::{OrgTimer, OrgView, TimerChange, TimerChanges, reconcile};
pub use schedule::{GroupOverride, OrgGroup, OrgGroups, OrgSchedule, OrgSlot, past_slots};
pub use slots::OrgSlots;
pub use what_if::{Day, Verdict, WhatIf, what_if};
pub use write::{MAX_ORGS_AT_ONCE, OrgWrite, OverrideWrite, Written, deleted, override_of, written};

use crate::ids::{JobKey, OrgId};
use crate::json::Json;
pub use crate::plan::local_days::{already_ran, local_date};

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Org {
    /// Its id.
    pub id: OrgId,
    /// A display name; may be empty.
    pub name: String,
    /// An object for the caller's own use.
    pub settings: Json,
    /// Its time zone, and whether it is enabled.
    pub place: OrgSettings,
    /// Grows with every change; the ETag.
    pub revision: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// The actor who changed it last.
    pub updated_by: String,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Org {
    /// A new org without name and settings. [`with!`](crate::with!) sets the rest.
    pub fn new(id: OrgId, place: OrgSettings, created_by: String, created_at: Timestamp) -> Org {
        Org {
            id,
            name: String::new(),
            settings: Json::empty(),
            place,
            revision: 1,
            created_at,
            updated_by: created_by,
            updated_at: created_at,
        }
    }
}

/// The settings of an org that decide when its jobs fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgSettings {
    /// The IANA name as it is stored: it was valid when it was written, and stays as it is should it cease to be.
    pub timezone: String,
    /// Whether jobs fire for it.
    pub enabled: bool,
    /// Deleted once its timers are.
    pub deleted: bool,
    /// When it or one of its overrides last changed in a way that affects timers.
    pub changed_at: Timestamp,
    /// The previous zone.
    pub moved: Option<TimezoneChange>,
}

/// A change of zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimezoneChange {
    /// The zone before.
    pub from: String,
    /// When the zone changed.
    pub at: Timestamp,
}

/// An org's override of a job: off, or at another local time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The job, in all its versions.
    pub job_key: JobKey,
    /// `false` turns the job off for the org.
    pub enabled: bool,
    /// Another local time, as a cron expression; `None` uses the job's own.
    pub expression: Option<String>,
    /// The actor who changed it last.
    pub updated_by: String,
    /// When it was last changed.
    pub updated_at: Timestamp,
}
