//! [`Preview`]: the schedule of a form in words, its fields, next runs, warnings and errors.

use std::time::Duration;

use askama::Template;
use everbell::{JobKey, JobStatus, StoreError};
use everbell_core::calendar::CalendarRules;
use everbell_core::cron::{Expression, WarningCode};
use everbell_core::store::{JobRef, RecentRuns};
use everbell_core::{Definition, Draft, Scope, Spec, Timing, When};
use everbell_wire::FaultCode;
use everbell_wire::preview::note;
use jiff::Timestamp;
use serde_json::Value;

use super::breakdown::{self, Marked, Part};
use super::changes::{Change, Changes};
use super::clock_changes::{self, ClockChange};
use super::form;
use super::past_week::Simulated;
use super::request_body::RequestBody;
use super::suggestions::UpcomingJobs;
use crate::badge;
use crate::clock::Clock;
use crate::clock::Face;
use crate::frozen::Frozen;
use crate::markup::Markup;
use crate::pages::action::Subject;
use crate::pages::overview::attention::{MIN_SAMPLED_RUNS, Usual};
use crate::request::UiRequest;
use crate::snippets::Snippets;
use everbell_http::problem::Problem;
use everbell_wire::body::definition::changes_timing;
use everbell_wire::body::job::JobForm;
use everbell_wire::elapsed::took;
use everbell_wire::form::Fault;
use everbell_wire::job_body::declared;

/// How many fires are shown.
const MAX_LISTED_FIRES: usize = 10;
/// The number of runs that the expected duration is based on.
const SAMPLED_RUNS: u32 = 50;

/// The preview alone, for live updates.
#[derive(Template)]
#[template(path = "job_form/preview.html")]
pub(super) struct PreviewPage {
    pub(super) preview: Preview,
}

/// The preview of a form.
#[derive(Default)]
pub(crate) struct Preview {
    /// The schedule in words.
    pub(crate) words: Option<String>,
    /// The cron expression that is sent to the API.
    pub(crate) expression: Option<String>,
    pub(crate) zone: Option<&'static str>,
    /// It fires for each org: what is foreseen is so for one in this zone.
    pub(crate) for_each: bool,
    pub(crate) parts: Vec<Part>,
    pub(crate) wrong: Option<Wrong>,
    pub(crate) fires: Vec<FireRow>,
    /// There are no more than these.
    pub(crate) ends: bool,
    pub(crate) warnings: Vec<String>,
    pub(crate) clock_changes: Vec<ClockChange>,
    /// Clocks change, and it does not matter.
    pub(crate) untouched: bool,
    pub(crate) together: Option<usize>,
    /// The key and the command that were taken from a crontab line.
    pub(crate) taken: Vec<String>,
    /// The names of fields, and what is wrong with them.
    pub(crate) faults: Vec<(String, String)>,
    pub(crate) edit: Option<EditPreview>,
    /// The last seven days with this schedule, if that was asked for.
    pub(crate) past_week: Option<Simulated>,
    /// Equivalent definitions, if the form has no errors.
    pub(crate) same: Option<Snippets>,
}

/// The error of an expression.
pub(crate) struct Wrong {
    pub(crate) marked: Marked,
    pub(crate) reason: String,
    pub(crate) allowed: &'static str,
    pub(crate) hint: Option<&'static str>,
}

/// One fire to come.
pub(crate) struct FireRow {
    pub(crate) local: Markup,
    pub(crate) offset: String,
    pub(crate) utc: Markup,
    pub(crate) away: Markup,
    pub(crate) note: Option<String>,
    /// The freeze that keeps the job from firing then.
    pub(crate) frozen: Option<Frozen>,
}

/// The changes of the next version.
pub(crate) struct EditPreview {
    pub(crate) version: u32,
    pub(crate) changes: Vec<Change>,
    pub(crate) before: Option<(Markup, Markup)>,
    pub(crate) after: Option<(Markup, Markup)>,
    /// Whether the job stays paused.
    pub(crate) stays_paused: bool,
}

