//! [`Spec`]: when a job fires. The one place that answers "which slots exist?".

mod filtered;
mod rolled;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::after::After;
use crate::calendar::CalendarRules;
use crate::cron::{Dst, DstFold, Expression, Kind, Slots, Warning, dst_notes};
use crate::fan_in::FanIn;
use crate::frozen_span::FrozenSpan;
use crate::zone::{self, MAX_SECOND, MIN_SECOND, Zone};

pub use filtered::ExcludedSlots;
pub(crate) use rolled::MAX_ROLLED_TIMES;
pub use rolled::MovedSlot;

/// The schedule of a job: an expression in a zone, or one time; with optional bounds.
///
/// All answers are exact and bounded: results are strictly later (or earlier) than the argument, and a question about
/// ten years of missed seconds costs no more than one about a minute.
///
/// ```
/// use everbell_core::{Spec, Zone, cron::Expression};
/// use jiff::Timestamp;
///
/// let nightly = Spec::recurring(
///     "30 2 * * *".parse::<Expression>().unwrap(),
///     Zone::get("America/New_York").unwrap(),
///     Timestamp::UNIX_EPOCH,
/// );
/// // On 14 March 2027 clocks jump from 02:00 to 03:00; the slot moves to the first instant after the gap.
/// let after = "2027-03-13T12:00:00Z".parse().unwrap();
/// assert_eq!(nightly.next_after(after).unwrap().to_string(), "2027-03-14T07:00:00Z");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    when: When,
    zone: Zone,
    dst: Dst,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
    /// Days without slots; `None` without calendars.
    calendars: Option<Arc<CalendarRules>>,
    /// Seconds without slots, in order; `None` without freezes.
    frozen: Option<Arc<[(i64, i64)]>>,
}

/// The kinds of schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A cron expression, in the zone of the spec.
    Cron(Expression),
    /// A fixed rate: `anchor + n * interval`.
    Every {
        /// The `@every` expression.
        expression: Expression,
        /// The start of the fixed rate, in whole seconds.
        anchor: Timestamp,
    },
    /// One instant.
    Once(Timestamp),
    /// No slot at all: it starts when runs of another job end.
    After(After),
    /// No slot at all: it starts when runs of several other jobs have ended.
    AfterAll(FanIn),
}

/// A time that a spec cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// Before 1900 or after 2199: named is the field.
    OutOfRange(&'static str),
    /// `endAt` is not after `startAt`.
    EmptyBounds,
}

impl Spec {
    /// Fires again and again. A fixed rate (`@every`) counts from `anchor`; other expressions do not need it.
    pub fn recurring(expression: Expression, zone: Zone, anchor: Timestamp) -> Spec {
        let when = if expression.is_fixed_rate() {
            let second = anchor.as_second().clamp(MIN_SECOND, MAX_SECOND);
            When::Every { expression, anchor: zone::instant(second) }
        } else {
            When::Cron(expression)
        };
        let dst = Dst::default();
        Spec { when, zone, dst, start_at: None, end_at: None, calendars: None, frozen: None }
    }

    /// Creates a one-time schedule, to the millisecond, which is the precision of a run id. The zone only affects how
    /// the time is shown.
    pub fn once(at: Timestamp, zone: Zone) -> Result<Spec, SpecError> {
        check_range("runAt", at)?;
        let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
        let dst = Dst::default();
        Ok(Spec { when: When::Once(at), zone, dst, start_at: None, end_at: None, calendars: None, frozen: None })
    }

    /// Starts when runs of another job end, so it has no slots. The zone only affects how times are shown.
    pub fn following(after: After, zone: Zone) -> Spec {
        Spec::without_slots(When::After(after), zone)
    }

    /// Starts when runs of several other jobs have ended, so it has no slots. The zone decides about local dates.
    pub fn following_all(fan_in: FanIn, zone: Zone) -> Spec {
        Spec::without_slots(When::AfterAll(fan_in), zone)
    }

    fn without_slots(when: When, zone: Zone) -> Spec {
        let dst = Dst::default();
        Spec { when, zone, dst, start_at: None, end_at: None, calendars: None, frozen: None }
    }

    /// With another rule for daylight saving.
    #[must_use]
    pub fn with_dst(mut self, dst: Dst) -> Spec {
        self.dst = dst;
        self
    }

    /// With slots only in `[start_at, end_at]`. A fixed rate then counts from `start_at`.
    pub fn with_bounds(mut self, start_at: Option<Timestamp>, end_at: Option<Timestamp>) -> Result<Spec, SpecError> {
        if let Some(start) = start_at {
            check_range("startAt", start)?;
        }
        if let Some(end) = end_at {
            check_range("endAt", end)?;
        }
        if let (Some(start), Some(end)) = (start_at, end_at)
            && end <= start
        {
            return Err(SpecError::EmptyBounds);
        }
        if let (When::Every { anchor, .. }, Some(start)) = (&mut self.when, start_at) {
            *anchor = zone::instant(ceil(start));
        }
        self.start_at = start_at;
        self.end_at = end_at;
        Ok(self)
    }

