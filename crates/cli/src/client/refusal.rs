//! [`Refusal`]: a server said no. What was asked, why not, and what to try.

use std::fmt;

use everbell_wire as wire;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;

use super::place::Place;
use crate::{CliError, Exit};
use everbell_wire::printable;

/// Which flag says what a member of a body, or a parameter, says.
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

/// What a detail calls by the names of a body, as the command line spells it.
const WORDS: &[(&str, &str)] = &[
    ("`orgs`: `all`", "`--all-orgs`"),
    ("`orgId`", "`--org`"),
    ("`cronExpression`", "`--cron`"),
    ("`localTime`", "`--at`"),
];

/// What has a list of its own.
const LISTED: [&str; 3] = ["job", "org", "run"];

/// A call that the server did not do.
#[derive(Debug)]
pub struct Refusal {
    /// In words, or as method and path.
    asked: String,
    /// A command asked in its own words, so it knows its flags.
    by_command: bool,
    pub(crate) status: u16,
    /// The problem; empty if the response was none.
    pub(crate) problem: wire::Problem,
    /// The problem as it came; `null` if the response was none.
    pub(crate) json: Value,
    detail: String,
    hint: Option<String>,
}

impl Refusal {
    pub(super) fn new(asked: String, status: u16, headers: &HeaderMap, text: &str, place: &Place) -> Refusal {
        let problem: wire::Problem = serde_json::from_str(text).unwrap_or_default();
        let said = [&problem.detail, &problem.title].into_iter().find(|words| !words.is_empty());
        let detail = match (said, headers.get(LOCATION).and_then(|to| to.to_str().ok())) {
            (Some(said), _) => said.clone(),
            (None, Some(to)) => format!("the server sends us to {to}, and redirects are not followed"),
            (None, None) => format!("the server answered {status} without saying why"),
        };
        let hint = hint(status, said.is_some(), place);
        let json = serde_json::from_str(text).unwrap_or_default();
        Refusal { asked, by_command: false, status, problem, json, detail, hint }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.status {
            401 | 403 => Exit::Denied,
            404 => Exit::NotFound,
            409 | 412 | 428 => Exit::Conflict,
            408 | 504 => Exit::Unreachable,
            400..=428 => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    /// Where to see what there is instead of what is not there.
    fn list(&self) -> Option<String> {
        let missing = self.problem.subject.as_deref().filter(|_| self.problem.code == wire::Problem::NOT_FOUND)?;
        LISTED.contains(&missing).then(|| format!("see which there are: everbell {missing}s list"))
    }

    fn faults(&self) -> impl Iterator<Item = (String, String)> {
        self.problem.errors.iter().filter_map(|fault| {
            let place = fault.pointer.as_ref().or(fault.parameter.as_ref()).or(fault.header.as_ref())?;
            let place = self.named(place);
            let detail = self.worded(&fault.detail);
            // A line of a file is named once.
            let line = place.split(": ").next().filter(|line| line.starts_with("line "));
            let detail =
                line.and_then(|line| detail.strip_prefix(line)?.strip_prefix(": ")).unwrap_or(&detail).to_owned();
            Some((place, detail))
        })
    }

    fn worded(&self, detail: &str) -> String {
        let words = WORDS.iter().filter(|_| self.by_command);
        words.fold(detail.to_owned(), |text, (member, flag)| text.replace(member, flag))
    }

    /// A place as the command line spells it.
    fn named(&self, place: &str) -> String {
        if !self.by_command {
            return place.to_owned();
        }
        let name = place.trim_start_matches('#').trim_start_matches('/');
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        match name.split_once('/') {
            // Everything that was sent.
            _ if name.is_empty() => return String::new(),
            // A line of a file.
            None if is_number(name) => return format!("line {name}"),
            Some((line, member)) if is_number(line) => return format!("line {line}: {member}"),
            _ => {}
        }
        // One of several values of the same flag.
        let place = place.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['.', '/']);
        if let Some((_, flag)) = FLAGS.iter().find(|(own, _)| *own == place) {
            return (*flag).to_owned();
        }
        let name = place.trim_start_matches("#/").trim_start_matches("policies/");
        let name = name.split(['/', '.']).next().unwrap_or_default();
        let spelled = |c: char| if c.is_uppercase() { format!("-{}", c.to_lowercase()) } else { c.to_string() };
        format!("--{}", name.chars().map(spelled).collect::<String>())
    }
}

fn hint(status: u16, is_problem: bool, place: &Place) -> Option<String> {
    Some(match (status, &place.token) {
        (401, None) => {
            "give a token: set EVERBELL_TOKEN, name a file with `--token-file`, or work in the folder of the \
                        server, where `everbell-data/admin-token` is"
                .to_owned()
        }
        (401, Some(token)) => {
            format!("the token of {} is not known there: it ended, was revoked, or is for another server", token.source)
        }
        (403, Some(token)) => {
            format!(
                "the token of {} may not do that; an admin makes others with `everbell tokens create`",
                token.source
            )
        }
        (500..=599, _) => "the log of the server tells more; try again in a moment".to_owned(),
        _ if !is_problem => "see that this is the address of an everbell server".to_owned(),
        _ => return None,
    })
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", printable(&self.asked))?;
        let faults: Vec<_> = self.faults().collect();
        if faults.is_empty() {
            write!(f, ": {}", printable(&in_a_sentence(&self.detail)))?;
        }
        for (place, detail) in faults {
            let place = if place.is_empty() { place } else { format!("{}: ", printable(&place)) };
            write!(f, "\n  {place}{}", printable(&detail))?;
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {}", printable(hint)))
    }
}

/// Without the capital and the dot of a sentence of its own.
fn in_a_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let (first, second) = (letters.next(), letters.clone().next());
    let lowered = match first {
        Some(first) if second.is_some_and(|second| second.is_lowercase() || second == ' ') => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    };
    lowered.strip_suffix('.').map_or(lowered.clone(), str::to_owned)
}

