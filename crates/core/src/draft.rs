//! [`Draft`]: a job before it is checked, and the way from there to a definition, with every problem at once.

mod days;
mod following;
mod timing;

pub use timing::{ParentDraft, Timing};

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::after::After;
use crate::calendar::{CalendarNames, CalendarRules};
use crate::cron::{Dst, Expression, ParseError};
use crate::edit::Edit;
use crate::spec::When;
use crate::{
    Definition, Dependency, Invalid, JobId, JobKey, Json, Policies, PolicyValues, Scope, Source, Spec, SpecError,
    Target, TraceContext, Zone, expect_visible,
};

const MAX_DESCRIPTION_BYTES: usize = 10_000;
const MAX_LABELS: usize = 64;
const MAX_LABEL_BYTES: usize = 200;

/// A job as it was written down. Only data: nothing is checked before it becomes a definition.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The name that all versions share.
    pub key: String,
    /// When the job fires.
    pub timing: Timing,
    /// The label of a target.
    pub target: Option<String>,
    /// The IANA time zone of the expression; UTC if absent.
    pub timezone: Option<String>,
    /// The text of the payload's JSON, or the reason why it cannot be written as JSON; `{}` if absent.
    pub payload: Option<Result<String, String>>,
    /// Every policy except `dependsOn`.
    pub policies: PolicyValues,
    /// The key of the job that must have succeeded, and how recently.
    pub depends_on: Option<(String, Duration)>,
    /// The names of its calendars; those of `policies` if absent.
    pub calendars: Option<CalendarNames>,
    /// The behavior when clocks change.
    pub dst: Dst,
    /// No slot before this.
    pub start_at: Option<Timestamp>,
    /// No slot after this.
    pub end_at: Option<Timestamp>,
    /// A text for people.
    pub description: String,
    /// Names and values for filters.
    pub labels: BTreeMap<String, String>,
    /// Whether the job fires once for all, or for each org.
    pub scope: Scope,
    /// The trace that the run of a one-time job continues.
    pub trace_context: Option<TraceContext>,
}

/// The author, time and id of a definition.
#[derive(Clone, Debug)]
pub struct Made<'a> {
    /// The id of the version.
    pub id: JobId,
    /// Its owner.
    pub source: Source,
    /// Its author.
    pub by: &'a str,
    /// The time of the request. Slots count from here on.
    pub at: Timestamp,
}

/// The problems found so far.
#[derive(Default)]
struct Problems(Vec<Invalid>);

impl Problems {
    fn note<T>(&mut self, checked: Result<T, Invalid>) -> Option<T> {
        checked.map_err(|problem| self.0.push(problem)).ok()
    }

    fn all<T>(&mut self, checked: Result<T, Vec<Invalid>>) -> Option<T> {
        checked.map_err(|problems| self.0.extend(problems)).ok()
    }
}

/// The parts of a draft that passed their checks.
struct Parts {
    key: JobKey,
    target: Target,
    payload: Json,
    spec: Spec,
    policies: Policies,
}

impl Draft {
    /// A draft with a key and a timing, and defaults for everything else.
    pub fn new(key: impl Into<String>, timing: Timing) -> Draft {
        Draft {
            key: key.into(),
            timing,
            target: None,
            timezone: None,
            payload: None,
            policies: PolicyValues::default(),
            depends_on: None,
            calendars: None,
            dst: Dst::default(),
            start_at: None,
            end_at: None,
            description: String::new(),
            labels: BTreeMap::new(),
            scope: Scope::Global,
            trace_context: None,
        }
    }

    /// Returns a definition as a draft, so that parts of it can be changed. A fixed rate becomes its `@every` expression.
    pub fn from_definition(definition: &Definition) -> Draft {
        let cron = |expression: Option<String>| Timing::Cron(expression.unwrap_or_default());
        let (timing, timezone) = match &definition.spec {
            Ok(spec) => match spec.when() {
                When::Cron(expression) | When::Every { expression, .. } => {
                    (cron(Some(expression.to_string())), spec.zone().to_string())
                }
                When::Once(at) => (Timing::Once(*at), spec.zone().to_string()),
                When::After(After { job_key, on, manual }) => {
                    let timing = Timing::After { job: job_key.to_string(), on: *on, manual: *manual };
                    (timing, spec.zone().to_string())
                }
                When::AfterAll(fan_in) => {
                    let parents = fan_in.parents.iter().map(ParentDraft::from).collect();
                    let timing = Timing::AfterAll { parents, group: fan_in.group, within: fan_in.within };
                    (timing, spec.zone().to_string())
                }
            },
            Err(unreadable) => {
                let once = unreadable.run_at.filter(|_| unreadable.expression.is_none()).map(Timing::Once);
                (once.unwrap_or_else(|| cron(unreadable.expression.clone())), unreadable.timezone.clone())
            }
        };
        let (start_at, end_at) = definition.bounds();
        Draft {
            target: Some(definition.target.to_string()),
            timezone: Some(timezone),
            payload: Some(Ok(definition.payload.as_str().to_owned())),
            // With its dependency and its calendars.
            policies: (*definition.policies).clone(),
            depends_on: None,
            dst: definition.dst(),
            start_at,
            end_at,
            description: definition.description.clone(),
            labels: definition.labels.clone(),
            scope: definition.scope,
            ..Draft::new(definition.key.as_str(), timing)
        }
    }

