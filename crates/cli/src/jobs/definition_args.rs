//! Flags that define a job, and the body of the request that they make.

use std::path::Path;

use clap::Args;
use clap::builder::PossibleValuesParser;
use everbell_core::Zone;
use everbell_core::cron::Expression;
use everbell_wire::JobBody;
use everbell_wire::job::{ChainOn, GroupBy, Scope};
use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::policy_args::{PolicyArgs, span};
use crate::CliError;
use crate::api::{input, pair};
use everbell_wire::time_input::TimeReader;

/// The definition of a job, except its schedule.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Definition")]
pub(crate) struct DefinitionArgs {
    /// The payload: JSON, `@FILE` to read a file, or `-` for standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    /// A description for people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A label for filters. Repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,
    #[command(flatten)]
    policies: PolicyArgs,
}

/// The schedule of a job.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Schedule")]
pub(crate) struct TimingArgs {
    /// The cron expression: five fields, six with leading seconds, or a macro such as `@daily`.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, conflicts_with = "every")]
    pub(super) cron: Option<String>,
    /// Fire at a fixed rate, such as every `90s`.
    #[arg(long, value_name = "DURATION", value_parser = rate)]
    pub(super) every: Option<String>,
    /// Start when runs of this job end, instead of at times. Give it several times to start once all of these jobs have ended.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["cron", "every"])]
    pub(super) after: Vec<String>,
    /// The outcomes of the other job's runs that start this one. Once for all jobs, or once for each `--after`, in order.
    #[arg(long, value_name = "OUTCOME", value_parser = PossibleValuesParser::new(ChainOn::WORDS), requires = "after")]
    pub(super) after_on: Vec<String>,
    /// With several jobs: which of their runs belong together, those of the same slot or of the same local date.
    #[arg(long, value_name = "GROUP", value_parser = PossibleValuesParser::new(GroupBy::WORDS), requires = "after")]
    pub(super) after_group: Option<String>,
    /// With several jobs: the longest wait after the first of their runs ends.
    #[arg(long, value_name = "DURATION", requires = "after")]
    pub(super) after_within: Option<String>,
    /// Also start after manual runs, reruns and backfills.
    #[arg(long, requires = "after")]
    pub(super) after_manual: bool,
    /// Fire once (`global`), or for each org at its own local time (`per_org`).
    #[arg(long, value_name = "SCOPE", value_parser = PossibleValuesParser::new(Scope::WORDS))]
    pub(super) scope: Option<String>,
    /// Leave out slots before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) start_at: Option<String>,
    /// Leave out slots after this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) end_at: Option<String>,
}

impl DefinitionArgs {
    /// Writes the flags into the body of a request.
    pub(super) fn write_to(&self, body: &mut JobBody) -> Result<(), CliError> {
        body.payload = self.payload.as_deref().map(payload).transpose()?;
        if let Some(text) = &self.description {
            body.put("description", text.as_str());
        }
        if !self.label.is_empty() {
            let labels: Map<String, Value> =
                self.label.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            body.put("labels", labels);
        }
        self.policies.write_to(body);
        Ok(())
    }
}

impl TimingArgs {
    /// Writes the flags into the body of a request. Parses the expression, so that an error can point at its position.
    pub(super) fn write_to(&self, body: &mut JobBody, zone: &Zone, now: Timestamp) -> Result<(), CliError> {
        let every = self.every.as_ref().map(|span| format!("@every {span}"));
        if let Some(expression) = self.cron.as_ref().or(every.as_ref()) {
            Expression::parse(expression)?;
            body.put("cronExpression", expression.as_str());
        }
        self.write_parents(body)?;
        if let Some(scope) = &self.scope {
            body.put("scope", scope.as_str());
        }
        let times = TimeReader { now, zone };
        for (name, flag, text) in [("startAt", "--start-at", &self.start_at), ("endAt", "--end-at", &self.end_at)] {
            if let Some(text) = text {
                body.put(name, times.read(flag, text)?.to_string());
            }
        }
        Ok(())
    }
}

impl TimingArgs {
    /// Writes the jobs that the job starts after.
    fn write_parents(&self, body: &mut JobBody) -> Result<(), CliError> {
        if self.after_on.len() > 1 && self.after_on.len() != self.after.len() {
            let (outcomes, jobs) = (self.after_on.len(), self.after.len());
            return Err(CliError::invalid(format!(
                "--after-on is given {outcomes} times and --after {jobs} times: give it once for all jobs, or once for each"
            )));
        }
        let outcome = |n: usize| self.after_on.get(n).or(self.after_on.first()).map_or("success", String::as_str);
        let parent = |(n, job)| json!({ "job": job, "on": outcome(n), "manual": self.after_manual });
        let mut parents: Vec<Value> = self.after.iter().enumerate().map(parent).collect();
        match parents.len() {
            0 => {}
            1 => body.put("after", parents.remove(0)),
            _ => body.put("after", parents),
        }
        if let Some(group) = &self.after_group {
            body.put("afterGroup", group.as_str());
        }
        if let Some(within) = &self.after_within {
            body.put("afterWithin", within.as_str());
        }
        Ok(())
    }
}

pub(crate) fn payload(text: &str) -> Result<Box<RawValue>, CliError> {
    parse_json("--payload", text)
}

/// Reads the JSON of a flag: the text itself, a file, or standard input.
pub(crate) fn parse_json(flag: &str, text: &str) -> Result<Box<RawValue>, CliError> {
    let read = match text {
        "-" => input(Path::new("-"))?,
        _ => match text.strip_prefix('@') {
            Some(file) => input(Path::new(file))?,
            None => text.to_owned(),
        },
    };
    serde_json::from_str(read.trim()).map_err(|error| CliError::Invalid {
        message: format!("{flag}: invalid JSON: {}", error.to_string().replace(" at line 1 column ", " at column ")),
        hint: Some(format!("quote it for the shell: {flag} '{{\"kind\":\"daily\"}}', or read a file: {flag} @FILE")),
    })
}

/// Parses a duration, and returns it as an `@every` expression spells it.
fn rate(text: &str) -> Result<String, String> {
    let iso = span(text)?;
    let written = text.replace(' ', "");
    let known = Expression::parse(&format!("@every {written}")).is_ok();
    Ok(if known { written } else { iso.trim_start_matches("PT").to_lowercase() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_keeps_its_digits() {
        let mut body =
            JobBody { payload: Some(payload("{\"n\":12345678901234567890.10}").unwrap()), ..JobBody::default() };
        body.put_policy("retry.maxAttempts", 3);
        body.put_policy("retry.max", "1h");
        body.put_policy("overlap", "queue");
        let expected = "{\"policies\":{\"overlap\":\"queue\",\"retry\":{\"max\":\"1h\",\"maxAttempts\":3}},\
                        \"payload\":{\"n\":12345678901234567890.10}}";
        assert_eq!(serde_json::to_string(&body).unwrap(), expected);
        assert!(
            payload("{a}")
                .unwrap_err()
                .to_string()
                .starts_with("--payload: invalid JSON: key must be a string at column 2\n")
        );
    }
}
