//! The places for handlers: how many are taken, and how many a claim may take.

use everbell_core::Target;
use everbell_core::places::{Places, Room};
use everbell_core::store::{Claim, TargetRoom};

use super::Inflight;
use crate::targets::Targets;

/// How many outcomes may wait for the database before no more runs are taken, in batches.
const MAX_WAITING_BATCHES: u32 = 4;

/// The places that are taken, in all or of a target.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// How many there are; of a target, when places were last reserved.
    pub(super) total: u32,
    /// By handlers that have not ended.
    pub(super) working: u32,
    /// By those of them that belong to backfills.
    pub(super) backfills: u32,
    /// By claims that are under way.
    pub(super) reserved: u32,
}

impl Taken {
    fn room(self, take: Take) -> Room {
        let Taken { total, working, backfills, reserved } = self;
        let taken = working + reserved;
        match take {
            Take::Pending => Places { total, taken, backfills }.room(),
            Take::Slots => Room { runs: total.saturating_sub(taken), backfills: false, partial: false },
        }
    }

    /// Whether it is worth to look for runs before those that ended are recorded: a few places fill no batch.
    pub(super) fn has_many_free(self, batch: u32) -> bool {
        self.room(Take::Slots).runs >= (self.total.min(batch) / 2).max(1)
    }
}

/// The runs that places are reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Take {
    /// Pending ones, of which backfills get no more than their share.
    Pending,
    /// Runs of slots that start with their plan.
    Slots,
}

/// Places that are reserved for the runs of a claim, until it is dropped: how many to ask for.
#[derive(Debug)]
pub(in crate::engine) struct Rooms<'a> {
    inflight: &'a Inflight,
    pub(in crate::engine) targets: Vec<TargetRoom>,
    /// For each of the targets whether it has more room than is asked for.
    partial: Vec<bool>,
    /// In all.
    pub(in crate::engine) limit: u32,
}

impl Rooms<'_> {
    /// Whether there is room for this target.
    pub(in crate::engine) fn has(&self, target: &Target) -> bool {
        self.targets.iter().any(|room| room.target == *target)
    }

    /// Whether there is room for this target that these claims have not filled.
    pub(in crate::engine) fn has_left(&self, target: &Target, claims: &[Claim]) -> bool {
        let taken = claims.iter().filter(|claim| claim.run.target == *target).count();
        self.targets.iter().any(|room| room.target == *target && taken < room.room as usize)
    }

    /// Whether there may be more runs, because a target whose room was not all asked for gave as many as it could.
    pub(in crate::engine) fn may_have_more(&self, claims: &[Claim]) -> bool {
        self.targets.iter().zip(&self.partial).any(|(wanted, partial)| {
            *partial && claims.iter().filter(|claim| claim.run.target == wanted.target).count() >= wanted.room as usize
        })
    }
}

impl Drop for Rooms<'_> {
    fn drop(&mut self) {
        let mut runs = self.inflight.runs();
        runs.all.reserved -= self.limit;
        for room in &self.targets {
            if let Some(taken) = runs.of_targets.get_mut(&room.target) {
                taken.reserved = taken.reserved.saturating_sub(room.room);
            }
        }
    }
}

impl Inflight {
    /// Reserves places: at most this many for each of the wanted targets, and in all.
    pub(in crate::engine) fn reserve(
        &self,
        targets: &Targets,
        take: Take,
        most: u32,
        is_wanted: impl Fn(&Target) -> bool,
    ) -> Rooms<'_> {
        let mut runs = self.runs();
        runs.announced = false;
        let waiting = self.capacity.saturating_add(self.batch.saturating_mul(MAX_WAITING_BATCHES));
        let unrecorded = u32::try_from(runs.entries.len()).unwrap_or(u32::MAX).saturating_add(runs.all.reserved);
        let all = runs.all.room(take);
        let mut rooms = Rooms { inflight: self, targets: Vec::new(), partial: Vec::new(), limit: 0 };
        let most = all.runs.min(most).min(waiting.saturating_sub(unrecorded));
        let mut wanted = 0_u32;
        for (target, served) in targets.iter().filter(|(target, _)| is_wanted(target)) {
            let taken = runs.of_targets.get(target).copied().unwrap_or_default();
            let taken = Taken { total: served.options.concurrency.unwrap_or(self.capacity), ..taken };
            let own = taken.room(if all.backfills { Take::Pending } else { Take::Slots });
            let room = own.runs.min(most);
            if room > 0 {
                wanted = wanted.saturating_add(room);
                rooms.targets.push(TargetRoom { target: target.clone(), room, backfills: own.backfills });
                rooms.partial.push(own.partial);
            }
            match runs.of_targets.get_mut(target) {
                Some(known) => *known = Taken { reserved: taken.reserved + room, ..taken },
                None => drop(runs.of_targets.insert(target.clone(), Taken { reserved: room, ..taken })),
            }
        }
        rooms.limit = most.min(wanted);
        runs.all.reserved += rooms.limit;
        rooms
    }
}
