//! All keys of the file: their values, meaning and defaults.

use serde_json::{Value, json};

pub(super) use everbell_wire::body::target::PATH;
pub(crate) use everbell_wire::body::target::{LOG_TARGET, target_fields};
use everbell_wire::form::{Field, Kind, TEXT, optional, required};

const URL: Kind = Kind::Text { min: 1, max: 4_096 };

/// The sections, in the order in which they are shown. `target` and `job` are blocks, which are read one by one.
pub(crate) const SECTIONS: &[Field] = &[
    optional("server", Kind::Object(SERVER), "Listening address and role of the server."),
    optional("database", Kind::Object(DATABASE), "The database."),
    optional("api", Kind::Object(API), "The REST API."),
    optional("ui", Kind::Object(UI), "The web UI."),
    optional("auth", Kind::Object(AUTH), "Access."),
    optional("engine", Kind::Object(ENGINE), "The engine: concurrency, intervals and time limits."),
    optional("retention", Kind::Object(RETENTION), "How long history is kept."),
    optional("log", Kind::Object(LOG), "The log on standard error."),
    optional("metrics", Kind::Object(METRICS), "The metrics at `/metrics`."),
    optional("jobs", Kind::Object(JOBS), "How `[[job]]` blocks are synced with the jobs in the database."),
    optional("shell", Kind::Object(SHELL), "The built-in target `shell`, which runs the command of a payload."),
    optional(
        "targets",
        Kind::Object(TARGETS),
        "Whether admins may define targets by API, page and command, and what those may use.",
    ),
    optional("target", Kind::Json, "Targets, one block each."),
    optional("job", Kind::Json, "Jobs, one block each."),
    optional("calendar", Kind::Json, "Calendars that jobs may name, one block each."),
    optional("notify", Kind::Json, "Channels for notifications, one block each."),
    optional("rule", Kind::Json, "Rules that say who is notified of what, one block each."),
    optional("template", Kind::Json, "Named expressions for new jobs, one block each."),
];

const SERVER: &[Field] = &[
    optional("listen", TEXT, "Address and port of the API and the web pages. Port 0 picks a free one."),
    optional("publicUrl", URL, "The public URL of the server, for links in responses."),
    optional(
        "trustProxy",
        Kind::Flag,
        "Whether a TLS proxy is in front: the client address is taken from `X-Forwarded-For`.",
    ),
    optional("role", Kind::Word(&["all", "scheduler", "api"]), "The role of this process."),
    optional("maxConnections", Kind::Integer { min: 1, max: 100_000 }, "The maximum number of concurrent connections."),
    optional("requestTimeout", Kind::Span, "Time limit for answering a request, from 1s to 10m."),
    optional(
        "maxConnectionsPerAddress",
        Kind::Integer { min: 1, max: 100_000 },
        "The maximum number of concurrent connections from one address. Does not apply with `trust_proxy`.",
    ),
    optional("dataDir", PATH, "The folder of the SQLite file and of the first admin token."),
];

const DATABASE: &[Field] = &[
    optional(
        "url",
        Kind::Secret,
        "`sqlite:PATH` or `postgres://user:password@host/database`; `everbell.db` in `server.data_dir` if absent.",
    ),
    optional("urlFile", PATH, "A file that holds the address, instead of `url`."),
    optional(
        "maxConnections",
        Kind::Integer { min: 3, max: 1_000 },
        "The maximum number of connections of this instance to a PostgreSQL server; 6 if absent.",
    ),
    optional(
        "allowCopy",
        Kind::Flag,
        "Whether the server may start on a copy of an SQLite database while the server of the original is running: both fire the same jobs.",
    ),
];

const API: &[Field] = &[
    optional("mounts", Kind::List { of: &TEXT, max: 8 }, "The paths under which the API is served."),
    optional("compat", Kind::Flag, "Whether the compatibility API for schedules is served too."),
    optional("requireIfMatch", Kind::Flag, "Whether every change must name the revision that it changes."),
    optional(
        "runNowOverlapStatus",
        Kind::Integer { min: 200, max: 409 },
        "The status code for a run-now request that was skipped because a run is active: 409 or 200.",
    ),
    optional("docs", Kind::Flag, "Whether the documentation of the API is served."),
    optional(
        "writeRate",
        Kind::Integer { min: 0, max: 100_000 },
        "The maximum number of write requests per second for each token; 0 sets no limit.",
    ),
    optional(
        "writeBurst",
        Kind::Integer { min: 1, max: 1_000_000 },
        "The maximum number of write requests that a token may send in a burst.",
    ),
];

