//! [`Metrics`]: counters, histograms and gauges in the format of Prometheus.
//!
//! Counters and histograms are fed by events ([`Metrics::observe`], for
//! [`Builder::observe`](everbell::Builder::observe), which misses none) and belong to this process. Gauges are read
//! from the database when a page is rendered. Nothing is global, so each test has its own numbers.

mod catalog;
mod family;
mod per_job;
mod reading;
mod text;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use everbell::{Event, Everbell, RunStatus, Timestamp};
use everbell_core::{GapReason, TriggerType};
use tokio::sync::Mutex;

use self::catalog as c;
use self::family::{Counters, Histograms};
use self::per_job::Successes;
use self::reading::Reading;
use self::text::Text;
use super::log_queue::LogQueue;
use super::pulse::Pulse;

/// From a millisecond to a minute.
const LAG: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// From ten milliseconds to an hour.
const RUN: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0];
/// From half a millisecond to a second.
const CLAIM: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];
/// From a millisecond to ten seconds.
const REQUEST: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

const STEPS: [&str; 2] = ["plan", "start"];
const SKIP_REASONS: [&str; 3] = ["overlap", "dependency", "operator"];
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Everything that is counted. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    runs: Counters,
    run_duration: Histograms,
    run_retries: Counters,
    runs_lost: Counters,
    leases_lost: Counters,
    fire_lag: Histograms,
    slots_skipped: Counters,
    schedules_skipped: Counters,
    gap_slots: Counters,
    claims: Counters,
    claimed: Counters,
    claim_duration: Histograms,
    outages: Counters,
    clock_steps: Counters,
    database_time: Histograms,
    http_target: Counters,
    http_requests: Counters,
    http_duration: Histograms,
    login_failures: Counters,
    connections_refused: Counters,
    log: OnceLock<Arc<LogQueue>>,
    /// How many jobs the last look brought back.
    repaired: AtomicUsize,
    pulse: Pulse,
    /// For the gauges of single jobs, where they are wanted.
    successes: Option<Successes>,
    /// The last reading of the database. Holds the lock while refreshing, so concurrent callers share one read.
    reading: Mutex<Option<Reading>>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Nothing has happened yet.
    pub fn new() -> Metrics {
        Metrics::with(None)
    }

    /// With gauges for single jobs, up to a thousand of them (`metrics.per_job` of the configuration).
    pub fn with_jobs() -> Metrics {
        Metrics::with(Some(Successes::default()))
    }

    fn with(successes: Option<Successes>) -> Metrics {
        let skips = SKIP_REASONS.map(|reason| [reason]);
        let gaps: Vec<[&str; 1]> = GapReason::ALL.iter().map(|reason| [reason.as_str()]).collect();
        let claims: Vec<[&str; 2]> =
            STEPS.iter().flat_map(|step| ["some", "none", "failed"].map(|result| [*step, result])).collect();
        let alone: &[[&str; 0]] = &[[]];
        Metrics(Arc::new(Inner {
            runs: Counters::new::<3>(&c::RUNS, &[]),
            run_duration: Histograms::new(&c::RUN_DURATION, RUN),
            run_retries: Counters::new::<1>(&c::RUN_RETRIES, &[]),
            runs_lost: Counters::new(&c::RUNS_LOST, alone),
            leases_lost: Counters::new(&c::LEASES_LOST, alone),
            fire_lag: Histograms::new(&c::FIRE_LAG, LAG),
            slots_skipped: Counters::new(&c::SLOTS_SKIPPED, &skips),
            schedules_skipped: Counters::new(&c::SCHEDULES_SKIPPED, &skips),
            gap_slots: Counters::new(&c::GAP_SLOTS, &gaps),
            claims: Counters::new(&c::CLAIMS, &claims),
            claimed: Counters::new(&c::CLAIMED, &STEPS.map(|step| [step])),
            claim_duration: Histograms::new(&c::CLAIM_DURATION, CLAIM),
            outages: Counters::new(&c::DATABASE_OUTAGES, alone),
            clock_steps: Counters::new(&c::CLOCK_STEPS, &[["forward"], ["back"]]),
            database_time: Histograms::new(&c::DATABASE_TIME, CLAIM),
            http_target: Counters::new::<1>(&c::HTTP_TARGET, &[]),
            http_requests: Counters::new::<3>(&c::HTTP_REQUESTS, &[]),
            http_duration: Histograms::new(&c::HTTP_DURATION, REQUEST),
            login_failures: Counters::new(&c::LOGIN_FAILURES, alone),
            connections_refused: Counters::new(&c::CONNECTIONS_REFUSED, &[["connections"], ["address"]]),
            log: OnceLock::new(),
            repaired: AtomicUsize::new(0),
            pulse: Pulse::default(),
            successes,
            reading: Mutex::new(None),
        }))
    }

    /// Returns the pulse of this process's loops, for [`readiness`](super::health::readiness).
    pub fn pulse(&self) -> &Pulse {
        &self.0.pulse
    }

    /// Counts an event. It is quick, as the loops wait for it.
    pub fn observe(&self, event: &Event) {
        let Inner { runs, run_duration, pulse, .. } = &*self.0;
        pulse.observe(event);
        match event {
            Event::Fired { job, slot, skipped: Some(reason), .. } => {
                let trigger = if slot.is_some() { TriggerType::Scheduled } else { TriggerType::Manual };
                runs.add(&[job.target.as_str(), RunStatus::Skipped.as_str(), trigger.as_str()], 1);
                self.0.slots_skipped.add(&[reason], 1);
                self.0.schedules_skipped.add(&[reason], 1);
            }
            Event::Gap { gap, .. } => self.0.gap_slots.add(&[gap.reason.as_str()], gap.slots),
            Event::Started { run, lag } if run.trigger == TriggerType::Scheduled && run.attempt == 1 => {
                self.0.fire_lag.record(&[], lag.as_secs_f64());
            }
            Event::Finished { run, status, took, .. } => {
                let (target, status) = (run.target.as_str(), status.as_str());
                runs.add(&[target, status, run.trigger.as_str()], 1);
                run_duration.record(&[target, status], took.as_secs_f64());
            }
            Event::Retrying { run, .. } => self.0.run_retries.add(&[run.target.as_str()], 1),
            Event::LeaseLost { .. } => self.0.leases_lost.add(&[], 1),
            Event::Reaped { info, retry_at, .. } => {
                let known = info.as_ref().map(|run| (run.target.as_str(), run.trigger.as_str()));
                let (target, trigger) = known.unwrap_or(("unknown", "unknown"));
                match retry_at {
                    Some(_) => self.0.run_retries.add(&[target], 1),
                    None => runs.add(&[target, RunStatus::Failed.as_str(), trigger], 1),
                }
                self.0.runs_lost.add(&[], 1);
            }
            Event::Repaired { jobs } => self.0.repaired.store(jobs.len(), Ordering::Relaxed),
            Event::OutageBegan { .. } => self.0.outages.add(&[], 1),
            Event::ClockStepped { by, .. } => {
                self.0.clock_steps.add(&[if by.is_negative() { "back" } else { "forward" }], 1);
            }
            Event::Round { round, claimed, took, .. } => {
                let result = match claimed {
                    Some(0) => "none",
                    Some(_) => "some",
                    None => "failed",
                };
                self.0.claims.add(&[round.as_str(), result], 1);
                self.0.claimed.add(&[round.as_str()], u64::from(claimed.unwrap_or(0)));
                self.0.claim_duration.record(&[round.as_str(), result], took.as_secs_f64());
            }
            _ => {}
        }
    }

    /// Counts a response of this server. The route is its template, never the requested path.
    pub fn http(&self, method: &str, route: &str, status: u16, seconds: f64) {
        // Clients can make up methods.
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
        self.0.http_requests.add(&[method, route, &status.to_string()], 1);
        self.0.http_duration.record(&[method, route], seconds);
    }

    /// Counts what an HTTP target answered; `None` if it did not.
    pub fn http_target(&self, status: Option<u16>) {
        let class = match status {
            Some(100..=199) => "1xx",
            Some(200..=299) => "2xx",
            Some(300..=399) => "3xx",
            Some(400..=499) => "4xx",
            Some(500..=599) => "5xx",
            _ => "error",
        };
        self.0.http_target.add(&[class], 1);
    }

    /// Counts a token that was refused.
    pub fn login_failed(&self) {
        self.0.login_failures.add(&[], 1);
    }

    /// Counts a connection beyond a limit.
    pub fn connection_refused(&self, limit: &'static str) {
        self.0.connections_refused.add(&[limit], 1);
    }

    /// Reports what this queue drops. The first one counts.
    pub fn watch_log(&self, queue: &Arc<LogQueue>) {
        let _ = self.0.log.set(Arc::clone(queue));
    }

    /// Counts a call to the database.
    pub fn database(&self, op: &'static str, took: Duration) {
        self.0.database_time.record(&[op], took.as_secs_f64());
    }

    /// The page that Prometheus reads, `text/plain; version=0.0.4`. The database is asked at most once a second, however
    /// many ask for this; while it is away, what this process counted is still there.
    pub async fn render(&self, bell: &Everbell) -> String {
        let mut text = Text::default();
        let commit = option_env!("EVERBELL_COMMIT").unwrap_or("unknown");
        text.gauges(&c::BUILD_INFO, [([env!("CARGO_PKG_VERSION").to_owned(), commit.to_owned()], 1.0)]);
        self.0.render_counted(&mut text);
        let tick = self.pulse().tick().map(|tick| ([tick.instance.to_string()], seconds(tick.at)));
        text.gauges(&c::LAST_TICK, tick);
        let mut reading = self.0.reading.lock().await;
        let reading = Reading::fresh(&mut reading, bell, self.0.successes.as_ref()).await;
        reading.render(&mut text, bell.now());
        text.into_string()
    }
}

