//! [`PolicyArgs`]: a flag for every policy of a job.

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use everbell_wire::JobBody;
use everbell_wire::form::{iso, parse_span};
use everbell_wire::policies::{Flag, FlagValue, POLICIES, Policy, PolicyKind};
use serde_json::{Value, json};

/// The policies that flags set: the path of each member, and its value.
#[derive(Debug, Default)]
pub(crate) struct PolicyArgs(Vec<(&'static str, Value)>);

impl PolicyArgs {
    /// Writes the policies into the body of a request.
    pub(super) fn write_to(&self, body: &mut JobBody) {
        for (path, value) in &self.0 {
            put(body, path, value.clone());
        }
    }
}

impl FromArgMatches for PolicyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PolicyArgs, clap::Error> {
        let mut args = PolicyArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (policy, flag) in flags() {
            let Some(mut values) = matches.get_many::<Value>(flag.name) else { continue };
            let value = match policy.kind {
                PolicyKind::Names => {
                    Value::Array(values.filter_map(|list| list.as_array().cloned()).flatten().collect())
                }
                _ => values.next_back().cloned().unwrap_or_default(),
            };
            self.0.push((policy.flag_sets(), value));
        }
        Ok(())
    }
}

impl Args for PolicyArgs {
    fn augment_args(command: Command) -> Command {
        flags().fold(command, |command, (policy, flag)| command.arg(arg(policy, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        PolicyArgs::augment_args(command)
    }
}

/// Every policy that has a flag.
pub(super) fn flags() -> impl Iterator<Item = (&'static Policy, Flag)> {
    POLICIES.iter().filter_map(|policy| Some((policy, policy.flag?)))
}

/// Sets the member at a path that may be in `policies`.
pub(super) fn put(body: &mut JobBody, path: &str, value: Value) {
    match path.strip_prefix("policies.") {
        Some(path) => body.put_policy(path, value),
        None => body.put(path, value),
    }
}

fn arg(policy: &Policy, flag: Flag) -> Arg {
    let (name, parser) = match (flag.value, policy.kind) {
        (FlagValue::JobAndDuration, _) => ("KEY=DURATION", ValueParser::new(dependency)),
        (FlagValue::Retries, PolicyKind::Number { min, max }) => {
            let (least, greatest) = (min - 1, max - 1);
            let retries = clap::value_parser!(i64).range(least..=greatest);
            ("N", retries.map(|retries| json!(retries + 1)).into())
        }
        (_, PolicyKind::Number { min, max }) => {
            ("N", clap::value_parser!(i64).range(min..=max).map(Value::from).into())
        }
        (_, PolicyKind::Words(_)) => ("RULE", PossibleValuesParser::new(policy.words()).map(Value::from).into()),
        (_, PolicyKind::Duration) => ("DURATION", ValueParser::new(|text: &str| span(text).map(Value::from))),
        (_, PolicyKind::Names) => ("NAMES", ValueParser::new(names)),
        (_, PolicyKind::JobKey) => ("KEY", ValueParser::new(|text: &str| Ok::<_, String>(Value::from(text)))),
    };
    let negative = matches!(policy.kind, PolicyKind::Number { min: ..0, .. });
    let arg = Arg::new(flag.name).long(flag.name).help(flag.help).help_heading(flag.heading);
    let action = if matches!(policy.kind, PolicyKind::Names) { ArgAction::Append } else { ArgAction::Set };
    arg.value_name(name).value_parser(parser).allow_negative_numbers(negative).action(action)
}

/// `a,b` as a list.
fn names(text: &str) -> Result<Value, String> {
    let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() { Err("name at least one calendar".to_owned()) } else { Ok(json!(names)) }
}

pub(super) fn span(text: &str) -> Result<String, String> {
    parse_span(text).map(iso)
}

fn dependency(text: &str) -> Result<Value, String> {
    let (key, within) = text.rsplit_once('=').ok_or("write it as KEY=DURATION, such as `import=6h`")?;
    Ok(json!({ "jobKey": key, "within": span(within)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(words: &[&str]) -> Result<String, String> {
        let command = PolicyArgs::augment_args(Command::new("everbell").no_binary_name(true));
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let mut body = JobBody::default();
        PolicyArgs::from_arg_matches(&matches).unwrap().write_to(&mut body);
        Ok(serde_json::to_string(&body.members).unwrap())
    }

    #[test]
    fn flags_set_members_of_every_kind() {
        let words = ["--timeout", "90s", "--overlap=queue", "--retries", "0", "--depends-on", "a=b=6h", "--grace=0s"];
        assert_eq!(body(&["--priority", "-5"]).as_deref(), Ok("{\"policies\":{\"priority\":-5}}"));
        let expected = "{\"policies\":{\"dependsOn\":{\"jobKey\":\"a=b\",\"within\":\"PT6H\"},\"grace\":\"PT0S\",\
                        \"overlap\":\"queue\",\"retry\":{\"maxAttempts\":1},\"timeout\":\"PT1M30S\"}}";
        assert_eq!(body(&words).as_deref(), Ok(expected));
        assert_eq!(body(&[]).as_deref(), Ok("{}"));
        let expected = "{\"policies\":{\"calendar\":{\"exclude\":[\"a\",\"b\",\"c\"],\"only\":[\"d\"]}}}";
        assert_eq!(body(&["--exclude", "a,b", "--exclude=c", "--only", "d"]).as_deref(), Ok(expected));
    }

    #[test]
    fn wrong_values_are_refused_with_the_allowed_ones() {
        for (flag, expected) in [
            ("--retries=100", "invalid value '100' for '--retries <N>': 100 is not in 0..=99"),
            ("--catch-up-limit=0", "invalid value '0' for '--catch-up-limit <N>': 0 is not in 1..=1000"),
            (
                "--on-lease-loss=",
                "a value is required for '--on-lease-loss <RULE>' but none was supplied\n  [possible values: stop, continue]",
            ),
            ("--dst-fold=x", "invalid value 'x' for '--dst-fold <RULE>'\n  [possible values: first, last, both]"),
            ("--priority=-101", "invalid value '-101' for '--priority <N>': -101 is not in -100..=100"),
            ("--jitter=x", "invalid value 'x' for '--jitter <DURATION>': `x` is not a duration"),
            ("--depends-on=x", "invalid value 'x' for '--depends-on <KEY=DURATION>': write it as KEY=DURATION"),
        ] {
            let message = body(&[flag]).unwrap_err();
            assert!(message.contains(expected), "{flag}: {message}");
        }
    }
}