const UI: &[Field] = &[
    optional("enabled", Kind::Flag, "Whether the web UI is served."),
    optional(
        "environment",
        Kind::Text { min: 1, max: 40 },
        "The name of this installation, such as `prod-eu`; shown on every page.",
    ),
];

const AUTH: &[Field] = &[
    optional("adminToken", Kind::Secret, "The token of the first admin, instead of one generated at the first start."),
    optional("adminTokenFile", PATH, "A file that holds that token."),
    optional(
        "metricsToken",
        Kind::Secret,
        "The token that `/metrics` requires. Without it, only clients on this machine may read metrics, and none behind a proxy.",
    ),
    optional("metricsTokenFile", PATH, "A file that holds that token."),
    optional("runHistory", Kind::Word(&["viewer", "operator", "admin"]), "The lowest role that may read runs."),
];

const ENGINE: &[Field] = &[
    optional(
        "concurrency",
        Kind::Integer { min: 1, max: 100_000 },
        "The maximum number of concurrent handlers. Outcomes that wait to be recorded are not counted.",
    ),
    optional("poll", Kind::Span, "Poll interval when nothing is known to be due."),
    optional("lease", Kind::Span, "How long an instance may go without a heartbeat before its runs are lost."),
    optional("heartbeat", Kind::Span, "Heartbeat interval; a twelfth of the lease if absent."),
    optional("shutdownGrace", Kind::Span, "How long a shutdown waits for runs before it cancels them."),
    optional("cancelGrace", Kind::Span, "How long a run that was asked to stop may take before it is dropped."),
    optional(
        "batch",
        Kind::Integer { min: 1, max: 10_000 },
        "The maximum number of timers, claims or outcomes in one transaction.",
    ),
    optional(
        "maxPendingRuns",
        Kind::Integer { min: 1, max: 1_000_000 },
        "The maximum number of pending and running runs of a job, or of an org of a job, when more are requested manually. A backfill waits for room.",
    ),
    optional("linger", Kind::Span, "How long the first outcome of a group waits for others."),
];

const RETENTION: &[Field] = &[
    optional("keep", TEXT, "How long runs and gaps are kept, or `forever`."),
    optional("audit", TEXT, "How long audit entries are kept, or `forever`."),
];

const LOG: &[Field] = &[
    optional("format", Kind::Word(&["text", "json"]), "Lines for people, or one JSON object per line."),
    optional(
        "level",
        TEXT,
        "`off`, `error`, `warn`, `info`, `debug` or `trace`, also for a part: `info,everbell=debug`.",
    ),
];

const METRICS: &[Field] =
    &[optional("perJob", Kind::Flag, "Whether to export time series for each job, of which there can be many.")];

const JOBS: &[Field] = &[
    optional(
        "app",
        Kind::Text { min: 1, max: 200 },
        "The name by which this server owns the jobs of its file. Servers with the same file share one, others need their own.",
    ),
    optional("removed", Kind::Word(&["keep", "pause", "retire"]), "What to do with a job whose block was removed."),
    optional(
        "adopt",
        Kind::Flag,
        "Whether a block takes over an existing job of the same key that was created elsewhere.",
    ),
];

const SHELL: &[Field] = &[
    optional(
        "allow",
        Kind::Flag,
        "Whether the target `shell` exists. Anyone who can create jobs can then run commands as the user of the server.",
    ),
    optional(
        "users",
        Kind::List { of: &TEXT, max: 1_000 },
        "The users that commands may run as; any if absent. Another user than the server's needs a server that runs as root.",
    ),
    optional("env", Kind::Map(&Kind::Secret), "Environment variables of all commands, hidden in their output."),
    optional(
        "concurrency",
        Kind::Integer { min: 1, max: 100_000 },
        "The maximum number of concurrent commands on this instance; the engine's limit if absent.",
    ),
    optional("timeout", Kind::Span, "Time limit of a command, if shorter than the job's."),
];

