//! [`Page`]: a reader of the text format, as strict as Prometheus's own.

use std::collections::{BTreeMap, BTreeSet};

use crate::metrics::catalog::{ALL, Kind};

/// Every sample, by `name{label=value,…}` without quotes.
#[derive(Debug)]
pub(super) struct Page(BTreeMap<String, f64>);

impl Page {
    /// Fails the test if anything is not as it must be.
    pub(super) fn parse(text: &str) -> Page {
        assert!(text.ends_with('\n'), "the last line ends, too");
        let mut samples = BTreeMap::new();
        let (mut helped, mut current) = (None, None);
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
                assert!(!help.is_empty() && !help.contains('\\'), "{line}");
                helped = Some(name.to_owned());
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("no type: {line}"));
                assert_eq!(helped.as_deref(), Some(name), "help comes first, then the type");
                assert!(seen.insert(name.to_owned()), "{name} is there twice");
                let known = ALL.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("unknown: {line}"));
                assert_eq!(known.kind.as_str(), kind);
                current = Some(*known);
            } else {
                let what = current.unwrap_or_else(|| panic!("a sample of nothing: {line}"));
                let (name, labels, value) = sample(line);
                let bare = match what.kind {
                    Kind::Histogram => ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)),
                    _ => Some(name),
                };
                assert_eq!(bare, Some(what.name), "{line}");
                let mut names: Vec<&str> = labels.iter().map(|(name, _)| name.as_str()).collect();
                names.retain(|label| *label != "le");
                assert_eq!(names, what.labels, "{line}");
                let words: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let id = if words.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", words.join(",")) };
                assert_eq!(samples.insert(id, value), None, "{line} is there twice");
            }
        }
        let page = Page(samples);
        page.check_histograms();
        page
    }

    pub(super) fn value(&self, id: &str) -> Option<f64> {
        self.0.get(id).copied()
    }

    /// The samples of a metric.
    pub(super) fn samples_of(&self, name: &str) -> Vec<(String, f64)> {
        let of = |id: &&String| id.split('{').next() == Some(name);
        self.0.keys().filter(of).map(|id| (id.clone(), self.0[id])).collect()
    }

    /// Buckets grow, and the last one has everything.
    fn check_histograms(&self) {
        for (id, total) in self.0.iter().filter(|(id, _)| id.contains("le=+Inf")) {
            let same = |other: &str| without_bound(other) == without_bound(id);
            let mut buckets: Vec<(f64, f64)> =
                self.0.iter().filter(|(id, _)| same(id)).map(|(id, value)| (bound(id), *value)).collect();
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.len() > 1 && buckets.is_sorted_by(|a, b| a.1 <= b.1), "{id}: {buckets:?}");
            let count = without_bound(id).unwrap().replace("_bucket", "_count");
            assert_eq!(self.value(count.trim_end_matches("{}")), Some(*total), "{count}");
        }
    }
}

fn without_bound(id: &str) -> Option<String> {
    let at = id.find(",le=").or_else(|| id.find("le="))?;
    Some(format!("{}}}", &id[..at]))
}

fn bound(id: &str) -> f64 {
    let text = id.rsplit("le=").next().unwrap().trim_end_matches('}');
    text.parse().unwrap_or_else(|_| panic!("{id}"))
}

/// `name{label="value",…} number`.
fn sample(line: &str) -> (&str, Vec<(String, String)>, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, behind) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
            assert!(label.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
            let (value, behind) = quoted(behind, line);
            labels.push((label.to_owned(), value));
            rest = behind.strip_prefix(',').unwrap_or(behind);
        }
        rest = &rest[1..];
    }
    let number = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no value: {line}"));
    (name, labels, number.parse().unwrap_or_else(|_| panic!("no number: {line}")))
}

/// The text up to the closing quote, and what is behind it.
fn quoted<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => match letters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, letter @ ('\\' | '"'))) => value.push(letter),
                other => panic!("a backslash before {other:?}: {line}"),
            },
            letter => value.push(letter),
        }
    }
    panic!("a label without an end: {line}");
}