/// Says in words what was asked, and what to try if the server says no.
pub(crate) trait Asked<T> {
    /// What the command wanted, such as: create job `night`.
    fn asked(self, words: impl FnOnce() -> String) -> Result<T, CliError>;

    /// What to try, if the server has not said so itself and says no in this way.
    fn or_try(self, status: u16, hint: impl FnOnce() -> String) -> Result<T, CliError>;

    /// Where to see what there is, if something is not there: the job, or the org that was meant beside it.
    fn or_list(self) -> Result<T, CliError>;
}

impl<T> Asked<T> for Result<T, CliError> {
    fn asked(self, words: impl FnOnce() -> String) -> Result<T, CliError> {
        self.map_err(|error| match error {
            CliError::Refused(refusal) => {
                CliError::Refused(Box::new(Refusal { asked: words(), by_command: true, ..*refusal }))
            }
            other => other,
        })
    }

    fn or_try(self, status: u16, hint: impl FnOnce() -> String) -> Result<T, CliError> {
        self.map_err(|error| match error {
            CliError::Refused(refusal) if refusal.status == status && refusal.hint.is_none() => {
                CliError::Refused(Box::new(Refusal { hint: Some(hint()), ..*refusal }))
            }
            other => other,
        })
    }

    fn or_list(self) -> Result<T, CliError> {
        self.map_err(|error| match error {
            CliError::Refused(refusal) if refusal.status == 404 && refusal.hint.is_none() => {
                CliError::Refused(Box::new(Refusal { hint: refusal.list(), ..*refusal }))
            }
            other => other,
        })
    }
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> CliError {
        CliError::Refused(Box::new(refusal))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::place::Given;
    use super::*;

    fn refusal(status: u16, problem: &Value) -> Refusal {
        let place = Place::find(&Given::default()).unwrap();
        Refusal::new("POST /api/v1/jobs".to_owned(), status, &HeaderMap::new(), &problem.to_string(), &place)
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
            assert_eq!(refusal(status, &json!({})).exit() as u8, exit, "{status}");
        }
    }

    #[test]
    fn faults_are_told_with_the_flag_that_is_meant() {
        let errors = json!([
            {"pointer": "#/timezone", "detail": "is unknown"}, {"pointer": "#/policies/catchUpLimit", "detail": "is 0"},
            {"pointer": "#/labels/team", "detail": "is no text"}, {"parameter": "limit", "detail": "is\u{7} long"},
            {"parameter": "lastRunStatus.0", "detail": "is lost"}, {"pointer": "#/orgs/1", "detail": "is empty"},
            {"pointer": "#/2", "detail": "line 2: is no object"}, {"pointer": "#", "detail": "says nothing"},
            {"pointer": "#/3/timezone", "detail": "line 3: is unknown"},
        ]);
        let raw = refusal(400, &json!({"detail": "9 members.", "errors": errors}));
        assert!(raw.to_string().starts_with("cannot POST /api/v1/jobs\n  #/timezone: is unknown\n"), "{raw}");
        let asked = Err::<(), _>(CliError::from(raw)).asked(|| "create job `a`".to_owned());
        let expected = "cannot create job `a`\n  --tz: is unknown\n  --catch-up-limit: is 0\n  --labels: is no text\n  \
                        --limit: is\\u{7} long\n  --last-run: is lost\n  --orgs: is empty\n  line 2: is no object\n  \
                        says nothing\n  line 3: timezone: is unknown";
        assert_eq!(asked.unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_detail_ends_the_sentence() {
        let told = refusal(404, &json!({"detail": "There is no job `A.b`."})).to_string();
        assert_eq!(told, "cannot POST /api/v1/jobs: there is no job `A.b`");
        assert_eq!(in_a_sentence("URL is bad"), "URL is bad");
        assert_eq!(in_a_sentence("A job."), "a job");
        assert_eq!(in_a_sentence(""), "");
    }

    #[test]
    fn what_is_not_there_has_a_list() {
        let hinted = |code: &str, subject: &str| {
            let problem = json!({ "code": code, "detail": "It is gone.", "subject": subject, "name": "a" });
            Err::<(), _>(CliError::from(refusal(404, &problem))).or_list().unwrap_err().to_string()
        };
        let told = hinted("NotFound", "org");
        assert!(told.ends_with("it is gone\n  hint: see which there are: everbell orgs list"), "{told}");
        assert!(hinted("NotFound", "job").ends_with("everbell jobs list"));
        assert!(hinted("NotFound", "backfill").ends_with("it is gone"));
        assert!(hinted("Other", "job").ends_with("it is gone"));
    }

    #[test]
    fn something_else_than_everbell_is_told_apart() {
        let place = Place::find(&Given::default()).unwrap();
        let told = Refusal::new("GET /jobs".to_owned(), 502, &HeaderMap::new(), "<html>", &place).to_string();
        assert!(told.starts_with("cannot GET /jobs: the server answered 502 without saying why\n  hint: "), "{told}");
    }
}
