//! A draft that starts when runs of another job end: it has no clock, so nothing that belongs to one.

use super::{Draft, Problems, Timing};
use crate::after::After;
use crate::{Invalid, JobKey, Spec, Zone};

impl Draft {
    /// The schedule of a job that starts when runs of another one end.
    pub(super) fn checked_following(&self) -> Result<Spec, Vec<Invalid>> {
        let mut problems = Problems::default();
        let Timing::After { job, on, manual } = &self.timing else { return Err(problems.0) };
        let job_key = JobKey::new(job).map_err(|problem| Invalid { field: "after.job", ..problem });
        let job_key = problems
            .note(job_key.and_then(|key| if key.as_str() == self.key { Err(After::to_itself(&key)) } else { Ok(key) }));
        let zone = self.timezone.as_deref().map_or_else(|| Ok(Zone::utc()), Zone::get);
        let zone = problems.note(zone.map_err(|error| Invalid::new("timezone", error.to_string())));
        let has_clock = "belongs to a clock, and a job that starts after another has none: leave it out";
        for (field, given) in [
            ("startAt", self.start_at.is_some()),
            ("endAt", self.end_at.is_some()),
            ("policies.jitter", !self.policies.jitter.is_zero()),
        ] {
            if given {
                problems.0.push(Invalid::new(field, has_clock));
            }
        }
        match (job_key, zone) {
            (Some(job_key), Some(zone)) if problems.0.is_empty() => {
                Ok(Spec::following(After { job_key, on: *on, manual: *manual }, zone).with_dst(self.dst))
            }
            _ => Err(problems.0),
        }
    }
}