    /// Whether both fire at the same times.
    fn has_schedule_of(&self, other: &Draft) -> bool {
        let zone = |draft: &Draft| draft.timezone.clone().unwrap_or_else(|| Zone::utc().to_string());
        let bounds = |draft: &Draft| (draft.start_at, draft.end_at);
        (&self.timing, zone(self), self.dst, bounds(self)) == (&other.timing, zone(other), other.dst, bounds(other))
    }

    /// Returns the edit that turns a definition into this draft, which was made from it. A schedule that is still the same
    /// is left alone, so a fixed rate keeps counting from where it counted.
    pub fn edit_of(&self, definition: &Definition, now: Timestamp) -> Result<Edit, Vec<Invalid>> {
        let edit = self.edit(self.anchor(definition, now))?;
        let spec = edit.spec.filter(|_| !self.has_schedule_of(&Draft::from_definition(definition)));
        Ok(Edit { spec, ..edit })
    }

    /// The time that a fixed rate counts from after an edit of a definition at `now`: the one that it counted from, if the
    /// schedule could not be read any more and this draft repairs the rest of it; else `now`.
    pub fn anchor(&self, definition: &Definition, now: Timestamp) -> Timestamp {
        let kept = definition.spec.as_ref().err().and_then(|unreadable| unreadable.anchor);
        kept.filter(|_| self.timing == Draft::from_definition(definition).timing).unwrap_or(now)
    }

    /// Checks every part, and returns every problem with the field as the API spells it.
    pub fn check(&self) -> Result<(), Vec<Invalid>> {
        self.parts(Timestamp::UNIX_EPOCH).map(drop)
    }

    /// The first version of the job.
    pub fn definition(&self, made: &Made<'_>) -> Result<Definition, Vec<Invalid>> {
        let Parts { key, target, payload, spec, policies } = self.parts(made.at)?;
        Ok(Definition {
            id: made.id,
            key,
            version: 1,
            target,
            payload,
            spec: Ok(spec),
            policies,
            scope: self.scope,
            description: self.description.clone(),
            labels: self.labels.clone(),
            source: made.source,
            supersedes: None,
            created_by: made.by.to_owned(),
            created_at: made.at,
            trace_context: self.trace_context.clone(),
        })
    }

    /// Everything of this draft, as the next version of a job that exists. A fixed rate counts from `anchor`, see
    /// [`Draft::anchor`].
    pub fn edit(&self, anchor: Timestamp) -> Result<Edit, Vec<Invalid>> {
        let Parts { key: _, target, payload, spec, policies } = self.parts(anchor)?;
        Ok(Edit {
            target: Some(target),
            payload: Some(payload),
            spec: Some(spec),
            policies: Some(policies),
            description: Some(self.description.clone()),
            labels: Some(self.labels.clone()),
            source: None,
            scope: Some(self.scope),
            calendars: Vec::new(),
        })
    }

    fn parts(&self, anchor: Timestamp) -> Result<Parts, Vec<Invalid>> {
        let mut problems = Problems::default();
        let key = problems.note(JobKey::new(&self.key));
        let target = self.target.as_deref().ok_or_else(|| Invalid::new("target", "the label of a target is needed"));
        let target = problems.note(target.and_then(Target::new));
        let payload = problems.note(self.checked_payload());
        let spec = problems.all(self.checked_spec(anchor));
        let policies = problems.all(self.checked_policies());
        problems.all(self.check_texts());
        match (key, target, payload, spec, policies) {
            (Some(key), Some(target), Some(payload), Some(spec), Some(policies)) if problems.0.is_empty() => {
                Ok(Parts { key, target, payload, spec, policies })
            }
            _ => Err(problems.0),
        }
    }

    fn checked_payload(&self) -> Result<Json, Invalid> {
        match &self.payload {
            None => Ok(Json::empty()),
            Some(Ok(text)) => Json::parse("payload", text),
            Some(Err(reason)) => Err(Invalid::new("payload", format!("cannot be written as JSON: {reason}"))),
        }
    }

