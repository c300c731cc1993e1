//! [`Refusal`]: a request that the server refused, in the words of a command, with a hint.

use std::fmt;

use everbell_wire as wire;
use serde_json::Value;

use crate::exit::Exit;
use everbell_wire::printable;

/// Members of bodies and parameters of queries whose flag has another name.
const FLAGS: &[(&str, &str)] = &[
    ("#/orgId", "--org"),
    ("#/localTime", "--at"),
    ("#/cronExpression", "--cron"),
    ("#/timezone", "--tz"),
    ("#/runAt", "--at"),
    ("#/jobKey", "KEY"),
    ("#/nextRunAt", "--to"),
    ("#/missed", "--run-missed"),
    ("#/policies/retry/maxAttempts", "--retries"),
    ("#/policies/retry/initial", "--retry-initial"),
    ("#/policies/retry/max", "--retry-max"),
    ("#/policies/dst/gap", "--dst-gap"),
    ("#/policies/dst/fold", "--dst-fold"),
    ("#/policies/dependsOn/within", "--depends-on"),
    ("#/policies/dependsOn/jobKey", "--depends-on"),
    ("#/expiresAt", "--expires"),
    ("#/name", "NAME"),
    ("jobKey", "--job"),
    ("lastRunStatus", "--last-run"),
    ("triggerType", "--trigger"),
    ("instanceId", "--instance"),
    ("q", "--search"),
];

/// Kinds of objects that have a list command.
const LISTED_KINDS: [&str; 3] = ["job", "org", "run"];

/// A request that the server refused, explained in the words of a command.
#[derive(Debug)]
pub struct Refusal {
    /// The words of the command for its request, such as: create job `night`. It also knows its flags then.
    action: Option<String>,
    source: everbell_client::Refusal,
    hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(refusal: everbell_client::Refusal, hint: Option<String>) -> Refusal {
        Refusal { action: None, source: refusal, hint }
    }

    /// With what the command tried to do.
    pub(crate) fn with_action(self, action: String) -> Refusal {
        Refusal { action: Some(action), ..self }
    }

    /// With a hint, unless it has one.
    pub(crate) fn or_hint(self, hint: impl FnOnce(&Refusal) -> Option<String>) -> Refusal {
        let hint = if self.hint.is_none() { hint(&self) } else { self.hint };
        Refusal { hint, ..self }
    }

    pub(crate) fn status(&self) -> u16 {
        self.source.status
    }

    /// The problem document; empty if the response was none.
    pub(crate) fn problem(&self) -> &wire::Problem {
        &self.source.problem
    }

