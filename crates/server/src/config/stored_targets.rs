//! Targets that admins define: their definitions are checked by the rules of `[[target]]` blocks, and by stricter ones.
//!
//! A definition is kept in the database and read by other people than a file is. So it holds no secret, only references, and
//! only to variables and files that the configuration releases: the author of a target decides where a secret is sent.

use std::path::{Component, Path, PathBuf};

use everbell_wire::FaultCode;
use everbell_wire::body::target::{HIDDEN, target_fields, without_credentials};
use everbell_wire::form::{Fault, Field, Kind, Naming, escape};
use serde_json::{Map, Value, json};

use super::secrets::Secrets;
use super::{Config, Environment, targets};
use crate::targets::TargetSettings;

/// `[targets]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TargetRules {
    /// The types that admins may define.
    pub(crate) editable: Vec<String>,
    /// The variables that definitions may refer to: names, or beginnings that end with `*`.
    pub(crate) secret_env: Vec<String>,
    /// The folder of the files that definitions may refer to.
    pub(crate) secret_dir: Option<PathBuf>,
    /// Whether they may call addresses of this machine and of private networks.
    pub(crate) allow_private: bool,
}

/// Parts of names that belong to secrets.
const SECRET_NAMES: [&str; 10] =
    ["auth", "token", "secret", "pass", "key", "cookie", "credential", "signature", "session", "private"];

/// Stands for a secret while only the rest of a definition is checked.
const PLACEHOLDER: &str = "placeholder";
const PLACEHOLDER_URL: &str = "https://placeholder.invalid/";

impl Config {
    /// Checks a definition without its secrets: they may be known to other instances only. Returns every fault.
    pub(crate) fn check_stored_target(&self, label: &str, definition: &Value) -> Vec<Fault> {
        let mut faults = self.target_rules.faults(definition);
        let environment = Environment::default();
        let checked = with_label(label, &self.target_rules.limited(&with_placeholders(definition)));
        let (_, more) = targets::target(&checked, Secrets { environment: &environment }, Naming::Camel);
        for fault in more {
            if !faults.iter().any(|known| known.pointer == fault.pointer) {
                faults.push(fault);
            }
        }
        faults
    }

    /// Why this instance does not let a label be stored, if it does not.
    pub(crate) fn label_clash(&self, label: &str) -> Option<String> {
        if label == crate::targets::SHELL_LABEL {
            return Some("`shell` is the label of the built-in target".to_owned());
        }
        let is_declared = self.targets.iter().any(|target| target.label == label);
        is_declared.then(|| {
            format!("a `[[target]]` block of the configuration file has the label `{label}`: the block is used instead")
        })
    }

    /// Reads a definition with its secrets, as this instance knows them, or says why it cannot serve the target.
    pub(crate) fn resolve_stored_target(
        &self,
        label: &str,
        definition: &Value,
        environment: &Environment,
    ) -> Result<TargetSettings, String> {
        if let Some(clash) = self.label_clash(label) {
            return Err(clash);
        }
        let words = |faults: Vec<Fault>| {
            let words =
                faults.iter().map(|fault| format!("{}: {}", fault.pointer.trim_start_matches('/'), fault.detail));
            words.collect::<Vec<_>>().join("; ")
        };
        let faults = self.target_rules.faults(definition);
        if !faults.is_empty() {
            return Err(words(faults));
        }
        let block = with_label(label, &self.target_rules.limited(definition));
        let (settings, faults) = targets::target(&block, Secrets { environment }, Naming::Camel);
        if faults.is_empty() { Ok(settings) } else { Err(words(faults)) }
    }
}

/// A stored target as people may know it.
pub(crate) fn described(label: &str, definition: &Value) -> everbell_http::ConfiguredTarget {
    let kind = definition.get("type").and_then(Value::as_str).unwrap_or_default();
    let url = definition.get("url").and_then(Value::as_str).map(super::shown::callable);
    let program = definition.pointer("/argv/0").and_then(Value::as_str).map(str::to_owned);
    everbell_http::ConfiguredTarget {
        label: label.to_owned(),
        kind: if kind == "command" { "command" } else { "http" },
        address: url.or(program),
        concurrency: definition.get("concurrency").and_then(Value::as_u64).and_then(|limit| u32::try_from(limit).ok()),
        block: Some(everbell_wire::target_toml::block(&with_label(label, definition), Naming::Camel)),
    }
}

impl TargetRules {
    /// Refuses what a block may have but a stored definition may not.
    fn faults(&self, definition: &Value) -> Vec<Fault> {
        let kind = definition.get("type").and_then(Value::as_str).unwrap_or_default();
        let mut faults = Vec::new();
        if !kind.is_empty() && !self.editable.iter().any(|word| word == kind) {
            let allowed: Vec<String> = self.editable.iter().map(|word| format!("`{word}`")).collect();
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            let detail =
                format!("`targets.editable` of the configuration does not allow `{kind}`; it allows: {allowed}");
            return vec![Fault::new("/type", FaultCode::Invalid, detail)];
        }
        for field in target_fields(kind).unwrap_or_default() {
            if let Some(value) = definition.get(field.name).filter(|value| !value.is_null()) {
                self.member_faults(field, value, &mut faults);
            }
        }
        faults
    }

