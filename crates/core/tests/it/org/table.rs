//! The lives of orgs on file: `tests/golden/org.txt`.
//!
//! Each case is what is given and what happens, and what came of every slot.

use std::fmt::Write as _;

use everbell_core::plan::Missed;
use jiff::Timestamp;

use super::diary::Diary;
use crate::golden;

#[test]
fn lives_are_those_on_file() {
    golden::compare("org.txt", live);
}

fn live(input: &str) -> String {
    let mut lines = input.lines().filter(|line| !line.starts_with('#'));
    let mut given = |word: &str| lines.next().and_then(|line| line.strip_prefix(word)).unwrap().trim();
    let job = given("job");
    let (schedule, policies) = job.split_once(" with ").unwrap_or((job, ""));
    let (zone, since) = given("org").split_once(' ').unwrap();
    let (since, job_made) = since.split_once(" job ").unwrap_or((since, since));
    let mut diary = Diary::of_older_job(schedule, policies, job_made.parse().unwrap(), zone, since.parse().unwrap());
    for line in lines {
        let (time, event) = line.split_once(' ').unwrap();
        diary.until(time.parse().unwrap());
        let (word, rest) = event.split_once(' ').unwrap_or((event, ""));
        match word {
            "moves" => diary.move_to(rest),
            "disabled" => diary.enable(false),
            "enabled" => diary.enable(true),
            "off" => diary.set_override(Some((false, None))),
            "at" => diary.set_override(Some((true, Some(rest)))),
            "as-all" => diary.set_override(None),
            "paused" => diary.pause(),
            "resumed" => diary.resume(if rest == "once" { Missed::RunOnce } else { Missed::Skip }),
            "broken" => diary.break_zone(),
            "asleep" => diary.sleep(rest.parse::<Timestamp>().unwrap()),
            "end" => {}
            _ => panic!("what is `{line}`?"),
        }
    }
    let mut told = String::new();
    for line in &diary.lines {
        writeln!(told, "{line}").unwrap();
    }
    let timer = diary.timer.as_ref();
    match timer.and_then(|timer| timer.timer.next_run_at) {
        Some(next) => writeln!(told, "next {next}").unwrap(),
        None => writeln!(told, "no next").unwrap(),
    }
    if let Some(error) = timer.and_then(|timer| timer.error.as_ref()) {
        writeln!(told, "errored: {error}").unwrap();
    }
    told
}
