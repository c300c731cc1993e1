//! `[[calendar]]` blocks.

use super::*;

fn problems(text: &str) -> Vec<String> {
    let error = read_with(text, &[], &ServeFlags::default()).unwrap_err();
    error.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn calendars_are_read() {
    let config = read(
        "[[calendar]]\nname = \"holidays\"\ntimezone = \"Europe/Paris\"\ndates = [\"*-12-25 Christmas\"]\nweekly = [\"sun\"]\n\
         ics = \"BEGIN:VEVENT\\nDTSTART;VALUE=DATE:20270101\\nEND:VEVENT\"",
    );
    let [holidays] = &config.calendars[..] else { panic!("{:?}", config.calendars) };
    let content = &holidays.content;
    assert_eq!((holidays.name.as_str(), content.weekly.words()), ("holidays", vec!["sun"]));
    assert_eq!(content.timezone.as_ref().map(everbell_core::Zone::name), Some("Europe/Paris"));
    let dates: Vec<String> = content.entries.iter().map(ToString::to_string).collect();
    assert_eq!(dates, ["*-12-25 Christmas", "2027-01-01"]);
    assert_eq!(*shown(&config, "calendar \"holidays\": weekly").0, serde_json::json!(["sun"]));
}

#[test]
fn a_calendar_that_cannot_be_used_names_its_line_and_key() {
    let block = "[[calendar]]\nname = \"a\"\n";
    let weekend = format!("{block}weekly = [\"sat\"]\n");
    for (text, expected) in [
        (format!("{weekend}{weekend}"), "a.toml:5: calendar \"a\": name: is defined twice; the other one is on line 2"),
        (
            format!("{block}ics_file = \"/nowhere/a.ics\""),
            "a.toml:3: calendar \"a\": ics_file: the file `/nowhere/a.ics` does not exist",
        ),
        (format!("{weekend}ics = \"x\"\nics_file = \"y\""), "calendar \"a\": ics_file: cannot be combined with `ics`"),
        (format!("{block}dates = [\"2027-13-01\"]"), "a.toml:3: calendar \"a\": dates[0]: "),
        (format!("{block}weekly = [\"caturday\"]"), "a.toml:3: calendar \"a\": weekly: `caturday` is not a weekday"),
        (block.to_owned(), "calendar \"a\": dates: the calendar has no day: give it `dates`, `weekly` or `ics`"),
        ("[[calendar]]\nname = \"a b\"\nweekly = [\"sat\"]".to_owned(), "a.toml:2: calendar \"a b\": name: must be"),
        ("[[calendar]]\nweekly = [\"sat\"]".to_owned(), "calendar[0].name: "),
    ] {
        let found = problems(&text);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{text}: {found:?}");
    }
}
