//! What the README tells a new user to type, typed.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::path::Path;
use std::process::Command;

use crate::binary::ran;
use crate::server::{Folder, Server};

#[test]
fn the_calls_of_the_readme_work_as_printed() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let calls: Vec<&str> = blocks.filter(|block| block.contains("curl")).collect();
    assert_eq!(calls.len(), 1);
    // With no configuration, as the README says.
    let server = Server::in_folder(Folder::new(), &[], &[]);
    let script = calls[0].replace("127.0.0.1:7070", &server.address);
    assert!(script.matches("curl").count() >= 8, "{script}");
    let output = Command::new("sh").args(["-euc", &script]).current_dir(server.folder.path()).output().unwrap();
    let found = ran(output);
    assert_eq!(found.code, Some(0), "{}{}", found.stdout, found.stderr);
    for told in ["sample-heartbeat", "\"outcome\":\"started\"", "INC-88", "job.new_version", "\"status\":\"active\""] {
        assert!(found.stdout.contains(told), "{told}: {}", found.stdout);
    }
}
