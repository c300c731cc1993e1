use serde_json::json;

use super::*;
use crate::config::ServeFlags;

fn config(section: &str) -> Config {
    Config::read(None, &format!("[targets]\n{section}\n"), &ServeFlags::default(), &Environment::default()).unwrap()
}

const OPEN: &str = "editable = [\"http\", \"command\"]\nsecret_env = [\"HOOK_*\", \"EXACT\"]\nsecret_dir = \"secrets\"";

fn faults(config: &Config, definition: &Value) -> Vec<(String, String)> {
    let faults = config.check_stored_target("hook", definition);
    faults.into_iter().map(|fault| (fault.pointer, fault.detail)).collect()
}

fn http(more: &Value) -> Value {
    let mut definition = json!({ "type": "http", "url": "https://hooks.example/run" });
    for (name, value) in more.as_object().unwrap() {
        definition[name] = value.clone();
    }
    definition
}

#[test]
fn stored_targets_are_off_unless_the_configuration_names_their_types() {
    let found = faults(&config(""), &http(&json!({})));
    assert!(found.len() == 1 && found[0].1.contains("`targets.editable`"), "{found:?}");
    let only_http = config("editable = [\"http\"]");
    assert_eq!(faults(&only_http, &http(&json!({}))), []);
    let found = faults(&only_http, &json!({ "type": "command", "argv": ["true"] }));
    assert!(found[0].1.contains("does not allow `command`; it allows: `http`"), "{found:?}");
    assert_eq!(faults(&config(OPEN), &json!({ "type": "command", "argv": ["true"] })), []);
    assert_eq!(faults(&config(OPEN), &json!({ "type": "log" })).len(), 1);
}

#[test]
fn plain_secrets_are_refused_where_they_stand_and_never_repeated() {
    let config = config(OPEN);
    for (pointer, definition) in [
        ("/headers/Authorization", http(&json!({ "headers": { "Authorization": "Bearer CANARY" } }))),
        ("/headers/X-Api-Key", http(&json!({ "headers": { "X-Api-Key": "CANARY" } }))),
        ("/headers/X-Sign", http(&json!({ "headers": { "X-Sign": "whsec_CANARY" } }))),
        ("/signingKeys/0", http(&json!({ "signingKeys": ["CANARY"] }))),
        ("/url", http(&json!({ "url": "https://user:CANARY@hooks.example/" }))),
        ("/env/DB_PASSWORD", json!({ "type": "command", "argv": ["true"], "env": { "DB_PASSWORD": "CANARY" } })),
        ("/env/URL", json!({ "type": "command", "argv": ["true"], "env": { "URL": "postgres://u:CANARY@h/d" } })),
    ] {
        let found = faults(&config, &definition);
        assert!(found.len() == 1 && found[0].0 == pointer, "{pointer}: {found:?}");
        assert!(!found[0].1.contains("CANARY") && found[0].1.contains("by reference"), "{found:?}");
    }
    let plain = http(&json!({ "headers": { "X-Team": "billing" } }));
    assert_eq!(faults(&config, &plain), []);
}

#[test]
fn references_reach_only_what_the_configuration_releases() {
    let config = config(OPEN);
    for (reference, is_released) in [
        (json!({ "env": "HOOK_A" }), true),
        (json!({ "env": "EXACT" }), true),
        (json!({ "env": "EXACTLY" }), false),
        (json!({ "env": "DATABASE_URL" }), false),
        (json!({ "file": "secrets/hook" }), true),
        (json!({ "file": "secrets/../everbell.toml" }), false),
        (json!({ "file": "/etc/passwd" }), false),
        (json!({ "file": "secretsish/hook" }), false),
    ] {
        let found = faults(&config, &http(&json!({ "headers": { "Authorization": reference } })));
        assert_eq!(found.is_empty(), is_released, "{reference}: {found:?}");
        let found = faults(&config, &http(&json!({ "url": reference })));
        assert_eq!(found.is_empty(), is_released, "{reference}: {found:?}");
    }
    for more in [json!({ "caFile": "/etc/ca.pem" }), json!({ "signingKeyFiles": ["/etc/shadow"] })] {
        assert_eq!(faults(&config, &http(&more)).len(), 1, "{more}");
    }
    let passed = json!({ "type": "command", "argv": ["true"], "passEnv": ["DATABASE_URL"] });
    assert_eq!(faults(&config, &passed)[0].0, "/passEnv");
}

#[test]
fn private_and_link_local_addresses_need_the_configuration() {
    let found = faults(&config(OPEN), &http(&json!({ "url": "http://127.0.0.1:1/" })));
    assert_eq!(found.len(), 1, "{found:?}");
    let open = config(&format!("{OPEN}\nallow_private = true"));
    assert_eq!(faults(&open, &http(&json!({ "url": "http://127.0.0.1:1/" }))), []);
    for config in [config(OPEN), open] {
        let found = faults(&config, &http(&json!({ "allowLinkLocal": true })));
        assert!(found[0].1.contains("only for `[[target]]` blocks"), "{found:?}");
    }
    let asked = faults(&config(OPEN), &http(&json!({ "allowPrivate": true })));
    assert!(asked[0].1.contains("`targets.allow_private`"), "{asked:?}");
}

#[test]
fn definitions_are_checked_as_blocks_are() {
    let config = config(OPEN);
    for (pointer, definition) in [
        ("/timout", http(&json!({ "timout": "3s" }))),
        ("/timeout", http(&json!({ "timeout": "soon" }))),
        ("/argv", http(&json!({ "argv": ["true"] }))),
        ("/success/0", http(&json!({ "success": ["2xx"] }))),
        ("/headers", http(&json!({ "headers": { "Host": "elsewhere" } }))),
        ("/url", json!({ "type": "http" })),
        ("/type", json!({ "url": "https://h/" })),
        ("/argv", json!({ "type": "command", "argv": [] })),
    ] {
        let found = faults(&config, &definition);
        assert!(found.iter().any(|(at, _)| at.starts_with(pointer)), "{pointer}: {found:?}");
    }
}

#[test]
fn an_instance_says_why_it_cannot_serve_a_target() {
    let config = config(OPEN);
    let hook = http(&json!({ "headers": { "Authorization": { "env": "HOOK_AUTH" } } }));
    let resolve = |environment: &Environment| config.resolve_stored_target("hook", &hook, environment);
    let missing = resolve(&Environment::default()).unwrap_err();
    assert_eq!(missing, "headers/Authorization: the variable `HOOK_AUTH` is not set");
    let set = Environment::new([("HOOK_AUTH".into(), "hunter2".into())]);
    let settings = resolve(&set).unwrap();
    let crate::targets::Kind::Http(http) = settings.kind else { panic!() };
    assert_eq!(http.headers["Authorization"].reveal(), "hunter2");
    assert!(!http.allow_private, "the configuration does not allow it");
    assert!(config.resolve_stored_target("shell", &hook, &set).unwrap_err().contains("built-in"));
}
