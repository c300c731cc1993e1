//! [`RequestBody`]: the request body that a form produces.

use std::collections::BTreeMap;

use everbell_core::Zone;
use everbell_core::after::After;
use serde_json::{Value, json};

use super::draft::Draft;
use super::simple;
use everbell_wire::FaultCode;
use everbell_wire::JobBody;
use everbell_wire::crontab::{self, Entry};
use everbell_wire::form::{self, Fault, typed};
use everbell_wire::policies::{POLICIES, Policy, PolicyKind};

/// A request body, and the errors of the form itself.
pub(crate) struct RequestBody {
    pub(crate) body: JobBody,
    /// At the names of the fields.
    pub(crate) faults: Vec<Fault>,
    /// The crontab line that the schedule was taken from.
    pub(crate) line: Option<Entry>,
}

impl RequestBody {
    pub(crate) fn new(draft: &Draft) -> RequestBody {
        let mut all = RequestBody { body: JobBody::default(), faults: Vec::new(), line: None };
        for name in ["jobKey", "timezone", "description", "startAt", "endAt"] {
            if let Some(text) = draft.filled(name) {
                all.body.put(name, text);
            }
        }
        if draft.is("scope", "per_org") {
            all.body.put("scope", "per_org");
        }
        if let Some(target) = draft.filled("target").or_else(|| draft.filled("anotherTarget")) {
            all.body.put("target", target);
        }
        all.payload(draft);
        all.labels(draft);
        all.policies(draft);
        if draft.is("scheduleType", "one_time") {
            all.once(draft);
        } else if draft.is("scheduleType", "after") {
            all.following(draft);
        } else {
            all.body.put("scheduleType", "recurring");
            all.recurring(draft);
        }
        all
    }

    /// Whether a fault already explains the missing expression.
    pub(crate) fn lacks_time(&self) -> bool {
        self.faults.iter().any(|fault| !["/payload", "/labels"].contains(&fault.pointer.as_str()))
    }

    fn refuse(&mut self, name: &str, text: impl Into<String>) {
        self.faults.push(Fault::new(format!("/{name}"), FaultCode::Invalid, text));
    }

    fn recurring(&mut self, draft: &Draft) {
        match draft.text("how") {
            "cron" => {
                if let Some(text) = draft.filled("cronExpression") {
                    self.body.put("cronExpression", text);
                }
            }
            "crontab" => self.crontab(draft),
            _ => match simple::expression(draft) {
                Ok(expression) => self.body.put("cronExpression", expression),
                Err((name, text)) => self.refuse(name, text),
            },
        }
    }

    /// A line of a crontab says when, and its command says the rest where the form is silent.
    fn crontab(&mut self, draft: &Draft) {
        let zone = draft.filled("timezone").and_then(|name| Zone::get(name).ok()).unwrap_or_else(Zone::utc);
        let line = crontab::read(draft.text("line"), &zone, false).into_iter().next();
        let entry = match line.map(|line| line.entry.ok_or(line.detail)) {
            Some(Ok(entry)) => entry,
            Some(Err(why)) => return self.refuse("line", why),
            None => return self.refuse("line", "enter a line, such as `30 2 * * * /usr/bin/backup`"),
        };
        self.body.put("cronExpression", entry.expression.as_str());
        for (name, text) in [("jobKey", &entry.key), ("description", &entry.command)] {
            if !self.body.members.contains_key(name) {
                self.body.put(name, text.as_str());
            }
        }
        if self.body.payload.is_none() && draft.filled("payload").is_none() {
            self.body.payload = serde_json::value::to_raw_value(&entry.payload()).ok();
        }
        self.line = Some(entry);
    }

    /// A time on the wall; with its offset in the zone where it happens twice.
    fn once(&mut self, draft: &Draft) {
        self.body.put("scheduleType", "one_time");
        let Some(time) = draft.filled("runAt") else { return };
        let zone = draft.filled("timezone").unwrap_or("UTC");
        let time = match draft.filled("offset") {
            Some(offset) => format!("{time}{offset}[{zone}]"),
            None => time.to_owned(),
        };
        self.body.put("runAt", time);
    }

    /// A job before this one.
    fn following(&mut self, draft: &Draft) {
        self.body.put("scheduleType", "after");
        let Some(job) = draft.filled("afterJob") else { return };
        let on = draft.filled("afterOn").unwrap_or("success");
        let first = json!({ "job": job, "on": on, "manual": draft.is("afterManual", "yes") });
        let others = draft.text("afterOthers").lines().map(str::trim).filter(|line| !line.is_empty());
        let others: Vec<Value> = others.map(other_parent).collect();
        if others.is_empty() {
            self.body.put("after", first);
            return;
        }
        self.body.put("after", std::iter::once(first).chain(others).collect::<Vec<_>>());
        self.body.put("afterGroup", draft.filled("afterGroup").unwrap_or("slot"));
        if let Some(within) = draft.filled("afterWithin") {
            self.body.put("afterWithin", within);
        }
    }

    fn payload(&mut self, draft: &Draft) {
        let Some(text) = draft.filled("payload") else { return };
        match serde_json::from_str(text) {
            Ok(payload) => self.body.payload = Some(payload),
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                let why = error.to_string().replace(&format!(" at line {line} column {column}"), "");
                self.refuse("payload", format!("is not JSON: line {line}, column {column}: {why}"));
            }
        }
    }

    fn labels(&mut self, draft: &Draft) {
        let mut labels = BTreeMap::new();
        for (n, line) in draft.text("labels").lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let Some((name, value)) = line.split_once('=') else {
                return self.refuse("labels", format!("line {}: use the format name=value", n + 1));
            };
            if labels.insert(name.trim(), value.trim()).is_some() {
                return self.refuse("labels", format!("line {}: `{}` appears twice", n + 1, name.trim()));
            }
        }
        if !labels.is_empty() {
            self.body.put("labels", json!(labels));
        }
    }

    fn policies(&mut self, draft: &Draft) {
        for policy in POLICIES {
            let name = policy.field_name();
            let Some(text) = draft.filled(&name) else { continue };
            self.body.put_policy(policy.member(), policy_value(policy, text));
        }
    }
}

