//! From the sections of the file to [`Settings`].

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use everbell::{ConnectOptions, EngineOptions, Removed, TargetOptions};

use super::TargetRules;
use super::fields::ALTERNATIVES;
use super::secrets::{Secrets, in_file};
use super::settings::{
    AuthSettings, JobsSettings, LogSettings, MetricsSettings, Role, ServerSettings, Settings, UiSettings,
};
use super::targets::secret_map;
use crate::targets::{Kind, SHELL_LABEL, ShellSettings, TargetSettings};
use everbell_http::ApiSettings;
use everbell_http::access;
use everbell_http::limit::Rate;
use everbell_observe::logs;
use everbell_wire::FaultCode;
use everbell_wire::form::{Fault, Form, parse_span};
use everbell_wire::secret::Secret;
use everbell_wire::time_input::excerpt;

/// The name of a server that gives itself none. Replicas of a server share their file, and this name with it.
const DEFAULT_APP: &str = "everbell";

/// Makes types of the sections. What does not fit is noted, and something is put in its place.
pub(super) fn read(form: &mut Form<'_>, secrets: Secrets<'_>) -> Settings {
    for (one, other) in ALTERNATIVES {
        if form.has(one) && form.has(other) {
            let one = one.split('.').map(|name| form.spell(name)).collect::<Vec<_>>().join(".");
            form.fault(other, FaultCode::Invalid, format!("`{one}` is set too; keep only one of them"));
        }
    }
    let server = server(form);
    Settings {
        database: database(form, secrets),
        connect: connect(form, server.request_timeout),
        api: api(form),
        ui: UiSettings {
            enabled: form.answer("ui.enabled").unwrap_or(true),
            environment: form.text("ui.environment").map(str::to_owned),
        },
        auth: AuthSettings {
            admin_token: token(form, secrets, "auth.adminToken", access::bad_admin_token),
            metrics_token: token(form, secrets, "auth.metricsToken", bad_metrics_token),
            run_history: form.word("auth.runHistory", access::Role::from_word).unwrap_or(access::Role::Viewer),
        },
        engine: engine(form, server.role),
        log: LogSettings {
            format: match form.text("log.format") {
                Some("json") => logs::Format::Json,
                _ => logs::Format::Text,
            },
            filter: log_filter(form),
        },
        metrics: MetricsSettings { per_job: form.flag("metrics.perJob") },
        jobs: JobsSettings {
            app: form.text("jobs.app").unwrap_or(DEFAULT_APP).to_owned(),
            removed: match form.text("jobs.removed") {
                Some("pause") => Removed::Pause,
                Some("retire") => Removed::Retire,
                _ => Removed::Keep,
            },
            adopt: form.flag("jobs.adopt"),
        },
        shell: shell(form, secrets),
        target_rules: target_rules(form),
        server,
    }
}

/// The built-in target. Its keys are checked whether it is allowed or not.
fn shell(form: &mut Form<'_>, secrets: Secrets<'_>) -> Option<TargetSettings> {
    let env = secret_map(form, "shell.env", secrets);
    let users = form.has("shell.users").then(|| form.list("shell.users").into_iter().map(str::to_owned).collect());
    let mut options = TargetOptions::default();
    options.concurrency = form.count("shell.concurrency");
    options.timeout = form.span("shell.timeout");
    if options.timeout.is_some_and(|timeout| timeout.is_zero()) {
        form.fault("shell.timeout", FaultCode::OutOfRange, "must be more than 0");
    }
    let kind = Kind::Shell(ShellSettings { env, users });
    let settings = TargetSettings { label: SHELL_LABEL.to_owned(), options, kind };
    for (field, problem) in settings.problems() {
        form.note(Fault::new(format!("/shell/{field}"), FaultCode::Invalid, problem));
    }
    form.flag("shell.allow").then_some(settings)
}

/// Reads which targets admins may define.
fn target_rules(form: &mut Form<'_>) -> TargetRules {
    let texts = |path: &str| form.list(path).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let rules = TargetRules {
        editable: texts("targets.editable"),
        secret_env: texts("targets.secretEnv"),
        secret_dir: form.text("targets.secretDir").map(PathBuf::from),
        allow_private: form.flag("targets.allowPrivate"),
    };
    if let Some(n) =
        rules.secret_env.iter().position(|name| name.trim_end_matches('*').contains(['*', '=']) || name.is_empty())
    {
        let detail = "must be the name of a variable, or the beginning of names and one `*`, such as `HOOK_*`";
        form.fault(&format!("targets.secretEnv.{n}"), FaultCode::Invalid, detail);
    }
    rules
}

