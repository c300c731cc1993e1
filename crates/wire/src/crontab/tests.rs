use super::*;

fn verdicts(text: &str, system: bool) -> Vec<String> {
    let lines = read(text, &Zone::utc(), system);
    let shown = |line: &Line| {
        let key = line.entry.as_ref().map_or("-", |entry| entry.key.as_str());
        format!("{} {} {key}: {}", line.number, line.verdict.word(), line.detail)
    };
    lines.iter().map(shown).collect()
}

#[test]
fn every_line_is_told() {
    let text = "# nightly\n\nMAILTO=ops@example.com\nCRON_TZ=\"Europe/Paris\"\n30 2 * * *   /usr/bin/backup --full /srv/\n\
                @daily\tbackup\n@every 90s ping\n@reboot /usr/bin/start\n61 * * * * nothing\n* * * *\nCRON_TZ=Mars\n";
    let expected = [
        "3 note -: MAILTO: kept as the label `mailto`; a rule in the configuration mails failures to it",
        "4 note -: CRON_TZ: the lines below are read in Europe/Paris",
        "5 job backup-full-srv: Every day at 02:30, Europe/Paris",
        "6 job backup: Every day at 00:00, Europe/Paris",
        "7 job ping: Every 90 seconds, Europe/Paris",
        "8 refused -: @reboot: left out: there is no time at which this fires; start it with the machine, for example by a systemd unit",
        "9 refused -: minute: 61 is outside 0-59",
        "10 refused -: the time has five fields, and the command comes after them",
    ];
    let found = verdicts(text, false);
    assert_eq!(found[..8], expected);
    assert!(found[8].starts_with("11 refused -: CRON_TZ: unknown time zone `Mars`"), "{found:?}");
}

#[test]
fn a_system_crontab_names_users() {
    let lines = read("0 5 * * 1 root\ttest -x /usr/sbin/anacron || run-parts /etc/cron.weekly\n", &Zone::utc(), true);
    let entry = lines[0].entry.as_ref().unwrap();
    assert_eq!((entry.user.as_deref(), entry.key.as_str()), (Some("root"), "test-x-anacron-run-parts"));
    assert_eq!((entry.expression.as_str(), entry.zone), ("0 5 * * 1", "UTC"));
    assert_eq!(
        verdicts("0 5 * * 1 root\n", true),
        ["1 refused -: a command is missing; in a system crontab the user comes before it"]
    );
}

#[test]
fn percent_signs_begin_the_input() {
    assert_eq!(input("date +\\%F"), ("date +%F".to_owned(), None));
    assert_eq!(input("mail a%hello%world"), ("mail a".to_owned(), Some("hello\nworld\n".to_owned())));
    assert_eq!(input("a\\b \\\\%x"), ("a\\b \\\\".to_owned(), Some("x\n".to_owned())));
}

#[test]
fn keys_are_names_and_differ() {
    let keys: Vec<String> =
        read("@daily /a/sync\n@hourly sync\n@daily >x\n@daily A=1 &\n@daily sync 2\n", &Zone::utc(), false)
            .into_iter()
            .filter_map(|line| Some(line.entry?.key))
            .collect();
    assert_eq!(keys, ["sync", "sync-2", "job", "job-2", "sync-2-2"]);
}

#[test]
fn long_crontab_is_refused() {
    assert_eq!(check_length(&"0 8 * * * x\n".repeat(MAX_LINES)), Ok(()));
    let refused = check_length(&"0 8 * * * x\n".repeat(MAX_LINES + 1)).unwrap_err();
    assert!(refused.contains("has 10001 lines; at most 10000"), "{refused}");
}

fn entries(text: &str) -> Vec<Entry> {
    read(text, &Zone::utc(), false).into_iter().filter_map(|line| line.entry).collect()
}

