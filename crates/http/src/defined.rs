//! Parts of the configuration of a server as people may know them.

/// A notification channel as people may know it.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// `webhook`, `slack`, `email` or `command`.
    pub kind: &'static str,
    /// The rules that use it.
    pub rules: Vec<String>,
}

/// A target as people may know it.
#[derive(Clone, Debug)]
pub struct ConfiguredTarget {
    /// Its label.
    pub label: String,
    /// `log`, `http`, `command` or `shell`.
    pub kind: &'static str,
    /// The host that it calls, or its program. Never a secret.
    pub address: Option<String>,
    /// The most of its runs that one instance executes at once, if it has a limit.
    pub concurrency: Option<u32>,
    /// Its `[[target]]` block without secrets. Only admins read it.
    pub block: Option<String>,
}