/// A further job before this one: its key, and the outcome if another word follows, as in `extract any`.
fn other_parent(line: &str) -> Value {
    let named = line.rsplit_once(char::is_whitespace).and_then(|(key, outcome)| {
        let after = After::from_words(outcome, key.trim()).ok()?;
        Some(json!({ "job": after.job_key.as_str(), "on": after.on.as_str(), "manual": after.manual }))
    });
    named.unwrap_or_else(|| json!({ "job": line }))
}

/// The value of a policy as the API reads it.
pub(crate) fn policy_value(policy: &Policy, text: &str) -> Value {
    match policy.kind {
        PolicyKind::Number { .. } => typed(text, &form::Kind::Integer { min: i64::MIN, max: i64::MAX }),
        PolicyKind::Names => json!(text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect::<Vec<_>>()),
        PolicyKind::Words(_) | PolicyKind::Duration | PolicyKind::JobKey => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_body(text: &str) -> RequestBody {
        RequestBody::new(&Draft::sent(&everbell_wire::form::pairs(text).unwrap()))
    }

    fn body(text: &str) -> String {
        let all = request_body(text);
        assert_eq!(all.faults, [], "{text}");
        serde_json::to_string(&all.body).unwrap()
    }

    #[test]
    fn fields_become_members() {
        for (sent, expected) in [
            (
                "jobKey=+a+&target=t&how=cron&cronExpression=0+9+*+*+*&timezone=Europe/Paris&description=&startAt=",
                r#"{"cronExpression":"0 9 * * *","jobKey":"a","scheduleType":"recurring","target":"t","timezone":"Europe/Paris"}"#,
            ),
            (
                "target=&anotherTarget=mine&how=cron&policies/timeout=5m&policies/retry/maxAttempts=3&policies/retry/max=&policies/dst/gap=skip",
                r#"{"policies":{"dst":{"gap":"skip"},"retry":{"maxAttempts":3},"timeout":"5m"},"scheduleType":"recurring","target":"mine"}"#,
            ),
            (
                "how=cron&cronExpression=0+8+*+*+*&scope=per_org",
                r#"{"cronExpression":"0 8 * * *","scheduleType":"recurring","scope":"per_org"}"#,
            ),
            // What is no number is left to the API, which says so.
            (
                "how=cron&policies/catchUpLimit=many",
                r#"{"policies":{"catchUpLimit":"many"},"scheduleType":"recurring"}"#,
            ),
            (
                "how=cron&labels=team%3Dops%0D%0A%0D%0Aa+%3D+b%3Dc",
                r#"{"labels":{"a":"b=c","team":"ops"},"scheduleType":"recurring"}"#,
            ),
            (
                "how=cron&payload=%7B%22n%22:+12345678901234567890.10%7D",
                r#"{"scheduleType":"recurring","payload":{"n": 12345678901234567890.10}}"#,
            ),
            (
                "scheduleType=one_time&runAt=2027-11-07T01:30&offset=-05:00&timezone=America/New_York&cronExpression=x",
                r#"{"runAt":"2027-11-07T01:30-05:00[America/New_York]","scheduleType":"one_time","timezone":"America/New_York"}"#,
            ),
            (
                "how=simple&every=daily&time=09:00&cronExpression=nonsense",
                r#"{"cronExpression":"0 9 * * *","scheduleType":"recurring"}"#,
            ),
        ] {
            assert_eq!(body(sent), expected, "{sent}");
        }
    }

    #[test]
    fn a_crontab_line_fills_in_what_is_empty() {
        let line = "how=crontab&line=30+2+*+*+1+/usr/bin/backup+--full";
        assert_eq!(
            body(line),
            r#"{"cronExpression":"30 2 * * 1","description":"/usr/bin/backup --full","jobKey":"backup-full","scheduleType":"recurring","payload":{"command":"/usr/bin/backup --full"}}"#
        );
        let own = body(&format!("{line}&jobKey=mine&description=d&payload=1"));
        assert_eq!(
            own,
            r#"{"cronExpression":"30 2 * * 1","description":"d","jobKey":"mine","scheduleType":"recurring","payload":1}"#
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_at_its_field() {
        for (sent, field, part) in [
            ("how=cron&payload=%7B%0A++a%7D", "/payload", "line 2, column 3: key must be a string"),
            ("how=cron&labels=a%3Db%0Ateam", "/labels", "line 2: use the format name=value"),
            ("how=cron&labels=a%3Db%0Aa%3Dc", "/labels", "line 2: `a` appears twice"),
            ("how=crontab&line=@reboot+x", "/line", "@reboot"),
            ("how=crontab&line=0+9+*+*+*", "/line", "the command comes after them"),
            ("how=crontab&line=", "/line", "enter a line"),
            ("how=simple&every=hourly&minute=x", "/minute", "whole number"),
        ] {
            let faults = request_body(sent).faults;
            let is_told = matches!(&faults[..], [one] if one.pointer == field && one.detail.contains(part));
            assert!(is_told, "{sent}: {faults:?}");
        }
    }
}
