//! Types that signatures of this crate name and programs rarely write: parts of what it returns, and values for rare settings.
//!
//! Structs and enums here may get fields and variants in any release, unless their documentation says that they are
//! closed; do not build them field by field. [`Store`] and what only it takes or returns is not
//! covered: it is the contract with the databases, which changes with them.

pub use everbell_core::after::After;
pub use everbell_core::backfill::{Backfill, BackfillOrder, BackfillProgress, BackfillSettings, BackfillStatus, Rate};
pub use everbell_core::calendar::{CalendarName, Exclusion};
pub use everbell_core::chain::{ChainLink, RunGroup};
pub use everbell_core::change::NewJob;
pub use everbell_core::cron::Dst;
pub use everbell_core::fan_in::{FanIn, GroupBy};
pub use everbell_core::handover::{Handover, Progress};
pub use everbell_core::org::{OrgSchedule, OrgSettings, OrgSlot, OrgUpdate, Override, TimezoneChange, WhatIf};
pub use everbell_core::outage::{Absence, Outage};
pub use everbell_core::remote::Refusal;
pub use everbell_core::repair::Repair;
pub use everbell_core::settle::Then;
pub use everbell_core::store::{
    AuditEntry, CounterKey, GapCount, JobOrg, JobOrgFilter, JobRef, LeaseTerms, OrgCounts, OrgJob, Origin, Rearmed,
    RefusedRequest, RequestKey, RunCounters, Store, StoredCalendar,
};
pub use everbell_core::{
    App, BackfillId, Declaration, Failure, Pause, Policies, PolicyValues, Spec, Unschedulable, Zone,
};
#[cfg(feature = "testing")]
pub use everbell_store::memory::FaultPoint;
