//! `[[notify]]` and `[[rule]]` blocks.

use std::time::Duration;

use everbell_core::alert::{Kind as ProblemKind, RuleScope, TimeLimit};

use super::*;

const CHANNEL: &str = "[[notify]]\nname = \"ops\"\ntype = \"slack\"\nurl = \"https://chat.example/hunter2\"\n";

fn problems(text: &str) -> Vec<String> {
    let error = read_with(text, &[], &ServeFlags::default()).unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
    error.to_string().lines().map(str::to_owned).collect()
}

/// The problems of a rule that begins on line 5, behind a channel.
#[track_caller]
fn assert_rule(rule: &str, expected: &[&str]) {
    assert_eq!(problems(&format!("{CHANNEL}[[rule]]\n{rule}")), expected, "{rule}");
}

#[test]
fn channels_and_rules_are_read() {
    let text = format!(
        "{CHANNEL}[[rule]]\nwhen = [\"failed\", \"recovered\"]\njobs = {{ label = \"team=billing\" }}\nafter = 3\nto = [\"ops\"]\n\
         [[rule]]\nname = \"late\"\nwhen = [\"no_success\"]\njobs = {{ keys = [\"a\", \"b*\"] }}\nwithin = \"26h\"\nto = [\"ops\"]"
    );
    let config = read(&text);
    assert_eq!((config.channels.len(), config.channels[0].type_name()), (1, "slack"));
    let [failed, late] = &config.rules[..] else { panic!("{:?}", config.rules) };
    assert_eq!((failed.name.as_str(), failed.after, failed.recovered), ("failed,recovered of team=billing", 3, true));
    assert_eq!(failed.scope, RuleScope::Label("team".to_owned(), Some("billing".to_owned())));
    assert_eq!((late.name.as_str(), late.kinds.as_slice()), ("late", [ProblemKind::NoSuccess].as_slice()));
    assert_eq!(late.scope, RuleScope::Keys(vec!["a".to_owned(), "b*".to_owned()]));
    assert!(config.engine.roles.contains(&"notifier".to_owned()));
    // A process that only answers evaluates nothing, and one without rules has nothing to evaluate.
    let api = read(&format!("[server]\nrole = \"api\"\n{text}"));
    assert!(!api.engine.roles.contains(&"notifier".to_owned()));
    assert!(!read(CHANNEL).engine.roles.contains(&"notifier".to_owned()));
    let (url, _) = super::shown(&config, "notify \"ops\": url");
    assert_eq!(url, "https://chat.example/…");
}

#[test]
fn a_channel_that_cannot_be_used_names_its_line_and_key() {
    let twice = format!("{CHANNEL}{CHANNEL}");
    assert_eq!(problems(&twice), ["a.toml:6: notify \"ops\": name: is defined twice; the other one is on line 2"]);
    let unknown = problems("[[notify]]\nname = \"ops\"\ntype = \"pigeon\"");
    assert!(unknown.len() == 1 && unknown[0].starts_with("a.toml:3: notify \"ops\": type: "), "{unknown:?}");
    let missing = problems("[[notify]]\nname = \"ops\"\ntype = \"webhook\"");
    assert!(missing.len() == 1 && missing[0].contains("url"), "{missing:?}");
    let slow = problems(&format!("{CHANNEL}timeout = \"2m\""));
    assert_eq!(slow, ["a.toml:5: notify \"ops\": timeout: must be more than 0 and at most 60s"]);
    let odd = problems("[[notify]]\nname = \"a b\"\ntype = \"command\"\nargv = [\"true\"]");
    assert_eq!(odd, ["a.toml:2: notify \"a b\": name: must consist of letters, digits, `-`, `_` and `.`"]);
}

