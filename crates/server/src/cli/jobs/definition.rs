//! Flags that say what a job is, and the body that they make.

use std::path::Path;

use clap::Args;
use everbell_core::Zone;
use everbell_core::cron::Expression;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::cli::CliError;
use crate::cli::api::{input, pair};
use crate::form::{iso, parse_span};
use crate::time_input::TimeReader;

/// What a job is, besides when it fires.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "What it does")]
pub(crate) struct DefinitionArgs {
    /// What the target gets: JSON, `@FILE` that holds it, or `-` for standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    /// A text for people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A label for filters; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,
    /// Stop a run that takes longer.
    #[arg(long, value_name = "DURATION", value_parser = span, help_heading = "Policies")]
    timeout: Option<String>,
    /// What happens to a slot while an earlier run is active.
    #[arg(long, value_name = "RULE", value_parser = ["skip", "queue", "replace", "allow"], help_heading = "Policies")]
    overlap: Option<String>,
    /// How many runs may be active before `--overlap` is asked.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Policies")]
    max_concurrent_runs: Option<u16>,
    /// What happens to slots that were missed because nothing was running.
    #[arg(long, value_name = "RULE", value_parser = ["once", "none", "all"], help_heading = "Policies")]
    catch_up: Option<String>,
    /// How many missed slots `--catch-up all` runs at the most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Policies")]
    catch_up_limit: Option<u16>,
    /// Slots older than this are not caught up.
    #[arg(long, value_name = "DURATION", value_parser = span, help_heading = "Policies")]
    catch_up_window: Option<String>,
    /// A slot younger than this is on time.
    #[arg(long, value_name = "DURATION", value_parser = span, help_heading = "Policies")]
    grace: Option<String>,
    /// Delay each slot by a share of this, always the same for the same slot.
    #[arg(long, value_name = "DURATION", value_parser = span, help_heading = "Policies")]
    jitter: Option<String>,
    /// Try a failed run again so often.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=99), help_heading = "Policies")]
    retries: Option<u8>,
    /// Wait so long before the second attempt, then twice as long each time.
    #[arg(long, value_name = "DURATION", value_parser = span, help_heading = "Policies")]
    retry_initial: Option<String>,
    /// Never wait longer for another attempt.
    #[arg(long, value_name = "DURATION", value_parser = span, help_heading = "Policies")]
    retry_max: Option<String>,
    /// Stop a run whose instance cannot renew its lease, or let it continue beside the next one.
    #[arg(long, value_name = "RULE", value_parser = ["stop", "continue"], help_heading = "Policies")]
    on_lease_loss: Option<String>,
    /// So many failures in a row pause the job.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Policies")]
    pause_after_failures: Option<u16>,
    /// Skip a slot unless that job succeeded so recently.
    #[arg(long, value_name = "KEY=DURATION", value_parser = dependency, help_heading = "Policies")]
    depends_on: Option<(String, String)>,
    /// What happens to local times that do not exist when clocks go forward.
    #[arg(long, value_name = "RULE", value_parser = ["shift", "skip"], help_heading = "When it fires")]
    dst_gap: Option<String>,
    /// Which of two equal local times fires when clocks go back.
    #[arg(long, value_name = "RULE", value_parser = ["first", "last", "both"], help_heading = "When it fires")]
    dst_fold: Option<String>,
}

/// When a job fires.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "When it fires")]
pub(crate) struct TimingArgs {
    /// Fire at these times: five fields, six with leading seconds, or a macro such as `@daily`.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, conflicts_with = "every")]
    pub(super) cron: Option<String>,
    /// Fire at a fixed rate, such as every `90s`.
    #[arg(long, value_name = "DURATION", value_parser = rate)]
    pub(super) every: Option<String>,
    /// Fire once for all, or for each org at its own local time.
    #[arg(long, value_name = "SCOPE", value_parser = ["global", "per_org"])]
    pub(super) scope: Option<String>,
    /// Leave out slots before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) start_at: Option<String>,
    /// Leave out slots after this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) end_at: Option<String>,
}

/// A body, whose payload is sent as it was written, so that no number loses a digit.
#[derive(Default, Serialize)]
pub(crate) struct Body {
    #[serde(flatten)]
    pub(crate) members: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Box<RawValue>>,
}

