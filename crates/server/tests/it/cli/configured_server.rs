//! A server that is configured otherwise: another mount, revisions required, skipped runs that are no conflict.

use super::{everbell, masked, prepared};
use crate::binary::{Ran, ran};
use crate::server::{Server, TARGETS};

const API: &str = "
[api]
mounts = [\"/api/v1\", \"/api/v2/admin/cron\"]
require_if_match = true
run_now_overlap_status = 200
";

#[test]
fn a_server_may_be_configured_otherwise() {
    let server = Server::with(&format!("{API}{TARGETS}"));
    let mounted = format!("http://{}/api/v2/admin/cron/", server.address);
    let there = |args: &[&str]| -> Ran {
        let found = ran(prepared(&server, args).env("EVERBELL_SERVER", &mounted).output().unwrap());
        assert!(!found.stderr.starts_with("error"), "{args:?}: {}", found.stderr);
        found
    };
    // Who works from a terminal decides by what they see now, so no revision is asked of them.
    there(&["jobs", "create", "slow", "--target", "sleep", "--cron", "0 0 1 1 *"]);
    there(&["jobs", "new-version", "slow", "--timeout", "1m"]);
    there(&["jobs", "pause", "slow", "--reason", "for a test"]);
    there(&["jobs", "resume", "slow"]);
    there(&["jobs", "run", "slow"]);
    let skipped = there(&["jobs", "run", "slow"]);
    assert_eq!((skipped.code, skipped.stdout.as_str()), (Some(5), ""));
    assert!(masked(&skipped.stderr).starts_with("⤼ Skipped: run ID is still "), "{}", skipped.stderr);
    there(&["jobs", "retire", "slow", "--yes"]);
    let nowhere = everbell(&server, &["jobs", "--server", &format!("http://{}/nowhere", server.address)]);
    assert_eq!(nowhere.code, Some(3), "{}", nowhere.stderr);
}

#[test]
fn a_token_that_leaves_the_machine_in_clear_text_is_warned_about_once() {
    let server = Server::start();
    let port = server.address.rsplit(':').next().unwrap();
    let at = |host: &str| {
        let address = format!("http://{host}:{port}");
        ran(prepared(&server, &["jobs"]).env("EVERBELL_SERVER", &address).output().unwrap())
    };
    // The kernel takes this address as that of the machine, but its name does not say so.
    let there = at("0.0.0.0");
    assert_eq!((there.code, there.stderr.matches("unencrypted").count()), (Some(0), 1), "{}", there.stderr);
    assert!(
        there.stderr.starts_with(&format!("warning: the token is sent to http://0.0.0.0:{port} ")),
        "{}",
        there.stderr
    );
    for host in ["127.0.0.1", "localhost", "127.1.2.3"] {
        let here = at(host);
        assert!(!here.stderr.contains("unencrypted"), "{host}: {}", here.stderr);
    }
}
