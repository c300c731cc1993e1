use super::*;
use crate::after::ChainOn;
use crate::fan_in::GroupBy;
use crate::ids::BackfillId;

fn key(text: &str) -> JobKey {
    JobKey::new(text).unwrap()
}

fn at(time: &str) -> Timestamp {
    format!("2026-11-18T{time}:00Z").parse().unwrap()
}

fn parent(job: &str, on: ChainOn) -> After {
    After { job_key: key(job), on, manual: false }
}

fn fan_in(group: GroupBy) -> FanIn {
    let parents = vec![parent("a", ChainOn::Success), parent("b", ChainOn::Success)];
    FanIn { parents, group, within: Duration::from_hours(2) }
}

/// A run of a job that ended at this time, and whose chain began at `origin`.
fn end(job: &str, status: RunStatus, origin: &str, finished_at: &str) -> FanInEnd {
    let id = RunId::after(&key(job), None, RunId::by_hand(at(origin), [1; 10]), at(finished_at));
    let trigger = Trigger::Schedule("@hourly".to_owned());
    FanInEnd {
        ended: EndedRun { id, status, trigger, finished_at: at(finished_at) },
        job_key: key(job),
        org: None,
        origin: at(origin),
    }
}

/// Joins the ends one after the other, each as a transaction of its own.
fn join_each(rule: &FanIn, zone: &Zone, ends: &[FanInEnd]) -> (Vec<Start>, BTreeMap<String, RunGroup>) {
    let mut groups = BTreeMap::new();
    let starts = ends.iter().flat_map(|end| join(&key("c"), rule, zone, std::slice::from_ref(end), &mut groups));
    (starts.collect(), groups)
}

use RunStatus::{Canceled, Failed, Succeeded};

#[test]
fn job_starts_once_when_both_have_succeeded_for_the_same_slot() {
    let rule = fan_in(GroupBy::Slot);
    let ends = [
        end("a", Succeeded, "01:00", "01:05"),
        end("b", Succeeded, "02:00", "02:01"),
        end("b", Succeeded, "01:00", "02:10"),
        end("b", Succeeded, "01:00", "02:20"),
    ];
    let (starts, groups) = join_each(&rule, &Zone::utc(), &ends);
    let runs = vec![ends[2].ended.id, ends[0].ended.id];
    assert_eq!(starts, [Start { cause: runs[0], trigger: Trigger::AfterAll(runs), at: at("02:10") }]);
    let open = &groups["2026-11-18T02:00:00Z"];
    assert_eq!((open.closed_at, open.missing(&rule)), (None, vec!["a has not ended".to_owned()]));
    let closed = &groups["2026-11-18T01:00:00Z"];
    assert_eq!((closed.opened_at, closed.deadline, closed.closed_at), (at("01:05"), at("03:05"), Some(at("02:10"))));
    assert_eq!(closed.started, Some(RunId::after(&key("c"), None, ends[2].ended.id, at("02:10"))));
    let mut together = BTreeMap::new();
    assert_eq!(join(&key("c"), &rule, &Zone::utc(), &ends, &mut together), starts, "in one transaction");
}

#[test]
fn local_dates_are_those_of_the_job_that_waits() {
    let rule = fan_in(GroupBy::LocalDate);
    // 22:30 and 23:30 in UTC are the same date there, and not in Paris.
    let ends = [end("a", Succeeded, "22:30", "22:40"), end("b", Succeeded, "23:30", "23:40")];
    assert_eq!(join_each(&rule, &Zone::utc(), &ends).0.len(), 1);
    let (starts, groups) = join_each(&rule, &Zone::get("Europe/Paris").unwrap(), &ends);
    assert_eq!((starts.len(), groups.keys().map(String::as_str).collect()), (0, vec!["2026-11-18", "2026-11-19"]));
}

#[test]
fn an_unwanted_outcome_waits_for_a_wanted_one() {
    let rule = fan_in(GroupBy::Slot);
    let ends = [
        end("a", Failed, "01:00", "01:05"),
        end("b", Succeeded, "01:00", "01:06"),
        end("b", Canceled, "01:00", "01:07"),
        end("a", Succeeded, "01:00", "01:30"),
    ];
    let (starts, groups) = join_each(&rule, &Zone::utc(), &ends[..3]);
    assert_eq!(starts, []);
    let group = groups.values().next().unwrap();
    assert_eq!(group.missing(&rule), [format!("run {} of a is failed", ends[0].ended.id)], "b has succeeded");
    assert_eq!(join_each(&rule, &Zone::utc(), &ends).0.len(), 1);
}

