//! [`FanIn`]: the schedule of a job that starts when runs of several jobs have ended.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::after::{After, ChainOn};
use crate::ids::{Invalid, JobKey};
use crate::policy::words;
use crate::zone::Zone;

/// The most jobs that a job may start after.
pub const MAX_PARENTS: usize = 20;
/// The longest wait of a group, unless the job says otherwise.
pub const DEFAULT_WITHIN: Duration = Duration::from_hours(24);
/// The shortest and the longest wait that a job may have.
pub const MIN_WITHIN: Duration = Duration::from_mins(1);
/// See [`MIN_WITHIN`].
pub const MAX_WITHIN: Duration = Duration::from_hours(31 * 24);

/// The property that runs of one group share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// The slot at the beginning of their chains.
    #[default]
    Slot,
    /// The date of that slot, in the time zone of the job that waits.
    LocalDate,
}
words!(GroupBy { Slot = "slot", LocalDate = "local_date" });

/// The jobs whose runs together start another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FanIn {
    /// The jobs, at least two, and which of their runs count.
    pub parents: Vec<After>,
    /// The property that runs of one group share.
    pub group: GroupBy,
    /// The longest wait, from the first end of a group.
    pub within: Duration,
}

/// The first word of the stored text.
const WORD: &str = "@after-all";

impl FanIn {
    /// Reads the text that [`Display`](fmt::Display) writes, as databases store it. `None` for any other schedule.
    pub fn parse(text: &str) -> Option<Result<FanIn, Invalid>> {
        let rest = text.strip_prefix(WORD)?.strip_prefix(' ')?;
        let unknown = || Invalid::new("after", format!("`{text}` is not known"));
        let read = || {
            let mut lines = rest.lines();
            let (group, within) = lines.next().and_then(|line| line.split_once(' ')).ok_or_else(unknown)?;
            let group = GroupBy::from_word(group).ok_or_else(unknown)?;
            let within = Duration::from_secs(within.parse().map_err(|_| unknown())?);
            let mut parents = Vec::new();
            while let Some(outcome) = lines.next() {
                parents.push(After::from_words(outcome, lines.next().ok_or_else(unknown)?)?);
            }
            let fan_in = FanIn { parents, group, within };
            fan_in.check().map(|()| fan_in)
        };
        Some(read())
    }

    /// Refuses what cannot be waited for.
    pub fn check(&self) -> Result<(), Invalid> {
        let count = self.parents.len();
        if !(2..=MAX_PARENTS).contains(&count) {
            let reason = format!("must name 2 to {MAX_PARENTS} jobs, not {count}; a single job is no list");
            return Err(Invalid::new("after", reason));
        }
        let mut keys: Vec<&JobKey> = self.parents.iter().map(|parent| &parent.job_key).collect();
        keys.sort();
        if let Some((twice, _)) = keys.iter().zip(keys.iter().skip(1)).find(|(one, next)| one == next) {
            return Err(Invalid::new("after", format!("names `{twice}` twice: name each job once")));
        }
        if !(MIN_WITHIN..=MAX_WITHIN).contains(&self.within) || self.within.subsec_nanos() != 0 {
            return Err(Invalid::new("afterWithin", "must be whole seconds from 1 minute to 31 days"));
        }
        Ok(())
    }

    /// Returns the rule in English, such as `when a and b have succeeded for the same slot`.
    pub fn describe(&self) -> String {
        let of = |on: ChainOn| -> Vec<String> {
            let named = self.parents.iter().filter(|parent| parent.on == on);
            named.map(|parent| parent.job_key.to_string()).collect()
        };
        let mut parts = Vec::new();
        for (on, verb) in [(ChainOn::Success, "succeeded"), (ChainOn::Failure, "failed"), (ChainOn::Any, "ended")] {
            let keys = of(on);
            if !keys.is_empty() {
                let has = if keys.len() == 1 { "has" } else { "have" };
                parts.push(format!("{} {has} {verb}", listed(&keys)));
            }
        }
        let same = match self.group {
            GroupBy::Slot => "for the same slot",
            GroupBy::LocalDate => "on the same local date",
        };
        let within = SignedDuration::try_from(self.within).unwrap_or(SignedDuration::ZERO);
        format!("when {} {same}, at most {within:#} after the first", listed(&parts))
    }

    /// The name of the group of a run whose chain began at this time.
    pub fn group_of(&self, origin: Timestamp, zone: &Zone) -> String {
        match self.group {
            GroupBy::Slot => origin.to_string(),
            GroupBy::LocalDate => origin.to_zoned(zone.as_jiff().clone()).date().to_string(),
        }
    }

    pub(crate) fn parent(&self, job: &JobKey) -> Option<&After> {
        self.parents.iter().find(|parent| parent.job_key == *job)
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

impl fmt::Display for FanIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{WORD} {} {}", self.group, self.within.as_secs())?;
        // Each key on a line of its own: databases find it there.
        self.parents.iter().try_for_each(|parent| writeln!(f, "{}\n{}", parent.outcome(), parent.job_key))
    }
}
