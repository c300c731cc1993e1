//! Commands of the README, run as a new user would.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::path::Path;
use std::process::Command;

use crate::binary::ran;
use crate::server::{Folder, Server, without_ours};

/// The one block for a shell that has this in it.
fn block(part: &str) -> String {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let found: Vec<&str> = blocks.filter(|block| block.contains(part)).collect();
    assert_eq!(found.len(), 1);
    found[0].to_owned()
}

/// Returns the output of the one block that contains this text, on a server started as in the README.
fn typed(part: &str) -> String {
    let server = Server::in_folder(Folder::new(), &[], &[]);
    // The doctor wants to see that it has looked for due jobs.
    server.until("/status", |_| server.raw("GET", "/readyz", &[], b"").status == 200);
    let folder = Path::new(env!("CARGO_BIN_EXE_everbell")).parent().unwrap();
    let path = std::env::join_paths([folder, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let mut shell = without_ours("sh");
    shell.args(["-euc", &block(part)]).current_dir(server.folder.path()).env("PATH", path);
    let found = ran(shell.env("EVERBELL_SERVER", format!("http://{}", server.address)).output().unwrap());
    assert_eq!(found.code, Some(0), "{}{}", found.stdout, found.stderr);
    found.stdout
}

#[test]
fn the_commands_of_the_readme_work_as_printed() {
    let said = typed("everbell jobs create daily-briefing");
    for told in ["Created daily-briefing v1", "succeeded", "Paused daily-briefing", "job_key = \"daily-briefing\""] {
        assert!(said.contains(told), "{told}: {said}");
    }
}

#[test]
fn the_orgs_of_the_readme_work_as_printed() {
    let said = typed("everbell orgs set");
    for told in ["Created org acme", "Created briefing v1", "briefing fires at `30 9 * * *` for org acme", "briefing\t"]
    {
        assert!(said.contains(told), "{told}: {said}");
    }
}

#[test]
fn the_calls_of_the_readme_work_as_printed() {
    // With no configuration, as the README says.
    let server = Server::in_folder(Folder::new(), &[], &[]);
    let script = block("curl").replace("127.0.0.1:7070", &server.address);
    assert!(script.matches("curl").count() >= 8, "{script}");
    let output = Command::new("sh").args(["-euc", &script]).current_dir(server.folder.path()).output().unwrap();
    let found = ran(output);
    assert_eq!(found.code, Some(0), "{}{}", found.stdout, found.stderr);
    for told in ["sample-heartbeat", "\"outcome\":\"started\"", "INC-88", "job.new_version", "\"status\":\"active\""] {
        assert!(found.stdout.contains(told), "{told}: {}", found.stdout);
    }
}
