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
        "3 note -: MAILTO: no mail is sent; output and failures are stored with each run, and metrics count failures",
        "4 note -: CRON_TZ: the lines below are read in Europe/Paris",
        "5 job backup-full-srv: Every day at 02:30, Europe/Paris",
        "6 job backup: Every day at 00:00, Europe/Paris",
        "7 job ping: Every 90 seconds, Europe/Paris",
        "8 refused -: @reboot: there is no time at which this fires; start it with the machine, for example by a systemd unit",
        "9 refused -: minute: 61 is outside 0-59",
        "10 refused -: the time has five fields, and a command stands behind them",
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
        ["1 refused -: a command is missing; with --system the user stands before it"]
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
