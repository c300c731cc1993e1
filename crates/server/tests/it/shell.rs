//! Commands for shells and containers: `everbell healthcheck`, `completions` and `man`, through the real binary.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::binary::{Ran, ran, refusal, stdout};
use crate::server::{Folder, Server, quiet};
use crate::ui::visitor::part;

fn healthcheck(server: &str, args: &[&str]) -> Ran {
    let folder = Folder::new();
    ran(quiet(folder.path()).arg("healthcheck").args(args).env("EVERBELL_SERVER", server).output().unwrap())
}

fn silent(code: i32) -> Ran {
    Ran { stdout: String::new(), stderr: String::new(), code: Some(code) }
}

/// A server that answers everything with this, once.
fn once(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = std::io::Read::read(&mut stream, &mut [0; 1_024]);
        stream.write_all(answer.as_bytes()).unwrap();
    });
    address
}

#[test]
fn a_server_that_is_well_is_told_by_nothing() {
    let server = Server::start();
    let address = format!("http://{}", server.address);
    // It has to look for due jobs once.
    server.until("/status", |_| server.raw("GET", "/readyz", &[], b"").status == 200);
    for args in [&[][..], &["ready"], &["live"]] {
        assert_eq!(healthcheck(&address, args), silent(0), "{args:?}");
    }
    assert_eq!(healthcheck(&format!("{address}/api/v1/"), &[]), silent(0), "where the API is does not matter");
}

#[test]
fn a_server_that_is_not_well_is_told_in_one_line() {
    let told = |server: &str, args: &[&str]| {
        let Ran { stdout, stderr, code } = healthcheck(server, args);
        assert_eq!((stdout.as_str(), code, stderr.matches('\n').count()), ("", Some(1), 1), "{stderr}");
        stderr
    };
    let nobody = told("http://127.0.0.1:1", &[]);
    assert_eq!(nobody, "error: cannot reach the server at http://127.0.0.1:1: Connection refused (os error 111)\n");
    let unready = once(
        "HTTP/1.1 503 x\r\nconnection: close\r\n\r\n[-] database: away\n[+] clock: good\n[-] draining: so it is\n",
    );
    assert_eq!(
        told(&unready, &[]),
        format!("error: {unready}/readyz: 503 not ready: database: away; draining: so it is\n")
    );
    let moved = once("HTTP/1.1 302 x\r\nlocation: /\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(told(&moved, &["live"]), format!("error: {moved}/livez: 302\n"));
    assert_eq!(told("nonsense", &[]), "error: EVERBELL_SERVER: this is not the address of a server\n");
    assert_eq!(told("http://a", &["well"]), "error: unknown probe `well`; use `live` or `ready`\n");
    // Whatever is wrong with the command line: containers reserve the usual code for that.
    assert_eq!(healthcheck("http://a", &["--what"]).code, Some(1));
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let said = healthcheck(&address, &[]);
    assert_eq!((said.code, said.stderr), (Some(1), format!("error: {address} did not answer within 5s\n")));
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        assert!(script.contains("everbell") && script.contains("EVERBELL_COMPLETE"), "{shell}: {script}");
        assert!(!script.contains(env!("CARGO_BIN_EXE_everbell")), "it finds the binary on PATH");
    }
    assert!(refusal(&["completions", "tcsh"]).contains("[possible values: bash, zsh, fish, elvish, powershell]"));
}