    /// The problem document as it came.
    pub(crate) fn json(&self) -> &Value {
        &self.source.json
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.status() {
            401 | 403 => Exit::Denied,
            404 => Exit::NotFound,
            409 | 412 | 428 => Exit::Conflict,
            408 | 504 => Exit::Unreachable,
            400..=428 => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    /// A hint at the command that lists the objects of the kind that is missing.
    pub(crate) fn list_hint(&self) -> Option<String> {
        let problem = self.problem();
        let missing = problem.subject.as_deref().filter(|_| problem.code == wire::ProblemCode::NotFound)?;
        LISTED_KINDS.contains(&missing).then(|| format!("list them: everbell {missing}s list"))
    }
}

/// The location of a fault, as the command line names it, and its detail.
fn in_flags(fault: &wire::Fault) -> (String, String) {
    let location = flag_of(fault.location());
    let detail = naming_flags(&fault.detail);
    // The number of a line is named once.
    let line = location.split(": ").next().filter(|line| line.starts_with("line "));
    let detail = line.and_then(|line| detail.strip_prefix(line)?.strip_prefix(": ")).unwrap_or(&detail).to_owned();
    (location, detail)
}

/// The detail of a fault, with flags for the members that it names in backticks.
fn naming_flags(detail: &str) -> String {
    let flag = |name: &str| {
        let (_, flag) = FLAGS.iter().find(|(member, _)| member.strip_prefix("#/") == Some(name))?;
        flag.starts_with("--").then_some(*flag)
    };
    let detail = detail.replace("`orgs`: `all`", "`--all-orgs`");
    let spans = detail.split('`').enumerate();
    // Every second part is between backticks.
    let parts = spans.map(|(n, part)| flag(part).filter(|_| n % 2 == 1).unwrap_or(part));
    parts.collect::<Vec<_>>().join("`")
}

/// The flag for a member of a body or a parameter.
fn flag_of(location: &str) -> String {
    let name = location.trim_start_matches('#').trim_start_matches('/');
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match name.split_once('/') {
        // The whole body.
        _ if name.is_empty() => return String::new(),
        // A line of a file.
        None if is_number(name) => return format!("line {name}"),
        Some((line, member)) if is_number(line) => return format!("line {line}: {member}"),
        _ => {}
    }
    // One of several values of a flag.
    let location = location.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['.', '/']);
    if let Some((_, flag)) = FLAGS.iter().find(|(member, _)| *member == location) {
        return (*flag).to_owned();
    }
    let name = location.trim_start_matches("#/").trim_start_matches("policies/");
    let name = name.split(['/', '.']).next().unwrap_or_default();
    let spelled = |c: char| if c.is_uppercase() { format!("-{}", c.to_lowercase()) } else { c.to_string() };
    format!("--{}", name.chars().map(spelled).collect::<String>())
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            None => self.source.fmt(f)?,
            Some(action) => {
                write!(f, "cannot {}", printable(action))?;
                let faults = &self.problem().errors;
                if faults.is_empty() {
                    write!(f, ": {}", printable(&self.source.detail()))?;
                }
                for (location, detail) in faults.iter().map(in_flags) {
                    let location = if location.is_empty() { location } else { format!("{}: ", printable(&location)) };
                    write!(f, "\n  {location}{}", printable(&detail))?;
                }
            }
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {}", printable(hint)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::{CliError, RefusalContext};

    fn refused(status: u16, problem: &Value) -> CliError {
        let mut refusal = everbell_client::Refusal::default();
        refusal.call = "POST /api/v1/jobs".to_owned();
        refusal.status = status;
        refusal.problem = serde_json::from_value(problem.clone()).unwrap();
        Refusal::new(refusal, None).into()
    }

    #[test]
    fn every_status_has_an_exit_code() {
        for (status, exit) in [
            (302, 1),
            (400, 2),
            (401, 4),
            (403, 4),
            (404, 3),
            (408, 7),
            (409, 5),
            (412, 5),
            (413, 2),
            (422, 2),
            (503, 1),
        ] {
            assert_eq!(refused(status, &json!({})).exit() as u8, exit, "{status}");
        }
    }

    #[test]
    fn faults_name_the_flags_of_the_command() {
        let errors = json!([
            {"pointer": "#/timezone", "detail": "is unknown"}, {"pointer": "#/policies/catchUpLimit", "detail": "is 0"},
            {"pointer": "#/labels/team", "detail": "is no text"}, {"parameter": "limit", "detail": "is\u{7} long"},
            {"parameter": "lastRunStatus.0", "detail": "is lost"}, {"pointer": "#/orgs/1", "detail": "is empty"},
            {"pointer": "#/2", "detail": "line 2: is no object"}, {"pointer": "#", "detail": "says nothing"},
            {"pointer": "#/3/timezone", "detail": "line 3: is unknown"},
            {"pointer": "#/orgId", "detail": "orgId: set `orgId` or `orgs`: `all`, see `timezone`, not `target`"},
        ]);
        let raw = refused(400, &json!({"detail": "10 members.", "errors": errors}));
        assert!(raw.to_string().starts_with("cannot POST /api/v1/jobs\n  #/timezone: is unknown\n"), "{raw}");
        let explained = Err::<(), _>(raw).with_action(|| "create job `a`".to_owned());
        let expected = "cannot create job `a`\n  --tz: is unknown\n  --catch-up-limit: is 0\n  --labels: is no text\n  \
                        --limit: is\\u{7} long\n  --last-run: is lost\n  --orgs: is empty\n  line 2: is no object\n  \
                        says nothing\n  line 3: timezone: is unknown\n  --org: orgId: set `--org` or `--all-orgs`, \
                        see `--tz`, not `target`";
        assert_eq!(explained.unwrap_err().to_string(), expected);
    }

    #[test]
    fn missing_objects_get_a_hint_at_their_list() {
        let explained = |code: &str, subject: &str| {
            let problem = json!({ "code": code, "detail": "It is gone.", "subject": subject, "name": "a" });
            Err::<(), _>(refused(404, &problem)).or_list().unwrap_err().to_string()
        };
        let message = explained("NotFound", "org");
        assert!(message.ends_with("it is gone\n  hint: list them: everbell orgs list"), "{message}");
        assert!(explained("NotFound", "job").ends_with("everbell jobs list"));
        assert!(explained("NotFound", "backfill").ends_with("it is gone"));
        assert!(explained("Other", "job").ends_with("it is gone"));
    }
}
