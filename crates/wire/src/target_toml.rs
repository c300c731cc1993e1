//! Targets as `[[target]]` blocks of a configuration file, without their secrets.

use serde_json::{Value, json};

use crate::body::target::{HIDDEN, LOG_TARGET, target_fields, without_credentials};
use crate::form::{Kind, Naming};
use crate::job_toml;

/// Writes a `[[target]]` block. References to secrets are written as they are, and other secrets as [`HIDDEN`], but for URLs,
/// of which only credentials and parameters are hidden.
pub fn block(value: &Value, naming: Naming) -> String {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let mut lines = vec!["[[target]]".to_owned()];
    for field in target_fields(kind).unwrap_or(&LOG_TARGET[..2]) {
        let Some(given) = value.get(&*naming.spell(field.name)).filter(|given| !given.is_null()) else { continue };
        let shown = match (field.name, given) {
            ("url", Value::String(url)) => json!(without_credentials(url)),
            _ => without_secrets(given, &field.kind),
        };
        // What the format has no word for is left out: a block that can be read has nothing of that kind.
        lines.extend(job_toml::line(&Naming::Snake.spell(field.name), &shown));
    }
    if lines.iter().any(|line| line.contains(HIDDEN)) {
        let hint = "# Replace \"(hidden)\" by a reference: { env = \"NAME\" } or { file = \"PATH\" }.";
        lines.insert(0, hint.to_owned());
    }
    format!("{}\n", lines.join("\n"))
}

fn without_secrets(value: &Value, kind: &Kind) -> Value {
    match (kind, value) {
        (Kind::Secret, Value::String(_)) => json!(HIDDEN),
        (Kind::List { of, .. }, Value::Array(items)) => items.iter().map(|item| without_secrets(item, of)).collect(),
        (Kind::Map(of), Value::Object(members)) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), without_secrets(value, of))).collect())
        }
        (_, value) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_references_and_hide_secrets() {
        let http = json!({
            "label": "hook", "type": "http", "url": "https://u:CANARY@h.example:8443/a/b?key=CANARY",
            "headers": { "X-Plain": "CANARY", "Authorization": { "env": "HOOK" } }, "signing_keys": ["CANARY", { "file": "k" }],
            "success": ["200-299", 304], "allow_private": false,
        });
        let text = block(&http, Naming::Snake);
        assert!(!text.contains("CANARY"), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# Replace"), "{text}");
        for line in [
            "[[target]]",
            "label = \"hook\"",
            "url = \"https://(hidden)@h.example:8443/a/b?(hidden)\"",
            "headers = { Authorization = { env = \"HOOK\" }, X-Plain = \"(hidden)\" }",
            "signing_keys = [\"(hidden)\", { file = \"k\" }]",
            "success = [\"200-299\", 304]",
            "allow_private = false",
        ] {
            assert!(lines.contains(&line), "{line} is missing in\n{text}");
        }
        let command = json!({ "label": "b", "type": "command", "argv": ["/bin/b", "-a"], "passEnv": ["HOME2"] });
        let text = block(&command, Naming::Camel);
        assert_eq!(
            text,
            "[[target]]\nlabel = \"b\"\ntype = \"command\"\nargv = [\"/bin/b\", \"-a\"]\npass_env = [\"HOME2\"]\n"
        );
    }
}
