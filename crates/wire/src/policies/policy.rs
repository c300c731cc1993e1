//! [`Policy`]: how one policy of a job is shown, set and written.

use everbell_core::PolicyValues;
use everbell_core::cron::Dst;
use serde_json::{Value, json};

use super::{POLICIES, Policies};
use crate::elapsed::wait;
use crate::form::parse_span;

/// One policy of a job, for forms, the command line and snippets.
#[derive(Debug)]
pub struct Policy {
    /// The path of its member in the document of a job, such as `policies.retry.maxAttempts`.
    pub path: &'static str,
    /// The values that it may have.
    pub kind: PolicyKind,
    /// The default as a form shows it.
    pub usual: &'static str,
    /// The title of the group in a form, one of [`GROUPS`](super::GROUPS).
    pub group: &'static str,
    /// The label of its field in a form.
    pub label: &'static str,
    /// The note below its field in a form.
    pub note: &'static str,
    /// Its flag on the command line; none if the flag of another policy sets both.
    pub flag: Option<Flag>,
    /// How a summary of the job names it.
    pub summary: Summary,
    /// The call on `Schedule` that sets it, as a line of Rust. Policies that one call sets together have the same line.
    pub rust: fn(&PolicyValues, Dst) -> Option<String>,
}

/// The values that a policy may have.
#[derive(Clone, Copy, Debug)]
pub enum PolicyKind {
    /// One of these words, each with its meaning; the first is the default. The empty word stands for no value.
    Words(&'static [(&'static str, &'static str)]),
    /// A whole number.
    Number {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// A duration.
    Duration,
    /// The key of a job.
    JobKey,
    /// Names, separated by commas.
    Names,
}

/// A flag of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
    /// The heading above it in the help.
    pub heading: &'static str,
    /// How its value is written.
    pub value: FlagValue,
}

/// How the value of a flag is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagValue {
    /// As the value of the policy.
    Plain,
    /// As the number of attempts after the first.
    Retries,
    /// As the key of a job and a duration: `import=6h`.
    JobAndDuration,
}

/// When a summary of a job names a policy, and with which words; `{}` stands for the value.
#[derive(Clone, Copy, Debug)]
pub enum Summary {
    /// In every summary.
    Always(&'static str),
    /// If the value is not the default.
    Changed(&'static str),
}

impl Policy {
    /// The words that it may have, without the empty one; empty if it is of another kind.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        let words = match self.kind {
            PolicyKind::Words(words) => words,
            PolicyKind::Number { .. } | PolicyKind::Duration | PolicyKind::JobKey | PolicyKind::Names => &[],
        };
        words.iter().map(|(word, _)| *word).filter(|word| !word.is_empty())
    }

    /// The path in `policies`, as [`JobBody::put_policy`](crate::JobBody::put_policy) takes it.
    pub fn member(&self) -> &'static str {
        self.path.trim_start_matches("policies.")
    }

    /// The name of its field in a form, such as `policies/retry/maxAttempts`.
    pub fn field_name(&self) -> String {
        self.path.replace('.', "/")
    }

    /// The path of the object that it belongs to.
    fn object(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(object, _)| object)
    }

    /// The path of the member that its flag sets.
    pub fn flag_sets(&self) -> &'static str {
        match self.flag {
            Some(Flag { value: FlagValue::JobAndDuration, .. }) => self.object(),
            _ => self.path,
        }
    }

    /// The path of the member that is removed when its flag is cleared. Without retries there are no waits between them.
    pub fn flag_clears(&self) -> &'static str {
        match self.flag {
            Some(Flag { value: FlagValue::JobAndDuration | FlagValue::Retries, .. }) => self.object(),
            _ => self.path,
        }
    }

    /// Returns the words of a summary for `value`, the default being `usual`.
    fn summarize(&self, value: &Value, usual: &Value) -> Option<String> {
        let words = match self.summary {
            Summary::Always(words) => words,
            Summary::Changed(words) => (value != usual).then_some(words)?,
        };
        let text = match (self.kind, self.flag) {
            (PolicyKind::Duration, _) => shorten(&plain(value)),
            (_, Some(Flag { value: FlagValue::Retries, .. })) => retries(value),
            _ => plain(value),
        };
        (!value.is_null()).then(|| words.replace("{}", &text))
    }
}

impl Flag {
    /// Returns the value of the flag that sets its member to `value`.
    pub fn text(&self, value: &Value) -> String {
        match self.value {
            FlagValue::Plain => plain(value),
            FlagValue::Retries => retries(value),
            FlagValue::JobAndDuration => format!("{}={}", plain(&value["jobKey"]), plain(&value["within"])),
        }
    }
}

impl Policies {
    /// Returns a few words for each policy that matters: the important ones always, the others if they are not the default.
    pub fn summary(&self) -> Vec<String> {
        let [own, usual] = [self, &Policies::default()].map(|policies| json!({ "policies": policies }));
        POLICIES.iter().filter_map(|policy| policy.summarize(at(&own, policy.path), at(&usual, policy.path))).collect()
    }
}

impl Policies {
    /// Returns a few words for each policy that is not the default, and for each important one that is.
    pub fn split_summary(&self) -> (Vec<String>, Vec<String>) {
        let [own, usual] = [self, &Policies::default()].map(|policies| json!({ "policies": policies }));
        let (mut changed, mut defaults) = (Vec::new(), Vec::new());
        for policy in POLICIES {
            let (value, usual) = (at(&own, policy.path), at(&usual, policy.path));
            let words = policy.summarize(value, usual);
            if value == usual { defaults.extend(words) } else { changed.extend(words) }
        }
        (changed, defaults)
    }
}

/// The member at a path; null if it is absent.
pub(super) fn at<'v>(document: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(document, |value, name| &value[name])
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn retries(attempts: &Value) -> String {
    attempts.as_u64().unwrap_or(1).saturating_sub(1).to_string()
}

/// `15m` for `PT15M`.
fn shorten(duration: &str) -> String {
    parse_span(duration).map_or_else(|_| duration.to_owned(), |span| wait(span.as_secs() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::{DependsOn, Overlap};

    #[test]
    fn summary_names_important_and_changed_policies() {
        let usual = ["timeout 15m", "overlap skip", "catch-up once", "retries 0"];
        assert_eq!(Policies::default().summary(), usual);
        let depends_on = Some(DependsOn { job_key: "etl".to_owned(), within: "PT24H".to_owned() });
        let changed = Policies {
            overlap: Overlap::Queue,
            max_concurrent_runs: 2,
            jitter: "PT5S".to_owned(),
            pause_after_failures: Some(3),
            depends_on,
            ..Policies::default()
        };
        let expected = "timeout 15m, overlap queue, up to 2 runs at once, catch-up once, retries 0, jitter 5s, \
                        pauses after 3 failures, depends on etl, dependency window 1d";
        assert_eq!(changed.summary().join(", "), expected);
        assert_eq!(Policies::default().split_summary(), (Vec::new(), usual.map(str::to_owned).to_vec()));
        let (changed, defaults) = changed.split_summary();
        let expected = "overlap queue, up to 2 runs at once, jitter 5s, pauses after 3 failures, depends on etl, \
                        dependency window 1d";
        assert_eq!(changed.join(", "), expected);
        assert_eq!(defaults, ["timeout 15m", "catch-up once", "retries 0"]);
    }
}