    /// With slots only on the days that these calendars allow, or with those of other days moved to them.
    #[must_use]
    pub fn with_calendars(self, rules: &CalendarRules) -> Spec {
        let calendars = (!rules.is_empty()).then(|| Arc::new(rules.clone()));
        Spec { calendars, ..self }
    }

    /// Without slots in these times.
    #[must_use]
    pub(crate) fn without(self, frozen: &[FrozenSpan]) -> Spec {
        let seconds = |span: &FrozenSpan| (ceil(span.from), ceil(span.until));
        let frozen = (!frozen.is_empty()).then(|| frozen.iter().map(seconds).collect());
        Spec { frozen, ..self }
    }

    /// Returns the kind of the schedule.
    pub fn when(&self) -> &When {
        &self.when
    }

    /// The expression, if it has one: a one-time job has none, and one that follows another.
    pub fn expression(&self) -> Option<&Expression> {
        match &self.when {
            When::Cron(expression) | When::Every { expression, .. } => Some(expression),
            When::Once(_) | When::After(_) | When::AfterAll(_) => None,
        }
    }

    /// The job that it follows, if it follows a single one.
    pub fn after(&self) -> Option<&After> {
        match &self.when {
            When::After(after) => Some(after),
            _ => None,
        }
    }

    /// The jobs that it waits for, if there are several.
    pub fn fan_in(&self) -> Option<&FanIn> {
        match &self.when {
            When::AfterAll(fan_in) => Some(fan_in),
            _ => None,
        }
    }

    /// The jobs whose runs start it; none if it has a clock.
    pub fn parents(&self) -> &[After] {
        match &self.when {
            When::After(after) => std::slice::from_ref(after),
            When::AfterAll(fan_in) => &fan_in.parents,
            When::Cron(_) | When::Every { .. } | When::Once(_) => &[],
        }
    }

    /// Describes the runs that start it; `None` if it has a clock.
    pub fn describe_parents(&self) -> Option<String> {
        self.fan_in().map(FanIn::describe).or_else(|| self.after().map(After::describe))
    }

    /// Whether it starts when runs of other jobs end, and so has no clock.
    pub fn is_following(&self) -> bool {
        !self.parents().is_empty()
    }

    /// The zone in which the expression is read and times are shown.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns the behavior when clocks change.
    pub fn dst(&self) -> Dst {
        self.dst
    }

    /// The first instant that may be a slot.
    pub fn start_at(&self) -> Option<Timestamp> {
        self.start_at
    }

    /// The last instant that may be a slot.
    pub fn end_at(&self) -> Option<Timestamp> {
        self.end_at
    }

    /// Returns the schedule in another zone, for an org with its own local time.
    #[must_use]
    pub fn in_zone(&self, zone: Zone) -> Spec {
        Spec { zone, ..self.clone() }
    }

    /// Another expression with the same zone, rules and bounds. A fixed rate counts from the start, or else from `anchor`.
    #[must_use]
    pub fn with_expression(&self, expression: Expression, anchor: Timestamp) -> Spec {
        let anchor = self.start_at.map_or(anchor, |start| zone::instant(ceil(start)));
        let when = Spec::recurring(expression, self.zone.clone(), anchor).when;
        Spec { when, ..self.clone() }
    }

    /// The first slot after `t`, whatever calendars say.
    fn any_after(&self, t: Timestamp) -> Option<Timestamp> {
        let slot = match &self.when {
            When::Once(at) => Some(*at).filter(|at| *at > t),
            When::Cron(_) | When::Every { .. } => {
                let from = (floor(t) + 1).max(self.start_at.map_or(MIN_SECOND, ceil));
                self.at_or_after(from).map(zone::instant)
            }
            When::After(_) | When::AfterAll(_) => None,
        };
        slot.filter(|slot| self.in_bounds(*slot))
    }

    /// The last slot at or before `t`, whatever calendars say.
    fn any_at_or_before(&self, t: Timestamp) -> Option<Timestamp> {
        let slot = match &self.when {
            When::Once(at) => Some(*at).filter(|at| *at <= t),
            When::Cron(_) | When::Every { .. } => {
                let from = floor(t).min(self.end_at.map_or(MAX_SECOND - 1, floor));
                self.at_or_before(from).map(zone::instant)
            }
            When::After(_) | When::AfterAll(_) => None,
        };
        slot.filter(|slot| self.in_bounds(*slot))
    }

    /// Whether `t` is a slot: a time at which slots fire, if slots move to other days.
    pub fn matches(&self, t: Timestamp) -> bool {
        self.prev_at_or_before(t) == Some(t)
    }

    /// Whether no local day can have two slots, so that a local date names one.
    pub fn at_most_daily(&self) -> bool {
        match &self.when {
            When::Once(_) => true,
            When::Every { .. } | When::After(_) | When::AfterAll(_) => false,
            When::Cron(expression) => match expression.kind {
                Kind::Fields(fields) => fields.times_per_day() == 1 && self.dst.fold != DstFold::Both,
                Kind::Every(_) => false,
            },
        }
    }

