//! Text is text: whatever people and handlers write comes back as it was.

use std::collections::BTreeMap;

use everbell_core::change::{self, Edit, JobView};
use everbell_core::settle::{Outcome, Then};
use everbell_core::store::{AuditEntry, JobFilter, JobRef, PlanDue};
use everbell_core::{Definition, Failure, FailureCode, JobKey, Json, OrgId, Pause, RunStatus, Target};

use super::Fresh;
use super::given::{at, audit, job, json, org, page, per_org};
use super::plain::Plain;
use super::world::{World, settled};

/// Texts that have caused trouble before.
const NASTY: [&str; 12] = [
    "it's \"quoted\" and `ticked`",
    "'; drop table jobs; --",
    "back\\slash \\n \\u0041 %s %d $1 ?1 :name",
    "<script>alert(1)</script> & &amp;",
    "שלום עולם",
    "\u{202e}desrever\u{202c}",
    "👩‍👩‍👧‍👦 ⏰ \u{1f3f4}\u{e0067}\u{e007f}",
    "e\u{301} is not é",
    "İstanbul ẞtraße ﬀ",
    "tab\tnewline\r\nend",
    "\u{feff}bom \u{a0}nbsp \u{2028}line \u{fffd}",
    "\u{7f}del \u{1}control",
];

fn printable() -> impl Iterator<Item = &'static str> {
    NASTY.into_iter().filter(|text| JobKey::new(text).is_ok())
}

pub async fn names_are_any_printable_text(fresh: Fresh) {
    let world = World::new(&fresh);
    assert!(printable().count() >= 8);
    for name in printable() {
        let row = world
            .create(everbell_core::with!(Definition { target: Target::new(name).unwrap(), ..job(name, "0 1 * * *") }))
            .await;
        assert_eq!(row.job.definition.key.as_str(), name);
        assert_eq!(world.get(name).await.job.definition.target.as_str(), name);
        let filter = JobFilter { text: Some(name.to_owned()), ..JobFilter::default() };
        assert_eq!(world.keys(&filter).await, [name]);
        let by_key = JobFilter { key: Some(JobKey::new(name).unwrap()), ..JobFilter::default() };
        assert_eq!(world.keys(&by_key).await, [name]);
    }
    let targets: Vec<Target> = printable().map(|name| Target::new(name).unwrap()).collect();
    let planned =
        world.store.plan_due(&PlanDue::new(at("01:00"), 100, &targets), &super::given::core_plan).await.unwrap();
    assert_eq!(planned.runs.len(), targets.len());
}

pub async fn descriptions_labels_and_reasons_are_any_text(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, text) in NASTY.into_iter().enumerate() {
        let key = format!("job-{number}");
        let labels = BTreeMap::from([(text.to_owned(), text.to_owned()), ("other".to_owned(), String::new())]);
        let definition = everbell_core::with!(Definition {
            description: text.to_owned(),
            labels,
            created_by: text.to_owned(),
            ..job(&key, "@hourly")
        });
        let row = world.create(definition.clone()).await;
        assert_eq!(*row.job.definition, definition);
        let pause = Pause { reason: text.to_owned(), by: text.to_owned(), at: at("01:00"), until: None };
        let changed = world.try_change(&key, at("01:00"), |view| change::pause(view, pause.clone())).await.unwrap();
        assert_eq!(changed.job.job.state.pause, Some(pause));
        assert_eq!(world.get(&key).await, changed.job);
    }
}

pub async fn orgs_are_any_printable_text(fresh: Fresh) {
    let world = World::new(&fresh);
    let visible = || printable().filter(|name| everbell_core::expect_visible("orgId", name).is_ok());
    let orgs: Vec<_> = visible().map(|name| org(name, "UTC")).collect();
    world.put(&orgs, at("00:00")).await;
    world.create(per_org(job("brief", "0 1 * * *"))).await;
    world.reconcile_orgs(at("00:00")).await;
    world.plan(at("01:00")).await;
    let runs = world.runs().await;
    for name in visible() {
        let org = OrgId::new(name).unwrap();
        let found = runs.iter().filter(|run| run.org.as_ref() == Some(&org)).count();
        assert_eq!(found, 1, "{name}");
    }
}

/// JSON that is hard to keep.
fn documents() -> Vec<Json> {
    let nasty: Vec<String> = NASTY.iter().map(|text| serde_json::to_string(text).unwrap()).collect();
    let mut texts = vec![
        "null".to_owned(),
        "\"\"".to_owned(),
        "[]".to_owned(),
        "-0.5e-7".to_owned(),
        "[9007199254740993, 18446744073709551615, -9223372036854775808]".to_owned(),
        r#"{"b": 1, "a": {"d": [true, false, null], "c": "x"}, "": 0}"#.to_owned(),
        format!("[{}]", nasty.join(",")),
        format!("{}{}", "[".repeat(60), "]".repeat(60)),
    ];
    texts.extend(nasty);
    texts.iter().map(|text| json(text)).collect()
}

