//! [`AuditLine`]: an entry of the audit trail as a page shows it.

use everbell_core::Json;
use everbell_core::store::AuditEntry;
use serde_json::{Map, Value};

use super::clock::Clock;
use super::markup::{Markup, url_part};

/// A recorded action, ready to be rendered.
pub(crate) struct AuditLine {
    pub(crate) id: String,
    pub(crate) at: Markup,
    pub(crate) away: Markup,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) object: String,
    /// Where the object is shown, if it is.
    pub(crate) href: Option<String>,
    pub(crate) reason: Option<String>,
    /// The address of the client, and the id of the request.
    pub(crate) from: Option<String>,
    pub(crate) request_id: Option<String>,
    /// Name, before, after.
    pub(crate) changes: Vec<(String, String, String)>,
}

impl AuditLine {
    pub(crate) fn new(entry: &AuditEntry, clock: &Clock) -> AuditLine {
        let href = match entry.object.split_once(':') {
            Some(("job", key)) => Some(format!("/jobs/{}", url_part(key))),
            Some(("run", id)) => Some(format!("/runs/{}", url_part(id))),
            _ => None,
        };
        AuditLine {
            id: entry.id.to_string(),
            at: clock.second(entry.at, None),
            away: clock.away(entry.at),
            actor: entry.actor.clone(),
            action: entry.action.clone(),
            object: entry.object.clone(),
            href,
            reason: entry.reason.clone(),
            from: entry.origin.address.clone(),
            request_id: entry.origin.request_id.clone(),
            changes: changes(entry.before.as_ref(), entry.after.as_ref()),
        }
    }
}

/// Lists the members of either document: name, value before, value after.
fn changes(before: Option<&Json>, after: Option<&Json>) -> Vec<(String, String, String)> {
    let facts = |json: Option<&Json>| -> Map<String, Value> {
        json.and_then(|json| serde_json::from_str(json.as_str()).ok()).unwrap_or_default()
    };
    let (before, after) = (facts(before), facts(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let side = |facts: &Map<String, Value>, name: &String| facts.get(name).map(plain).unwrap_or_default();
    names.into_iter().map(|name| (name.clone(), side(&before, name), side(&after, name))).collect()
}

/// A value without the quotes of a text; nothing for what is absent.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_by_name() {
        let json = |text: &str| Json::parse("audit", text).unwrap();
        let changed =
            changes(Some(&json(r#"{"status":"active","a":1}"#)), Some(&json(r#"{"status":"paused","b":null}"#)));
        let expected = [("a", "1", ""), ("b", "", ""), ("status", "active", "paused")];
        assert_eq!(changed, expected.map(|(name, from, to)| (name.to_owned(), from.to_owned(), to.to_owned())));
    }
}
