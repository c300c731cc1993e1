//! Every problem of the settings is reported, with its field and without a secret.

use std::time::Duration;

use super::given::{Folder, action, http, script, settings};
use crate::targets::{CommandSettings, Kind, TargetSettings};
use everbell_wire::secret::Secret;

/// `field problem`, a line each.
fn problems(kind: Kind) -> Vec<String> {
    settings(kind).problems().into_iter().map(|(field, problem)| format!("{field} {problem}")).collect()
}

#[track_caller]
fn assert_problem(kind: Kind, begins: &str) {
    let said = problems(kind);
    assert!(said.len() == 1 && said[0].starts_with(begins), "{said:?} instead of {begins}");
    assert!(!said[0].contains("hunter2"), "{said:?}");
}

#[test]
fn good_settings_have_no_problem() {
    assert_eq!(problems(Kind::Log), [""; 0]);
    for url in [
        "http://localhost:8080/a?b=c",
        "https://user.example/",
        "http://127.0.0.1",
        "http://[::1]:1/",
        "http://10.0.0.1",
    ] {
        let kind = http(url, |http| {
            http.headers.insert("Authorization".to_owned(), Secret::new("Bearer hunter2"));
            http.signing_keys = vec![Secret::new("whsec_aHVudGVyMg=="), Secret::new("hunter2")];
            http.success = vec![200..=299, 404..=404];
        });
        assert_eq!(problems(kind), [""; 0], "{url}");
    }
    let command = CommandSettings {
        env: [("A".to_owned(), Secret::new("1"))].into(),
        pass_env: vec!["EDITOR".to_owned()],
        ..CommandSettings::new(vec!["does-not-exist".to_owned(), String::new()])
    };
    assert_eq!(problems(Kind::Command(command)), [""; 0], "reported when a run begins");
}

#[test]
fn without_good_settings_there_is_no_action() {
    assert_eq!(action(http("ftp://a.example", |_| {})).err().unwrap().0, "url");
    assert_eq!(action(Kind::Command(CommandSettings::new(vec![]))).err().unwrap().0, "argv");
    assert!(action(Kind::Log).is_ok());
}

#[test]
fn a_bad_label_is_told() {
    let settings = TargetSettings { label: " ".to_owned(), ..settings(Kind::Log) };
    assert_eq!(settings.problems()[0].0, "label");
}

#[test]
fn a_bad_url_is_told() {
    for (url, problem) in [
        ("", "url is not a valid URL: "),
        ("/hunter2", "url is not a valid URL: "),
        ("http://", "url is not a valid URL: "),
        ("ftp://a.example/hunter2", "url must begin with `http://` or `https://`, not with `ftp:`"),
        ("file:///hunter2", "url must begin with"),
        ("https://ana:hunter2@a.example/", "url must not contain a user or a password"),
        ("https://ana@a.example/?hunter2", "url must not contain a user or a password"),
        ("http://a.example:0/", "url must not have the port 0"),
    ] {
        assert_problem(http(url, |_| {}), problem);
    }
}

#[test]
fn addresses_are_guarded_however_they_are_written() {
    for host in [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "169.254.169.254.",
        "[fe80::1]",
        "[::ffff:a9fe:a9fe]",
        "[fd00:ec2::254]",
    ] {
        let url = format!("http://{host}/latest");
        assert_problem(http(&url, |_| {}), "url ");
        assert_eq!(problems(http(&url, |http| http.allow_link_local = true)), [""; 0], "{host}");
    }
    for host in ["127.1", "0x7f000001", "[::1]", "192.168.0.1", "017700000001"] {
        let url = format!("http://{host}/");
        assert_problem(http(&url, |http| http.allow_private = false), "url ");
        assert_eq!(problems(http(&url, |_| {})), [""; 0], "{host}");
    }
    assert_problem(
        http("http://0.0.0.0/", |http| http.allow_link_local = true),
        "url 0.0.0.0 is not the address of a machine",
    );
}

#[test]
fn everything_else_that_is_bad_about_a_call_is_told_at_once() {
    let folder = Folder::new();
    let kind = http("ftp://a.example", |http| {
        http.method = "post".to_owned();
        for (name, value) in [
            ("a b", "x"),
            ("x-good", "hunter2\r\nx: y"),
            ("Host", "x"),
            ("CE-id", "x"),
            ("x-a", "1"),
            ("X-A", "2"),
            ("x-e", "é"),
        ] {
            http.headers.insert(name.to_owned(), Secret::new(value));
        }
        http.signing_keys = vec![Secret::new("whsec_hunter2!"), Secret::new("")];
        http.timeout = Duration::ZERO;
        http.success = vec![];
        http.ca_file = Some(folder.0.join("missing.pem"));
    });
    let said = problems(kind);
    let fields: Vec<&str> = said.iter().filter_map(|problem| problem.split(' ').next()).collect();
    let mut wanted = vec!["url", "method"];
    wanted.extend(["headers"; 6]);
    wanted.extend(["signing_keys", "signing_keys", "timeout", "success", "ca_file"]);
    assert_eq!(fields, wanted, "{said:#?}");
    assert!(!said.concat().contains("hunter2"), "{said:#?}");
}

#[test]
fn a_file_of_certificates_must_have_some() {
    let folder = Folder::new();
    for (name, text) in [
        ("empty.pem", ""),
        ("text.pem", "hello"),
        ("broken.pem", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"),
        ("nonsense.pem", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"),
    ] {
        let file = folder.file(name, text);
        assert_problem(http("https://localhost/", |http| http.ca_file = Some(file)), "ca_file ");
    }
}

#[test]
#[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
fn a_success_must_be_possible() {
    for range in [0..=99, 200..=600, 299..=200] {
        assert_problem(
            http("http://localhost/", |http| http.success = vec![200..=200, range]),
            "success must be between",
        );
    }
}

#[test]
fn everything_that_is_bad_about_a_command_is_told_at_once() {
    let mut command = script("true");
    command.argv = vec![];
    assert_problem(Kind::Command(command.clone()), "argv must begin with a program");
    command.argv = vec![String::new(), "a\0b".to_owned()];
    command.cwd = Some("a\0b".into());
    command.env = ["", "A=B", "C\0", "EVERBELL_RUN_ID"].map(|name| (name.to_owned(), Secret::new("x"))).into();
    command.env.insert("D".to_owned(), Secret::new("hunter2\0"));
    command.pass_env = vec!["=".to_owned()];
    command.success = vec![0, 256, -1];
    let said = problems(Kind::Command(command));
    let fields: Vec<&str> = said.iter().filter_map(|problem| problem.split(' ').next()).collect();
    let wanted = ["argv", "argv", "cwd", "env", "env", "env", "env", "env", "pass_env", "success", "success"];
    assert_eq!(fields, wanted, "{said:#?}");
    assert!(!said.concat().contains("hunter2"), "{said:#?}");
}
