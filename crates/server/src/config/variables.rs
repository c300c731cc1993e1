//! The variables of the environment that say something about the server.

use std::collections::BTreeMap;
use std::ffi::OsString;

use everbell_wire::form::did_you_mean;

/// A variable and the key that it sets.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    /// The path of names, such as `server.publicUrl`; nothing for the file itself.
    pub(crate) path: Option<&'static str>,
    /// A phrase for the documentation.
    pub(crate) doc: &'static str,
}

const fn sets(name: &'static str, path: &'static str, doc: &'static str) -> Variable {
    Variable { name, path: Some(path), doc }
}

/// How every variable of ours begins.
const PREFIX: &str = "EVERBELL_";

/// Names the configuration file.
pub(super) const CONFIG: &str = "EVERBELL_CONFIG";

/// Every variable that is read.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable { name: CONFIG, path: None, doc: "the configuration file; `everbell.toml` if it exists" },
    sets("EVERBELL_LISTEN", "server.listen", "address and port"),
    sets("EVERBELL_PUBLIC_URL", "server.publicUrl", "the public URL of the server"),
    sets("EVERBELL_TRUST_PROXY", "server.trustProxy", "`true` if a TLS proxy is in front"),
    sets("EVERBELL_ROLE", "server.role", "`all`, `scheduler` or `api`"),
    sets("EVERBELL_MAX_CONNECTIONS", "server.maxConnections", "maximum concurrent connections"),
    sets("EVERBELL_REQUEST_TIMEOUT", "server.requestTimeout", "time limit for answering a request"),
    sets(
        "EVERBELL_MAX_CONNECTIONS_PER_ADDRESS",
        "server.maxConnectionsPerAddress",
        "maximum concurrent connections from one address",
    ),
    sets("EVERBELL_DATA_DIR", "server.dataDir", "the folder of the SQLite file and of the first admin token"),
    sets("EVERBELL_DATABASE_URL", "database.url", "the address of the database"),
    sets("EVERBELL_DATABASE_URL_FILE", "database.urlFile", "a file that holds it"),
    sets("EVERBELL_DATABASE_MAX_CONNECTIONS", "database.maxConnections", "maximum connections to the database"),
    sets(
        "EVERBELL_DATABASE_ALLOW_COPY",
        "database.allowCopy",
        "whether the server may start on a copy while its original is in use",
    ),
    sets("EVERBELL_ADMIN_TOKEN", "auth.adminToken", "the token of the first admin"),
    sets("EVERBELL_ADMIN_TOKEN_FILE", "auth.adminTokenFile", "a file that holds it"),
    sets("EVERBELL_METRICS_TOKEN", "auth.metricsToken", "the token that `/metrics` requires"),
    sets("EVERBELL_METRICS_TOKEN_FILE", "auth.metricsTokenFile", "a file that holds it"),
    sets("EVERBELL_CONCURRENCY", "engine.concurrency", "maximum concurrent handlers"),
    sets("EVERBELL_SHUTDOWN_GRACE", "engine.shutdownGrace", "how long a shutdown waits for runs"),
    sets("EVERBELL_RETENTION", "retention.keep", "how long runs and gaps are kept, or `forever`"),
    sets("EVERBELL_AUDIT_RETENTION", "retention.audit", "how long audit entries are kept, or `forever`"),
    sets("EVERBELL_LOG", "log.level", "such as `info,everbell=debug`"),
    sets("EVERBELL_LOG_FORMAT", "log.format", "`text` or `json`"),
];

/// Variables with this prefix that mean something to others: the command line as a client, the tests, commands that the
/// server runs, and what Kubernetes sets for a service that is called `everbell`.
const ELSEWHERE: [&str; 8] = [
    "EVERBELL_SERVER",
    "EVERBELL_TOKEN",
    "EVERBELL_TOKEN_FILE",
    "EVERBELL_PROFILE",
    "EVERBELL_SEED",
    "EVERBELL_BLESS",
    "EVERBELL_CHARTS",
    "EVERBELL_PORT",
];
const ELSEWHERE_BEGIN: [&str; 8] = [
    "EVERBELL_TEST_",
    "EVERBELL_RUN_",
    "EVERBELL_JOB_",
    "EVERBELL_ORACLE_",
    "EVERBELL_EXAMPLE_",
    "EVERBELL_BENCH_",
    "EVERBELL_SERVICE_",
    "EVERBELL_PORT_",
];

/// The environment of a process, as a value.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Ignores names that are not valid Unicode.
    pub(crate) fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let named = variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Environment(named.collect())
    }

    /// Returns the value of a variable, or why it cannot be used. An empty variable is an error: it is never intended.
    pub(super) fn get(&self, name: &str) -> Option<Result<&str, &'static str>> {
        let value = self.0.get(name)?;
        Some(match value.to_str() {
            None => Err("is not valid UTF-8"),
            Some(text) if text.trim().is_empty() => Err("is empty; give it a value or unset it"),
            Some(text) => Ok(text),
        })
    }

    /// Returns warnings about unknown variables with our prefix.
    pub(super) fn warnings(&self) -> Vec<String> {
        let ours = |name: &&String| name.starts_with(PREFIX) && name.chars().count() <= 100;
        let unknown = self.0.keys().filter(ours).filter(|name| !is_known(name));
        let told = |name: &String| {
            let own = |name: &'static str| name.strip_prefix(PREFIX).unwrap_or(name);
            let near =
                did_you_mean(name.trim_start_matches(PREFIX), VARIABLES.iter().map(|variable| own(variable.name)));
            let more = match near {
                Some(near) => format!("did you mean `{PREFIX}{near}`?"),
                None => "`everbell config --help` lists the known ones".to_owned(),
            };
            format!("unknown variable `{}`; {more}", name.escape_debug())
        };
        unknown.map(told).collect()
    }
}

fn is_known(name: &str) -> bool {
    VARIABLES.iter().any(|variable| variable.name == name)
        || ELSEWHERE.contains(&name)
        || ELSEWHERE_BEGIN.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::super::fields;
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::new(variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
    }

    #[test]
    fn every_variable_sets_a_key_that_exists() {
        for Variable { name, path, doc } in VARIABLES {
            assert!(path.is_none_or(|path| fields::field(path).is_some()), "{name}");
            assert!(name.starts_with("EVERBELL_") && !doc.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_variable_that_looks_like_ours_is_told() {
        let known =
            ["EVERBELL_LISTEN", "EVERBELL_TOKEN", "EVERBELL_RUN_ID", "EVERBELL_PORT_7070_TCP", "PATH", "EVERBELLS"];
        let known: Vec<_> = known.iter().map(|name| (*name, "x")).collect();
        assert_eq!(environment(&known).warnings(), [""; 0]);
        let told = environment(&[("EVERBELL_LISTENS", "x"), ("EVERBELL_DATABASE", "secret")]).warnings();
        let expected = [
            "unknown variable `EVERBELL_DATABASE`; did you mean `EVERBELL_DATABASE_URL`?",
            "unknown variable `EVERBELL_LISTENS`; did you mean `EVERBELL_LISTEN`?",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn nothing_is_not_a_value() {
        let environment = environment(&[("A", ""), ("B", " "), ("C", "c")]);
        assert_eq!(environment.get("A"), Some(Err("is empty; give it a value or unset it")));
        assert_eq!(environment.get("B"), environment.get("A"));
        assert_eq!((environment.get("C"), environment.get("D")), (Some(Ok("c")), None));
    }
}
