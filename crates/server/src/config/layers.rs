//! [`Layers`]: defaults, file, variables and flags laid over each other, with the origin of each value.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::ServeFlags;
use super::document::Document;
use super::fields::{self, ALTERNATIVES, SECTIONS};
use super::problem::Problem;
use super::variables::{Environment, VARIABLES};
use everbell_wire::FaultCode;
use everbell_wire::form::{Fault, Field, Form, Kind, Naming, typed};

/// The origin of a value. Later ones override earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Default,
    File { file: String, line: Option<usize> },
    Variable(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line: Some(line) } => write!(f, "{file}:{line}"),
            Origin::File { file, line: None } => f.write_str(file),
            Origin::Variable(name) => write!(f, "env {name}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

impl Origin {
    /// The rank of this layer: a higher one overrides a lower one.
    fn rank(&self) -> u8 {
        match self {
            Origin::Default => 0,
            Origin::File { .. } => 1,
            Origin::Variable(_) => 2,
            Origin::Flag(_) => 3,
        }
    }
}

/// The effective values.
pub(super) struct Layers {
    /// The file as it was named; `None` if there is none.
    file: Option<String>,
    pub(super) document: Document,
    /// The sections, without the blocks.
    pub(super) merged: Value,
    /// By JSON pointer.
    origins: BTreeMap<String, Origin>,
    /// The lines that are no TOML. What else is odd there follows from that.
    broken: Vec<usize>,
    pub(super) problems: Vec<Problem>,
}

impl Layers {
    pub(super) fn new(
        file: Option<String>,
        document: Document,
        environment: &Environment,
        flags: &ServeFlags,
    ) -> Layers {
        let mut layers = Layers {
            file,
            document,
            merged: Value::Object(Map::new()),
            origins: BTreeMap::new(),
            broken: Vec::new(),
            problems: Vec::new(),
        };
        layers.note_broken();
        layers.put_sections(&fields::defaults(), false);
        layers.put_sections(&layers.document.value.clone(), true);
        layers.put_variables(environment);
        for (path, flag, value) in flags.values() {
            layers.put(path, Value::String(value.to_owned()), Origin::Flag(flag));
        }
        layers.put_database();
        layers
    }

    /// Notes the syntax errors of the file.
    fn note_broken(&mut self) {
        for (line, message) in std::mem::take(&mut self.document.broken) {
            self.broken.push(line);
            self.problems.push(Problem { file: self.file.clone(), line: Some(line), key: String::new(), message });
        }
        let mut faults = std::mem::take(&mut self.document.faults);
        faults.extend(Form::read(&self.document.value, SECTIONS, Naming::Snake).faults());
        for fault in faults {
            self.refuse(&at_home(fault));
        }
    }

    fn put_sections(&mut self, sections: &Value, in_file: bool) {
        for section in SECTIONS {
            let Kind::Object(fields) = section.kind else { continue };
            let Some(members) = sections.get(section.name).and_then(Value::as_object) else { continue };
            for field in fields {
                let name = Naming::Snake.spell(field.name);
                let Some(value) = members.get(&*name).filter(|value| !value.is_null()) else { continue };
                let path = format!("{}.{}", section.name, field.name);
                let line = self.document.line(&pointer(&path));
                let origin = match &self.file {
                    Some(file) if in_file => Origin::File { file: file.clone(), line },
                    _ => Origin::Default,
                };
                self.put(&path, value.clone(), origin);
            }
        }
    }

    fn put_variables(&mut self, environment: &Environment) {
        for variable in VARIABLES {
            let Some(field) = variable.path.and_then(fields::field) else { continue };
            let (Some(path), Some(said)) = (variable.path, environment.get(variable.name)) else { continue };
            match said {
                Ok(text) => self.put(path, typed(text, &field.kind), Origin::Variable(variable.name)),
                Err(message) => self.problems.push(Problem {
                    file: None,
                    line: None,
                    key: variable.name.to_owned(),
                    message: message.to_owned(),
                }),
            }
        }
    }

    /// The database lies in the data folder, unless it is said where.
    fn put_database(&mut self) {
        let database = &self.merged["database"];
        if !database["url"].is_null() || !database["url_file"].is_null() {
            return;
        }
        let folder = self.merged["server"]["data_dir"].as_str().unwrap_or_default();
        let url = format!("sqlite:{}/everbell.db", folder.trim_end_matches('/'));
        self.put("database.url", Value::String(url), Origin::Default);
    }

    fn put(&mut self, path: &str, value: Value, origin: Origin) {
        for (one, other) in ALTERNATIVES {
            let other = if path == one {
                other
            } else if path == other {
                one
            } else {
                continue;
            };
            let weaker = self.origins.get(&pointer(other)).is_some_and(|said| said.rank() < origin.rank());
            if weaker && let Some((section, name)) = other.split_once('.') {
                self.merged[section][&*Naming::Snake.spell(name)] = Value::Null;
                self.origins.remove(&pointer(other));
            }
        }
        if let Some((section, name)) = path.split_once('.') {
            self.merged[section][&*Naming::Snake.spell(name)] = value;
            self.origins.insert(pointer(path), origin);
        }
    }

    /// Returns the origin of a key's value, if it was set.
    pub(super) fn origin_if_set(&self, pointer: &str) -> Option<Origin> {
        self.origins.get(pointer).cloned()
    }

    /// Returns the origin of the value at the pointer, or else of what contains it.
    pub(super) fn origin(&self, pointer: &str) -> Origin {
        // Below a key, the origin of the key.
        let end = pointer.match_indices('/').nth(2).map_or(pointer.len(), |(at, _)| at);
        match (self.origin_if_set(&pointer[..end]), &self.file) {
            (Some(Origin::File { file, .. }), _) => Origin::File { file, line: self.document.line(pointer) },
            (Some(origin), _) => origin,
            // Blocks, and keys that were not set.
            (None, Some(file)) => match self.document.line(pointer) {
                Some(line) => Origin::File { file: file.clone(), line: Some(line) },
                None => Origin::Default,
            },
            (None, None) => Origin::Default,
        }
    }

    /// Notes a fault where it was said.
    pub(super) fn refuse(&mut self, fault: &Fault) {
        let (file, line, key) = match self.origin(&fault.pointer) {
            Origin::Variable(name) | Origin::Flag(name) => (None, None, name.to_owned()),
            Origin::File { file, line } => (Some(file), line, self.document.key(&fault.pointer)),
            Origin::Default => (self.file.clone(), None, self.document.key(&fault.pointer)),
        };
        // What is missing may stand in a line that could not be read.
        let follows = line.is_some_and(|line| self.broken.contains(&line)) || fault.code == FaultCode::Required;
        if follows && !self.broken.is_empty() {
            return;
        }
        self.problems.push(Problem { file, line, key, message: fault.detail.clone() });
    }

    /// Returns the blocks of a kind. Reports other forms.
    pub(super) fn blocks(&mut self, kind: &'static str) -> Vec<Value> {
        match self.document.value.get(kind) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(blocks)) => blocks.clone(),
            Some(_) => {
                let detail = format!("must be written as `[[{kind}]]` blocks, with double brackets");
                self.refuse(&Fault::new(format!("/{kind}"), FaultCode::WrongType, detail));
                Vec::new()
            }
        }
    }
}

/// Reports a key of another section as such.
fn at_home(fault: Fault) -> Fault {
    let name = fault.pointer.rsplit('/').next().unwrap_or_default();
    let has = |section: &&Field| match section.kind {
        Kind::Object(fields) => fields.iter().any(|field| Naming::Snake.spell(field.name) == name),
        _ => false,
    };
    match SECTIONS.iter().find(has) {
        Some(home) if fault.code == FaultCode::UnknownField => {
            Fault { detail: format!("is not a key of this section; it belongs to `[{}]`", home.name), ..fault }
        }
        _ => fault,
    }
}

/// `server.publicUrl` as a pointer into the file.
pub(super) fn pointer(path: &str) -> String {
    let spelled: Vec<_> = path.split('.').map(|name| Naming::Snake.spell(name)).collect();
    format!("/{}", spelled.join("/"))
}