fn server(form: &mut Form<'_>) -> ServerSettings {
    let text = form.text("server.listen").unwrap_or_default().to_owned();
    let listen = text.parse().unwrap_or_else(|_| {
        let detail = format!(
            "`{}` is not an address and a port, such as `127.0.0.1:7070`, `0.0.0.0:7070` or `[::1]:7070`",
            excerpt(&text)
        );
        form.fault("server.listen", FaultCode::Invalid, detail);
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)
    });
    let public_url = form.text("server.publicUrl").map(|url| url.trim_end_matches('/').to_owned());
    if public_url.as_deref().is_some_and(|url| !is_origin(url)) {
        let detail = "must be `http://` or `https://`, a host, and at most a port and a path";
        form.fault("server.publicUrl", FaultCode::Invalid, detail);
    }
    ServerSettings {
        listen,
        public_url,
        trust_proxy: form.flag("server.trustProxy"),
        role: form.word("server.role", Role::from_word).unwrap_or_default(),
        max_connections: form.count("server.maxConnections").unwrap_or(1),
        request_timeout: request_timeout(form),
        max_connections_per_address: form.count("server.maxConnectionsPerAddress").unwrap_or(1),
        allow_copy: form.flag("database.allowCopy"),
        data_dir: PathBuf::from(form.text("server.dataDir").unwrap_or_default()),
    }
}

fn request_timeout(form: &mut Form<'_>) -> Duration {
    let allowed = Duration::from_secs(1)..=Duration::from_mins(10);
    let time = form.span("server.requestTimeout").unwrap_or(ConnectOptions::default().request_timeout);
    if !allowed.contains(&time) {
        form.fault("server.requestTimeout", FaultCode::OutOfRange, "must be from 1s to 10m");
    }
    time
}

/// How the database is used.
fn connect(form: &Form<'_>, request_timeout: Duration) -> ConnectOptions {
    let mut options = ConnectOptions::default();
    options.max_connections = form.count("database.maxConnections");
    options.request_timeout = request_timeout;
    options
}

fn is_origin(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let odd =
            |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '@' | '"' | '<' | '>' | '\\');
        !rest.is_empty() && !rest.starts_with(['/', ':']) && !rest.contains(odd)
    })
}

fn database(form: &mut Form<'_>, secrets: Secrets<'_>) -> Secret {
    let (path, url) = match (form.value("database.url"), form.text("database.urlFile")) {
        (Some(url), _) => ("database.url", secrets.read(url)),
        (None, Some(file)) => ("database.urlFile", in_file(file)),
        (None, None) => ("database.url", Ok(Secret::new(""))),
    };
    let checked = url.and_then(|url| match everbell::check_address(url.reveal()) {
        Ok(()) => Ok(url),
        Err(invalid) => Err(invalid.reason),
    });
    checked.unwrap_or_else(|reason| {
        form.fault(path, FaultCode::Invalid, reason);
        Secret::new("")
    })
}

/// A token that is said here or in a file. It is never shown, and an empty one is never taken for none.
fn token(
    form: &mut Form<'_>,
    secrets: Secrets<'_>,
    path: &str,
    bad: fn(&str) -> Option<&'static str>,
) -> Option<Secret> {
    let in_its_file = format!("{path}File");
    let (path, found) = match (form.value(path), form.text(&in_its_file)) {
        (Some(value), _) => (path, secrets.read(value)),
        (None, Some(file)) => (in_its_file.as_str(), in_file(file)),
        (None, None) => return None,
    };
    let checked = found.and_then(|token| match bad(token.reveal()) {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(token),
    });
    checked.map_err(|reason| form.fault(path, FaultCode::Invalid, reason)).ok()
}

fn bad_metrics_token(token: &str) -> Option<&'static str> {
    let is_good = (16..=1_000).contains(&token.len()) && token.chars().all(|c| c.is_ascii_graphic());
    (!is_good).then_some("must be 16 to 1000 visible ASCII characters without spaces")
}

