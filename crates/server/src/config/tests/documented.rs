//! `docs/configuration.md` and `everbell.example.toml` say what the code does.

use super::super::calendars::CALENDAR;
use super::super::fields::{SECTIONS, TEMPLATE, defaults};
use super::super::notify_fields::{EMAIL, NOTIFY_COMMAND, RULE, SLACK, WEBHOOK};
use super::super::variables::VARIABLES;
use super::*;
use everbell_wire::body::job;
use everbell_wire::body::target::{COMMAND_TARGET, HTTP_TARGET, LOG_TARGET};
use everbell_wire::form::{Field, Kind as Form};

const PAGE: &str = include_str!("../../../../../docs/configuration.md");
const EXAMPLE: &str = include_str!("../../../../../everbell.example.toml");

/// The keys of all kinds of blocks.
const BLOCKS: [&[Field]; 11] = [
    LOG_TARGET,
    HTTP_TARGET,
    COMMAND_TARGET,
    job::JOB,
    CALENDAR,
    TEMPLATE,
    WEBHOOK,
    SLACK,
    EMAIL,
    NOTIFY_COMMAND,
    RULE,
];

fn snake(name: &str) -> String {
    Naming::Snake.spell(name).into_owned()
}

/// A sentence that names other keys, as the file spells them.
fn sentence(field: &Field) -> String {
    let is_key = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric()) && text.starts_with(char::is_lowercase);
    let parts = field.doc.split('`').enumerate();
    let parts = parts.map(|(n, text)| if n % 2 == 1 && is_key(text) { snake(text) } else { text.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// Describes the values that a key may have.
fn value(kind: &Form) -> String {
    match kind {
        Form::Text { .. } => "text".to_owned(),
        Form::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Form::Integer { min, max } => format!("{min} to {max}"),
        Form::Flag => "`true`, `false`".to_owned(),
        Form::Time => "time".to_owned(),
        Form::Span => "duration".to_owned(),
        Form::Json => "anything".to_owned(),
        Form::Ignored(shown) => value(shown),
        Form::Texts => "table of texts".to_owned(),
        Form::Map(of) => format!("table, each {}", value(of)),
        Form::Secret => "secret".to_owned(),
        Form::Object(_) | Form::Component(..) => "table".to_owned(),
        Form::ComponentOrList { .. } => "table, or list of tables".to_owned(),
        Form::List { of, .. } => format!("list of {}", value(of)),
        Form::ListOr { word, of, .. } => format!("`{word}`, list of {}", value(of)),
    }
}

/// The rows of the sections: key, value, default, variable, meaning.
fn section_rows() -> Vec<String> {
    let mut rows = Vec::new();
    for section in SECTIONS {
        let Form::Object(fields) = section.kind else { continue };
        for field in fields {
            let name = snake(field.name);
            let default = defaults()[section.name].get(&name).map_or_else(String::new, |value| format!("`{value}`"));
            let path = format!("{}.{}", section.name, field.name);
            let variable = VARIABLES.iter().find(|variable| variable.path == Some(&path));
            let variable = variable.map_or_else(String::new, |variable| format!("`{}`", variable.name));
            let (holds, means) = (value(&field.kind), sentence(field));
            rows.push(format!("| `{}.{name}` | {holds} | {default} | {variable} | {means} |", section.name));
        }
    }
    rows
}

/// The rows of blocks: key, value and meaning, with what is inside of them.
fn block_rows(fields: &[Field], within: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for field in fields {
        let name = format!("{within}{}", snake(field.name));
        let required = if field.required { " (required)" } else { "" };
        rows.push(format!("| `{name}`{required} | {} | {} |", value(&field.kind), sentence(field)));
        if let Form::Object(inner) | Form::Component(_, inner) = field.kind {
            rows.extend(block_rows(inner, &format!("{name}.")));
        }
    }
    rows
}

#[test]
fn every_key_is_documented_as_it_is() {
    let mut rows = section_rows();
    for fields in BLOCKS {
        rows.extend(block_rows(fields, ""));
    }
    rows.extend(VARIABLES.iter().map(|variable| format!("| `{}` | {} |", variable.name, variable.doc)));
    let missing: Vec<_> = rows.into_iter().filter(|row| !PAGE.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "these rows are not in docs/configuration.md:\n{}", missing.join("\n"));
}

#[test]
fn the_example_is_valid_and_has_every_key() {
    let config = read(EXAMPLE);
    assert_eq!(config.warnings, [""; 0]);
    let has = |name: &str| EXAMPLE.lines().any(|line| line.trim_start_matches("# ").starts_with(&format!("{name} =")));
    let inline = |name: &str| EXAMPLE.contains(&format!("{name} = ")) || EXAMPLE.contains(&format!(".{name}]"));
    for section in SECTIONS {
        let Form::Object(fields) = section.kind else { continue };
        assert!(EXAMPLE.contains(&format!("\n[{}]\n", section.name)), "[{}]", section.name);
        for name in fields.iter().map(|field| snake(field.name)) {
            // Tokens are better kept in files.
            assert!(has(&name) || name.ends_with("_token"), "{}.{name}", section.name);
        }
    }
    for fields in BLOCKS {
        for name in fields.iter().map(|field| snake(field.name)) {
            assert!(has(&name) || inline(&name), "{name}");
        }
    }
}

#[test]
fn the_example_says_the_defaults_unless_it_says_so() {
    let config = read(EXAMPLE);
    for section in SECTIONS {
        for (name, value) in defaults()[section.name].as_object().into_iter().flatten() {
            let key = format!("{}.{name}", section.name);
            let (said, origin) = shown(&config, &key);
            assert!(said == value && origin.starts_with("a.toml:"), "{key}: {said}");
        }
    }
}
