//! `[[target]]` blocks and stored targets: their keys, and values that are references.

use serde_json::{Value, json};

use crate::form::{Field, Kind, TEXT, optional, required};

/// A path of a file or folder.
pub const PATH: Kind = Kind::Text { min: 1, max: 4_096 };

/// Keys that targets and notification channels share.
pub const CA_FILE: Field = optional("caFile", PATH, "Certificates to trust in addition to the system's, in PEM.");
/// See [`CA_FILE`].
pub const ALLOW_PRIVATE: Field = optional(
    "allowPrivate",
    Kind::Flag,
    "Whether addresses of this machine and of private networks may be called; yes if absent.",
);
/// See [`CA_FILE`].
pub const ALLOW_LINK_LOCAL: Field = optional(
    "allowLinkLocal",
    Kind::Flag,
    "Whether link-local addresses, such as cloud metadata services, may be called; no if absent.",
);
/// See [`CA_FILE`].
pub const HEADERS: Field = optional("headers", Kind::Map(&Kind::Secret), "Additional headers.");
/// See [`CA_FILE`].
pub const SIGNING_KEYS: Field = optional(
    "signingKeys",
    Kind::List { of: &Kind::Secret, max: 10 },
    "Keys for Standard Webhooks signatures; each key signs.",
);
/// See [`CA_FILE`].
pub const SIGNING_KEY_FILES: Field =
    optional("signingKeyFiles", Kind::List { of: &PATH, max: 10 }, "Files with additional keys.");
/// See [`CA_FILE`].
pub const CWD: Field = optional("cwd", PATH, "The working directory; the server's if absent.");
/// See [`CA_FILE`].
pub const USER: Field = optional("user", TEXT, "The user to run as, by name or number; the server's if absent.");
/// See [`CA_FILE`].
pub const GROUP: Field = optional("group", TEXT, "The group to run as, by name or number; the user's if absent.");
/// See [`CA_FILE`].
pub const ENV: Field = optional("env", Kind::Map(&Kind::Secret), "Environment variables to set.");
/// See [`CA_FILE`].
pub const PASS_ENV: Field = optional(
    "passEnv",
    Kind::List { of: &TEXT, max: 1_000 },
    "Environment variables to pass on from the server, besides `PATH`, `HOME`, `LANG` and `TZ`.",
);
/// See [`CA_FILE`].
pub const EXIT_CODES: Field = optional(
    "success",
    Kind::List { of: &Kind::Integer { min: 0, max: 255 }, max: 256 },
    "Exit codes that count as success; `[0]` if absent.",
);

/// Stands for a secret that is not shown.
pub const HIDDEN: &str = "(hidden)";

macro_rules! with_common_fields {
    ($($own:expr),*) => {
        &[
            required("label", TEXT, "The name that jobs refer to it by."),
            required("type", Kind::Word(&["log", "http", "command"]), "The type of the target."),
            optional("concurrency", Kind::Integer { min: 1, max: 100_000 }, "The maximum number of concurrent runs on this instance; the engine's limit if absent."),
            $($own),*
        ]
    };
}

/// The keys of a `log` target.
pub const LOG_TARGET: &[Field] =
    with_common_fields!(optional("timeout", Kind::Span, "Time limit of a run, if shorter than the job's."));

/// The keys of an `http` target.
pub const HTTP_TARGET: &[Field] = with_common_fields!(
    required("url", Kind::Secret, "The URL to call."),
    optional("method", Kind::Word(&["POST", "PUT", "PATCH", "GET", "DELETE"]), "The HTTP method; POST if absent."),
    HEADERS,
    SIGNING_KEYS,
    SIGNING_KEY_FILES,
    optional("timeout", Kind::Span, "Time limit of the whole call; 30s if absent."),
    optional(
        "async",
        Kind::Flag,
        "Whether a response with status 202 means that the target works on the run and reports its end later; no if absent."
    ),
    optional(
        "lease",
        Kind::Span,
        "With `async`, how long the target may go without sending a heartbeat before the run is lost; 60s if absent."
    ),
    optional(
        "success",
        Kind::List { of: &Kind::Json, max: 20 },
        "Status codes that count as success, such as `304` or `\"200-299\"`; `[\"200-299\"]` if absent."
    ),
    CA_FILE,
    ALLOW_PRIVATE,
    ALLOW_LINK_LOCAL
);

/// The keys of a `command` target.
pub const COMMAND_TARGET: &[Field] = with_common_fields!(
    required(
        "argv",
        Kind::List { of: &Kind::Text { min: 0, max: 10_000 }, max: 1_000 },
        "The program and its arguments; never a shell."
    ),
    CWD,
    USER,
    GROUP,
    ENV,
    PASS_ENV,
    EXIT_CODES,
    optional("timeout", Kind::Span, "Time limit of a run, if shorter than the job's.")
);

