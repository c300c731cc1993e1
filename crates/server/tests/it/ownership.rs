//! Jobs of configuration files: edits that survive a restart, the way back, and servers with files of their own.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use serde_json::{Value, json};

use crate::binary::{Ran, ran};
use crate::server::{Server, TARGETS, quiet};
use crate::ui::visitor::{Visitor, assert_has, led};

fn block(key: &str, expression: &str) -> String {
    format!("[[job]]\njob_key = \"{key}\"\ntarget = \"print\"\ncron_expression = \"{expression}\"\n")
}

/// `everbell jobs` in the folder of a server.
fn jobs(server: &Server, args: &[&str]) -> Ran {
    let mut command = quiet(server.folder.path());
    command.arg("jobs").args(args).env("LC_ALL", "C").env("EVERBELL_SERVER", format!("http://{}", server.address));
    ran(command.env("EVERBELL_TOKEN", &server.token).output().unwrap())
}

fn declaration(server: &Server) -> Value {
    server.get("/jobs/key:mine").expect(200)["declaration"].clone()
}

#[test]
fn an_edit_of_a_declared_job_survives_a_restart_and_can_be_taken_back() {
    let server = Server::with(&format!("{TARGETS}\n{}", block("mine", "0 8 * * *")));
    assert_eq!(declaration(&server), json!({ "source": "config", "app": "everbell", "version": 1, "edited": false }));
    server.post("/jobs/key:mine/restore-declaration", &json!({})).problem(400, "InvalidInput");
    let edited = jobs(&server, &["new-version", "mine", "--cron", "0 9 * * *"]);
    assert_eq!(edited.code, Some(0), "{}", edited.stderr);
    let told = "warning: this job is declared in the configuration file of everbell; the change stays until";
    assert!(edited.stderr.starts_with(told), "{}", edited.stderr);
    assert_eq!(edited.stderr.matches("this job is declared").count(), 1, "once: {}", edited.stderr);

    let (token, folder) = (server.token.clone(), server.take_folder());
    let mut server = Server::in_folder(folder, &[], &[]);
    server.token = token;
    let wanted = json!({ "source": "config", "app": "everbell", "version": 1, "edited": true });
    assert_eq!(declaration(&server), wanted);
    assert_eq!(server.get("/jobs/key:mine").expect(200)["cronExpression"], "0 9 * * *");
    server.until_logged("edited since; the declaration differs (schedule)");
    let shown = jobs(&server, &["show", "mine"]).stdout;
    assert!(
        shown.contains("in the configuration file of everbell, as v1; edited since: the declaration differs"),
        "{shown}"
    );

    let ana = Visitor::new(&server, &server.token);
    assert_has(
        &ana.page("/jobs/mine"),
        &["Edited since:", "in the configuration file of everbell", "/jobs/mine/restore-declaration"],
    );
    assert_has(&ana.page("/jobs/mine/new-version"), &["This job is declared", "stays until the declaration changes"]);
    assert_has(&ana.page("/jobs/mine/restore-declaration"), &["These members change", "<code>cronExpression</code>"]);
    let (_, said) = led(&ana.send("/jobs/mine/restore-declaration", &[("reason", "the winter is over")]));
    assert_eq!(said, "+mine is as declared again, in version 3.");
    let job = server.get("/jobs/key:mine").expect(200);
    assert_eq!((&job["cronExpression"], &job["version"]), (&json!("0 8 * * *"), &json!(3)));
    assert_eq!(job["declaration"], json!({ "source": "config", "app": "everbell", "version": 3, "edited": false }));
    assert!(!ana.page("/jobs/mine").contains("Edited since:"));
    assert_has(&ana.page("/jobs/mine/restore-declaration"), &["there is nothing to restore"]);

    // The same by the command line and the API.
    server.patch("/jobs/key:mine", &json!({ "description": "edited" })).expect(200);
    let restored = jobs(&server, &["restore-declaration", "mine"]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert!(restored.stdout.starts_with("+ Created mine v5 (active), which is as declared\n"), "{}", restored.stdout);
    server.patch("/jobs/key:mine", &json!({ "description": "edited" })).expect(200);
    let restored = server.post("/jobs/key:mine/restore-declaration", &json!({ "reason": "enough" })).expect(200);
    assert_eq!((&restored["version"], &restored["description"]), (&json!(7), &json!("")));
    let viewer = server.token_of("operator");
    let headers = [("authorization", format!("Bearer {viewer}"))];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let path = "/api/v1/jobs/key:mine/restore-declaration";
    assert_eq!(server.raw("POST", path, &headers, b"{}").status, 403);
}

#[test]
fn servers_with_files_of_their_own_leave_each_other_alone() {
    let config = |app: &str, key: &str| {
        format!("[jobs]\napp = \"{app}\"\nremoved = \"retire\"\n{TARGETS}\n{}", block(key, "0 8 * * *"))
    };
    let first = Server::postgres(&config("billing", "invoices"));
    let url = first.database_url();
    let mut second = Server::launch(&config("mail", "digest"), None, &[("EVERBELL_DATABASE_URL", &url)]);
    second.token = first.token.clone();
    for (key, app) in [("invoices", "billing"), ("digest", "mail")] {
        let job = second.get(&format!("/jobs/key:{key}")).expect(200);
        assert_eq!((&job["status"], &job["declaration"]["app"]), (&json!("active"), &json!(app)));
    }
}
