//! The effective configuration, without its secrets.

use std::time::Duration;

use jiff::SignedDuration;
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::calendars::CALENDAR;
use super::fields::{SECTIONS, TEMPLATE, target_fields};
use super::layers::{Layers, Origin, pointer};
use super::notify_fields::{RULE, notify_fields};
use super::settings::Settings;
use everbell_wire::body::job;
use everbell_wire::form::{Field, Kind, Naming, escape};

/// The placeholder of a secret.
const HIDDEN: &str = "(hidden)";

/// A value that may be shown, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    /// Such as `server.listen` or `job "daily": timezone`.
    pub(crate) key: String,
    /// `null` if it is not set.
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// Every key of every section, then what the blocks say.
pub(super) fn all(layers: &Layers, settings: &Settings) -> Vec<Shown> {
    let mut shown = Vec::new();
    for section in SECTIONS {
        let Kind::Object(fields) = section.kind else { continue };
        for field in fields {
            let at = pointer(&format!("{}.{}", section.name, field.name));
            let value = layers.merged.pointer(&at).unwrap_or(&Value::Null);
            let value = match at.as_str() {
                "/database/url" if !value.is_null() => json!(without_password(settings.database.reveal())),
                "/engine/heartbeat" if value.is_null() => json!(span(settings.engine.lease.heartbeat)),
                _ => without_secrets(value, &field.kind),
            };
            let origin = layers.origin_if_set(&at).unwrap_or(Origin::Default);
            shown.push(Shown { key: at[1..].replace('/', "."), value, origin });
        }
    }
    for kind in ["target", "job", "calendar", "notify", "rule", "template"] {
        let blocks = layers.document.value.get(kind).and_then(Value::as_array);
        for (n, block) in blocks.into_iter().flatten().enumerate() {
            let fields = match block.get("type").and_then(Value::as_str) {
                Some(word) if kind == "target" => target_fields(word).unwrap_or_default(),
                Some(word) if kind == "notify" => notify_fields(word).unwrap_or_default(),
                _ if kind == "template" => TEMPLATE,
                _ if kind == "rule" => RULE,
                _ if kind == "calendar" => CALENDAR,
                _ => job::JOB,
            };
            members(layers, block, fields, &format!("/{kind}/{n}"), &mut shown);
        }
    }
    shown
}

fn members(layers: &Layers, value: &Value, fields: &[Field], at: &str, shown: &mut Vec<Shown>) {
    for field in fields {
        let name = Naming::Snake.spell(field.name);
        let at = format!("{at}/{name}");
        let Some(value) = value.get(&*name) else { continue };
        match (&field.kind, value) {
            (Kind::Object(fields) | Kind::Component(_, fields), value) => members(layers, value, fields, &at, shown),
            (Kind::ComponentOrList { fields, .. }, Value::Object(_)) => members(layers, value, fields, &at, shown),
            (Kind::Map(of), Value::Object(members)) => {
                for (name, value) in members {
                    push(layers, &format!("{at}/{}", escape(name)), without_secrets(value, of), shown);
                }
            }
            // An address is more than its secrets: the host is worth knowing.
            (Kind::Secret, Value::String(url)) if field.name == "url" => {
                push(layers, &at, json!(callable(url)), shown);
            }
            (kind, value) => push(layers, &at, without_secrets(value, kind), shown),
        }
    }
}

fn push(layers: &Layers, at: &str, value: Value, shown: &mut Vec<Shown>) {
    shown.push(Shown { key: layers.document.key(at), value, origin: layers.origin(at) });
}

fn without_secrets(value: &Value, kind: &Kind) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        (Kind::Secret, _) => json!(HIDDEN),
        (Kind::List { of, .. }, Value::Array(items)) => items.iter().map(|item| without_secrets(item, of)).collect(),
        (Kind::Map(of), Value::Object(members)) => {
            let hidden = members.iter().map(|(name, value)| (name.clone(), without_secrets(value, of)));
            Value::Object(hidden.collect::<Map<_, _>>())
        }
        (_, value) => value.clone(),
    }
}

/// A duration as people write it: `5s`.
fn span(time: Duration) -> String {
    SignedDuration::try_from(time).map_or_else(|_| format!("{}s", time.as_secs()), |time| format!("{time:#}"))
}