    /// The slots after `t`, in order.
    pub fn slots_after(&self, t: Timestamp) -> impl Iterator<Item = Timestamp> {
        let rolled = self.rolled().map(|rolled| rolled.fires_after(t));
        let first = if rolled.is_some() { None } else { self.next_after(t) };
        std::iter::successors(first, |slot| self.next_after(*slot)).chain(rolled.into_iter().flatten())
    }

    /// How many slots lie in `(after, until]`, whatever calendars say.
    fn count_any(&self, after: Timestamp, until: Timestamp) -> u64 {
        if until <= after {
            return 0;
        }
        let (from, end) = self.clip(after, until);
        match &self.when {
            When::Once(at) => u64::from(*at > after && *at <= until && self.in_bounds(*at)),
            When::Cron(_) => self.cron_slots().map_or(0, |slots| slots.count(from, end)),
            When::Every { expression, .. } => {
                match (self.at_or_after(from), self.at_or_before(end - 1), expression.kind) {
                    (Some(first), Some(last), Kind::Every(every)) if first <= last => {
                        ((last - first) / every.seconds() + 1) as u64
                    }
                    _ => 0,
                }
            }
            When::After(_) | When::AfterAll(_) => 0,
        }
    }

    /// The instants in `(after, until]` at which a local time inside a DST gap was passed over because of
    /// [`crate::cron::DstGap::Skip`].
    pub fn dst_skipped_between(&self, after: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let (from, until) = self.clip(after, until);
        let skipped = self.cron_slots().map_or_else(Vec::new, |slots| slots.skipped(from, until));
        skipped.into_iter().filter(|second| self.is_allowed(*second)).map(zone::instant).collect()
    }

    /// Returns warnings: the expression's own, and those about DST changes in the year after `from`.
    pub fn warnings(&self, from: Timestamp) -> Vec<Warning> {
        let mut all = self.expression().map_or_else(Vec::new, Expression::warnings);
        if let Some(slots) = self.cron_slots() {
            let until = (floor(from) + dst_notes::LOOKAHEAD_SECONDS).clamp(MIN_SECOND, MAX_SECOND - 1);
            let (from, until) = self.clip(from, zone::instant(until));
            all.extend(dst_notes::of_slots(&slots, from, until));
        }
        all
    }

    fn at_or_after(&self, second: i64) -> Option<i64> {
        match (&self.when, self.cron_slots()) {
            (_, Some(slots)) => slots.at_or_after(second),
            (When::Every { expression, anchor }, None) => match expression.kind {
                Kind::Every(every) => Some(every.at_or_after(anchor.as_second(), second)).filter(|s| *s < MAX_SECOND),
                Kind::Fields(_) => None,
            },
            _ => None,
        }
    }

    fn at_or_before(&self, second: i64) -> Option<i64> {
        match (&self.when, self.cron_slots()) {
            (_, Some(slots)) => slots.at_or_before(second),
            (When::Every { expression, anchor }, None) => match expression.kind {
                Kind::Every(every) => every.at_or_before(anchor.as_second(), second),
                Kind::Fields(_) => None,
            },
            _ => None,
        }
    }

    fn cron_slots(&self) -> Option<Slots<'_>> {
        match &self.when {
            When::Cron(Expression { kind: Kind::Fields(fields), .. }) => {
                Some(Slots { fields, zone: &self.zone, dst: self.dst })
            }
            _ => None,
        }
    }

    /// `(after, until]` as whole seconds `[from, end)`, inside the bounds.
    fn clip(&self, after: Timestamp, until: Timestamp) -> (i64, i64) {
        let from = (floor(after) + 1).max(self.start_at.map_or(MIN_SECOND, ceil));
        let last = floor(until).min(self.end_at.map_or(MAX_SECOND - 1, floor));
        (from, last + 1)
    }

    fn in_bounds(&self, slot: Timestamp) -> bool {
        self.start_at.is_none_or(|start| slot >= start) && self.end_at.is_none_or(|end| slot <= end)
    }
}

fn floor(t: Timestamp) -> i64 {
    t.as_second() - i64::from(t.subsec_nanosecond() < 0)
}

fn ceil(t: Timestamp) -> i64 {
    t.as_second() + i64::from(t.subsec_nanosecond() > 0)
}

fn check_range(field: &'static str, t: Timestamp) -> Result<(), SpecError> {
    if (MIN_SECOND..MAX_SECOND).contains(&t.as_second()) { Ok(()) } else { Err(SpecError::OutOfRange(field)) }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::OutOfRange(field) => write!(f, "{field} must lie between the years 1900 and 2199"),
            SpecError::EmptyBounds => f.write_str("endAt must be after startAt"),
        }
    }
}

impl std::error::Error for SpecError {}
