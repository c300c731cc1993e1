//! Importing a crontab.

use serde_json::json;

use super::browser::Browser;
use super::visitor::Visitor;
use crate::server::{Server, TARGETS};

#[test]
fn a_crontab_becomes_the_jobs_that_are_picked() {
    let server = Server::with(&format!("[shell]\nallow = true\n{TARGETS}")).registered();
    let admin = Visitor::admin(&server);
    server.job("taken", &json!({}));
    let crontab =
        "CRON_TZ=Europe/Paris\r\n30 2 * * * /usr/bin/backup <b>\r\n@daily taken\r\n@reboot start\r\n@hourly ping\r\n";
    let read = admin.post("/import", &[("text", crontab), ("zone", "UTC"), ("do", "read")]);
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
        ("text", crontab),
        ("zone", "UTC"),
        ("pick", "2"),
        ("key-2", "mine"),
        ("pick", "3"),
        ("file", "old-host"),
        ("once", "a-word"),
        ("do", "create"),
    ];
    let made = admin.post("/import", &chosen);
    assert_eq!(made.status, 200);
    assert!(
        made.text.contains("1 job created. They are paused, with the label")
            && made.text.contains("href=\"/jobs/mine\""),
        "{}",
        made.text
    );
    assert!(made.text.contains("Job `taken` already exists: it is active at version 1."), "{}", made.text);
    let job = server.get("/jobs/key:mine").expect(200);
    assert_eq!((&job["target"], &job["timezone"]), (&json!("shell"), &json!("Europe/Paris")));
    assert_eq!((&job["status"], &job["labels"]), (&json!("paused"), &json!({"imported": "old-host"})));
    assert_eq!(job["payload"], json!({"command": "/usr/bin/backup <b>"}));
    server.get("/jobs/key:ping").problem(404, "NotFound");
    let started = admin.post("/import", &[("file", "old-host"), ("zone", "UTC"), ("do", "start")]);
    assert!(started.status == 200 && started.text.contains("1 job started."), "{}", started.text);
    assert_eq!(server.get("/jobs/key:mine").expect(200)["status"], "active");
    let nowhere = admin.post("/import", &[("text", crontab), ("zone", "Mars")]);
    assert_eq!(nowhere.status, 400);
}

#[test]
fn target_that_does_not_run_commands_is_refused_once() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    let crontab = "@daily root a\n@hourly root b\n";
    let off = admin.post("/import", &[("text", crontab), ("zone", "UTC"), ("do", "read")]);
    assert_eq!((off.status, off.text.matches("No live instance serves the target `shell`").count()), (400, 1));
    assert!(off.text.contains("Yes: a user precedes every command."), "{}", off.text);
    let fields =
        [("text", crontab), ("zone", "UTC"), ("target", "print"), ("do", "create"), ("read", "yes"), ("pick", "1")];
    let print = admin.post("/import", &fields);
    assert_eq!((print.status, print.text.matches("is not the built-in target `shell`").count()), (400, 1));
    assert_eq!(server.get("/jobs").expect(200)["items"], json!([]));
    let confirmed = admin.post("/import", &[&fields[..], &[("reads", "yes")]].concat());
    assert!(confirmed.status == 200 && confirmed.text.contains("1 job created."), "{}", confirmed.text);
    let job = server.get("/jobs/key:a").expect(200);
    assert_eq!((&job["target"], &job["payload"]["user"]), (&json!("print"), &json!("root")));
}

