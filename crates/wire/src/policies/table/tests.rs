//! The table against the fields and the defaults.

use serde_json::{Value, json};

use super::*;
use crate::form::{Field, Kind, iso, parse_span};
use crate::policies::Policies;
use crate::policies::fields::FIELDS;
use crate::policies::policy::at;

fn leaves(path: &str, fields: &[Field], all: &mut Vec<(String, Kind)>) {
    for field in fields {
        let path = format!("{path}.{}", field.name);
        match field.kind {
            Kind::Object(inner) | Kind::Component(_, inner) => leaves(&path, inner, all),
            kind => all.push((path, kind)),
        }
    }
}

#[test]
fn table_lists_every_field_with_its_values() {
    let mut fields = Vec::new();
    leaves("policies", FIELDS, &mut fields);
    assert_eq!(fields.len(), POLICIES.len());
    for (path, kind) in fields {
        let policy = POLICIES.iter().find(|policy| policy.path == path).unwrap_or_else(|| panic!("{path}"));
        match (policy.kind, kind) {
            (PolicyKind::Words(_), Kind::Word(words)) => assert_eq!(policy.words().collect::<Vec<_>>(), words),
            (PolicyKind::Number { min, max }, Kind::Integer { min: least, max: greatest }) => {
                assert_eq!((min, max), (least, greatest), "{path}");
            }
            (PolicyKind::Duration, Kind::Span)
            | (PolicyKind::JobKey, Kind::Text { .. })
            | (PolicyKind::Names, Kind::List { .. }) => {}
            (own, other) => panic!("{path} is {own:?} in the table and {other:?} in the form"),
        }
    }
}

#[test]
fn usual_values_are_the_defaults() {
    let defaults = json!({ "policies": Policies::default() });
    for policy in POLICIES {
        let usual = match (policy.kind, policy.usual) {
            (PolicyKind::Words(words), usual) => {
                assert_eq!(words[0].0, usual, "{}", policy.path);
                if usual.is_empty() { Value::Null } else { json!(usual) }
            }
            (PolicyKind::Number { .. }, "never") | (PolicyKind::Duration, "any age" | "") | (PolicyKind::JobKey, _) => {
                Value::Null
            }
            (PolicyKind::Names, _) => json!([]),
            (PolicyKind::Number { .. }, usual) => json!(usual.parse::<u32>().unwrap()),
            (PolicyKind::Duration, "none") => json!("PT0S"),
            (PolicyKind::Duration, usual) => json!(iso(parse_span(usual).unwrap())),
        };
        assert_eq!(at(&defaults, policy.path), &usual, "{}", policy.path);
    }
}

#[test]
fn groups_hold_every_policy() {
    assert!(POLICIES.iter().all(|policy| GROUPS.contains(&policy.group)));
}
