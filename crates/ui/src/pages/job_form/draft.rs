//! [`Draft`]: what a form says, as text under the names of its fields.

use std::time::Duration;

use everbell_core::after::After;
use everbell_core::fan_in::FanIn;
use everbell_core::{Definition, When, Zone};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use everbell_wire::form::parse_span;
use everbell_wire::job_body::{body, essential};
use everbell_wire::policies::{POLICIES, PolicyKind};

/// The submitted texts of a form, by field name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft(Vec<(String, String)>);

impl Draft {
    /// An empty form with default values.
    pub(crate) fn blank(zone: &Zone, target: Option<&str>) -> Draft {
        let mut draft = Draft::default();
        for (name, value) in [
            ("scheduleType", "recurring"),
            ("scope", "global"),
            ("how", "simple"),
            ("every", "daily"),
            ("time", "09:00"),
            ("minutes", "15"),
            ("minute", "0"),
            ("days", "1"),
            ("date", "1"),
            ("timezone", zone.name()),
            ("target", target.unwrap_or_default()),
        ] {
            draft.set(name, value);
        }
        draft
    }

    /// Reads the submitted fields, with line endings normalized to `\n`.
    pub(crate) fn sent(pairs: &[(String, String)]) -> Draft {
        let ours =
            pairs.iter().filter(|(name, _)| !["csrf", "once", "version", "revision", "do"].contains(&name.as_str()));
        Draft(ours.map(|(name, value)| (name.clone(), value.replace("\r\n", "\n"))).collect())
    }

    /// Fills the form from a definition. Default values stay empty.
    pub(crate) fn from_definition(own: &Definition, now: Timestamp) -> Draft {
        let mut draft = Draft::blank(&Zone::utc(), None);
        // A schedule that cannot be read is shown as it is stored.
        let document = essential(own, now).unwrap_or_else(|_| body(own));
        let text = |path: &str| at(&document, path).map(plain).unwrap_or_default();
        for name in ["jobKey", "target", "description", "cronExpression"] {
            draft.set(name, &text(name));
        }
        draft.set("how", "cron");
        draft.set("scope", own.scope.as_str());
        for policy in POLICIES {
            let name = policy.field_name();
            let value = text(&name);
            let span = parse_span(&value).ok().filter(|_| matches!(policy.kind, PolicyKind::Duration));
            draft.set(&name, &span.map_or(value, friendly));
        }
        let labels: Vec<String> = own.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        draft.set("labels", &labels.join("\n"));
        draft.set("payload", if is_default(&own.payload) { "" } else { own.payload.as_str() });
        match &own.spec {
            Ok(spec) => {
                let zone = spec.zone();
                draft.set("timezone", zone.name());
                draft.set("startAt", &spec.start_at().map(|at| local(at, zone)).unwrap_or_default());
                draft.set("endAt", &spec.end_at().map(|at| local(at, zone)).unwrap_or_default());
                match spec.when() {
                    When::Once(at) => draft.once(*at, zone),
                    When::After(after) => draft.following(after),
                    When::AfterAll(fan_in) => draft.following_all(fan_in),
                    When::Cron(_) | When::Every { .. } => {}
                }
            }
            Err(broken) => draft.set("timezone", &broken.timezone),
        }
        draft
    }

    fn following(&mut self, after: &After) {
        self.set("scheduleType", "after");
        self.set("afterJob", after.job_key.as_str());
        self.set("afterOn", after.on.as_str());
        self.set("afterManual", if after.manual { "yes" } else { "" });
    }

    /// The first job as a single one, and a line for each other one.
    fn following_all(&mut self, fan_in: &FanIn) {
        let Some((first, others)) = fan_in.parents.split_first() else { return };
        self.following(first);
        let line = |after: &After| format!("{} {}", after.job_key, after.outcome());
        self.set("afterOthers", &others.iter().map(line).collect::<Vec<_>>().join("\n"));
        self.set("afterGroup", fan_in.group.as_str());
        self.set("afterWithin", &friendly(fan_in.within));
    }

    fn once(&mut self, at: Timestamp, zone: &Zone) {
        let there = at.to_zoned(zone.as_jiff().clone());
        self.set("scheduleType", "one_time");
        self.set("runAt", &there.strftime("%Y-%m-%dT%H:%M:%S").to_string());
        let twice = zone.as_jiff().to_ambiguous_zoned(there.datetime()).is_ambiguous();
        self.set("offset", &if twice { there.strftime("%:z").to_string() } else { String::new() });
    }

    /// Returns the text of a field as it was typed.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
    }

    /// Returns the trimmed text of a field, or `None` if it is empty.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        Some(self.text(name).trim()).filter(|text| !text.is_empty())
    }

    /// Whether a choice is made.
    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.0.iter().any(|(own, chosen)| own == name && chosen == value)
    }

    /// Everything that was chosen of several.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Says something else.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(own, _)| own != name);
        self.0.push((name.to_owned(), value.to_owned()));
    }
}

fn at<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('/').try_fold(document, |value, name| value.get(name))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// `15m`, `1h 30m`.
fn friendly(span: Duration) -> String {
    SignedDuration::try_from(span).map_or_else(|_| format!("{}s", span.as_secs()), |signed| format!("{signed:#}"))
}

/// A time on the wall of its zone, or with its offset where that is not enough.
fn local(at: Timestamp, zone: &Zone) -> String {
    let there = at.to_zoned(zone.as_jiff().clone());
    let twice = zone.as_jiff().to_ambiguous_zoned(there.datetime()).is_ambiguous();
    let format = match (twice || there.subsec_nanosecond() != 0, there.second()) {
        (true, _) => return there.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string(),
        (false, 0) => "%Y-%m-%d %H:%M",
        (false, _) => "%Y-%m-%d %H:%M:%S",
    };
    there.strftime(format).to_string()
}

/// Whether a payload is what a job has that was created without one.
fn is_default(payload: &everbell_core::Json) -> bool {
    serde_json::from_str::<Value>(payload.as_str()).is_ok_and(|payload| payload == json!({}))
}