    fn member_faults(&self, field: &Field, value: &Value, faults: &mut Vec<Fault>) {
        let at = format!("/{}", field.name);
        let mut fault = |pointer: String, detail: String| faults.push(Fault::new(pointer, FaultCode::Invalid, detail));
        match (field.name, &field.kind, value) {
            ("url", _, Value::String(url)) if without_credentials(url).contains("(hidden)@") => {
                fault(at, format!("must not contain a user or a password; send them in a header {REFERENCE}"));
            }
            (_, Kind::Secret, value) => {
                if let Err(detail) = self.expect_released(value) {
                    fault(at, detail);
                }
            }
            (_, Kind::List { of: Kind::Secret, .. }, Value::Array(items)) => {
                for (n, item) in items.iter().enumerate() {
                    let checked = if item.is_string() { Err(plain()) } else { self.expect_released(item) };
                    checked.err().into_iter().for_each(|detail| fault(format!("{at}/{n}"), detail));
                }
            }
            (_, Kind::Map(Kind::Secret), Value::Object(members)) => {
                for (name, member) in members {
                    let checked = match member {
                        Value::String(text) if is_secret(name, text) => Err(plain()),
                        member => self.expect_released(member),
                    };
                    if let Err(detail) = checked {
                        fault(format!("{at}/{}", escape(name)), detail);
                    }
                }
            }
            ("signingKeyFiles" | "caFile", _, value) => {
                let paths = value.as_array().map_or_else(|| vec![value], |paths| paths.iter().collect());
                let bad = paths.into_iter().filter_map(Value::as_str).find_map(|path| self.expect_file(path).err());
                if let Some(detail) = bad {
                    fault(at, detail);
                }
            }
            ("passEnv", _, Value::Array(names)) => {
                let bad = names.iter().filter_map(Value::as_str).find_map(|name| self.expect_variable(name).err());
                if let Some(detail) = bad {
                    fault(at, detail);
                }
            }
            ("allowLinkLocal", _, Value::Bool(true)) => {
                fault(at, "is only for `[[target]]` blocks of the configuration file".to_owned());
            }
            ("allowPrivate", _, Value::Bool(true)) if !self.allow_private => {
                fault(at, "`targets.allow_private` of the configuration does not allow it".to_owned());
            }
            _ => {}
        }
    }

    /// The definition with the limits of the configuration.
    fn limited(&self, definition: &Value) -> Value {
        let mut limited = definition.clone();
        if let Some(members) = limited.as_object_mut().filter(|members| members.get("type") == Some(&json!("http")))
            && !self.allow_private
        {
            members.insert("allowPrivate".to_owned(), json!(false));
        }
        limited
    }

    fn expect_released(&self, value: &Value) -> Result<(), String> {
        if let Some(name) = value.get("env").and_then(Value::as_str) {
            return self.expect_variable(name);
        }
        value.get("file").and_then(Value::as_str).map_or(Ok(()), |path| self.expect_file(path))
    }

    fn expect_variable(&self, name: &str) -> Result<(), String> {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => pattern == name,
        };
        if self.secret_env.iter().any(fits) {
            return Ok(());
        }
        let name = everbell_wire::time_input::excerpt(name);
        Err(format!("the variable `{name}` is not released; name it in `targets.secret_env` of the configuration"))
    }

    fn expect_file(&self, path: &str) -> Result<(), String> {
        let Some(folder) = &self.secret_dir else {
            return Err(
                "no folder is released for files; name one in `targets.secret_dir` of the configuration".to_owned()
            );
        };
        let path = Path::new(path);
        let climbs = path.components().any(|component| matches!(component, Component::ParentDir));
        if path.starts_with(folder) && !climbs {
            return Ok(());
        }
        Err(format!("must be a file in the folder `{}`, which `targets.secret_dir` names", folder.display()))
    }
}

const REFERENCE: &str = "by reference: `{ \"env\": \"NAME\" }` or `{ \"file\": \"PATH\" }`";

fn plain() -> String {
    format!("must not be written here, because definitions are kept in the database; give it {REFERENCE}")
}

/// Whether a plain value looks like a secret, by its name or by itself.
fn is_secret(name: &str, text: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_url_with_password = text.contains("://") && without_credentials(text).contains(HIDDEN);
    SECRET_NAMES.iter().any(|part| name.contains(part)) || text.starts_with("whsec_") || is_url_with_password
}

fn with_label(label: &str, definition: &Value) -> Value {
    let mut block = definition.clone();
    if let Some(members) = block.as_object_mut() {
        members.insert("label".to_owned(), json!(label));
    }
    block
}

/// The definition with a placeholder for each reference, and without files.
fn with_placeholders(definition: &Value) -> Value {
    let Some(members) = definition.as_object() else { return definition.clone() };
    let is_file = |name: &str| matches!(name, "signingKeyFiles" | "caFile");
    let members = members.iter().filter(|(name, _)| !is_file(name));
    let replaced = members.map(|(name, value)| {
        let placeholder = if name == "url" { PLACEHOLDER_URL } else { PLACEHOLDER };
        (name.clone(), replace_references(value, placeholder))
    });
    Value::Object(replaced.collect::<Map<_, _>>())
}

fn replace_references(value: &Value, placeholder: &str) -> Value {
    match value {
        Value::Object(members) if is_reference(members) => json!(placeholder),
        Value::Object(members) => {
            let replaced = members.iter().map(|(name, value)| match value {
                Value::Object(inner) if is_reference(inner) => (name.clone(), json!(placeholder)),
                value => (name.clone(), value.clone()),
            });
            Value::Object(replaced.collect())
        }
        Value::Array(items) => items.iter().map(|item| replace_references(item, placeholder)).collect(),
        value => value.clone(),
    }
}

fn is_reference(members: &Map<String, Value>) -> bool {
    members.len() == 1 && ["env", "file"].iter().any(|name| members.get(*name).is_some_and(Value::is_string))
}

#[cfg(test)]
#[path = "tests/stored_targets.rs"]
mod tests;
