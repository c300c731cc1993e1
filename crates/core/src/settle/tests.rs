use super::*;

fn run(status: RunStatus, attempt: u32, max_attempts: u32) -> Settling {
    let id = RunId::by_hand(Timestamp::UNIX_EPOCH, [1; 10]);
    Settling { max_attempts, ..Settling::new(id, status, attempt, None) }
}

/// A running run of a job whose runs are retried when they are lost.
fn retried(attempt: u32, max_attempts: u32, earlier: Vec<EarlierAttempt>) -> Settling {
    Settling { on_lost: OnLost::Retry, ..run(RunStatus::Running, attempt, max_attempts) }.after(earlier)
}

fn shut_down() -> Outcome {
    Outcome::ShutDown("its instance shut down".to_owned())
}

/// This many stops that do not count, as attempts 1, 2, ….
fn stops(count: u32) -> Vec<EarlierAttempt> {
    let stop = |attempt| EarlierAttempt { attempt, code: FailureCode::SHUTDOWN, ended_at: now(), counts: false };
    (1..=count).map(stop).collect()
}

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn outcomes() -> Vec<Outcome> {
    let failure = Failure::new(FailureCode::HANDLER_ERROR, "no");
    vec![
        Outcome::Succeeded { result: None },
        Outcome::Failed { failure: failure.clone(), then: Then::RETRY },
        Outcome::Failed { failure: failure.clone(), then: Then::Retry { after: Duration::from_mins(5) } },
        Outcome::Failed { failure: failure.clone(), then: Then::GiveUp },
        Outcome::Failed { failure, then: Then::Pause("gone".to_owned()) },
        Outcome::Panicked("boom".to_owned()),
        Outcome::TimedOut(Duration::from_mins(15)),
        shut_down(),
        Outcome::Lost(None),
        Outcome::Canceled { by: "ana".to_owned() },
    ]
}

/// The next state of a running run on its only, or on its first of two attempts: one line for each outcome.
fn settled(max_attempts: u32) -> Vec<String> {
    let running = run(RunStatus::Running, 1, max_attempts);
    outcomes().into_iter().map(|outcome| say(&running, outcome)).collect()
}

fn say(run: &Settling, outcome: Outcome) -> String {
    match settle(run, outcome, now()).unwrap().to {
        Next::Finish { status, failure, finished_at, .. } => {
            assert_eq!(finished_at, now());
            let why = failure.map_or("-".to_owned(), |f| format!("{}: {}", f.code.as_str(), f.message));
            format!("{status} {why}")
        }
        Next::Retry { not_before, failure, ended } => {
            let EarlierAttempt { attempt, code, ended_at, counts } = ended.unwrap();
            assert_eq!((attempt, &code, ended_at), (run.attempt, &failure.code, now()));
            let free = if counts { "" } else { ", does not count" };
            format!("retry at {not_before} {}{free}", code.as_str())
        }
    }
}

#[test]
fn a_single_attempt_ends_with_its_outcome() {
    assert_eq!(
        settled(1),
        [
            "succeeded -",
            "failed handler_error: no",
            "failed handler_error: no",
            "failed handler_error: no",
            "failed handler_error: no",
            "failed panic: boom",
            "failed timeout: stopped after 900 s",
            "failed shutdown: its instance shut down",
            "failed lost: the instance that ran it was lost before it ended",
            "canceled canceled: canceled by ana",
        ]
    );
}

#[test]
fn what_makes_sense_is_tried_again() {
    assert_eq!(
        settled(2),
        [
            "succeeded -",
            "retry at 2026-11-15T12:00:10Z handler_error",
            "retry at 2026-11-15T12:05:00Z handler_error",
            "failed handler_error: no",
            "failed handler_error: no",
            "retry at 2026-11-15T12:00:10Z panic",
            "retry at 2026-11-15T12:00:10Z timeout",
            "retry at 2026-11-15T12:00:10Z shutdown",
            "failed lost: the instance that ran it was lost before it ended",
            "canceled canceled: canceled by ana",
        ]
    );
}

#[test]
fn what_a_handler_asks_for_is_bounded_and_never_shortens_the_backoff() {
    for (after, wanted) in [
        (Duration::from_secs(9), "2026-11-15T12:00:10Z"),
        (Duration::from_secs(11), "2026-11-15T12:00:11Z"),
        (Duration::MAX, "2026-11-16T12:00:00Z"),
    ] {
        let failure = Failure::new(FailureCode::HTTP_STATUS, "later");
        let outcome = Outcome::Failed { failure, then: Then::Retry { after } };
        match settle(&run(RunStatus::Running, 1, 2), outcome, now()).unwrap().to {
            Next::Retry { not_before, .. } => assert_eq!(not_before.to_string(), wanted),
            Next::Finish { .. } => panic!("there is another attempt"),
        }
    }
}

#[test]
fn a_lost_run_is_retried_within_its_attempts_if_the_job_says_so() {
    let lost = || Outcome::Lost(None);
    assert_eq!(say(&retried(1, 3, Vec::new()), lost()), "retry at 2026-11-15T12:00:10Z lost");
    assert_eq!(say(&retried(2, 3, Vec::new()), lost()), "retry at 2026-11-15T12:00:20Z lost", "after the backoff");
    let over = say(&retried(3, 3, Vec::new()), lost());
    assert_eq!(over, "failed lost: the instance that ran it was lost before it ended");
    assert_eq!(say(&run(RunStatus::Running, 1, 3), lost()), over, "not by default");
}

