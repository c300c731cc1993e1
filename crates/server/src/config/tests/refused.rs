//! Configurations that cannot be used.

use super::*;

fn problems(text: &str, variables: &[(&str, &str)], flags: &ServeFlags) -> Vec<String> {
    let error = read_with(text, variables, flags).unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
    error.to_string().lines().map(str::to_owned).collect()
}

#[track_caller]
fn assert_told(text: &str, expected: &[&str]) {
    assert_eq!(problems(text, &[], &ServeFlags::default()), expected, "{text}");
}

#[test]
fn sections_are_checked() {
    for (text, expected) in [
        ("listen = \"x\"", "a.toml:1: listen: is not a key of this section; it belongs to `[server]`"),
        ("[server]\nurl = \"x\"", "a.toml:2: server.url: is not a key of this section; it belongs to `[database]`"),
        ("[sever]\n", "a.toml:1: sever: is not known here; did you mean `server`?"),
        ("server = 5", "a.toml:1: server: must be a table, not a number"),
        ("[[server]]", "a.toml:1: server: must be a table, not a list"),
        ("[server]\nrole = 5", "a.toml:2: server.role: must be a text, not a number"),
        (
            "[server]\npublic_url = \"https://u@h\"",
            "a.toml:2: server.public_url: must be `http://` or `https://`, a host, and at most a port and a path",
        ),
        ("[api]\nmounts = []", "a.toml:2: api.mounts: must name at least one path, such as `/api/v1`"),
        ("[api]\nmounts = [\n  \"/a\",\n  \"/a\",\n]", "a.toml:4: api.mounts[1]: is listed twice"),
        ("[api]\nmounts = [\"/a/b\", \"/a\"]", "a.toml:2: api.mounts[0]: lies within `/a`, which is also listed"),
        ("[engine]\nlease = \"0s\"", "a.toml:2: engine.lease: must be from 3 s to 600 s"),
        (
            "[engine]\nheartbeat = \"21s\"",
            "a.toml:2: engine.heartbeat: must be more than 0 and at most a third of the lease's duration, so that two may fail",
        ),
        (
            "[engine]\nlinger = 5",
            "a.toml:2: engine.linger: must be a duration as text, such as \"15m\" or \"PT15M\", not a number",
        ),
        (
            "[retention]\nkeep = \"always\"",
            "a.toml:2: retention.keep: `always` is not a duration; write it as `90s`, `15m`, `1h 30m`, `7d` or `PT15M`, or as `forever`",
        ),
        ("[retention]\naudit = \"10m\"", "a.toml:2: retention.audit: must be at least 1 hour, or `forever`"),
        (
            "[log]\nlevel = \"everbell\"",
            "a.toml:2: log.level: `everbell` is not one of off, error, warn, info, debug, trace, or such as `info,everbell=debug`",
        ),
        (
            "[database]\nurl = \"\"",
            "a.toml:2: database.url: must be `sqlite:PATH`, `sqlite::memory:` or `postgres://user:password@host/database`",
        ),
        ("[database]\nurl = { env = \"URL\" }", "a.toml:2: database.url: the variable `URL` is not set"),
        (
            "[database]\nurl = \"sqlite:a\"\nurl_file = \"b\"",
            "a.toml:3: database.url_file: `database.url` is set too; keep only one of them",
        ),
        (
            "[auth]\nmetrics_token = \"hunter2\"",
            "a.toml:2: auth.metrics_token: must be 16 to 1000 visible ASCII characters without spaces",
        ),
    ] {
        assert_told(text, &[expected]);
    }
}

#[test]
fn an_admin_token_is_strong_or_refused() {
    let reason = "must be `evb_` and 32 to 200 letters, digits, `_` or `-` after it; create one with `echo evb_$(openssl rand -hex 32)`";
    let short = &TOKEN[..TOKEN.len() - 1];
    for bad in [short, "hunter2", "evb_", &format!("{TOKEN} "), &format!("{TOKEN}é"), &format!("x{TOKEN}")] {
        let said = problems("", &[("EVERBELL_ADMIN_TOKEN", bad)], &ServeFlags::default());
        assert_eq!(said, [format!("EVERBELL_ADMIN_TOKEN: {reason}")], "{bad}");
    }
    assert_told("[auth]\nadmin_token = \"\"", &[&format!("a.toml:2: auth.admin_token: {reason}")]);
    // Nothing is never taken for no authentication.
    for name in ["EVERBELL_ADMIN_TOKEN", "EVERBELL_ADMIN_TOKEN_FILE", "EVERBELL_METRICS_TOKEN"] {
        let said = problems("", &[(name, "")], &ServeFlags::default());
        assert_eq!(said, [format!("{name}: is empty; give it a value or unset it")]);
    }
}

