//! The dashboard and the alerts that are shipped use metrics that are exported.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::metrics::catalog::{ALL, Kind};

fn shipped(path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every word that looks like a metric.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("everbell_")).collect()
}

fn exported() -> BTreeSet<String> {
    let names = ALL.iter().flat_map(|metric| match metric.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", metric.name)).to_vec(),
        _ => vec![metric.name.to_owned()],
    });
    names.collect()
}

#[test]
fn names_follow_the_rules_of_prometheus_and_are_unique() {
    let names: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), ALL.len());
    for metric in ALL {
        let name = metric.name;
        assert_eq!(metric.kind == Kind::Counter, name.ends_with("_total"), "{name}");
        assert!(metric.kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        assert!(metric.help.ends_with('.') && !metric.help.contains(['\\', '\n']), "{name}: {}", metric.help);
    }
}

#[test]
fn the_dashboard_shows_metrics_that_are_exported() {
    let text = shipped("grafana/everbell.json");
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let used = metrics_in(&text);
    let unknown: Vec<_> = used.iter().filter(|name| !exported().contains(**name)).collect();
    assert!(unknown.is_empty() && used.len() > 10, "not exported: {unknown:?}");
    let panels = dashboard["panels"].as_array().unwrap();
    let titles = |kind: &str| -> Vec<&str> {
        let of = panels.iter().filter(|panel| (panel["type"] == "row") == (kind == "row"));
        of.map(|panel| panel["title"].as_str().unwrap()).collect()
    };
    assert_eq!(titles("row"), ["Health", "Lag", "Failures by target", "Backlog"]);
    let ids: BTreeSet<i64> = panels.iter().map(|panel| panel["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let asked = panel["targets"].as_array().is_some_and(|targets| !targets.is_empty());
        assert!(asked && panel["gridPos"]["w"].is_u64(), "{}", panel["title"]);
    }
}

#[test]
fn the_alerts_watch_metrics_that_are_exported() {
    let text = shipped("ops/alerts.yml");
    let used = metrics_in(&text);
    let unknown: Vec<_> = used.iter().filter(|name| !exported().contains(**name)).collect();
    assert!(unknown.is_empty() && used.len() > 5, "not exported: {unknown:?}");
    assert!(!text.contains('\t'), "YAML knows no tabs");
    let count = |word: &str| text.lines().filter(|line| line.trim_start().starts_with(word)).count();
    let alerts = count("- alert:");
    assert!(alerts >= 6, "only {alerts} alerts");
    for word in ["expr:", "severity:", "summary:", "description:"] {
        assert_eq!(count(word), alerts, "each alert has one `{word}`");
    }
}

/// Runs Prometheus's own tool, where it is installed.
#[test]
fn promtool_accepts_the_alerts_if_it_is_installed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/alerts.yml");
    if let Ok(said) = Command::new("promtool").arg("check").arg("rules").arg(file).output() {
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
}
