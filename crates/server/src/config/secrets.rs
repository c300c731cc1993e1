//! Secrets and where they are: in the file, in a variable, or in a file of their own.

use std::fs::File;
use std::io::{self, Read};

use serde_json::Value;

use super::variables::Environment;
use everbell_wire::secret::Secret;
use everbell_wire::time_input::excerpt;

/// No secret is longer, so that a wrong path does not fill the memory.
const MAX_SECRET_BYTES: u64 = 1 << 16;

/// Finds secrets. No message repeats one.
#[derive(Clone, Copy)]
pub(super) struct Secrets<'a> {
    pub(super) environment: &'a Environment,
}

impl Secrets<'_> {
    /// Reads a text, `{ env = "NAME" }` or `{ file = "PATH" }`. Other forms are reported elsewhere, and are empty here.
    pub(super) fn read(self, value: &Value) -> Result<Secret, String> {
        if let Some(name) = value.get("env").and_then(Value::as_str) {
            return match self.environment.get(name) {
                Some(Ok(text)) => Ok(Secret::new(text)),
                Some(Err(reason)) => Err(format!("the variable `{}` {reason}", excerpt(name))),
                None => Err(format!("the variable `{}` is not set", excerpt(name))),
            };
        }
        match value.get("file").and_then(Value::as_str) {
            Some(path) => in_file(path),
            None => Ok(Secret::new(value.as_str().unwrap_or_default())),
        }
    }
}

/// Returns the content of a file, without surrounding white space.
pub(super) fn in_file(path: &str) -> Result<Secret, String> {
    let text = read_text(path, MAX_SECRET_BYTES).map_err(|reason| format!("the file `{}` {reason}", excerpt(path)))?;
    match text.trim() {
        "" => Err(format!("the file `{}` is empty", excerpt(path))),
        text => Ok(Secret::new(text)),
    }
}

/// Returns the text of a file of at most this many bytes, or why it cannot be read.
pub(super) fn read_text(path: &str, longest: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(longest + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("does not exist".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
        Ok(_) if bytes.len() as u64 > longest => Err(format!("has more than {longest} bytes")),
        Ok(_) => String::from_utf8(bytes).map_err(|_| "is not valid UTF-8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_found_where_it_is() {
        let variables = [("KEY", "hunter2"), ("NOTHING", "")].map(|(name, value)| (OsString::from(name), value.into()));
        let environment = Environment::new(variables);
        let secrets = Secrets { environment: &environment };
        let found = |value: &Value| secrets.read(value).map(|secret| secret.reveal().to_owned());
        assert_eq!(found(&json!("plain")).as_deref(), Ok("plain"));
        assert_eq!(found(&json!({"env": "KEY"})).as_deref(), Ok("hunter2"));
        let refused = |value: Value| found(&value).unwrap_err();
        assert_eq!(refused(json!({"env": "MISSING"})), "the variable `MISSING` is not set");
        assert!(refused(json!({"env": "NOTHING"})).starts_with("the variable `NOTHING` is empty"));
        assert_eq!(refused(json!({"file": "/nowhere/at/all"})), "the file `/nowhere/at/all` does not exist");
        let folder = refused(json!({"file": "/"}));
        assert!(folder.starts_with("the file `/` cannot be read: "), "{folder}");
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(found(&json!({"file": manifest})).unwrap().starts_with("[package]"));
        assert_eq!(read_text(manifest, 10).unwrap_err(), "has more than 10 bytes");
    }
}
