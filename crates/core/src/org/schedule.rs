//! [`OrgSchedule`]: when a job fires for its orgs, and for how many, without a look at each of them.
//!
//! Orgs with the same zone and the same override of a job fire at the same slots. So slots are computed once for each such
//! group, and counted as often as it has orgs: ten thousand orgs in forty zones cost as much as forty orgs.

use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::eligibility::spec_in;
use super::slots::OrgSlots;
use crate::ids::{JobKey, OrgId};
use crate::job::{Definition, JobState, JobStatus, Scope};
use crate::plan::just_before;
use crate::spec::Spec;

const MINUTE: u64 = 60;

/// Enabled orgs of a time zone, or those of them that override a job in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgGroup {
    /// The zone, as it is stored.
    pub timezone: String,
    /// The override. `None` for all enabled orgs of the zone, with and without overrides.
    pub override_: Option<GroupOverride>,
    /// How many orgs.
    pub orgs: u64,
    /// The first of them, by id.
    pub first_org: OrgId,
}

/// The override of a job that the orgs of a group share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOverride {
    /// The job.
    pub job_key: JobKey,
    /// `false` turns the job off.
    pub enabled: bool,
    /// Another local time; `None` uses the job's own.
    pub expression: Option<String>,
}

/// The groups of all enabled orgs.
#[derive(Clone, Debug, Default)]
pub struct OrgGroups {
    zones: Vec<OrgGroup>,
    overrides: BTreeMap<JobKey, Vec<(OrgGroup, GroupOverride)>>,
}

impl OrgGroups {
    /// Sorts groups by the job that they override.
    pub fn new(groups: impl IntoIterator<Item = OrgGroup>) -> OrgGroups {
        let mut sorted = OrgGroups::default();
        for group in groups {
            match group.override_.clone() {
                None => sorted.zones.push(group),
                Some(own) => sorted.overrides.entry(own.job_key.clone()).or_default().push((group, own)),
            }
        }
        sorted
    }

    /// The groups that a job fires for: zone, expression if it is not the job's own, number of orgs, first org if it is known.
    fn of_job(&self, key: &JobKey) -> Vec<(&str, Option<&str>, u64, Option<&OrgId>)> {
        let mut plain: BTreeMap<&str, (u64, Option<&OrgId>)> =
            self.zones.iter().map(|zone| (zone.timezone.as_str(), (zone.orgs, Some(&zone.first_org)))).collect();
        let mut all = Vec::new();
        for (group, own) in self.overrides.get(key).into_iter().flatten() {
            if own.enabled && own.expression.is_none() {
                continue;
            }
            if let Some((orgs, first)) = plain.get_mut(group.timezone.as_str()) {
                // The first of the zone may be one of these.
                (*orgs, *first) = (orgs.saturating_sub(group.orgs), None);
            }
            if own.enabled {
                all.push((group.timezone.as_str(), own.expression.as_deref(), group.orgs, Some(&group.first_org)));
            }
        }
        all.extend(plain.into_iter().map(|(timezone, (orgs, first))| (timezone, None, orgs, first)));
        all.retain(|(_, _, orgs, _)| *orgs > 0);
        all
    }
}

/// A slot of a job, and the orgs that it fires for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgSlot {
    /// The slot.
    pub at: Timestamp,
    /// How many orgs.
    pub orgs: u64,
    /// How many runs they have: more than orgs where calendars move several slots to this time.
    pub runs: u64,
    /// In how many time zones they are; 0 if that is not known.
    pub zones: u64,
    /// The first of them by id, if it is known.
    pub first_org: Option<OrgId>,
    /// Jitter spreads their fires over this time.
    pub within: Duration,
}

impl OrgSlot {
    /// When jitter has spread all its fires.
    pub fn ends_at(&self) -> Timestamp {
        SignedDuration::try_from(self.within)
            .ok()
            .and_then(|within| self.at.checked_add(within).ok())
            .unwrap_or(self.at)
    }

    /// The fires of each minute from the slot on. Which org fires when does not matter: jitter spreads them evenly.
    pub fn spread(&self) -> impl Iterator<Item = (Timestamp, u64)> + use<> {
        let (at, runs) = (self.at, self.runs);
        let minutes = self.within.as_secs().div_ceil(MINUTE).max(1);
        let share = move |minute: u64| runs * (minute + 1) / minutes - runs * minute / minutes;
        let begin = move |minute: u64| at.checked_add(SignedDuration::from_mins(minute as i64)).unwrap_or(at);
        (0..minutes).map(move |minute| (begin(minute), share(minute))).filter(|(_, runs)| *runs > 0)
    }
}

/// The slots of a job for all its orgs.
#[derive(Clone, Debug)]
pub struct OrgSchedule {
    pub(super) groups: Vec<Group>,
    /// Slots lie after this time.
    pub(super) after: Timestamp,
    pub(super) jitter: Duration,
    is_paused: bool,
    /// The next fires of all orgs, if they are known.
    pub(super) armed: Option<BTreeMap<Timestamp, (u64, OrgId)>>,
    unreadable: u64,
}

/// Orgs that fire at the same slots.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) spec: Spec,
    /// Equal for groups of the same zone.
    pub(super) zone: usize,
    pub(super) orgs: u64,
    pub(super) first_org: Option<OrgId>,
    /// The first slot of the schedule.
    pub(super) first_slot: Option<Timestamp>,
}