#[test]
fn variables_hold_for_the_lines_below_them() {
    let text = "@daily a\nSHELL=/bin/bash\nPATH = \"/opt/bin:/bin\"\nMAILTO=ops@example.com\nTZ=Asia/Tokyo\n@daily b\n\
                SHELL=zsh\nPATH=/bin\nMAILTO=\"\"\nLOGNAME=ana\nEVERBELL_RUN_ID=1\n@daily c\n";
    let [a, b, c] = &entries(text)[..] else { panic!("{:?}", entries(text)) };
    assert_eq!(a.payload(), json!({"command": "a"}));
    let env = json!({"PATH": "/opt/bin:/bin", "TZ": "Asia/Tokyo"});
    assert_eq!(b.payload(), json!({"command": "b", "shell": "/bin/bash", "env": env}));
    assert_eq!(b.draft("shell", "x").labels["mailto"], "ops@example.com");
    assert_eq!((c.payload()["env"]["PATH"].as_str(), c.mailto.as_deref()), (Some("/bin"), None));
    assert_eq!(c.draft("shell", "x").labels.len(), 1);
    assert_eq!(b.zone, "UTC", "only CRON_TZ is about times");
    let lines = verdicts(text, false);
    for part in ["SHELL: must be an absolute path", "LOGNAME: left out: cron", "EVERBELL_RUN_ID: left out"] {
        assert!(lines.iter().any(|line| line.contains(part)), "{part}: {lines:#?}");
    }
}

#[test]
fn comment_right_above_a_line_is_its_description() {
    let text = "# for all\n\n# m h  dom mon dow   command\n# ------\n# nightly\n## backup\n# 0 1 * * * old\n0 2 * * * a\n0 3 * * * b\n# c\nA=b\n0 4 * * * c\n";
    let found: Vec<String> = entries(text).into_iter().map(|entry| entry.description).collect();
    assert_eq!(found, ["nightly\nbackup", "", ""]);
}

#[test]
fn column_with_users_is_detected() {
    let found = |path: Option<&str>, text: &str| system_reason(path.map(std::path::Path::new), text).is_some();
    assert!(found(Some("/etc/crontab"), "") && found(Some("/etc/cron.d/php"), ""));
    assert!(!found(Some("/var/spool/cron/ana"), "@daily backup all\n") && !found(None, ""));
    assert!(found(None, "# m h dom mon dow user\tcommand\n@daily a b\n"));
    assert!(found(None, "SHELL=/bin/sh\n17 * * * * root cd / && run-parts x\n@daily www-data /usr/bin/a\n"));
    assert!(!found(None, "17 * * * * root a\n@daily /usr/bin/a b\n"), "not every line has one");
    assert!(!found(None, "@daily postgres --check\n@hourly backup all\n"), "a program with its options");
}

#[test]
fn differences_in_meaning_are_told() {
    let now: Timestamp = "2026-11-18T08:00:00Z".parse().unwrap();
    let text = "0 8 13 * 5 a\nCRON_TZ=Europe/Paris\n30 2 * * * b\n*/5 * * * * c\n";
    let [a, b, c] = &entries(text)[..] else { panic!("{:?}", entries(text)) };
    let found = a.differences(now);
    assert!(
        found.len() == 1 && found[0].contains("either matches") && found[0].ends_with("cron means the same"),
        "{found:?}"
    );
    let found = b.differences(now);
    assert!(found.len() == 2 && found.iter().all(|found| found.ends_with("cron may behave differently")), "{found:?}");
    assert_eq!(c.differences(now), [""; 0]);
}

#[test]
fn label_is_the_name_of_the_file() {
    for (path, label) in [("/etc/crontab", "crontab"), ("a/b.txt", "b.txt"), ("-", "crontab"), ("", "crontab")] {
        assert_eq!(file_label(path), label);
    }
    assert_eq!(file_label(&"é".repeat(150)), "é".repeat(100));
}

#[test]
fn leading_minus_is_not_part_of_the_time() {
    assert_eq!(entries("-*/15 * * * * a\n")[0].expression, "*/15 * * * *");
    assert_eq!(entries("-x * * * * a\n"), []);
}
