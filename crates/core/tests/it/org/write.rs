//! Orgs as somebody wants them written.

use everbell_core::org::{OrgWrite, OverrideWrite, Written, deleted, override_of, written};
use everbell_core::{JobKey, Json, OrgId};
use jiff::Timestamp;

fn at(text: &str) -> Timestamp {
    format!("2026-11-15T{text}:00Z").parse().unwrap()
}

fn acme() -> OrgWrite {
    OrgWrite::new(OrgId::new("acme").unwrap())
}

fn in_zone(zone: &str) -> OrgWrite {
    OrgWrite { timezone: Some(zone.to_owned()), ..acme() }
}

fn made(zone: &str) -> everbell_core::org::Org {
    match written(None, &in_zone(zone), "ana", at("08:00")).unwrap() {
        Written::New(org, true) => *org,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_org_needs_a_zone_and_nothing_else() {
    let org = made("europe/paris");
    assert_eq!((org.place.timezone.as_str(), org.place.enabled, org.revision), ("Europe/Paris", true, 1));
    assert_eq!((org.name.as_str(), org.settings), ("", Json::empty()));
    assert_eq!(org.place.moved, None);
    let refused = written(None, &acme(), "ana", at("08:00")).unwrap_err();
    assert_eq!(refused.field, "timezone");
}

#[test]
fn a_zone_that_is_none_is_refused_with_names_that_are_near() {
    let refused = written(None, &in_zone("Europe/Pari"), "ana", at("08:00")).unwrap_err();
    assert_eq!(refused.field, "timezone");
    assert!(refused.reason.contains("`Europe/Paris`"), "{refused}");
}

#[test]
fn what_is_left_out_keeps_its_value() {
    let named = OrgWrite { name: Some("Acme".to_owned()), ..acme() };
    let Ok(Written::New(org, false)) = written(Some(&made("UTC")), &named, "bo", at("09:00")) else { panic!() };
    assert_eq!((org.name.as_str(), org.place.timezone.as_str(), org.revision), ("Acme", "UTC", 2));
    assert_eq!((org.updated_by.as_str(), org.updated_at, org.created_at), ("bo", at("09:00"), at("08:00")));
    assert_eq!(org.place.changed_at, at("08:00"), "no timer cares about a name");
}

#[test]
fn nothing_new_is_nothing() {
    assert_eq!(written(Some(&made("UTC")), &in_zone("utc"), "bo", at("09:00")), Ok(Written::Same));
}

#[test]
fn a_move_remembers_where_from() {
    let Ok(Written::New(org, true)) = written(Some(&made("UTC")), &in_zone("Asia/Tokyo"), "bo", at("09:00")) else {
        panic!()
    };
    let moved = org.place.moved.unwrap();
    assert_eq!((moved.from.as_str(), moved.at, org.place.changed_at), ("UTC", at("09:00"), at("09:00")));
}

#[test]
fn who_was_deleted_begins_anew() {
    let gone = deleted(&made("UTC"), "ana", at("09:00"));
    assert!(gone.place.deleted && !gone.place.enabled);
    assert!(written(Some(&gone), &acme(), "ana", at("10:00")).is_err(), "a new org needs a zone");
    let Ok(Written::New(org, true)) = written(Some(&gone), &in_zone("Asia/Tokyo"), "ana", at("10:00")) else {
        panic!()
    };
    assert!(!org.place.deleted && org.place.enabled);
    assert_eq!((org.place.moved, org.created_at, org.revision), (None, at("10:00"), 3));
}

#[test]
fn names_and_settings_are_bounded() {
    let field = |write: OrgWrite| written(Some(&made("UTC")), &write, "ana", at("09:00")).unwrap_err().field;
    assert_eq!(field(OrgWrite { name: Some("x".repeat(201)), ..acme() }), "name");
    assert_eq!(field(OrgWrite { name: Some("a\nb".to_owned()), ..acme() }), "name");
    let settings = |text: &str| OrgWrite { settings: Some(Json::parse("settings", text).unwrap()), ..acme() };
    assert_eq!(field(settings("[]")), "settings");
    assert_eq!(field(settings(&format!(r#"{{"a":"{}"}}"#, "x".repeat(70_000)))), "settings");
}

#[test]
fn an_override_is_an_expression_that_can_be_read() {
    let override_write = |expression: &str| OverrideWrite {
        job_key: JobKey::new("brief").unwrap(),
        enabled: true,
        expression: Some(expression.to_owned()),
    };
    let written = override_of(&override_write(" 30 7 * * * "), "ana", at("09:00")).unwrap();
    assert_eq!(written.expression.as_deref(), Some("30 7 * * *"));
    assert_eq!(override_of(&override_write("0 25 * * *"), "ana", at("09:00")).unwrap_err().field, "cronExpression");
}