pub async fn payloads_keep_their_meaning(fresh: Fresh) {
    let world = World::new(&fresh);
    let documents = documents();
    for (number, document) in documents.iter().enumerate() {
        let payload = document.clone();
        world
            .create(everbell_core::with!(Definition {
                payload,
                ..job(&format!("job-{number:02}"), &format!("{number} 1 * * *"))
            }))
            .await;
    }
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    assert_eq!(claims.len(), documents.len());
    for (document, claim) in documents.into_iter().zip(claims) {
        let job = claim.job.as_ref().unwrap();
        assert_eq!(job.payload.clone().plain(), document.clone().plain());
        assert_eq!(claim.run.payload.plain(), document.plain());
    }
}

pub async fn integers_that_no_machine_word_holds_keep_their_digits(fresh: Fresh) {
    let world = World::new(&fresh);
    let digits = "123456789012345678901234567890123456789";
    world
        .create(everbell_core::with!(Definition {
            payload: json(&format!("{{\"n\":{digits}}}")),
            ..job("big", "0 1 * * *")
        }))
        .await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    assert!(claims[0].run.payload.as_str().contains(digits), "{}", claims[0].run.payload);
}

pub async fn a_payload_of_a_mebibyte_fits(fresh: Fresh) {
    let world = World::new(&fresh);
    let payload = json(&format!("\"{}\"", "⏰x".repeat(((1 << 20) - 2) / 4)));
    assert!(payload.as_str().len() > (1 << 20) - 8);
    let row =
        world.create(everbell_core::with!(Definition { payload: payload.clone(), ..job("large", "0 1 * * *") })).await;
    assert_eq!(row.job.definition.payload, payload);
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    assert_eq!(claims[0].run.payload, payload);
    let outcome = Outcome::Succeeded { result: Some(payload.clone()) };
    world.finish(&claims, &outcome, at("01:01")).await;
    assert_eq!(world.run(claims[0].run.id).await.result, Some(payload));
}

pub async fn failures_results_and_output_keep_their_text(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, text) in NASTY.into_iter().enumerate() {
        world.create(job(&format!("job-{number:02}"), &format!("{number} 1 * * *"))).await;
        let now = at(&format!("01:{number:02}"));
        world.plan(now).await;
        let claims = world.start(now).await;
        let mut failure = Failure::new(FailureCode::EXIT_CODE, text);
        failure.details = Some(json(&serde_json::to_string(text).unwrap()));
        let outcome = Outcome::Failed { failure: failure.clone(), then: Then::GiveUp };
        let transition = settled(&claims[0], &outcome, now).with_output(text);
        world.store.record(std::slice::from_ref(&transition), now).await.unwrap();
        let run = world.run(claims[0].run.id).await;
        assert_eq!((run.failure.plain(), run.output), (Some(failure.plain()), transition.output));
    }
}

pub async fn a_message_with_nul_is_recorded_all_the_same(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("rude", "0 1 * * *")).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    let transition = settled(&claims[0], &Outcome::Panicked("before\0after".to_owned()), at("01:01"));
    world.store.record(&[transition.with_output("out\0put")], at("01:01")).await.unwrap();
    let run = world.run(claims[0].run.id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert_eq!(run.failure.unwrap().message, "before\u{fffd}after");
    assert_eq!(run.output.as_deref(), Some("out\u{fffd}put"));
}

pub async fn actors_and_objects_of_the_trail_are_any_text(fresh: Fresh) {
    let world = World::new(&fresh);
    for text in NASTY {
        let entry = AuditEntry {
            actor: text.to_owned(),
            reason: Some(text.to_owned()),
            before: Some(json(&serde_json::to_string(text).unwrap())),
            ..audit(text, text, at("01:00"))
        };
        world.store.append_audit(&entry).await.unwrap();
        let listed = world.store.list_audit(Some(text), &page(10)).await.unwrap();
        assert_eq!(listed.items.plain(), [entry.plain()]);
    }
}

pub async fn an_edit_keeps_texts_that_it_does_not_change(fresh: Fresh) {
    let world = World::new(&fresh);
    let definition = everbell_core::with!(Definition { description: NASTY[6].to_owned(), ..job(NASTY[0], "@hourly") });
    world.create(definition).await;
    let (id, now) = (super::given::job_id("second", 2), at("00:30"));
    let change = |view: &JobView| change::new_version(view, Edit::default(), id, false, NASTY[4], now);
    world.try_change(NASTY[0], now, change).await.unwrap();
    let row = world.store.get_job(&JobRef::Id(id)).await.unwrap();
    assert_eq!((row.job.definition.description.as_str(), row.job.definition.created_by.as_str()), (NASTY[6], NASTY[4]));
}