#[test]
fn runs_by_hand_and_of_orgs_do_not_count() {
    let rule = fan_in(GroupBy::Slot);
    let by_hand = |trigger: Trigger| {
        let mut end = end("b", Succeeded, "01:00", "01:06");
        end.ended.trigger = trigger;
        end
    };
    let of_org = FanInEnd { org: Some(OrgId::new("acme").unwrap()), ..end("b", Succeeded, "01:00", "01:06") };
    let manual = by_hand(Trigger::Manual("ana".to_owned()));
    let backfill = by_hand(Trigger::Backfill(BackfillId::new(at("00:00"), [1; 10])));
    for second in [of_org, manual.clone(), backfill] {
        let ends = [end("a", Succeeded, "01:00", "01:05"), second];
        assert_eq!(join_each(&rule, &Zone::utc(), &ends).0, []);
    }
    let mut also = rule;
    also.parents[1].manual = true;
    let ends = [end("a", Succeeded, "01:00", "01:05"), manual];
    assert_eq!(join_each(&also, &Zone::utc(), &ends).0.len(), 1);
}

#[test]
fn a_wait_that_is_over_leaves_a_gap_and_starts_nothing_later() {
    let rule = fan_in(GroupBy::Slot);
    let first = end("a", Succeeded, "01:00", "01:05");
    let (_, mut groups) = join_each(&rule, &Zone::utc(), &[first]);
    let group = groups.values_mut().next().unwrap();
    assert_eq!(expire(&mut group.clone(), false, at("03:04")), None, "not yet");
    let gap = expire(group, false, at("03:30")).unwrap();
    assert_eq!((gap.reason, gap.first_slot_at, gap.slots), (GapReason::Incomplete, at("03:05"), 1));
    assert_eq!(expire(group, false, at("03:31")), None, "once");
    let late = [end("b", Succeeded, "01:00", "03:40")];
    assert_eq!(join(&key("c"), &rule, &Zone::utc(), &late, &mut groups), []);
    let (_, mut groups) = join_each(&rule, &Zone::utc(), &[end("a", Succeeded, "01:00", "01:05")]);
    let after_the_deadline = [end("b", Succeeded, "01:00", "03:06")];
    assert_eq!(
        join(&key("c"), &rule, &Zone::utc(), &after_the_deadline, &mut groups),
        [],
        "although no gap is written"
    );
    let group = groups.values_mut().next().unwrap();
    assert_eq!(expire(group, true, at("03:30")).unwrap().reason, GapReason::Paused);
}

#[test]
fn a_wait_in_which_nothing_ended_as_wanted_leaves_no_gap() {
    let rule =
        FanIn { parents: vec![parent("a", ChainOn::Failure), parent("b", ChainOn::Failure)], ..fan_in(GroupBy::Slot) };
    let (_, mut groups) = join_each(&rule, &Zone::utc(), &[end("a", Succeeded, "01:00", "01:05")]);
    let group = groups.values_mut().next().unwrap();
    assert_eq!((expire(group, false, at("04:00")), group.closed_at), (None, Some(at("03:05"))));
}

#[test]
fn the_stored_text_is_read_back() {
    for group in GroupBy::ALL {
        let rule = FanIn {
            parents: vec![
                After { manual: true, ..parent("two words", ChainOn::Any) },
                parent("success", ChainOn::Failure),
                parent("c", ChainOn::Success),
            ],
            group: *group,
            within: Duration::from_mins(90),
        };
        let text = rule.to_string();
        assert_eq!(FanIn::parse(&text), Some(Ok(rule)));
        assert_eq!(After::parse(&text), None);
    }
    // Stored in databases: must never change.
    assert_eq!(fan_in(GroupBy::Slot).to_string(), "@after-all slot 7200\nsuccess\na\nsuccess\nb\n");
    assert_eq!(FanIn::parse("@after success extract"), None);
    for broken in ["@after-all slot 7200\nsuccess\na\n", "@after-all week 7200", "@after-all slot 7200\nsuccess"] {
        assert!(FanIn::parse(broken).is_some_and(|read| read.is_err()), "{broken}");
    }
}

#[test]
fn rules_that_cannot_work_are_refused() {
    let refused = |rule: FanIn| rule.check().unwrap_err().to_string();
    let one = FanIn { parents: vec![parent("a", ChainOn::Any)], ..fan_in(GroupBy::Slot) };
    assert!(refused(one).starts_with("after: must name 2 to 20 jobs, not 1"));
    let twice = FanIn { parents: vec![parent("a", ChainOn::Any); 2], ..fan_in(GroupBy::Slot) };
    assert!(refused(twice).contains("names `a` twice"));
    let short = FanIn { within: Duration::from_secs(59), ..fan_in(GroupBy::Slot) };
    assert!(refused(short).starts_with("afterWithin: must be whole seconds from 1 minute"));
}

#[test]
fn the_rule_is_described() {
    let rule = FanIn {
        parents: vec![parent("a", ChainOn::Success), parent("b", ChainOn::Success), parent("c", ChainOn::Failure)],
        ..fan_in(GroupBy::LocalDate)
    };
    let words = "when a and b have succeeded and c has failed on the same local date, at most 2h after the first";
    assert_eq!(rule.describe(), words);
}
