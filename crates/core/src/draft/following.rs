//! A draft that starts when runs of other jobs end: it has no clock, so nothing that belongs to one.

use super::{Draft, ParentDraft, Problems, Timing};
use crate::after::After;
use crate::fan_in::FanIn;
use crate::{Invalid, JobKey, Spec, Zone};

impl Draft {
    /// The schedule of a job that starts when runs of others end.
    pub(super) fn checked_following(&self) -> Result<Spec, Vec<Invalid>> {
        let mut problems = Problems::default();
        let zone = self.timezone.as_deref().map_or_else(|| Ok(Zone::utc()), Zone::get);
        let zone = problems.note(zone.map_err(|error| Invalid::new("timezone", error.to_string())));
        let spec = match &self.timing {
            Timing::After { job, on, manual } => {
                let parent = ParentDraft { job: job.clone(), on: *on, manual: *manual };
                let after = problems.note(self.checked_parent(&parent, "after.job"));
                after.zip(zone).map(|(after, zone)| Spec::following(after, zone))
            }
            Timing::AfterAll { parents, group, within } => {
                let parents: Vec<Option<After>> =
                    parents.iter().map(|parent| problems.note(self.checked_parent(parent, "after"))).collect();
                let parents: Option<Vec<After>> = parents.into_iter().collect();
                let fan_in = parents.map(|parents| FanIn { parents, group: *group, within: *within });
                let fan_in = fan_in.and_then(|fan_in| problems.note(fan_in.check().map(|()| fan_in)));
                fan_in.zip(zone).map(|(fan_in, zone)| Spec::following_all(fan_in, zone))
            }
            Timing::Cron(_) | Timing::Every(_) | Timing::Once(_) => None,
        };
        let has_clock =
            "is only for jobs that fire at set times, and not for one that starts after another: leave it out";
        for (field, given) in [
            ("startAt", self.start_at.is_some()),
            ("endAt", self.end_at.is_some()),
            ("policies.jitter", !self.policies.jitter.is_zero()),
        ] {
            if given {
                problems.0.push(Invalid::new(field, has_clock));
            }
        }
        match spec {
            Some(spec) if problems.0.is_empty() => Ok(spec.with_dst(self.dst)),
            _ => Err(problems.0),
        }
    }

    fn checked_parent(&self, parent: &ParentDraft, field: &'static str) -> Result<After, Invalid> {
        let job_key = JobKey::new(&parent.job).map_err(|problem| Invalid { field, ..problem })?;
        if job_key.as_str() == self.key {
            return Err(After::to_itself(&job_key));
        }
        Ok(After { job_key, on: parent.on, manual: parent.manual })
    }
}
