//! How many runs an instance takes: a rule that leaves places for others while a backfill is at work.

/// The places of an instance, or of one of its targets, and how they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// How many there are.
    pub total: u32,
    /// How many runs are in them.
    pub taken: u32,
    /// How many of these belong to a backfill.
    pub backfills: u32,
}

/// How many runs to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// At most this many.
    pub runs: u32,
    /// Whether runs of a backfill may be among them.
    pub backfills: bool,
    /// Whether there are more free places than that: ask again when all of `runs` were found.
    pub partial: bool,
}

impl Places {
    /// How many runs may be taken, so that backfills never have more than half of the places, or the only one.
    ///
    /// A request for runs cannot say how many of them may belong to a backfill, only whether any may. So one that may find
    /// backfills asks for no more than backfills may still take, and the next one asks for the rest.
    pub fn room(self) -> Room {
        let free = self.total.saturating_sub(self.taken);
        let left = (self.total / 2).max(1).saturating_sub(self.backfills);
        if left == 0 {
            return Room { runs: free, backfills: false, partial: false };
        }
        Room { runs: free.min(left), backfills: true, partial: free > left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(total: u32, taken: u32, backfills: u32) -> (u32, bool, bool) {
        let Room { runs, backfills, partial } = Places { total, taken, backfills }.room();
        (runs, backfills, partial)
    }

    #[test]
    fn backfills_take_at_most_half() {
        assert_eq!(room(256, 0, 0), (128, true, true));
        assert_eq!(room(256, 128, 0), (128, true, false));
        assert_eq!(room(256, 100, 100), (28, true, true));
        assert_eq!(room(256, 128, 128), (128, false, false));
        assert_eq!(room(256, 256, 128), (0, false, false));
        // More than half from a time when there were more places.
        assert_eq!(room(10, 9, 9), (1, false, false));
    }

    #[test]
    fn the_only_place_is_for_everybody() {
        assert_eq!(room(1, 0, 0), (1, true, false));
        assert_eq!(room(1, 1, 1), (0, false, false));
        assert_eq!(room(2, 1, 1), (1, false, false));
        assert_eq!(room(3, 1, 1), (2, false, false));
    }

    #[test]
    fn places_fill_up_in_a_few_requests_with_at_most_half_for_backfills() {
        for total in 1..=64_u32 {
            for waiting_backfills in [0, 1, total / 2, total, 10 * total] {
                let (mut taken, mut backfills) = (0, 0);
                for _ in 0..4 {
                    let room = Places { total, taken, backfills }.room();
                    // Backfills are the oldest, so they are found first.
                    let found = if room.backfills { room.runs.min(waiting_backfills - backfills) } else { 0 };
                    backfills += found;
                    taken += room.runs;
                }
                assert_eq!(taken, total, "{total} places, {waiting_backfills} backfills");
                assert!(backfills <= (total / 2).max(1), "{backfills} of {total}");
            }
        }
    }
}