/// `CronJobs` and timers are read as the command line reads them.
#[test]
fn cronjobs_and_timers_become_the_jobs_that_are_picked() {
    let server = Server::with(&format!("[shell]\nallow = true\n{TARGETS}")).registered();
    let admin = Visitor::admin(&server);
    let yaml = "apiVersion: batch/v1\r\nkind: CronJob\r\nmetadata: { name: report, namespace: shop }\r\nspec:\r\n  \
                schedule: '30 2 * * *'\r\n  concurrencyPolicy: Forbid\r\n  jobTemplate: { spec: { template: { spec: { containers: \
                [{ image: 'example/report:1', command: [/bin/report, '<b>'] }] } } } }\r\n---\r\nkind: CronJob\r\n\
                metadata: { name: asleep }\r\nspec: { suspend: true, schedule: '@daily' }\r\n";
    let read = admin.post("/import", &[("text", yaml), ("zone", "Europe/Paris"), ("do", "read")]);
    assert_eq!(read.status, 200);
    for part in [
        "Read as CronJobs of Kubernetes.",
        "Every day at 02:30, Europe/Paris",
        "Differs: no timeZone: read in Europe/Paris; Kubernetes uses the zone of its controller; choose another zone above",
        "Differs: image <code dir=\"auto\">example/report:1</code> is left out",
        "left out: it is suspended; select",
        "aria-label=\"Object report\" checked",
        "will be created",
    ] {
        assert!(read.text.contains(part), "{part} is not in {}", read.text);
    }
    let chosen = [("text", yaml), ("zone", "Europe/Paris"), ("file", "shop.yaml"), ("read", "yes"), ("pick", "1")];
    let made = admin.post("/import", &[&chosen[..], &[("key-1", "mine"), ("do", "create"), ("once", "a")]].concat());
    assert!(made.status == 200 && made.text.contains("1 job created."), "{}", made.text);
    let job = server.get("/jobs/key:mine").expect(200);
    assert_eq!((&job["status"], &job["policies"]["overlap"]), (&json!("paused"), &json!("skip")));
    assert_eq!(job["labels"], json!({"imported": "shop.yaml", "namespace": "shop"}));
    assert_eq!(job["payload"], json!({"command": "/bin/report \"<b>\""}));
    let started = admin.post("/import", &[("file", "shop.yaml"), ("zone", "UTC"), ("do", "start")]);
    assert!(started.text.contains("1 job started."), "{}", started.text);

    let units = "# /etc/systemd/system/backup.timer\n[Timer]\nOnCalendar=*-*-* 04:00:00\nPersistent=true\n\n\
                 # /etc/systemd/system/backup.service\n[Service]\nExecStart=/bin/backup --all\n";
    let chosen = [("text", units), ("zone", "UTC"), ("read", "yes"), ("pick", "1"), ("do", "create"), ("once", "b")];
    let made = admin.post("/import", &chosen);
    for part in ["Read as timers of systemd.", "imported=timers", "Persistent: one run makes up", "1 job created."] {
        assert!(made.text.contains(part), "{part} is not in {}", made.text);
    }
    let job = server.get("/jobs/key:backup").expect(200);
    assert_eq!((&job["status"], &job["payload"]["command"]), (&json!("paused"), &json!("/bin/backup --all")));

    let broken = admin.post("/import", &[("text", "kind: ["), ("zone", "UTC"), ("do", "read")]);
    assert!(broken.status == 400 && broken.text.contains("this is not YAML: line 1"), "{}", broken.text);
    assert!(broken.text.contains(">kind: [</textarea>"), "the text stays: {}", broken.text);
    let empty = admin.post("/import", &[("text", "# nothing"), ("zone", "UTC"), ("do", "read")]);
    assert!(empty.status == 400 && empty.text.contains("the text has no job"), "{}", empty.text);
    let many = "- kind: Pod\n".repeat(1_001);
    let many = admin.post("/import", &[("text", &format!("items:\n{many}")), ("zone", "UTC"), ("do", "read")]);
    assert!(many.status == 400 && many.text.contains("has 1001 objects; at most 1000"), "{}", many.text);
    let forced = admin.post("/import", &[("text", "kind: ["), ("kind", "crontab"), ("zone", "UTC"), ("do", "read")]);
    assert!(forced.status == 200 && !forced.text.contains("is not YAML"), "{}", forced.text);
}

/// The page with results is as good as the empty one, and a second text still gets a name of its own.
#[test]
fn results_are_a_good_page() {
    let server = Server::with(&format!("[shell]\nallow = true\n{TARGETS}")).registered();
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/import"));
    browser.fill("Crontab, CronJobs or timers", "MAILTO=ops@example.com\n30 2 * * 1 /usr/bin/backup\n@reboot start\n");
    browser.click("Read text");
    browser.see("will be created");
    browser.see("there is no time at which this fires");
    browser.flawless();
    assert_eq!(browser.value_of("Name"), "", "what was not entered is not filled in");
    browser.click("Create selected jobs, paused");
    browser.see("1 job created.");
    browser.see("imported=crontab");
    browser.flawless();
    browser.finish();
}
