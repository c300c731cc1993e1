//! The trace that a run continues: that of the request that created it, or its one-time job, in every attempt.

use everbell_core::change::{self, Edit};
use everbell_core::org::OrgTask;
use everbell_core::plan::{Backfill, RunNow};
use everbell_core::store::{Claim, JobFilter, RunFilter};
use everbell_core::{BackfillId, Definition, Run, Spec, TraceContext, Zone, enqueue};

use super::Fresh;
use super::given::{at, audit, by_hand, job, job_at, job_id, trial, with};
use super::org_timers::three;
use super::world::{World, failure, success};

fn trace(number: u8) -> TraceContext {
    let parent = format!("00-4bf92f3577b34da6a3ce929d0e0e47{number:02x}-00f067aa0ba902b7-01");
    TraceContext::parse(&parent, Some("vendor=a b,other=1")).unwrap()
}

/// A one-time job at 01:00 with two attempts, that a request in a trace created.
fn traced(key: &str, number: u8) -> Definition {
    let definition = with(job_at(key, "once 01:00", at("00:30")), |values| values.max_attempts = 2);
    definition.in_trace(Some(trace(number)))
}

fn traces(claims: &[Claim]) -> Vec<Option<TraceContext>> {
    claims.iter().map(|claim| claim.run.trace_context.clone()).collect()
}

fn in_trace(name: &str, number: u8) -> RunNow<'_> {
    let (id, trace_context) = (by_hand(at("00:20"), name), Some(trace(number)));
    RunNow { id, actor: "ana", payload: None, overlap: None, trace_context }
}

pub async fn a_run_by_hand_continues_the_trace_of_its_request(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let request = in_trace("one", 1);
    let changed = world.try_change("hourly", at("00:20"), |view| change::run_now(view, &request, at("00:20"))).await;
    assert_eq!(changed.unwrap().runs[0].trace_context, Some(trace(1)), "the answer has it");
    let claims = world.start(at("00:20")).await;
    assert_eq!(traces(&claims), [Some(trace(1))]);
    assert_eq!(claims[0].run.trace_context.as_ref().and_then(TraceContext::tracestate), Some("vendor=a b,other=1"));
    world.finish(&claims, &success(), at("00:21")).await;
    assert_eq!(world.run(request.id).await.trace_context, Some(trace(1)), "also when it has ended");
    let last = world.get("hourly").await.last_run.unwrap();
    assert_eq!(last.trace_context, Some(trace(1)));
}

pub async fn the_run_of_a_one_time_job_continues_the_trace_of_its_creator(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(traced("once", 1)).await;
    assert_eq!(row.job.definition.trace_context, Some(trace(1)));
    world.create(job_at("untraced", "once 01:00", at("00:30"))).await;
    world.plan(at("01:00")).await;
    let pending: Vec<Run> = world.runs().await;
    assert_eq!(pending.iter().filter(|run| run.trace_context == Some(trace(1))).count(), 1, "before it starts");
    let claims = world.start(at("01:00")).await;
    let found = |key: &str| {
        let of_key = |claim: &&Claim| claim.run.job_key.as_ref().is_some_and(|own| own.as_str() == key);
        claims.iter().find(of_key).unwrap().run.trace_context.clone()
    };
    assert_eq!((found("once"), found("untraced")), (Some(trace(1)), None));
}

pub async fn slots_of_a_recurring_job_continue_no_trace(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *").in_trace(Some(trace(1)))).await;
    assert_eq!(row.job.definition.trace_context, None);
    let request = in_trace("one", 2);
    world.try_change("hourly", at("00:20"), |view| change::run_now(view, &request, at("00:20"))).await.unwrap();
    world.run_due(&success(), at("00:20")).await;
    assert_eq!(traces(&world.run_due(&success(), at("01:00")).await), [None], "the run by hand before it had one");
}

pub async fn every_attempt_continues_the_same_trace(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(traced("once", 1)).await;
    world.plan(at("01:00")).await;
    let first = world.start(at("01:00")).await;
    world.finish(&first, &failure(), at("01:01")).await;
    let second = world.start(at("02:00")).await;
    assert_eq!((second[0].run.attempt, traces(&second)), (2, vec![Some(trace(1))]));
}

pub async fn many_jobs_at_once_have_the_trace_of_their_creator(fresh: Fresh) {
    let world = World::new(&fresh);
    let without = everbell_core::with!(Definition { trace_context: None, ..traced("job-2", 1) });
    let jobs = [traced("job-1", 1), without, traced("job-3", 3)].map(enqueue::create);
    world.store.create_jobs(&jobs, &audit("job.enqueue_many", "target:log", at("00:30"))).await.unwrap();
    let listed = world.jobs_in_pages(&JobFilter::default(), 10).await;
    let stored: Vec<_> = listed.iter().map(|row| row.job.definition.trace_context.clone()).collect();
    assert_eq!(stored, [Some(trace(1)), None, Some(trace(3))]);
    let mut claims = world.run_due(&success(), at("01:00")).await;
    claims.sort_by_key(|claim| claim.run.job_key.clone());
    assert_eq!(traces(&claims), stored);
}

pub async fn a_trial_continues_the_trace_of_its_request(fresh: Fresh) {
    let world = World::new(&fresh);
    let mut run = trial("try", super::given::LOG, at("00:20"));
    run.trace_context = Some(trace(1));
    world.store.insert_run(&run, &audit("target.try", "run", at("00:20"))).await.unwrap();
    assert_eq!(traces(&world.start(at("00:20")).await), [Some(trace(1))]);
}

pub async fn a_backfill_continues_the_trace_of_its_request(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.pause("hourly", at("00:10")).await;
    world.resume("hourly", everbell_core::plan::Missed::Skip, at("03:30")).await;
    let (slots, context) = ([at("01:00"), at("02:00")], trace(1));
    let id = BackfillId::new(at("03:30"), [7; 10]);
    let request = Backfill { id, slots: &slots, parallel: None, trace_context: Some(&context) };
    world.try_change("hourly", at("03:30"), |view| change::backfill(view, &request)).await.unwrap();
    let runs = world.runs_like(&RunFilter::default()).await;
    assert_eq!(runs.iter().filter(|run| run.trace_context == Some(trace(1))).count(), 2);
}

pub async fn work_for_all_orgs_continues_the_trace_of_its_request(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    let work = OrgTask::RunNow { payload: None, overlap: None, trace_context: Some(trace(1)) };
    world.try_change("brief", at("01:00"), |view| change::for_all_orgs(view, work.clone())).await.unwrap();
    world.reconcile_orgs(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    assert_eq!(traces(&claims), vec![Some(trace(1)); 3]);
}

pub async fn an_edit_keeps_the_trace_while_the_job_fires_once(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(traced("once", 1)).await;
    let edit = Edit { description: Some("later".to_owned()), ..Edit::default() };
    let edited = |edit: Edit, version: u32| {
        let (world, id) = (&world, job_id("once", version));
        async move {
            let decide =
                |view: &change::JobView| change::new_version(view, edit.clone(), id, false, "ana", at("00:40"));
            let changed = world.try_change("once", at("00:40"), decide).await.unwrap();
            changed.successor.unwrap().job.definition.trace_context.clone()
        }
    };
    assert_eq!(edited(edit, 2).await, Some(trace(1)));
    let spec = Spec::recurring("0 * * * *".parse().unwrap(), Zone::utc(), at("00:40"));
    assert_eq!(edited(Edit { spec: Some(spec), ..Edit::default() }, 3).await, None, "it recurs now");
    assert_eq!(traces(&world.run_due(&success(), at("01:00")).await), [None]);
}