/// Parameters of the address of a database whose values are no secrets.
const HARMLESS: [&str; 13] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "max_connections",
    "pooler",
    "port",
    "schema",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "target_session_attrs",
    "user",
];

/// The address of a database with its password hidden. In doubt, all of it is.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| scheme.starts_with("postgres")) else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, more) = rest.split_at(end);
    // A password may contain a slash that should have been escaped.
    if more.contains('@') {
        return format!("{scheme}://{HIDDEN}");
    }
    let (user, host) = match authority.rsplit_once('@') {
        Some((who, host)) => match who.split_once(':') {
            Some((user, _)) => (format!("{user}:{HIDDEN}@"), host),
            None => (format!("{who}@"), host),
        },
        None => (String::new(), authority),
    };
    // `user:password` without a host looks like a host with a port.
    let host = match host.rsplit_once(':') {
        Some((host, port)) if !port.bytes().all(|byte| byte.is_ascii_digit()) && !port.ends_with(']') => {
            format!("{host}:{HIDDEN}")
        }
        _ => host.to_owned(),
    };
    let more = match more.split_once('?') {
        Some((path, query)) => format!("{path}?{}", without_values(query)),
        None => more.to_owned(),
    };
    format!("{scheme}://{user}{host}{more}")
}

fn without_values(query: &str) -> String {
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if !HARMLESS.contains(&name) => format!("{name}={HIDDEN}"),
        _ => pair.to_owned(),
    };
    query.split('&').map(pair).collect::<Vec<_>>().join("&")
}

/// Scheme and host of what is called. Paths and parameters of webhooks are often as good as passwords.
pub(crate) fn callable(url: &str) -> String {
    // Read as the call reads it: a host that was cut out by hand may be another one.
    let Some(url) = Url::parse(url).ok().filter(Url::has_host) else { return HIDDEN.to_owned() };
    let more = if url.path() == "/" && url.query().is_none() { "" } else { "/…" };
    format!("{}{more}", url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_databases_are_hidden() {
        for (url, shown) in [
            ("sqlite:everbell-data/everbell.db", "sqlite:everbell-data/everbell.db"),
            ("sqlite::memory:", "sqlite::memory:"),
            ("postgres://h/d", "postgres://h/d"),
            ("postgres://u@h:5432/d", "postgres://u@h:5432/d"),
            ("postgresql://u:secret@h/d", "postgresql://u:(hidden)@h/d"),
            ("postgres://u:se:c@ret@h:5432/d?sslmode=require", "postgres://u:(hidden)@h:5432/d?sslmode=require"),
            ("postgres://u:sec/ret@h/d", "postgres://(hidden)"),
            ("postgres://u:sec?ret@h/d", "postgres://(hidden)"),
            ("postgres://u:@h/d", "postgres://u:(hidden)@h/d"),
            ("postgres:///d?host=/run&user=u&password=secret", "postgres:///d?host=/run&user=u&password=(hidden)"),
            ("postgres://h/d?p%61ssword=secret", "postgres://h/d?p%61ssword=(hidden)"),
            ("postgres://h:5432/d?password=se@cret", "postgres://(hidden)"),
            ("postgres://u:secret", "postgres://u:(hidden)"),
            ("postgres://u:secret/d", "postgres://u:(hidden)/d"),
            ("postgres://[::1]:5432/d", "postgres://[::1]:5432/d"),
            ("postgres://[::1]/d", "postgres://[::1]/d"),
            ("postgres://u:secret@h/d?schema=jobs", "postgres://u:(hidden)@h/d?schema=jobs"),
        ] {
            assert_eq!(without_password(url), shown, "{url}");
        }
    }

    #[test]
    fn only_the_host_of_a_call_is_shown() {
        for (url, shown) in [
            ("https://hooks.example.com/T000/secret", "https://hooks.example.com/…"),
            ("https://u:secret@example.com:8443/", "https://example.com:8443"),
            ("http://localhost:9000", "http://localhost:9000"),
            ("https://example.com?key=secret", "https://example.com/…"),
            ("http://127.0.0.1:7741\\@trusted.example/", "http://127.0.0.1:7741/…"),
            ("http://trusted.example@127.0.0.1/", "http://127.0.0.1"),
            ("secret", "(hidden)"),
        ] {
            assert_eq!(callable(url), shown, "{url}");
        }
    }
}
