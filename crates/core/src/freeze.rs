//! [`Freeze`]: a time in which schedules do not fire, announced beforehand.
//!
//! A freeze stops slots, and nothing else: runs by hand, retries and backfills go on, because a caller asked for them. Slots
//! inside it become a gap with the reason `frozen` and are not caught up. A one-time job waits until its end.

use std::fmt;

use jiff::Timestamp;
use uuid::Uuid;

use crate::frozen_span::FrozenSpan;
use crate::ids::{Invalid, JobKey, expect_visible};
use crate::job::Definition;
use crate::zone::{EARLIEST, LATEST};

/// The longest freeze.
const MAX_DAYS: i64 = 366;
/// The most jobs that a freeze may except.
pub const MAX_EXCEPTIONS: usize = 100;
/// The shortest and longest reason, in characters.
const REASON_LENGTH: std::ops::RangeInclusive<usize> = 3..=500;

/// A freeze: a period in which schedules do not fire.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Freeze {
    /// Its id.
    pub id: Uuid,
    /// The first instant that may not fire.
    pub starts_at: Timestamp,
    /// The first instant that may fire again.
    pub ends_at: Timestamp,
    /// Mandatory text.
    pub reason: String,
    /// Only jobs with this label, whose value must be this one if it is given; all jobs if absent.
    pub label: Option<(String, Option<String>)>,
    /// Jobs that fire all the same.
    pub except: Vec<JobKey>,
    /// The actor who announced it.
    pub created_by: String,
    /// When it was announced.
    pub created_at: Timestamp,
    /// When it was ended before its time, and by whom.
    pub ended: Option<(Timestamp, String)>,
}

impl Freeze {
    /// A freeze of all jobs. [`with!`](crate::with!) sets the rest.
    pub fn new(
        id: Uuid,
        starts_at: Timestamp,
        ends_at: Timestamp,
        reason: String,
        created_by: String,
        created_at: Timestamp,
    ) -> Freeze {
        Freeze { id, starts_at, ends_at, reason, label: None, except: Vec::new(), created_by, created_at, ended: None }
    }

    /// Checks a freeze that is announced at `created_at`.
    pub fn check(&self) -> Result<(), Invalid> {
        let length = self.reason.trim().chars().count();
        if !REASON_LENGTH.contains(&length) || self.reason.contains('\0') {
            return Err(Invalid::new("reason", format!("must be 3 to 500 characters without NUL, not {length}")));
        }
        if !(EARLIEST..LATEST).contains(&self.starts_at) || !(EARLIEST..LATEST).contains(&self.ends_at) {
            return Err(Invalid::new("from", "must lie between the years 1900 and 2199"));
        }
        if self.ends_at <= self.starts_at {
            return Err(Invalid::new("until", "must be after `from`"));
        }
        if self.ends_at <= self.created_at {
            return Err(Invalid::new("until", "must be in the future"));
        }
        if self.ends_at.duration_since(self.starts_at).as_hours() > 24 * MAX_DAYS {
            return Err(Invalid::new("until", format!("must be at most {MAX_DAYS} days after `from`")));
        }
        if self.except.len() > MAX_EXCEPTIONS {
            return Err(Invalid::new("except", format!("must be at most {MAX_EXCEPTIONS} jobs")));
        }
        if let Some((name, value)) = &self.label {
            for text in [Some(name), value.as_ref()].into_iter().flatten() {
                if text.len() > 200 || text.contains('\0') || name.is_empty() {
                    return Err(Invalid::new("label", "must be a name, or a name and a value, of at most 200 bytes"));
                }
                expect_visible("label", text)?;
            }
        }
        Ok(())
    }

    /// Whether it concerns a job.
    pub fn applies_to(&self, job: &Definition) -> bool {
        let has_label = self.label.as_ref().is_none_or(|(name, value)| {
            job.labels.get(name).is_some_and(|own| value.as_ref().is_none_or(|value| own == value))
        });
        has_label && !self.except.contains(&job.key)
    }

    /// The instants in which it is in force; `None` if it was ended before it began.
    pub fn span(&self) -> Option<FrozenSpan> {
        let until = self.ended.as_ref().map_or(self.ends_at, |(at, _)| self.ends_at.min(*at));
        (until > self.starts_at).then_some(FrozenSpan { from: self.starts_at, until })
    }

    /// Whether it is in force.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.span().is_some_and(|span| span.contains(now))
    }

    /// Whether it will be in force, or is.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.span().is_none_or(|span| span.until <= now)
    }

    /// The freeze, ended at `at`. One that is over stays as it is.
    pub fn ended_at(&self, at: Timestamp, by: &str) -> Result<Freeze, Invalid> {
        if self.is_over(at) {
            return Err(Invalid::new("freeze", "is already over"));
        }
        Ok(Freeze { ended: Some((at, by.to_owned())), ..self.clone() })
    }

    /// The label that it is limited to, as `name=value` or `name`.
    pub fn label_text(&self) -> Option<String> {
        self.label.as_ref().map(|(name, value)| match value {
            Some(value) => format!("{name}={value}"),
            None => name.clone(),
        })
    }
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frozen until {}: {}", self.span().map_or(self.ends_at, |span| span.until), self.reason)
    }
}

/// The times in which a job does not fire: in order, without overlaps.
pub fn frozen_spans(freezes: &[Freeze], job: &Definition) -> Vec<FrozenSpan> {
    let mut spans: Vec<FrozenSpan> =
        freezes.iter().filter(|freeze| freeze.applies_to(job)).filter_map(Freeze::span).collect();
    spans.sort_unstable();
    let mut merged: Vec<FrozenSpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.from <= last.until => last.until = last.until.max(span.until),
            _ => merged.push(span),
        }
    }
    merged
}