impl OrgSchedule {
    /// Returns `None` for a job that does not fire for each org, or that has no slot to come: retired, errored, or paused without
    /// an end.
    pub fn new(job: &Definition, state: &JobState, groups: &OrgGroups, now: Timestamp) -> Option<OrgSchedule> {
        if job.scope != Scope::PerOrg || state.status == JobStatus::Retired || state.error.is_some() {
            return None;
        }
        let jitter = job.policies.jitter;
        let after = if let Some(pause) = &state.pause {
            pause.until?.max(now)
        } else {
            // The fires of an earlier slot may still be to come, but none is from before the job.
            let jitter = SignedDuration::try_from(jitter).unwrap_or_default();
            now.checked_sub(jitter).unwrap_or(now).max(job.created_at).min(now)
        };
        let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut own, mut unreadable) = (Vec::new(), 0);
        for (timezone, expression, orgs, first_org) in groups.of_job(&job.key) {
            let Ok(spec) = spec_in(job, timezone, expression) else {
                unreadable += orgs;
                continue;
            };
            let number = zones.len();
            let zone = *zones.entry(timezone).or_insert(number);
            let first_slot = spec.next_after(after);
            own.push(Group { spec, zone, orgs, first_org: first_org.cloned(), first_slot });
        }
        let is_paused = state.pause.is_some();
        Some(OrgSchedule { groups: own, after, jitter, is_paused, armed: None, unreadable })
    }

    /// With the next fires of all its orgs, as their timers have them: an operator may have moved some. They do not help if one of
    /// them is due, because its org is about to go on to its next slot, nor with jitter, which has a time for each org.
    #[must_use]
    pub fn with_armed(mut self, armed: impl IntoIterator<Item = (Timestamp, u64, OrgId)>) -> OrgSchedule {
        let armed: BTreeMap<Timestamp, (u64, OrgId)> =
            armed.into_iter().map(|(at, orgs, first)| (at, (orgs, first))).collect();
        let is_due = armed.first_key_value().is_none_or(|(at, _)| *at <= self.after);
        self.armed = Some(armed).filter(|_| self.jitter.is_zero() && !self.is_paused && !is_due);
        self
    }

    /// The number of orgs whose zone or override cannot be read. It does not fire for them.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// How many orgs it fires for.
    pub fn orgs(&self) -> u64 {
        self.groups.iter().map(|group| group.orgs).sum()
    }

    /// The time over which jitter spreads the fires of a slot at most.
    pub fn jitter(&self) -> Duration {
        self.jitter
    }

    /// The slots in `[from, to)`, in order.
    pub fn slots(&self, from: Timestamp, to: Timestamp) -> OrgSlots<'_> {
        OrgSlots::new(self, from, to)
    }

    /// How many runs the slots of `[from, to)` have, by arithmetic.
    pub fn count(&self, from: Timestamp, to: Timestamp) -> u64 {
        self.groups.iter().map(|group| self.slots_of(group, from, to).saturating_mul(group.orgs)).sum()
    }

    /// How many slots are looked at to list those of `[from, to)`.
    pub fn effort(&self, from: Timestamp, to: Timestamp) -> u64 {
        self.groups.iter().map(|group| self.slots_of(group, from, to)).sum()
    }

    /// How many slots of `[from, to)` an org has at most.
    pub fn most_slots(&self, from: Timestamp, to: Timestamp) -> u64 {
        self.groups.iter().map(|group| self.slots_of(group, from, to)).max().unwrap_or(0)
    }

    /// How many slots of `[from, to)` calendars exclude, of all orgs together.
    pub fn excluded(&self, from: Timestamp, to: Timestamp) -> u64 {
        let of_group = |group: &Group| {
            let rows = group.spec.excluded_between(just_before(from).max(self.after), just_before(to));
            rows.iter().map(|row| row.slots).sum::<u64>().saturating_mul(group.orgs)
        };
        self.groups.iter().filter(|group| group.spec.calendars().is_some()).map(of_group).sum()
    }

    fn slots_of(&self, group: &Group, from: Timestamp, to: Timestamp) -> u64 {
        group.spec.count_between(just_before(from).max(self.after), just_before(to))
    }
}

/// The last slots of a job for all its orgs at or before this time, the oldest first: at most this many slots and, but for
/// the newest one, about this many runs.
pub fn past_slots(
    job: &Definition,
    groups: &OrgGroups,
    until: Timestamp,
    (most_slots, most_runs): (usize, u64),
) -> Vec<Timestamp> {
    let groups = groups.of_job(&job.key).into_iter();
    let specs: Vec<(Spec, u64)> =
        groups.filter_map(|(zone, own, orgs, _)| Some((spec_in(job, zone, own).ok()?, orgs))).collect();
    let before = |index: usize, at| specs[index].0.prev_at_or_before(at).map(|slot| (slot, index));
    let mut latest: BinaryHeap<(Timestamp, usize)> =
        (0..specs.len()).filter_map(|index| before(index, until)).collect();
    let (mut slots, mut runs) = (Vec::new(), 0);
    while let Some((slot, index)) = latest.pop() {
        if slots.last() != Some(&slot) {
            if slots.len() == most_slots || runs >= most_runs {
                break;
            }
            slots.push(slot);
        }
        runs += specs[index].1;
        latest.extend(before(index, just_before(slot)));
    }
    slots.reverse();
    slots
}
