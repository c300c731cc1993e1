//! The jobs of a simulation, from the server or from a file.

use std::path::Path;
use std::time::Duration;

use everbell_client::{JobQuery, WithJson};
use everbell_core::simulate::SimulatedJob;
use everbell_core::{Definition, Draft, JobId, Scope, Target, Zone};
use everbell_wire as wire;
use everbell_wire::job_body::{declared, read_definition};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::scenario::{Durations, Window};
use crate::connection::Connection;
use crate::error::RefusalContext;
use crate::output::printable;
use crate::{CliError, OnlineArgs, Program, api};

/// A job to simulate.
pub(super) struct Subject {
    pub(super) job: SimulatedJob,
    source: Source,
    /// The median of its runs.
    measured: Option<Duration>,
}

enum Source {
    /// A fixed rate counts from the start of the window, as if the job were created then.
    File(Box<Draft>),
    /// A fixed rate counts from here.
    Server { document: Box<Value>, rate: Option<FixedRate> },
}

/// A fixed rate of a job of the server.
struct FixedRate {
    slot: Timestamp,
    interval: SignedDuration,
}

impl FixedRate {
    /// A slot of the rate that is not after this time.
    fn slot_before(&self, at: Timestamp) -> Timestamp {
        let (ahead, interval) = (self.slot.duration_since(at).as_secs(), self.interval.as_secs().max(1));
        let back = SignedDuration::from_secs(ahead.max(0).div_euclid(interval).saturating_add(1) * interval);
        self.slot.checked_sub(back).unwrap_or(self.slot)
    }
}

/// Reads the `[[job]]` blocks of a file. An error lists every problem with its line.
pub(super) fn from_file(file: &Path, program: Program, now: Timestamp) -> Result<Vec<Subject>, CliError> {
    let name = if file.as_os_str() == "-" { "standard input".to_owned() } else { file.display().to_string() };
    let drafts = (program.read_jobs)(&name, &api::input(file)?)?;
    if drafts.is_empty() {
        return Err(CliError::invalid(format!("{name} has no `[[job]]` block")));
    }
    let subject = |draft: Draft| {
        let definition = declared(&draft, now).map_err(CliError::invalid)?;
        Ok(Subject::new(definition, Source::File(Box::new(draft)), None))
    };
    drafts.into_iter().map(subject).collect()
}

/// The most jobs of a label that are simulated.
const MAX_LABELED_JOBS: usize = 200;

/// The keys of the current jobs with a label.
pub(super) fn with_label(label: &str, online: &OnlineArgs) -> Result<Vec<String>, CliError> {
    let client = Connection::new(online)?;
    let query = JobQuery { label: Some(label.to_owned()), ..JobQuery::default() };
    let jobs = client.take(client.jobs().list(&query), MAX_LABELED_JOBS);
    let jobs = jobs.with_action(|| format!("list the jobs with the label `{}`", printable(label)))?;
    if jobs.next_cursor.is_some() {
        return Err(CliError::invalid(format!(
            "more than {MAX_LABELED_JOBS} jobs have the label `{}`: give a value, as in `name=value`",
            printable(label)
        )));
    }
    if jobs.items.is_empty() {
        return Err(CliError::invalid(format!(
            "no current job has the label `{}`; `everbell jobs` lists the jobs",
            printable(label)
        )));
    }
    Ok(jobs.items.into_iter().map(|job| job.job_key).collect())
}

/// The limits of targets that the server knows, of one instance each.
pub(super) fn served_limits(online: &OnlineArgs) -> Result<Vec<(Target, u32)>, CliError> {
    let client = Connection::new(online)?;
    let targets = client.send(client.targets().list()).with_action(|| "list the targets".to_owned())?.document.items;
    let limit = |target: &wire::Target| Some((Target::new(&target.target).ok()?, target.concurrency?));
    Ok(targets.iter().filter_map(limit).collect())
}

/// Reads jobs from the server, and the durations of their runs that no flag names.
pub(super) fn from_server(
    names: &[String],
    durations: &Durations,
    online: &OnlineArgs,
    now: Timestamp,
) -> Result<Vec<Subject>, CliError> {
    let client = Connection::new(online)?;
    let mut subjects: Vec<Subject> = Vec::with_capacity(names.len());
    for name in names {
        let answer = client.send(client.jobs().get(name).read_as::<WithJson<wire::Job>>());
        let WithJson { document: job, json } =
            answer.with_action(|| format!("simulate job `{name}`")).or_list()?.document;
        if subjects.iter().any(|known| known.key() == job.job_key) {
            continue;
        }
        let definition = read_definition(&json, now).map_err(|why| {
            CliError::invalid(format!("job `{}` cannot be simulated: {}", printable(&job.job_key), printable(&why)))
        })?;
        let measured = match durations.named(&job.job_key) {
            Some(_) => None,
            None => median(&client, &job)?,
        };
        let rate = fixed_rate(&client, &job)?;
        let mut subject = Subject::new(definition, Source::Server { document: Box::new(json), rate }, measured);
        // The real id decides about the real jitter.
        subject.job.definition.id = job.id.parse().unwrap_or(subject.job.definition.id);
        subjects.push(subject);
    }
    Ok(subjects)
}

