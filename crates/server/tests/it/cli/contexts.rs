//! `everbell context`, and `everbell init`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use super::prepared;
use crate::binary::{Ran, command, ran};
use crate::server::{Folder, Server};

/// Runs a command with the contexts in the folder of a server, and this standard input.
fn with_contexts(server: &Server, args: &[&str], input: &str, env: &[(&str, &str)]) -> Ran {
    let mut command = prepared(server, args);
    command.env_remove("EVERBELL_SERVER").env_remove("EVERBELL_TOKEN").env("EVERBELL_DATA_DIR", "none");
    command.env("XDG_CONFIG_HOME", server.folder.path().join("config")).envs(env.iter().copied());
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    // A command that reads no input may end before it is written.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    ran(child.wait_with_output().unwrap())
}

#[test]
fn contexts_name_servers() {
    let server = Server::start();
    let (url, token) = (format!("http://{}", server.address), format!("{}\n", server.token));
    let run = |args: &[&str]| with_contexts(&server, args, &token, &[]);
    let done = |args: &[&str]| {
        let found = run(args);
        assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{args:?}");
        found.stdout
    };
    assert_eq!(done(&["context"]), "");
    let added = done(&["context", "add", "prod", "--url", &url, "--token-stdin"]);
    assert_eq!(added, format!("✓ Added prod: {url}, which is used from now on\n"));
    let file = server.folder.path().join("config/everbell/contexts.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(server.folder.path().join("a.token"), &token).unwrap();
    done(&["context", "add", "other", "--url", "http://127.0.0.1:1", "--token-file", "a.token"]);
    let listed = done(&["context", "list"]);
    let other = server.folder.path().join("a.token");
    assert_eq!(listed, format!("other\t\thttp://127.0.0.1:1\t{}\nprod\tyes\t{url}\tstored\n", other.display()));
    assert!(!done(&["context", "--json"]).contains(&server.token) && !listed.contains(&server.token));

    // The current one is used, and said.
    assert!(done(&["status"]).starts_with(&format!("context\tprod\nserver\t{url} ")), "{}", done(&["status"]));
    assert!(run(&["doctor"]).stdout.contains(&format!("server {url} (context `prod`) answers")));
    let other = run(&["jobs", "--context", "other"]);
    assert_eq!(other.code, Some(7));
    assert!(other.stderr.contains("which comes from the context `other`"), "{}", other.stderr);
    assert_eq!(with_contexts(&server, &["jobs"], "", &[("EVERBELL_CONTEXT", "other")]).code, Some(7));
    // Flags and the environment win, and the token of a context is for its own server.
    done(&["context", "use", "other"]);
    let env = [("EVERBELL_SERVER", url.as_str()), ("EVERBELL_TOKEN", server.token.as_str())];
    assert_eq!(with_contexts(&server, &["jobs"], "", &env).code, Some(0));
    assert_eq!(with_contexts(&server, &["jobs"], "", &env[..1]).code, Some(4));
    assert_eq!(
        with_contexts(&server, &["jobs", "--context", "prod"], "", &[("EVERBELL_SERVER", "http://127.0.0.1:1")]).code,
        Some(0)
    );

    for (args, words) in [
        (
            &["jobs", "--context", "nope"][..],
            "error: --context: there is no context `nope`\n  hint: use one of other, prod\n",
        ),
        (&["context", "use", "nope"], "error: NAME: there is no context `nope`"),
        (&["context", "add", "prod", "--url", &url], "error: the context `prod` exists\n"),
        (&["context", "add", "a b", "--url", &url], "error: NAME: `a b` must be 1 to 64 letters"),
        (&["context", "add", "x", "--url", "localhost"], "error: --url: "),
        (&["context", "add", "x", "--url", &url, "--token-file", "gone"], "error: --token-file: `gone` is not a file"),
        (&["jobs", "--context", "prod", "--server", &url], "cannot be used with"),
    ] {
        let found = run(args);
        assert_eq!(found.code, Some(2), "{args:?}: {}", found.stderr);
        assert!(found.stderr.contains(words), "{args:?}: {}", found.stderr);
    }
    done(&["context", "rm", "other"]);
    assert_eq!(done(&["context", "list"]), format!("prod\t\t{url}\tstored\n"));
}

#[test]
fn init_writes_a_configuration_that_a_server_accepts() {
    let folder = Folder::new();
    let run = |args: &[&str]| ran(command(args).current_dir(folder.path()).env("LC_ALL", "C.UTF-8").output().unwrap());
    let made = run(&["init"]);
    assert_eq!((made.code, made.stdout.as_str()), (Some(0), "✓ Wrote everbell.toml\n"), "{}", made.stderr);
    assert_eq!(made.stderr, "check it: everbell config check\nstart:    everbell serve\n");
    let checked = run(&["config", "check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    // The notification works once its comment signs are gone.
    let text = fs::read_to_string(folder.path().join("everbell.toml")).unwrap();
    let (head, notify) = text.split_once("# [[notify]]").unwrap();
    let notify = format!("# [[notify]]{notify}");
    let notify: String = notify.lines().flat_map(|line| [line.trim_start_matches(['#', ' ']), "\n"]).collect();
    fs::write(folder.path().join("all.toml"), format!("{head}{notify}")).unwrap();
    let mut all = command(&["config", "check", "--config", "all.toml"]);
    let all = ran(all.current_dir(folder.path()).env("SLACK_URL", "https://hooks.example.com/x").output().unwrap());
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    let again = run(&["init"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.starts_with("error: `everbell.toml` exists, and is not replaced\n"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(folder.path().join("everbell.toml")).unwrap(), text);
    assert_eq!(run(&["init", "--file", "-"]).stdout, text);
}