#[test]
fn a_rule_that_makes_no_sense_names_its_line_and_key() {
    let all = "jobs = { all = true }\nto = [\"ops\"]\n";
    let rule = |more: &str| format!("name = \"r\"\n{all}{more}");
    assert_rule(
        &rule("when = [\"failed\"]\nby = \"06:00 UTC\""),
        &["a.toml:10: rule \"r\": by: and `within` are only for rules about `no_success`"],
    );
    assert_rule(
        &rule("when = [\"no_success\"]"),
        &["a.toml:5: rule \"r\": by: is missing: `no_success` needs `by` or `within`"],
    );
    assert_rule(
        &rule("when = [\"no_success\"]\nby = \"06:00\""),
        &["a.toml:10: rule \"r\": by: must be times of day and a time zone, such as `06:00 Europe/Paris`, not `06:00`"],
    );
    assert_rule(
        &rule("when = [\"no_success\"]\nby = \"25:00 UTC\""),
        &["a.toml:10: rule \"r\": by: `25:00` is not a time of day such as `06:00`"],
    );
    assert_rule(
        &rule("when = [\"failed\"]\nquiet = \"22:00 UTC\""),
        &[
            "a.toml:10: rule \"r\": quiet: must be times of day and a time zone, such as `22:00-07:00 Europe/Paris`, not `22:00 UTC`",
        ],
    );
    assert_rule(
        "name = \"r\"\nwhen = [\"failed\"]\njobs = {}\nto = [\"ops\"]",
        &[
            "a.toml:8: rule \"r\": jobs: must say one of `all = true`, `label = \"team=billing\"` and `keys = [\"backup-*\"]`",
        ],
    );
    assert_rule(
        "name = \"r\"\nwhen = [\"failed\"]\njobs = { all = true }\nto = [\"osp\"]",
        &["a.toml:9: rule \"r\": to[0]: there is no channel `osp`; known: `ops`"],
    );
    assert_rule(
        &rule("when = [\"late_start\"]"),
        &["a.toml:5: rule \"r\": starts_within: is missing: `late_start` needs it, such as `10m`"],
    );
    assert_rule(
        &rule("when = [\"too_long\"]"),
        &["a.toml:5: rule \"r\": takes_at_most: is missing: `too_long` needs `takes_at_most` or `p95_times`"],
    );
    assert_rule(
        &rule("when = [\"failed\"]\np95_times = 3"),
        &["a.toml:10: rule \"r\": p95_times: and `p95_times` are only for rules about `too_long`"],
    );
    let unknown = problems(&format!("{CHANNEL}[[rule]]\n{}", rule("when = [\"backlog\"]")));
    assert!(unknown.len() == 1 && unknown[0].starts_with("a.toml:9: rule \"r\": when[0]: "), "{unknown:?}");
}

#[test]
fn rules_about_time_and_instances_are_read() {
    let text = format!(
        "{CHANNEL}[[rule]]\nwhen = [\"late_start\", \"too_long\", \"skipped\"]\njobs = {{ all = true }}\nstarts_within = \"10m\"\n\
         takes_at_most = \"2h\"\np95_times = 3\nto = [\"ops\"]\n\
         [[rule]]\nwhen = [\"instance_lost\", \"recovered\"]\nto = [\"ops\"]"
    );
    let config = read(&text);
    let [time, lost] = &config.rules[..] else { panic!("{:?}", config.rules) };
    assert_eq!(time.starts_within, Some(Duration::from_mins(10)));
    assert_eq!(time.takes_at_most, [TimeLimit::Fixed(Duration::from_hours(2)), TimeLimit::TimesUsual(3)]);
    assert_eq!((lost.kinds.as_slice(), lost.recovered), ([ProblemKind::InstanceLost].as_slice(), true));
    // Others say which jobs they are about.
    assert_rule(
        "name = \"r\"\nwhen = [\"failed\", \"instance_lost\"]\nto = [\"ops\"]",
        &[
            "a.toml:5: rule \"r\": jobs: must say one of `all = true`, `label = \"team=billing\"` and `keys = [\"backup-*\"]`",
        ],
    );
}

#[test]
fn a_mail_channel_names_its_lines_and_keys() {
    let mail = |more: &str| {
        format!("[[notify]]\nname = \"m\"\ntype = \"email\"\nhost = \"localhost\"\nfrom = \"a@b.example\"\n{more}")
    };
    let config = read(&mail("to = [\"ops@b.example\"]\ntls = \"none\"\nuser = \"u\"\npassword = \"hunter2\""));
    assert_eq!(config.channels[0].type_name(), "email");
    assert!(!format!("{:?}", config.channels).contains("hunter2"));
    assert_eq!(
        problems(&mail("to = [\"nobody\"]\ntls = \"none\""))[0].split(": ").take(3).collect::<Vec<_>>(),
        ["a.toml:6", "notify \"m\"", "to"]
    );
    assert_eq!(
        problems(&mail("to = [\"ops@b.example\"]\nuser = \"u\"")),
        ["a.toml:1: notify \"m\": password: is required together with `user`"]
    );
    let open = mail("to = [\"ops@b.example\"]\ntls = \"none\"").replace("localhost", "mail.b.example");
    assert!(problems(&open)[0].starts_with("a.toml:7: notify \"m\": tls: `none` is only for servers on this machine"));
}