fn median(client: &Connection, job: &wire::Job) -> Result<Option<Duration>, CliError> {
    let answer = client.send(client.jobs().stats(&job.id, None));
    let stats = answer.with_action(|| format!("read how long job `{}` takes", job.job_key))?.document;
    Ok(stats.duration_ms_p50.and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis))
}

/// The slots of a job that fires at a fixed rate: the server knows what they count from.
fn fixed_rate(client: &Connection, job: &wire::Job) -> Result<Option<FixedRate>, CliError> {
    let is_rate = job.cron_expression.as_deref().is_some_and(|text| text.trim_start().starts_with("@every"));
    if !is_rate || job.start_at.is_some() {
        return Ok(None);
    }
    // The first of them may have been moved.
    let answer = client.send(client.jobs().next(&job.id, 3));
    let fires = answer.with_action(|| format!("list the next runs of job `{}`", job.job_key))?.document.items;
    let [_, second, third] = fires.as_slice() else { return Ok(None) };
    Ok(Some(FixedRate { slot: second.at, interval: third.at.duration_since(second.at) }))
}

impl Subject {
    fn new(definition: Definition, source: Source, measured: Option<Duration>) -> Subject {
        Subject { job: SimulatedJob { definition, duration: Duration::ZERO }, source, measured }
    }

    pub(super) fn key(&self) -> &str {
        self.job.definition.key.as_str()
    }

    pub(super) fn zone(&self) -> Zone {
        self.job.definition.spec.as_ref().map_or_else(|_| Zone::utc(), |spec| spec.zone().clone())
    }

    /// With its duration, and with a fixed rate that counts from the right time.
    pub(super) fn prepared(self, window: &Window, durations: &Durations) -> Result<Subject, CliError> {
        let from = window.scenario.from;
        let (id, duration) = match &self.source {
            Source::File(_) => (made_up_id(self.key()), durations.duration_of(self.key(), None)),
            Source::Server { .. } => (self.job.definition.id, durations.duration_of(self.key(), self.measured)),
        };
        let definition = match &self.source {
            Source::File(draft) => declared(draft, from).map_err(CliError::invalid)?,
            Source::Server { document, rate: Some(rate) } => {
                read_definition(document, rate.slot_before(from)).map_err(CliError::invalid)?
            }
            Source::Server { rate: None, .. } => self.job.definition,
        };
        Ok(Subject {
            job: SimulatedJob { definition: everbell_core::with!(Definition { id, ..definition }), duration },
            ..self
        })
    }

    /// Surprises that a reader has to know.
    pub(super) fn notes(&self) -> Vec<String> {
        let SimulatedJob { definition, duration } = &self.job;
        let (key, timeout) = (&definition.key, definition.policies.timeout);
        let mut notes = Vec::new();
        if *duration > timeout {
            let seconds = |time: Duration| everbell_wire::elapsed::wait(time.as_secs() as i64);
            let (takes, limit) = (seconds(*duration), seconds(timeout));
            notes.push(format!(
                "job `{key}` takes {takes}, longer than its timeout of {limit}: each attempt is stopped"
            ));
        }
        if definition.scope == Scope::PerOrg {
            notes.push(format!("job `{key}` fires for each org; the simulation has one org, in {}", self.zone()));
        }
        let is_file = matches!(self.source, Source::File(_));
        if is_file && !definition.policies.jitter.is_zero() {
            notes.push(format!("job `{key}` has jitter: the delays will differ once it has an id"));
        }
        notes
    }
}

/// An id for a job that has none. It is the same each time, so that a simulation can be repeated.
fn made_up_id(key: &str) -> JobId {
    // FNV-1a: keys that differ get ids that differ.
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut random = [0; 10];
    random[..8].copy_from_slice(&hash.to_be_bytes());
    JobId::new(Timestamp::UNIX_EPOCH, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_rate_is_known_before_any_window() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let rate = FixedRate { slot: at("2026-11-18T12:00:30Z"), interval: SignedDuration::from_secs(90) };
        for (from, expected) in [
            ("2026-11-18T12:00:00Z", "2026-11-18T11:59:00Z"),
            ("2026-11-18T11:59:00Z", "2026-11-18T11:57:30Z"),
            ("2027-01-01T00:00:00Z", "2026-11-18T11:59:00Z"),
        ] {
            assert_eq!(rate.slot_before(at(from)), at(expected), "{from}");
        }
        assert_ne!(made_up_id("a"), made_up_id("b"));
    }
}
