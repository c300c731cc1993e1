//! Bounds and defaults of policies.

use super::*;

#[test]
fn defaults_are_valid() {
    assert_eq!(Policies::new(PolicyValues::default()), Ok(Policies::default()));
}

#[test]
fn every_problem_is_told_at_once() {
    let values = PolicyValues {
        max_concurrent_runs: 0,
        catch_up_limit: 1_001,
        grace: 2 * DAY,
        timeout: Duration::ZERO,
        jitter: Duration::from_micros(1_500),
        ..PolicyValues::default()
    };
    let problems: Vec<String> = Policies::new(values).unwrap_err().iter().map(Invalid::to_string).collect();
    assert_eq!(
        problems,
        [
            "policies.maxConcurrentRuns: must be from 1 to 1000, not 0",
            "policies.catchUpLimit: must be from 1 to 1000, not 1001",
            "policies.grace: must be from 0 s to 86400 s, not 172800s",
            "policies.timeout: must be from 1 s to 2592000 s, not 0ns",
            "policies.jitter: must be whole milliseconds",
        ]
    );
}

#[test]
fn backoff_doubles_up_to_its_maximum() {
    let backoff = Backoff { initial: Duration::from_secs(10), max: Duration::from_mins(1) };
    let waits: Vec<u64> = [1, 2, 3, 4, 100].iter().map(|attempt| backoff.after(*attempt).as_secs()).collect();
    assert_eq!(waits, [10, 20, 40, 60, 60]);
}

#[test]
fn failures_in_a_row_pause() {
    let policies = Policies::new(PolicyValues { pause_after_failures: Some(3), ..PolicyValues::default() }).unwrap();
    assert_eq!(policies.pause_reason(2), None);
    assert_eq!(policies.pause_reason(3).as_deref(), Some("paused after 3 failures in a row"));
    assert_eq!(Policies::default().pause_reason(1_000), None);
}

#[test]
fn lease_loss_follows_from_overlap_unless_the_job_says_otherwise() {
    let chosen = |overlap, on_lease_loss| {
        Policies::new(PolicyValues { overlap, on_lease_loss, ..PolicyValues::default() }).unwrap().lease_loss()
    };
    for overlap in [Overlap::Skip, Overlap::Queue, Overlap::Replace] {
        assert_eq!(chosen(overlap, None), OnLeaseLoss::Stop);
        assert_eq!(chosen(overlap, Some(OnLeaseLoss::Continue)), OnLeaseLoss::Continue);
    }
    assert_eq!(chosen(Overlap::Allow, None), OnLeaseLoss::Continue);
    assert_eq!(chosen(Overlap::Allow, Some(OnLeaseLoss::Stop)), OnLeaseLoss::Stop);
    let (overlap, on_lost, max_attempts) = (Overlap::Allow, OnLost::Retry, 2);
    let retried = PolicyValues { overlap, max_attempts, on_lost, ..PolicyValues::default() };
    assert_eq!(Policies::new(retried).unwrap().lease_loss(), OnLeaseLoss::Stop, "its own next attempt may start");
}

#[test]
fn a_lost_run_can_only_be_retried_with_a_second_attempt() {
    let checked =
        |on_lost, max_attempts| Policies::new(PolicyValues { max_attempts, on_lost, ..PolicyValues::default() });
    let problems: Vec<String> = checked(OnLost::Retry, 1).unwrap_err().iter().map(Invalid::to_string).collect();
    let expected = "policies.onLost: `retry` needs at least 2 attempts, and `policies.retry.maxAttempts` is 1: allow \
                    more, or choose `fail`";
    assert_eq!(problems, [expected]);
    let policies = checked(OnLost::Retry, 2).unwrap();
    let changed = [("maxAttempts", "2".to_owned()), ("onLost", "retry".to_owned())];
    assert_eq!(policies.changed(), changed);
    assert!(checked(OnLost::Fail, 1).is_ok());
    let only = |problems: Vec<Invalid>| problems.iter().map(|problem| problem.field).collect::<Vec<_>>();
    assert_eq!(only(checked(OnLost::Retry, 0).unwrap_err()), ["policies.retry.maxAttempts"], "not twice");
}

#[test]
fn words_name_every_choice() {
    assert!(Overlap::ALL.iter().all(|choice| Overlap::from_word(choice.as_str()) == Some(*choice)));
    assert_eq!(CatchUp::from_word("twice"), None);
}
