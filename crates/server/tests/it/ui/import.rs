//! Importing a crontab.

use serde_json::json;

use super::visitor::Visitor;
use crate::server::Server;

#[test]
fn a_crontab_becomes_the_jobs_that_are_picked() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    server.job("taken", &json!({}));
    let crontab =
        "CRON_TZ=Europe/Paris\r\n30 2 * * * /usr/bin/backup <b>\r\n@daily taken\r\n@reboot start\r\n@hourly ping\r\n";
    let read = admin.post("/import", &[("crontab", crontab), ("zone", "UTC"), ("target", "print"), ("do", "read")]);
    assert_eq!(read.status, 200);
    for part in [
        "the lines below are read in Europe/Paris",
        "Every day at 02:30, Europe/Paris",
        "value=\"backup\"",
        "Job `taken` already exists and is active.",
        "there is no time at which this fires",
        "will be created",
    ] {
        assert!(read.text.contains(part), "{part} is not in {}", read.text);
    }
    assert!(!read.text.contains("backup <b>"));
    let picked = |line: &str| read.text.contains(&format!("aria-label=\"Line {line}\" checked"));
    assert!(picked("2") && !picked("3") && picked("5"), "what cannot be made is not picked: {}", read.text);
    assert_eq!(server.get("/jobs").expect(200)["items"].as_array().unwrap().len(), 1);
    let chosen = [
        ("read", "yes"),
        ("crontab", crontab),
        ("zone", "UTC"),
        ("pick", "2"),
        ("key-2", "mine"),
        ("target-2", "fail"),
        ("pick", "3"),
        ("target-3", "print"),
        ("once", "a-word"),
        ("do", "create"),
    ];
    let made = admin.post("/import", &chosen);
    assert_eq!(made.status, 200);
    assert!(made.text.contains("1 job created.") && made.text.contains("href=\"/jobs/mine\""), "{}", made.text);
    assert!(made.text.contains("Job `taken` already exists: it is active at version 1."), "{}", made.text);
    let job = server.get("/jobs/key:mine").expect(200);
    assert_eq!((&job["target"], &job["timezone"]), (&json!("fail"), &json!("Europe/Paris")));
    assert_eq!(job["payload"], json!({"command": "/usr/bin/backup <b>"}));
    server.get("/jobs/key:ping").problem(404, "NotFound");
    let nowhere = admin.post("/import", &[("crontab", crontab), ("zone", "Mars")]);
    assert_eq!(nowhere.status, 400);
}