#[test]
fn a_shutdown_uses_up_no_attempt_if_lost_runs_are_retried() {
    let again = "retry at 2026-11-15T12:00:00Z shutdown, does not count";
    assert_eq!(say(&retried(1, 2, Vec::new()), shut_down()), again);
    assert_eq!(say(&retried(2, 2, Vec::new()), shut_down()), again, "also of the last attempt");
    // Attempts 1 and 2 were stopped: two are still left, and the backoff is that of the first.
    let panicked = || Outcome::Panicked("boom".to_owned());
    assert_eq!(say(&retried(3, 2, stops(2)), panicked()), "retry at 2026-11-15T12:00:10Z panic");
    assert_eq!(say(&retried(4, 2, stops(2)), panicked()), "failed panic: boom");
    assert_eq!(say(&retried(3, 2, stops(2)), Outcome::Lost(None)), "retry at 2026-11-15T12:00:10Z lost");
}

#[test]
fn a_run_is_not_shut_down_without_end() {
    let most = MAX_UNCOUNTED_STOPS;
    let again = "retry at 2026-11-15T12:00:00Z shutdown, does not count";
    assert_eq!(say(&retried(most, 2, stops(most - 1)), shut_down()), again);
    let counted = "retry at 2026-11-15T12:00:10Z shutdown";
    assert_eq!(say(&retried(most + 1, 2, stops(most)), shut_down()), counted, "from here on a stop counts");
    assert_eq!(say(&retried(most + 2, 2, stops(most)), shut_down()), "failed shutdown: its instance shut down");
}

#[test]
fn the_time_at_which_an_attempt_ended_can_be_corrected() {
    let later = now() + Duration::from_secs(1);
    for (max_attempts, not_before) in [(1, None), (2, Some("2026-11-15T12:00:10Z"))] {
        let outcome = Outcome::Panicked("boom".to_owned());
        let transition = settle(&run(RunStatus::Running, 1, max_attempts), outcome, now()).unwrap().finished_at(later);
        match transition.to {
            Next::Finish { finished_at, .. } => assert_eq!((finished_at, not_before), (later, None)),
            Next::Retry { not_before: at, ended, .. } => {
                assert_eq!((Some(at.to_string().as_str()), ended.unwrap().ended_at), (not_before, later));
            }
        }
    }
}

#[test]
fn the_last_attempt_is_the_last() {
    let outcome = Outcome::Panicked("boom".to_owned());
    let to = settle(&run(RunStatus::Running, 2, 2), outcome, now()).unwrap().to;
    assert!(matches!(to, Next::Finish { status: RunStatus::Failed, .. }));
}

#[test]
fn terminal_stays_terminal_and_pending_can_only_be_canceled() {
    for status in RunStatus::ALL.iter().copied().filter(|status| *status != RunStatus::Running) {
        for outcome in outcomes() {
            let possible = status == RunStatus::Pending && matches!(outcome, Outcome::Canceled { .. });
            assert_eq!(settle(&run(status, 1, 3), outcome, now()).is_some(), possible, "{status}");
        }
    }
}

#[test]
fn every_transition_is_fenced_and_goes_where_it_may() {
    for status in RunStatus::ALL {
        for outcome in outcomes() {
            let Some(transition) = settle(&run(*status, 7, 9), outcome, now()) else { continue };
            assert_eq!((transition.attempt, transition.from), (7, *status));
            if let Next::Finish { status, .. } = transition.to {
                assert!(status.is_terminal());
            }
        }
    }
}

#[test]
fn only_what_takes_a_run_from_its_instance_is_lost() {
    let settled = |run: &Settling, outcome| settle(run, outcome, now()).unwrap();
    let panicked = || Outcome::Panicked("boom".to_owned());
    let once = run(RunStatus::Running, 1, 1);
    let again = retried(1, 2, Vec::new());
    assert!(settled(&once, Outcome::Lost(None)).is_lost());
    assert!(!settled(&once, panicked()).is_lost());
    assert!(!settled(&once, Outcome::Succeeded { result: None }).is_lost());
    assert!(settled(&again, Outcome::Lost(None)).is_lost());
    assert!(!settled(&again, panicked()).is_lost());
    let mut given_back = settled(&again, Outcome::Lost(None));
    if let Next::Retry { ended, .. } = &mut given_back.to {
        *ended = None;
    }
    assert!(!given_back.is_lost(), "its own instance gives it back");
}

#[test]
fn what_is_known_of_a_stop_is_in_the_failure() {
    let lease = Json::parse("details", r#"{"instance":"a"}"#).ok();
    let limit = Json::parse("details", r#"{"timeoutMs":900000}"#).ok();
    assert!(lease.is_some() && limit.is_some());
    for (outcome, details) in
        [(Outcome::Lost(lease.clone()), lease), (Outcome::TimedOut(Duration::from_mins(15)), limit)]
    {
        let to = settle(&run(RunStatus::Running, 1, 1), outcome, now()).unwrap().to;
        let Next::Finish { failure: Some(failure), .. } = to else { panic!("it has one attempt") };
        assert_eq!(failure.details, details);
    }
}

#[test]
fn a_retry_of_a_run_that_shall_be_canceled_is_canceled_when_its_attempt_ended() {
    let later = now() + Duration::from_secs(1);
    let retry = settle(&retried(1, 2, Vec::new()), Outcome::Lost(None), now()).unwrap();
    let canceled = cancel_retry(&retry, "ana", later).unwrap();
    assert_eq!((canceled.run_id, canceled.attempt, canceled.from), (retry.run_id, 1, RunStatus::Pending));
    let Next::Finish { status, finished_at, failure, .. } = canceled.to else { panic!("it is not tried again") };
    assert_eq!((status, finished_at, failure), (RunStatus::Canceled, now(), Some(Failure::canceled("ana"))));
    let ended = settle(&run(RunStatus::Running, 1, 1), Outcome::Lost(None), now()).unwrap();
    assert_eq!(cancel_retry(&ended, "ana", later), None);
}