const TARGETS: &[Field] = &[
    optional(
        "editable",
        Kind::List { of: &Kind::Word(&["http", "command"]), max: 2 },
        "The types of targets that admins may create, edit and delete without this file. With `command`, every admin token can run any program as the user of the server.",
    ),
    optional(
        "secretEnv",
        Kind::List { of: &TEXT, max: 100 },
        "The environment variables that such targets may refer to, by name or by a prefix such as `HOOK_*`; none if absent.",
    ),
    optional("secretDir", PATH, "The folder of the files that such targets may refer to; none if absent."),
    optional(
        "allowPrivate",
        Kind::Flag,
        "Whether such targets may call addresses of this machine and of private networks.",
    ),
];

/// Pairs of keys that say the same thing in two ways.
pub(super) const ALTERNATIVES: [(&str, &str); 3] = [
    ("database.url", "database.urlFile"),
    ("auth.adminToken", "auth.adminTokenFile"),
    ("auth.metricsToken", "auth.metricsTokenFile"),
];

/// Returns the default values. The database lies in `data_dir`.
pub(crate) fn defaults() -> Value {
    json!({
        "server": {
            "listen": "127.0.0.1:7070", "trust_proxy": false, "role": "all", "max_connections": 1024,
            "request_timeout": "10s", "max_connections_per_address": 64, "data_dir": "everbell-data",
        },
        "database": { "allow_copy": false },
        "api": {
            "mounts": ["/api/v1", "/api/v2/admin/cron"], "compat": true, "require_if_match": false,
            "run_now_overlap_status": 409, "docs": true, "write_rate": 100, "write_burst": 1000,
        },
        "ui": { "enabled": true },
        "auth": { "run_history": "viewer" },
        "engine": {
            "concurrency": 256, "poll": "5s", "lease": "60s", "shutdown_grace": "30s", "cancel_grace": "10s",
            "batch": 500, "max_pending_runs": 10000, "linger": "2ms",
        },
        "retention": { "keep": "180d", "audit": "730d" },
        "log": { "format": "text", "level": "info" },
        "metrics": { "per_job": false },
        "jobs": { "app": "everbell", "removed": "keep", "adopt": false },
        "shell": { "allow": false },
        "targets": { "editable": [], "allow_private": false },
    })
}

/// The field at a path of names, such as `server.publicUrl`.
pub(crate) fn field(path: &str) -> Option<&'static Field> {
    let (section, name) = path.split_once('.')?;
    let section = SECTIONS.iter().find(|field| field.name == section)?;
    let Kind::Object(fields) = section.kind else { return None };
    fields.iter().find(|field| field.name == name)
}

/// The keys of the state of a job, in files of `jobs export --with-state`.
pub(crate) const JOB_STATE: &[Field] = &[
    required("jobKey", TEXT, "The key of the job, which has a `[[job]]` block in the same file."),
    required("pauseReason", Kind::Text { min: 3, max: 500 }, "Why it is paused."),
    optional("pausedUntil", Kind::Time, "When it resumes automatically."),
];

/// The keys of a template.
pub(crate) const TEMPLATE: &[Field] = &[
    required("name", TEXT, "The display name."),
    required("cronExpression", Kind::Text { min: 1, max: 1_000 }, "The expression."),
    optional("description", Kind::Text { min: 0, max: 500 }, "The description; the expression in words if absent."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use everbell_wire::form::{Form, Naming};

    #[test]
    fn the_defaults_fit_their_fields() {
        assert_eq!(Form::read(&defaults(), SECTIONS, Naming::Snake).faults(), []);
    }

    #[test]
    fn a_field_is_found_by_its_path() {
        assert!(field("server.publicUrl").is_some_and(|field| field.doc.contains("links")));
        for path in ["server", "server.nothing", "job.job_key", "nothing.url"] {
            assert!(field(path).is_none(), "{path}");
        }
        for (one, other) in ALTERNATIVES {
            assert!(field(one).is_some() && field(other).is_some(), "{one}");
        }
    }
}