/// Whether the runs of a job take longer than the time that the new schedule leaves between two of them.
async fn too_slow(request: &UiRequest, subject: &Subject, spec: &Spec) -> Result<Option<String>, Problem> {
    if !request.may_read_runs() {
        return Ok(None);
    }
    let fires: Vec<Timestamp> = spec.slots_after(request.now).take(MAX_LISTED_FIRES).collect();
    let between = fires.windows(2).filter_map(|two| Duration::try_from(two[1].duration_since(two[0])).ok()).min();
    let last = RecentRuns::new(vec![subject.definition().key.clone()], SAMPLED_RUNS)?;
    let usual =
        Usual::from_runs(&request.runs().recent_runs(&last).await?).filter(|usual| usual.runs >= MIN_SAMPLED_RUNS);
    let describe = |(usual, between): (Usual, Duration)| {
        let text = |time: Duration| took(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        let (most, between) = (text(usual.most), text(between));
        format!(
            "95% of the last {} runs took up to {most}, but runs are only {between} apart: they would overlap",
            usual.runs
        )
    };
    Ok(usual.zip(between).filter(|(usual, between)| usual.most > *between).map(describe))
}

impl Preview {
    /// Of a new job, or of the next version of one that exists.
    pub(crate) async fn load(
        request: &UiRequest,
        form: &RequestBody,
        subject: Option<&Subject>,
        upcoming: &UpcomingJobs,
    ) -> Result<Preview, Problem> {
        let read = form.body.read();
        let spec = match timing(&read, request.now).and_then(|own| own.spec.ok()) {
            Some(spec) => Some(on_allowed_days(request, &read.draft, spec).await?),
            None => None,
        };
        // Missing fields are not reported while the form is being filled in.
        let shown_faults =
            faults(request, form, subject).await?.into_iter().filter(|fault| fault.code != FaultCode::Required);
        let shown_faults = shown_faults.map(|fault| (fault.pointer.trim_start_matches('/').to_owned(), fault.detail));
        let for_each = read.draft.scope == Scope::PerOrg;
        let mut preview = Preview { faults: shown_faults.collect(), for_each, ..Preview::default() };
        if matches!(read.draft.timing, Timing::Cron(_)) {
            preview.explain(form.body.cron_expression());
        }
        if let Some(entry) = &form.line {
            preview.taken = vec![format!("key {}", entry.key), format!("command {}", entry.command)];
        }
        if let Some(spec) = &spec {
            let freezes = request.app.bell.freezes().list().await?;
            // A form with errors has the labels of its job, if that exists, and else none.
            let own = definition(form, request.now).or_else(|| subject.map(|subject| subject.definition().clone()));
            let own = own.or_else(|| timing(&read, request.now));
            preview.foresee(spec, &request.clock(), |at| {
                own.as_ref().and_then(|own| Frozen::in_zone(&freezes, own, at, &request.clock(), Some(spec.zone())))
            });
            let next = spec.next_after(request.now);
            let key = form.body.job_key().unwrap_or_default();
            preview.together = next.and_then(|next| upcoming.together(next, key)).filter(|others| *others > 0);
            if let Some(subject) = subject {
                preview.warnings.extend(too_slow(request, subject, spec).await?);
            }
        }
        if subject.is_none() {
            let own = definition(form, request.now).filter(|_| preview.faults.is_empty());
            preview.same = own.and_then(|own| Snippets::new(&own, &request.api_base(), request.now).ok());
        }
        preview.edit = subject.map(|subject| EditPreview::new(request, form, subject, spec.as_ref()));
        Ok(preview)
    }

    /// Whether one of the fields says what is wrong with the expression.
    pub(crate) fn has_invalid_part(&self) -> bool {
        self.parts.iter().any(|part| part.meaning.is_err())
    }

    /// Describes an expression, or marks its error.
    fn explain(&mut self, text: Option<&str>) {
        let Some(text) = text else { return };
        self.expression = Some(text.to_owned());
        self.parts = breakdown::parts(text);
        match Expression::parse(text) {
            Ok(expression) => self.words = Some(expression.describe()),
            Err(error) => {
                // The error is shown at its mark.
                self.faults.retain(|(name, _)| name != "cronExpression");
                self.wrong = Some(Wrong {
                    marked: Marked::new(&error),
                    reason: error.to_string(),
                    allowed: error.allowed(),
                    hint: error.hint(),
                });
            }
        }
    }

    /// Adds the next runs and the effect of daylight saving time.
    fn foresee(&mut self, spec: &Spec, clock: &Clock, frozen: impl Fn(Timestamp) -> Option<Frozen>) {
        let zone = spec.zone();
        let (local, utc) =
            (Clock { face: Face::Schedule, ..clock.clone() }, Clock { face: Face::Utc, ..clock.clone() });
        let row = |at: Timestamp| FireRow {
            local: local.day(at, Some(zone)),
            offset: offset(spec, at),
            utc: utc.at(at, None),
            away: clock.away(at),
            note: note(spec, at),
            frozen: frozen(at),
        };
        self.zone = Some(zone.name());
        self.fires = spec.slots_after(clock.now).take(MAX_LISTED_FIRES).map(row).collect();
        self.ends = self.fires.len() < MAX_LISTED_FIRES;
        if spec.is_following() {
            self.words = spec.describe_parents();
            return;
        }
        if matches!(spec.when(), When::Once(_)) {
            self.words = Some("Once".to_owned());
            return;
        }
        let is_clock = |code| matches!(code, WarningCode::DstGap | WarningCode::DstFold);
        let warnings = spec.warnings(clock.now).into_iter().filter(|warning| !is_clock(warning.code));
        self.warnings = warnings.map(|warning| warning.detail).collect();
        self.clock_changes = clock_changes::next_changes(spec, clock.now);
        self.untouched = self.clock_changes.is_empty() && clock_changes::any_ahead(zone, clock.now);
    }
}

impl EditPreview {
    fn new(request: &UiRequest, form: &RequestBody, subject: &Subject, wanted: Option<&Spec>) -> EditPreview {
        let own = &subject.row.job.definition;
        let changes = Changes::between(own, form, request.now);
        let stays_paused = subject.row.job.state.pause.is_some() && request.sent("activate").is_none();
        // What does not touch the timing keeps the beat of a fixed rate.
        let unchanged =
            own.spec.as_ref().ok().filter(|_| !changes_timing(&Value::Object(changes.patch.members.clone())));
        let after = unchanged.or(wanted).and_then(|spec| spec.next_after(request.now)).filter(|_| !stays_paused);
        let clock = request.clock();
        let shown = |at: Timestamp| (clock.day(at, Some(&subject.zone)), clock.away(at));
        EditPreview {
            version: own.version,
            changes: changes.shown,
            before: subject.row.timer.as_ref().and_then(|timer| timer.next_run_at).map(shown),
            after: after.map(shown),
            stays_paused,
        }
    }
}

/// How far local time is from UTC, unless its abbreviation says so.
fn offset(spec: &Spec, at: Timestamp) -> String {
    let info = spec.zone().as_jiff().to_offset_info(at);
    let is_said = info.abbreviation().starts_with(['+', '-']) || info.abbreviation() == "UTC";
    if is_said { String::new() } else { at.to_zoned(spec.zone().as_jiff().clone()).strftime("%:z").to_string() }
}

/// Returns the definition of a form without errors.
fn definition(form: &RequestBody, now: Timestamp) -> Option<Definition> {
    let read = form.body.read();
    declared(&read.draft, now).ok().filter(|_| read.faults.is_empty())
}

/// Returns a definition that has nothing of a form but its schedule, regardless of errors in other fields.
fn timing(form: &JobForm, now: Timestamp) -> Option<Definition> {
    let is_timed = |fault: &Fault| ["/cronExpression", "/runAt"].contains(&fault.pointer.as_str());
    if form.faults.iter().any(is_timed) {
        return None;
    }
    let Draft { timing, timezone, dst, start_at, end_at, .. } = form.draft.clone();
    let target = Some("preview".to_owned());
    declared(&Draft { target, timezone, dst, start_at, end_at, ..Draft::new("preview", timing) }, now).ok()
}

/// Returns the schedule on the days that the calendars of the form allow. Unknown names are refused when the form is sent.
pub(super) async fn on_allowed_days(request: &UiRequest, draft: &Draft, spec: Spec) -> Result<Spec, Problem> {
    let rules = CalendarRules::from_names(&draft.calendars.clone().unwrap_or_default()).unwrap_or_default();
    if rules.is_empty() || spec.expression().is_none() {
        return Ok(spec);
    }
    let current = request.app.bell.calendars().list().await?;
    let current: Vec<_> = current.into_iter().map(|stored| stored.calendar).collect();
    Ok(match rules.resolved(&current) {
        Ok(rules) => spec.with_calendars(&rules),
        Err(_) => spec,
    })
}

/// Returns all errors of a form. Most fields are named after members of the request body.
pub(super) async fn faults(
    request: &UiRequest,
    form: &RequestBody,
    subject: Option<&Subject>,
) -> Result<Vec<Fault>, Problem> {
    let read = form.body.read();
    let mut all = form.faults.clone();
    if form.body.target().is_none() {
        all.push(Fault::new("/target", FaultCode::Required, "choose a target"));
    }
    all.extend(read.faults.into_iter().filter(|fault| fault.pointer != "/cronExpression" || !form.lacks_time()));
    if let Some(target) = form.body.target() {
        match request.jobs().check_target(target).await {
            Err(StoreError::Invalid(invalid)) => {
                all.push(Fault::new("/target", FaultCode::UnknownTarget, invalid.reason));
            }
            answer => {
                answer?;
            }
        }
    }
    if let (Some(key), None) = (form.body.job_key().and_then(|key| JobKey::new(key).ok()), subject) {
        match request.jobs().get(JobRef::Key(key)).await {
            Ok(row) if row.job.state.status != JobStatus::Retired => {
                all.push(Fault::new("/jobKey", FaultCode::Taken, "a job with this key already exists"));
            }
            Ok(_) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|fault| seen.insert(fault.pointer.clone()));
    Ok(all)
}
