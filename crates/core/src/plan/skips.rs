//! Times that are left out of a schedule: local times that do not exist, and days that calendars exclude.

use jiff::Timestamp;

use super::{Planner, just_before};
use crate::run::{Gap, GapReason};
use crate::spec::When;

impl Planner<'_> {
    /// Accounts for what is no slot up to `until`: local times that a DST gap left out and the job wants skipped, and days
    /// that its calendars exclude.
    pub(super) fn account_for_skips(&mut self, until: Timestamp) {
        self.account_for_freezes(until);
        self.account_for_left_out(until);
    }

    /// Accounts for what is no slot before this one, which fires: it may lie in a freeze that its fire was moved out of.
    pub(super) fn account_before(&mut self, slot: Timestamp) {
        self.account_for_freezes(just_before(slot));
        self.account_for_left_out(slot);
    }

    fn account_for_left_out(&mut self, until: Timestamp) {
        for row in self.base.excluded_between(self.skip_mark, until) {
            self.gaps.push(Gap {
                first_slot_at: row.first,
                last_slot_at: row.last,
                slots: row.slots,
                reason: GapReason::Excluded,
                actor: None,
            });
        }
        // A slot whose fire would have been before the job existed. Later versions leave none behind: see `succession`.
        if self.job.supersedes.is_none() {
            for slot in self.base.moved_before(self.skip_mark, until, self.job.created_at) {
                self.gaps.push(Gap::new(slot, slot, 1, GapReason::Excluded));
            }
        }
        for at in self.base.dst_skipped_between(self.skip_mark, until) {
            self.gaps.push(Gap {
                first_slot_at: at,
                last_slot_at: at,
                slots: 1,
                reason: GapReason::DstGap,
                actor: None,
            });
        }
        self.skip_mark = self.skip_mark.max(until);
    }

    /// Accounts for the slots of freezes up to `until`.
    fn account_for_freezes(&mut self, until: Timestamp) {
        // A one-time job waits instead.
        if matches!(self.base.when(), When::Once(_)) {
            return;
        }
        for span in self.seen.frozen {
            let (after, until) = (self.skip_mark.max(just_before(span.from)), until.min(just_before(span.until)));
            let slots = self.base.count_between(after, until);
            if slots > 0
                && let Some(first_slot_at) = self.base.next_after(after)
                && let Some(last_slot_at) = self.base.prev_at_or_before(until)
            {
                let reason = GapReason::Frozen;
                self.gaps.push(Gap { first_slot_at, last_slot_at, slots, reason, actor: None });
            }
        }
    }

    /// Accounts for what is left out before the next slot, because no slot behind it would. Returns the mark of the timer:
    /// everything up to it has its outcome.
    pub(super) fn skip_before(&mut self, next_slot: Option<Timestamp>) -> Timestamp {
        self.account_for_skips(next_slot.map_or(self.now, just_before).min(self.now));
        let is_skip = |gap: &&Gap| matches!(gap.reason, GapReason::DstGap | GapReason::Excluded | GapReason::Frozen);
        let skipped = self.gaps.iter().filter(is_skip).map(|gap| gap.last_slot_at);
        skipped.fold(self.mark, Timestamp::max)
    }
}