#[test]
fn blocks_are_checked() {
    for (text, expected) in [
        (
            "[target]\nlabel = \"a\"",
            vec!["a.toml:1: target: must be written as `[[target]]` blocks, with double brackets"],
        ),
        ("job = [1]", vec!["a.toml:1: job[0]: must be a table"]),
        ("[[target]]\nlabel = \"a\"", vec!["a.toml:1: target \"a\": type: is required: The type of the target."]),
        (
            "[[target]]\nlabel = \"a\"\ntype = \"htp\"\nurl = 5\nulr = 1",
            vec![
                "a.toml:3: target \"a\": type: must be one of log, http, command",
                "a.toml:5: target \"a\": ulr: is not known here; did you mean `url`?",
            ],
        ),
        (
            "[[target]]\nlabel = \" a\"\ntype = \"log\"\ntimeout = \"0s\"",
            vec![
                "a.toml:2: target \" a\": label: must not begin or end with white space",
                "a.toml:4: target \" a\": timeout: must be more than 0",
            ],
        ),
        (
            "[[target]]\nlabel = \"a\"\ntype = \"command\"\nargv = [\"\"]\nenv = { \"A=B\" = \"x\" }\npass_env = [\"C=\"]\nsuccess = []",
            vec![
                "a.toml:4: target \"a\": argv: must begin with a program, such as `[\"/usr/bin/backup\", \"--all\"]`",
                "a.toml:5: target \"a\": env.A=B: is not a valid variable name: it must not contain `=`",
                "a.toml:6: target \"a\": pass_env: must be names of variables, without `=`",
                "a.toml:7: target \"a\": success: must name at least one exit code",
            ],
        ),
        (
            "[[target]]\nlabel = \"a\"\ntype = \"http\"\nsuccess = []\nsigning_keys = [\"\"]",
            vec![
                "a.toml:1: target \"a\": url: is required: The URL to call.",
                "a.toml:4: target \"a\": success: must name at least one status",
                "a.toml:5: target \"a\": signing_keys[0]: is empty",
            ],
        ),
        (
            "[[job]]\njob_key = \"a\"\ntarget = \"b\"\ncron_expression = \"@daily\"",
            vec!["a.toml:3: job \"a\": target: there is no target `b`; known: none; write a `[[target]]` block"],
        ),
    ] {
        assert_told(text, &expected);
    }
}

#[test]
fn a_file_that_is_no_toml_is_told_with_what_else_is_wrong() {
    let said = problems(
        "[server]\nlisten = 127.0.0.1:80\nrole = \"x\"\n[[job]]\njob_key = \"a\n",
        &[],
        &ServeFlags::default(),
    );
    let places: Vec<_> = said.iter().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(" ")).collect();
    // Neither the address nor the job is reported again: their missing parts may be in the broken lines.
    assert_eq!(said[1], "a.toml:3: server.role: must be one of all, scheduler, api", "{said:?}");
    assert_eq!(
        (places[0].split(' ').next(), places[2].split(' ').next()),
        (Some("a.toml:2"), Some("a.toml:5")),
        "{said:?}"
    );
    assert_eq!(said.len(), 3, "{said:?}");
    assert_told("[log]\nlevel = \"info\"\nlevel = \"warn\"\n", &["a.toml:3: duplicate key"]);
}

#[test]
fn a_value_that_is_outweighed_is_still_checked_in_the_file() {
    let flags = ServeFlags { role: Some("all".to_owned()), ..ServeFlags::default() };
    let said = problems("[server]\nrole = \"al\"", &[], &flags);
    assert_eq!(said, ["a.toml:2: server.role: must be one of all, scheduler, api"]);
}

#[test]
fn variables_and_flags_are_named() {
    let flags = ServeFlags {
        database: Some("mysql://u:hunter2@h/d".to_owned()),
        log_format: Some("xml".to_owned()),
        ..ServeFlags::default()
    };
    let variables =
        [("EVERBELL_MAX_CONNECTIONS", "many"), ("EVERBELL_TRUST_PROXY", "perhaps"), ("EVERBELL_LISTEN", "here")];
    let mut said = problems("", &variables, &flags);
    said.sort();
    let expected = [
        "--database: must be `sqlite:PATH`, `sqlite::memory:` or `postgres://user:password@host/database`",
        "--log-format: must be one of text, json",
        "EVERBELL_LISTEN: `here` is not an address and a port, such as `127.0.0.1:7070`, `0.0.0.0:7070` or `[::1]:7070`",
        "EVERBELL_MAX_CONNECTIONS: must be a whole number, not a text",
        "EVERBELL_TRUST_PROXY: must be true or false, not a text",
    ];
    assert_eq!(said, expected);
}

/// Any text gets an answer, with lines that the file has.
#[track_caller]
fn assert_answered(text: &str) {
    if let Err(error) = read_with(text, &[], &ServeFlags::default()) {
        let lines = text.lines().count().max(1);
        assert!(!error.problems.is_empty(), "{text}");
        for problem in &error.problems {
            // Something missing at the end is reported after the last line.
            assert!(problem.line.is_none_or(|line| (1..=lines + 1).contains(&line)), "{problem} of {lines} lines");
            assert!(!problem.to_string().contains('\n'), "{problem}");
        }
    }
}

/// Checks the text cut in two at many places, and with one sign more and one less there.
fn assert_damaged_is_answered(text: &str, step: usize) {
    let signs = ['"', '[', ']', '{', '}', '=', '\n', '.', ',', '#', '\'', '\\', '0', 'é', '\u{0}'];
    let places = text.char_indices().map(|(at, _)| at).step_by(step);
    for (n, at) in places.enumerate() {
        let (before, after) = text.split_at(at);
        assert_answered(before);
        assert_answered(after);
        let sign = signs[n % signs.len()];
        assert_answered(&format!("{before}{sign}{after}"));
        let mut rest = after.chars();
        rest.next();
        assert_answered(&format!("{before}{}", rest.as_str()));
    }
}

#[test]
fn any_text_is_answered() {
    let example = include_str!("../../../../../everbell.example.toml");
    // Table by table, because each target that is read as a whole loads the certificates of the machine.
    for table in example.split_inclusive("\n\n") {
        assert_damaged_is_answered(table, 83);
    }
    assert_damaged_is_answered(example, 3_989);
    for odd in ["[", "{", "a.", "[a.", "[[a]]\n[a."] {
        assert_answered(&format!("x = {}", odd.repeat(20_000)));
        assert_answered(&odd.repeat(20_000));
    }
}