fn api(form: &mut Form<'_>) -> ApiSettings {
    let mounts: Vec<String> = form.list("api.mounts").into_iter().map(str::to_owned).collect();
    if mounts.is_empty() {
        form.fault("api.mounts", FaultCode::Invalid, "must name at least one path, such as `/api/v1`");
    }
    for (n, mount) in mounts.iter().enumerate() {
        let lies_in = |outer: &String| mount.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if let Some(detail) = bad_mount(mount) {
            form.fault(&format!("api.mounts.{n}"), FaultCode::Invalid, detail);
        } else if mounts[..n].contains(mount) {
            form.fault(&format!("api.mounts.{n}"), FaultCode::Invalid, "is listed twice");
        } else if let Some(outer) = mounts.iter().find(|outer| lies_in(outer)) {
            form.fault(
                &format!("api.mounts.{n}"),
                FaultCode::Invalid,
                format!("lies within `{outer}`, which is also listed"),
            );
        }
    }
    let status = form.count("api.runNowOverlapStatus").unwrap_or(409);
    if ![200, 409].contains(&status) {
        form.fault("api.runNowOverlapStatus", FaultCode::Invalid, "must be 409 or 200");
    }
    let (write_rate, write_burst) =
        (form.count("api.writeRate").unwrap_or(0), form.count("api.writeBurst").unwrap_or(1));
    ApiSettings {
        mounts,
        compat: form.answer("api.compat").unwrap_or(true),
        require_if_match: form.flag("api.requireIfMatch"),
        run_now_overlap_status: if status == 200 { 200 } else { 409 },
        docs: form.answer("api.docs").unwrap_or(true),
        write_limit: (write_rate > 0).then(|| Rate::per_second(write_rate, write_burst)),
    }
}

/// Paths at the root that belong to others.
const TAKEN: [&str; 6] = ["livez", "readyz", "healthz", "metrics", "openapi.json", "docs"];

fn bad_mount(mount: &str) -> Option<String> {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '~' | '-');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_sign) && part.chars().any(|c| c != '.');
    let parts = mount.strip_prefix('/').map(|rest| rest.split('/').collect::<Vec<_>>());
    match parts {
        Some(parts) if parts.iter().all(|part| is_part(part)) => {
            let taken = TAKEN.contains(&parts[0]) || everbell_ui::RESERVED_PATHS.contains(&parts[0]);
            taken.then(|| format!("`/{}` belongs to the server itself", parts[0]))
        }
        _ => Some("must be a path such as `/api/v1`: a slash before each part and none at the end".to_owned()),
    }
}

fn engine(form: &mut Form<'_>, role: Role) -> EngineOptions {
    let mut engine = EngineOptions::default();
    let span = |name: &str, default| form.span(&format!("engine.{name}")).unwrap_or(default);
    engine.concurrency = form.count("engine.concurrency").unwrap_or(engine.concurrency);
    engine.batch = form.count("engine.batch").unwrap_or(engine.batch);
    engine.max_pending_runs = form.count("engine.maxPendingRuns").unwrap_or(engine.max_pending_runs);
    engine.poll = span("poll", engine.poll);
    engine.lease.duration = span("lease", engine.lease.duration);
    engine.lease.heartbeat = span("heartbeat", engine.lease.duration / 12);
    engine.shutdown_grace = span("shutdownGrace", engine.shutdown_grace);
    engine.cancel_grace = span("cancelGrace", engine.cancel_grace);
    engine.linger = span("linger", engine.linger);
    engine.roles = role.names();
    engine.retention = retention(form, "retention.keep");
    engine.audit_retention = retention(form, "retention.audit");
    for problem in engine.problems() {
        let path = match problem.field {
            "engine.lease.duration" => "engine.lease",
            // A default heartbeat is wrong only if the lease is.
            "engine.lease.heartbeat" if !form.has("engine.heartbeat") => "engine.lease",
            "engine.lease.heartbeat" => "engine.heartbeat",
            "engine.retention" => "retention.keep",
            "engine.auditRetention" => "retention.audit",
            field => field,
        };
        let reason = problem.reason.replace("or none to keep everything", "or `forever`");
        form.fault(path, FaultCode::OutOfRange, reason);
    }
    engine
}

/// How long something is kept; `None` is forever.
fn retention(form: &mut Form<'_>, path: &'static str) -> Option<Duration> {
    let text = form.text(path).filter(|text| *text != "forever")?;
    match parse_span(text) {
        Ok(keep) => Some(keep),
        Err(reason) => {
            form.fault(path, FaultCode::Invalid, format!("{reason}, or as `forever`"));
            None
        }
    }
}

fn log_filter(form: &mut Form<'_>) -> logs::Filter {
    let text = form.text("log.level").unwrap_or("info").to_owned();
    text.parse().unwrap_or_else(|reason: String| {
        form.fault("log.level", FaultCode::Invalid, reason);
        logs::Filter::default()
    })
}