/// Returns the completions that bash offers after these words.
fn offered(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let script = stdout(&["completions", "bash"]);
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c"]).current_dir(folder).stdin(Stdio::null());
    bash.arg(format!(
        "{script}\nCOMP_WORDS=(everbell \"$@\")\nCOMP_CWORD=$#\nCOMP_TYPE=9\n\
         _clap_complete_everbell everbell \"${{!#}}\" x\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    ));
    let bin = Path::new(env!("CARGO_BIN_EXE_everbell")).parent().unwrap();
    let path = std::env::join_paths([bin, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    bash.arg("bash").args(words).env("PATH", path).envs(variables.iter().copied());
    let found = ran(bash.output().unwrap());
    assert_eq!(found.stderr, "", "nothing stands in the middle of a line");
    found.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_script_of_bash_is_valid_and_completes_words() {
    let folder = Folder::new();
    let file = folder.path().join("everbell.bash");
    fs::write(&file, stdout(&["completions", "bash"])).unwrap();
    assert!(Command::new("bash").arg("-n").arg(&file).status().unwrap().success());
    let nobody = [("EVERBELL_SERVER", "http://127.0.0.1:1")];
    assert_eq!(offered(folder.path(), &["db", "st"], &nobody), ["status"]);
    assert_eq!(offered(folder.path(), &["cron", "next", "--dst-g"], &nobody), ["--dst-gap"]);
    assert_eq!(offered(folder.path(), &["cron", "next", "--tz", "Europe/Pari"], &nobody), ["Europe/Paris"]);
    assert_eq!(offered(folder.path(), &["completions", "po"], &nobody), ["powershell"]);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "how long a person waits is what is tested")]
fn names_come_from_the_server_or_not_at_all() {
    let server = Server::start();
    for key in ["daily-briefing", "daily-report", "weekly"] {
        server.job(key, &json!({}));
    }
    let address = format!("http://{}", server.address);
    let folder = server.folder.path();
    let at = |address: &str, words: &[&str]| offered(folder, words, &[("EVERBELL_SERVER", address)]);
    // A busy machine may not answer in time, and then nothing is offered.
    let at_last = |words: &[&str]| {
        (0..50).map(|_| at(&address, words)).find(|names| !names.is_empty()).expect("names are offered at last")
    };
    assert_eq!(at_last(&["jobs", "export", "daily-b"]), ["daily-briefing"]);
    assert_eq!(at_last(&["jobs", "diff", "daily"]), ["daily-briefing", "daily-report"]);
    assert!(at(&address, &["jobs", "export", "ly"]).is_empty(), "names begin so");
    assert!(at("http://127.0.0.1:1", &["jobs", "export", "daily"]).is_empty());
    assert!(at("nonsense", &["jobs", "export", "daily"]).is_empty());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    assert!(at(&format!("http://{}", silent.local_addr().unwrap()), &["jobs", "export", "d"]).is_empty());
    // Any other command would wait for 30 seconds.
    assert!(begun.elapsed() < Duration::from_secs(20), "it is not waited for");
}

/// A person at an interactive bash types this, TAB and Enter. `script` brings the terminal that readline needs.
fn typed_with_tab(folder: &Path, typed: &str, address: &str) -> String {
    fs::write(folder.join("complete.bash"), stdout(&["completions", "bash"])).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_everbell")).parent().unwrap();
    let path = std::env::join_paths([bin, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let mut script = Command::new("script");
    script.args(["-qec", "bash --norc --noprofile -i", "/dev/null"]).current_dir(folder);
    script.env("PATH", path).env("EVERBELL_SERVER", address).env("TERM", "dumb");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("source complete.bash\n{typed}\t\nexit\n").as_bytes()).unwrap();
    let said = ran(child.wait_with_output().unwrap()).stdout;
    drop(stdin);
    said
}

#[test]
fn a_name_never_becomes_a_command() {
    let server = Server::start();
    let folder = server.folder.path();
    let address = format!("http://{}", server.address);
    let hostile = [
        "zw$(touch${IFS}pwned)",
        "zw`touch pwned`;id",
        "zw;touch pwned",
        "zw|touch pwned",
        "zw>pwned",
        "zw&&touch pwned",
        "zw'\"touch pwned",
        "zw{a,b}",
        "zw*",
        "zw~",
        "zw!!",
        "zw #x",
        "zw,(touch pwned)",
        "zw\\x",
    ];
    for name in hostile {
        server.job(name, &json!({}));
        server.put(&format!("/orgs/{}", part(name)), &json!({ "timezone": "UTC" })).expect(201);
    }
    for name in ["-zw", "--server=http://127.0.0.1:1", "=zw", "@zw"] {
        server.job(name, &json!({}));
    }
    for name in ["zw-good", "zw.good/2:x"] {
        server.job(name, &json!({}));
        server.put(&format!("/orgs/{}", name.replace('/', "%2f")), &json!({ "timezone": "UTC" })).expect(201);
    }
    let at = |words: &[&str]| offered(folder, words, &[("EVERBELL_SERVER", &address)]);
    let at_last =
        |words: &[&str]| (0..50).map(|_| at(words)).find(|names| !names.is_empty()).expect("names are offered at last");
    assert_eq!(at_last(&["jobs", "show", "zw"]), ["zw-good", "zw.good/2:x"]);
    assert_eq!(at_last(&["orgs", "show", "zw"]), ["zw-good", "zw.good/2:x"]);
    let all = at_last(&["jobs", "show", ""]);
    assert_eq!(all[..2], ["zw-good", "zw.good/2:x"]);
    assert!(
        !all.iter().any(|name| name.contains(['=', '@']) || name == "-zw"),
        "nor does one look like a flag: {all:?}"
    );
    // The other shells ask the same binary for their words.
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let asked = || {
            let mut command = quiet(folder);
            command.env("EVERBELL_COMPLETE", shell).env("EVERBELL_SERVER", &address).env("_CLAP_IFS", "\n");
            command.env("_CLAP_COMPLETE_INDEX", "3").args(["--", "everbell", "jobs", "show", "zw"]);
            ran(command.output().unwrap()).stdout
        };
        let words =
            (0..50).map(|_| asked()).find(|words| words.contains("zw-good")).expect("names are offered at last");
        assert_eq!(words.lines().filter(|line| line.starts_with("zw")).count(), 2, "{shell}: {words}");
    }
    // Only one name begins so: without a check it would be completed whole, and run.
    server.job("qx$(touch${IFS}pwned)", &json!({}));
    let said = typed_with_tab(folder, "everbell jobs show qx", &address);
    assert!(said.contains("jobs show qx") && !said.contains("qx$("), "{said}");
    assert!(!folder.join("pwned").exists(), "a name was run as a command: {said}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new();
    let made = ran(quiet(folder.path()).args(["man", "share/man1"]).output().unwrap());
    let names: Vec<String> = fs::read_dir(folder.path().join("share/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!((made.code, made.stdout), (Some(0), format!("wrote {} pages to share/man1\n", names.len())));
    for name in ["everbell.1", "everbell-serve.1", "everbell-cron-next.1", "everbell-db-prune.1", "everbell-man.1"] {
        assert!(names.iter().any(|own| own == name), "{name}: {names:?}");
    }
    let page = fs::read_to_string(folder.path().join("share/man1/everbell-db-prune.1")).unwrap();
    assert!(page.contains(".TH everbell-db-prune 1 ") && page.contains("\\-\\-older\\-than"), "{page}");
    assert!(
        page.contains("\n.SH EXAMPLES\n.nf\neverbell db prune \\-\\-older\\-than 180d \\-\\-dry\\-run\n"),
        "{page}"
    );
    fs::write(folder.path().join("file"), "").unwrap();
    let refused = ran(quiet(folder.path()).args(["man", "file/man1"]).output().unwrap());
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.starts_with("error: cannot write manual pages to `file/man1`: "), "{}", refused.stderr);
}