impl Inner {
    #[expect(clippy::cast_precision_loss, reason = "no log has that many lines")]
    fn dropped_lines(&self) -> f64 {
        self.log.get().map_or(0, |queue| queue.dropped()) as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "there are not that many jobs")]
    fn repaired_jobs(&self) -> f64 {
        self.repaired.load(Ordering::Relaxed) as f64
    }

    fn render_counted(&self, text: &mut Text) {
        let counters = [
            &self.outages,
            &self.clock_steps,
            &self.runs,
            &self.run_retries,
            &self.runs_lost,
            &self.leases_lost,
            &self.slots_skipped,
            &self.schedules_skipped,
            &self.gap_slots,
            &self.claims,
            &self.claimed,
            &self.http_target,
            &self.http_requests,
            &self.login_failures,
            &self.connections_refused,
        ];
        let histograms =
            [&self.database_time, &self.run_duration, &self.fire_lag, &self.claim_duration, &self.http_duration];
        for counters in counters {
            counters.render(text);
        }
        text.gauge(&c::LOG_LINES_DROPPED, self.dropped_lines());
        text.gauge(&c::JOBS_REPAIRED, self.repaired_jobs());
        for histograms in histograms {
            histograms.render(text);
        }
    }
}

/// A time as Prometheus wants it.
fn seconds(at: Timestamp) -> f64 {
    at.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64()
}