impl Body {
    pub(crate) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.members.insert(name.to_owned(), value.into());
    }

    /// Sets a member of `policies`, or of an object in it.
    pub(crate) fn put_policy(&mut self, path: &str, value: impl Into<Value>) {
        let mut object = self.members.entry("policies").or_insert_with(|| json!({}));
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                object[name] = value.into();
                return;
            }
            if !object[name].is_object() {
                object[name] = json!({});
            }
            object = &mut object[name];
        }
    }

    /// What the flags of a definition say.
    pub(super) fn describe(&mut self, args: &DefinitionArgs) -> Result<(), CliError> {
        self.payload = args.payload.as_deref().map(payload).transpose()?;
        if let Some(text) = &args.description {
            self.put("description", text.as_str());
        }
        if !args.label.is_empty() {
            let labels: Map<String, Value> =
                args.label.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            self.put("labels", labels);
        }
        let texts = [
            ("timeout", &args.timeout),
            ("overlap", &args.overlap),
            ("catchUp", &args.catch_up),
            ("catchUpWindow", &args.catch_up_window),
            ("grace", &args.grace),
            ("jitter", &args.jitter),
            ("retry.initial", &args.retry_initial),
            ("retry.max", &args.retry_max),
            ("onLeaseLoss", &args.on_lease_loss),
            ("dst.gap", &args.dst_gap),
            ("dst.fold", &args.dst_fold),
        ];
        for (path, text) in texts {
            if let Some(text) = text {
                self.put_policy(path, text.as_str());
            }
        }
        let numbers = [
            ("maxConcurrentRuns", args.max_concurrent_runs),
            ("catchUpLimit", args.catch_up_limit),
            ("pauseAfterFailures", args.pause_after_failures),
            ("retry.maxAttempts", args.retries.map(|retries| u16::from(retries) + 1)),
        ];
        for (path, number) in numbers {
            if let Some(number) = number {
                self.put_policy(path, number);
            }
        }
        if let Some((key, within)) = &args.depends_on {
            self.put_policy("dependsOn", json!({ "jobKey": key, "within": within }));
        }
        Ok(())
    }

    /// What the flags say about when it fires. The expression is looked at here, so that the place at fault is marked.
    pub(super) fn time(&mut self, args: &TimingArgs, zone: &Zone, now: Timestamp) -> Result<(), CliError> {
        let every = args.every.as_ref().map(|span| format!("@every {span}"));
        if let Some(expression) = args.cron.as_ref().or(every.as_ref()) {
            Expression::parse(expression)?;
            self.put("cronExpression", expression.as_str());
        }
        if let Some(scope) = &args.scope {
            self.put("scope", scope.as_str());
        }
        let times = TimeReader { now, zone };
        for (name, flag, text) in [("startAt", "--start-at", &args.start_at), ("endAt", "--end-at", &args.end_at)] {
            if let Some(text) = text {
                self.put(name, times.read(flag, text)?.to_string());
            }
        }
        Ok(())
    }
}

/// JSON, the content of a file, or of standard input.
pub(crate) fn payload(text: &str) -> Result<Box<RawValue>, CliError> {
    json_of("--payload", text)
}

/// The same for another flag.
pub(crate) fn json_of(flag: &str, text: &str) -> Result<Box<RawValue>, CliError> {
    let read = match text {
        "-" => input(Path::new("-"))?,
        _ => match text.strip_prefix('@') {
            Some(file) => input(Path::new(file))?,
            None => text.to_owned(),
        },
    };
    serde_json::from_str(read.trim()).map_err(|error| CliError::Invalid {
        message: format!(
            "{flag}: this is not JSON: {}",
            error.to_string().replace(" at line 1 column ", " at column ")
        ),
        hint: Some(format!(
            "quote it for the shell, as in {flag} '{{\"kind\":\"daily\"}}', or name a file: {flag} @FILE"
        )),
    })
}

fn span(text: &str) -> Result<String, String> {
    parse_span(text).map(iso)
}

/// As it was written, or as an expression spells `PT15M`.
fn rate(text: &str) -> Result<String, String> {
    let iso = span(text)?;
    let written = text.replace(' ', "");
    let known = Expression::parse(&format!("@every {written}")).is_ok();
    Ok(if known { written } else { iso.trim_start_matches("PT").to_lowercase() })
}

fn dependency(text: &str) -> Result<(String, String), String> {
    let (key, within) = text.rsplit_once('=').ok_or("write it as KEY=DURATION, such as `import=6h`")?;
    Ok((key.to_owned(), span(within)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_keeps_its_digits() {
        let mut body = Body { payload: Some(payload("{\"n\":12345678901234567890.10}").unwrap()), ..Body::default() };
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
                .starts_with("--payload: this is not JSON: key must be a string at column 2\n")
        );
    }
}