    fn checked_spec(&self, anchor: Timestamp) -> Result<Spec, Vec<Invalid>> {
        let mut problems = Problems::default();
        let spec_error = |error: SpecError| match &error {
            SpecError::OutOfRange(field) => Invalid::new(field, "must lie between the years 1900 and 2199"),
            SpecError::EmptyBounds => Invalid::new("endAt", "must be after startAt"),
        };
        let expression = match &self.timing {
            Timing::Cron(text) => problems.note(Expression::parse(text).map_err(|error| refused(&error))).map(Some),
            Timing::Every(_) => problems.note(self.checked_interval()).map(Some),
            Timing::Once(_) => Some(None),
            Timing::After { .. } | Timing::AfterAll { .. } => return self.checked_following(),
        };
        let zone = self.timezone.as_deref().map_or_else(|| Ok(Zone::utc()), Zone::get);
        let zone = problems.note(zone.map_err(|error| Invalid::new("timezone", error.to_string())));
        // The bounds are checked with any spec, so that they are not forgotten when there is another problem.
        let known = zone.clone().unwrap_or_else(Zone::utc);
        let spec = match (&self.timing, expression.flatten()) {
            (Timing::Once(at), _) => problems.note(Spec::once(*at, known).map_err(spec_error)),
            (_, Some(expression)) => Some(Spec::recurring(expression, known, anchor)),
            (_, None) => None,
        };
        let bounded = spec.clone().or_else(|| Spec::once(Timestamp::UNIX_EPOCH, Zone::utc()).ok());
        let bounded = bounded.map(|spec| spec.with_dst(self.dst).with_bounds(self.start_at, self.end_at));
        let bounded = bounded.and_then(|spec| problems.note(spec.map_err(spec_error)));
        match (bounded, spec) {
            (Some(spec), Some(_)) if problems.0.is_empty() => Ok(spec),
            _ => Err(problems.0),
        }
    }

    fn checked_interval(&self) -> Result<Expression, Invalid> {
        let Timing::Every(interval) = &self.timing else {
            return Err(Invalid::new("cronExpression", "is not a fixed rate"));
        };
        let whole = Some(interval.as_secs()).filter(|_| interval.subsec_nanos() == 0);
        whole.and_then(Expression::every).ok_or_else(|| {
            Invalid::new("cronExpression", format!("must be whole seconds from 1s to 366d, not {interval:?}"))
        })
    }

    fn checked_policies(&self) -> Result<Policies, Vec<Invalid>> {
        let mut problems = Problems::default();
        let mut values = self.policies.clone();
        if let Some((key, within)) = &self.depends_on {
            let key = JobKey::new(key).map_err(|problem| Invalid { field: "policies.dependsOn.jobKey", ..problem });
            // Its time is checked with any key, so that it is not forgotten when the key is bad.
            let job_key = problems.note(key).or_else(|| JobKey::new("any").ok());
            values.depends_on = job_key.map(|job_key| Dependency { job_key, within: *within });
        }
        if let Some(names) = &self.calendars {
            values.calendars = problems.all(CalendarRules::from_names(names)).unwrap_or_default();
        }
        problems.all(self.check_calendars(&values.calendars));
        let policies = problems.all(Policies::new(values));
        policies.filter(|_| problems.0.is_empty()).ok_or(problems.0)
    }

    fn check_texts(&self) -> Result<(), Vec<Invalid>> {
        let mut problems = Vec::new();
        if self.scope == Scope::PerOrg && matches!(self.timing, Timing::Once(_)) {
            let reason = "a job that fires for each org needs a local time that recurs: `cronExpression`, not `runAt`";
            problems.push(Invalid::new("scope", reason));
        }
        if self.scope == Scope::PerOrg && self.timing.is_following() {
            let reason =
                "a job that starts after another cannot fire per org: use `global`, or give it a `cronExpression`";
            problems.push(Invalid::new("scope", reason));
        }
        if self.trace_context.is_some() && !matches!(self.timing, Timing::Once(_)) {
            let reason =
                "only a one-time job continues the trace of its creator: slots of a recurring one have no request";
            problems.push(Invalid::new("traceContext", reason));
        }
        if self.description.len() > MAX_DESCRIPTION_BYTES || self.description.contains('\0') {
            let reason = format!("must be at most {MAX_DESCRIPTION_BYTES} bytes without NUL");
            problems.push(Invalid::new("description", reason));
        }
        let bad = |text: &String| text.len() > MAX_LABEL_BYTES || text.contains('\0');
        let nameless = self.labels.keys().any(String::is_empty);
        if self.labels.len() > MAX_LABELS || nameless || self.labels.iter().any(|(name, value)| bad(name) || bad(value))
        {
            let reason = format!(
                "must be at most {MAX_LABELS}, each a name and a value of at most {MAX_LABEL_BYTES} bytes without NUL"
            );
            problems.push(Invalid::new("labels", reason));
        }
        let mut texts = self.labels.iter().flat_map(|(name, value)| [name, value]).filter(|text| !text.contains('\0'));
        problems.extend(texts.find_map(|text| expect_visible("labels", text).err()));
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// An expression's error with what is allowed.
fn refused(error: &ParseError) -> Invalid {
    let mut reason = error.to_string();
    let allowed = error.allowed();
    if !allowed.is_empty() {
        reason.push_str("; allowed: ");
        reason.push_str(allowed);
    }
    if let Some(hint) = error.hint() {
        reason.push_str("; ");
        reason.push_str(hint);
    }
    Invalid::new("cronExpression", reason)
}