/// The body of a target that an admin defines. The members of its type are checked by [`HTTP_TARGET`] and [`COMMAND_TARGET`].
pub const TARGET_INPUT: &[Field] = &[
    required("type", Kind::Word(&["http", "command"]), "The type of the target, which `targets.editable` must allow."),
    optional("concurrency", Kind::Integer { min: 1, max: 100_000 }, "Maximum concurrent runs on each instance."),
    optional("timeout", Kind::Span, "Time limit of a run, if shorter than the job's; of a call 30s if absent."),
    optional(
        "success",
        Kind::List { of: &Kind::Json, max: 256 },
        "The values that count as success: status codes such as `304` or `\"200-299\"`, or exit codes.",
    ),
    optional("url", Kind::Secret, "`http`: the URL to call, or a reference to it."),
    optional("method", Kind::Word(&["POST", "PUT", "PATCH", "GET", "DELETE"]), "`http`: the method; POST if absent."),
    optional("headers", Kind::Map(&Kind::Secret), "`http`: additional headers; secrets by reference."),
    optional("signingKeys", Kind::List { of: &Kind::Secret, max: 10 }, "`http`: references to keys; each key signs."),
    optional("signingKeyFiles", Kind::List { of: &PATH, max: 10 }, "`http`: files with additional keys."),
    optional("caFile", PATH, "`http`: certificates to trust in addition to the system's, in PEM."),
    optional(
        "allowPrivate",
        Kind::Flag,
        "`http`: whether addresses of the machine and of private networks may be called.",
    ),
    optional(
        "argv",
        Kind::List { of: &Kind::Text { min: 0, max: 10_000 }, max: 1_000 },
        "`command`: the program and its arguments; never a shell.",
    ),
    optional(
        "async",
        Kind::Flag,
        "`http`: whether a response with status 202 means that the target ends the run later.",
    ),
    optional(
        "lease",
        Kind::Span,
        "`http`: with `async`, how long the target may go without sending a heartbeat; 60s if absent.",
    ),
    optional("cwd", PATH, "`command`: the working directory; the server's if absent."),
    optional("user", TEXT, "`command`: the user to run as, by name or number; the server's if absent."),
    optional("group", TEXT, "`command`: the group to run as, by name or number; the user's if absent."),
    optional("env", Kind::Map(&Kind::Secret), "`command`: environment variables; secrets by reference."),
    optional("passEnv", Kind::List { of: &TEXT, max: 1_000 }, "`command`: variables to pass on from the server."),
    optional("reason", Kind::Text { min: 3, max: 500 }, "The reason, for the audit trail."),
];

/// The target table of a type.
pub fn target_fields(kind: &str) -> Option<&'static [Field]> {
    match kind {
        "log" => Some(LOG_TARGET),
        "http" => Some(HTTP_TARGET),
        "command" => Some(COMMAND_TARGET),
        _ => None,
    }
}

/// Reads a value that people type: `env:NAME` and `file:PATH` are references, and other texts are meant as they are.
pub fn value_from_text(text: &str) -> Value {
    match text.split_once(':') {
        Some(("env", name)) => json!({ "env": name }),
        Some(("file", path)) => json!({ "file": path }),
        _ => json!(text),
    }
}

/// Writes a value as people type it.
pub fn value_to_text(value: &Value) -> String {
    let reference = |kind: &str| Some(format!("{kind}:{}", value.get(kind)?.as_str()?));
    reference("env").or_else(|| reference("file")).unwrap_or_else(|| value.as_str().unwrap_or_default().to_owned())
}

/// A URL without user, password and parameters. A text that is hard to read is hidden as a whole.
pub fn without_credentials(url: &str) -> String {
    let (url, query) = url.split_once(['?', '#']).map_or((url, ""), |(url, _)| (url, "?(hidden)"));
    let Some((scheme, rest)) = url.split_once("://") else { return HIDDEN.to_owned() };
    let end = rest.find(['/', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(_, host)| ("(hidden)@", host));
    if path.contains(['@', '\\']) {
        return format!("{scheme}://{HIDDEN}");
    }
    format!("{scheme}://{user}{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_typed_with_a_prefix() {
        for (text, value) in [
            ("env:HOOK", json!({ "env": "HOOK" })),
            ("file:a/b:c", json!({ "file": "a/b:c" })),
            ("https://h/", json!("https://h/")),
            ("", json!("")),
        ] {
            assert_eq!(value_from_text(text), value);
            assert_eq!(value_to_text(&value), text);
        }
    }

    #[test]
    fn urls_lose_their_credentials() {
        for (url, shown) in [
            ("https://h/p", "https://h/p"),
            ("https://u:CANARY@h", "https://(hidden)@h"),
            ("https://u:C/ANARY@h/p", "https://(hidden)"),
            ("http://127.0.0.1:1\\@h/", "http://(hidden)"),
            ("https://h?CANARY", "https://h?(hidden)"),
            ("https://h/p#CANARY", "https://h/p?(hidden)"),
            ("CANARY", "(hidden)"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
