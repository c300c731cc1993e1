//! Times that are left out of a schedule: local times that do not exist, and days that calendars exclude.

use jiff::Timestamp;

use super::{Planner, just_before};
use crate::run::{Gap, GapReason};

impl Planner<'_> {
    /// Accounts for what is no slot up to `until`: local times that a DST gap left out and the job wants skipped, and days
    /// that its calendars exclude.
    pub(super) fn account_for_skips(&mut self, until: Timestamp) {
        for row in self.spec.excluded_between(self.skip_mark, until) {
            self.gaps.push(Gap {
                first_slot_at: row.first,
                last_slot_at: row.last,
                slots: row.slots,
                reason: GapReason::Excluded,
                actor: None,
            });
        }
        for at in self.spec.dst_skipped_between(self.skip_mark, until) {
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

    /// Accounts for what is left out before the next slot, because no slot behind it would. Returns the mark of the timer:
    /// everything up to it has its outcome.
    pub(super) fn skip_before(&mut self, next_slot: Option<Timestamp>) -> Timestamp {
        self.account_for_skips(next_slot.map_or(self.now, just_before).min(self.now));
        let is_skip = |gap: &&Gap| matches!(gap.reason, GapReason::DstGap | GapReason::Excluded);
        let skipped = self.gaps.iter().filter(is_skip).map(|gap| gap.last_slot_at);
        skipped.fold(self.mark, Timestamp::max)
    }
}
