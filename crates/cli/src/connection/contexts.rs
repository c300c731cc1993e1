//! [`Contexts`]: servers by name, kept in the configuration folder of the user.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::CliError;
use crate::error::warn;

/// The contexts of the user.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Contexts {
    /// The context that is used unless another one is named.
    #[serde(default)]
    pub(crate) current: Option<String>,
    /// All of them, by name.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// A server and how to authenticate.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Context {
    /// The address of the server.
    pub(crate) server: String,
    /// The file that holds the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    /// The token itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl Context {
    /// Where its token is, for people.
    pub(crate) fn token_place(&self) -> String {
        match (&self.token_file, &self.token) {
            (Some(file), _) => file.display().to_string(),
            (None, Some(_)) => "stored".to_owned(),
            (None, None) => "none".to_owned(),
        }
    }
}

/// The file of the contexts; `None` if the user has no configuration folder.
pub(crate) fn file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("everbell").join("contexts.json"))
}

impl Contexts {
    /// Reads the contexts. No file means that there are none.
    pub(crate) fn load() -> Result<Contexts, CliError> {
        let Some(file) = file() else { return Ok(Contexts::default()) };
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            // As of a service that runs with the home folder of another user.
            Err(error)
                if [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied]
                    .contains(&error.kind()) =>
            {
                return Ok(Contexts::default());
            }
            Err(error) => return Err(unusable(&file, &error.to_string())),
        };
        let contexts: Contexts = serde_json::from_str(&text).map_err(|error| unusable(&file, &error.to_string()))?;
        let is_open = fs::metadata(&file).is_ok_and(|about| about.mode() & 0o077 != 0);
        if is_open && contexts.contexts.values().any(|context| context.token.is_some()) {
            let path = file.display();
            warn(format!("other users can read the tokens in `{path}`; close it: chmod 600 {path}"));
        }
        Ok(contexts)
    }

    /// Writes the contexts to a file that only the user can read.
    pub(crate) fn save(&self) -> Result<(), CliError> {
        let Some(file) = file() else {
            return Err(CliError::invalid("contexts need a configuration folder: set HOME or XDG_CONFIG_HOME"));
        };
        let failed = |error: std::io::Error| CliError::Failed {
            message: format!("cannot write `{}`: {error}", file.display()),
            hint: None,
        };
        if let Some(folder) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        // Replaced at once, so that a reader never meets half of it.
        let new = file.with_extension(format!("json.{}", std::process::id()));
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        let written = opened.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
        written.and_then(|()| fs::rename(&new, &file)).map_err(failed)
    }

    /// The context of this name.
    pub(crate) fn find(&self, from: &str, name: &str) -> Result<&Context, CliError> {
        self.contexts.get(name).ok_or_else(|| CliError::Invalid {
            message: format!("{from}: there is no context `{}`", name.escape_debug()),
            hint: Some(if self.contexts.is_empty() {
                "add one: everbell context add NAME --url URL".to_owned()
            } else {
                let names: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
                format!("use one of {}", names.join(", "))
            }),
        })
    }
}

fn unusable(file: &Path, reason: &str) -> CliError {
    CliError::Invalid {
        message: format!("`{}` cannot be read: {reason}", file.display()),
        hint: Some("fix it, or remove it and add the contexts again".to_owned()),
    }
}
