//! Problems of jobs, channels, and the messages that were sent through them.

use everbell_core::alert;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::raw::parsed;
use crate::words::words;

words!(
    /// The kind of a problem of a job or an instance.
    JobProblemKind from alert::Kind {
        /// Its runs fail.
        Failed = "failed",
        /// It has not succeeded in time.
        NoSuccess = "no_success",
        /// It cannot fire.
        JobError = "job_error",
        /// Its failures paused it.
        AutoPaused = "auto_paused",
        /// It missed slots.
        Missed = "missed",
        /// Its slots were skipped.
        Skipped = "skipped",
        /// A run has not started in time.
        LateStart = "late_start",
        /// A run takes longer than expected.
        TooLong = "too_long",
        /// An instance ended without a shutdown.
        InstanceLost = "instance_lost",
    }
);

words!(
    /// The type of a channel.
    ChannelType {
        /// An HTTP request with a JSON document.
        Webhook = "webhook",
        /// A message in Slack, or in a program that reads the same webhooks.
        Slack = "slack",
        /// A mail.
        Email = "email",
        /// A program on the machine of the server.
        Command = "command",
    }
);

words!(
    /// The change of a problem that a message is about.
    MessageChange from alert::Change {
        /// It began.
        Opened = "opened",
        /// It goes on.
        Reminded = "reminded",
        /// It is over.
        Recovered = "recovered",
        /// None: an operator is testing the channel.
        Test = "test",
    }
);

words!(
    /// Whether a message was delivered.
    DeliveryStatus from alert::DeliveryStatus {
        /// It waits, or is being sent.
        Pending = "pending",
        /// The receiver accepted it.
        Delivered = "delivered",
        /// No further attempt is made to send it.
        Dead = "dead",
    }
);

/// Something that is or was wrong with a job or an instance.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobProblem {
    /// Its id.
    pub id: String,
    /// The kind of the problem.
    pub kind: JobProblemKind,
    /// The key of the job; empty for `instance_lost`.
    pub job_key: String,
    /// The org, for a problem with the runs for one org; otherwise null.
    #[serde(default)]
    pub org_id: Option<String>,
    /// The instance; null for problems of jobs.
    #[serde(default)]
    pub instance: Option<ProblemInstance>,
    /// Whether it is open.
    pub open: bool,
    /// When the problem started.
    pub since: Timestamp,
    /// When it was noticed.
    pub opened_at: Timestamp,
    /// When it closed; null while it is open.
    pub closed_at: Option<Timestamp>,
    /// Why it closed.
    pub closed_because: Option<String>,
    /// Number of consecutive failures, or of missed or skipped slots; 1 for other kinds.
    pub count: u64,
    /// The cause.
    pub reason: String,
    /// The id of the run that failed last, was skipped, is late or takes too long.
    pub run_id: Option<String>,
    /// The rules that sent messages about it.
    pub told: Vec<String>,
    /// Its acknowledgment: by whom, when and why; null if there is none.
    pub acknowledged: Option<ProblemNote>,
    /// Its mute: by whom, when and why; null if there is none.
    pub muted: Option<ProblemNote>,
    /// When the mute ends; null if it ends with the problem.
    pub muted_until: Option<Timestamp>,
}

/// The instance that a problem is about.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemInstance {
    /// Its id.
    pub id: String,
    /// Its host.
    pub host: String,
}

/// The author, time and reason of an action on a problem.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemNote {
    /// The actor, such as `token:ops`.
    pub by: String,
    /// The time of the action.
    pub at: Timestamp,
    /// The reason, if one was given.
    pub reason: Option<String>,
}

impl From<&alert::Note> for ProblemNote {
    fn from(note: &alert::Note) -> ProblemNote {
        ProblemNote { by: note.by.clone(), at: note.at, reason: note.reason.clone() }
    }
}

impl JobProblem {
    /// The document of a problem. A silence that is over is not shown.
    pub fn new(problem: &alert::Problem, now: Timestamp) -> JobProblem {
        let muted = problem.muted.as_ref().filter(|_| problem.is_muted(now));
        JobProblem {
            id: problem.id.to_string(),
            kind: problem.kind.into(),
            job_key: problem.job().map(ToString::to_string).unwrap_or_default(),
            org_id: problem.subject.org().map(ToString::to_string),
            instance: problem
                .subject
                .instance()
                .map(|(id, host)| ProblemInstance { id: id.to_string(), host: host.to_owned() }),
            open: problem.is_open(),
            since: problem.since,
            opened_at: problem.opened_at,
            closed_at: problem.closed_at,
            closed_because: problem.closed_because.clone(),
            count: problem.count,
            reason: problem.reason.clone(),
            run_id: problem.run.map(|run| run.to_string()),
            told: problem.told.iter().map(|told| told.rule.clone()).collect(),
            acknowledged: problem.acknowledged.as_ref().map(ProblemNote::from),
            muted: muted.map(|mute| ProblemNote::from(&mute.note)),
            muted_until: muted.and_then(|mute| mute.until),
        }
    }
}

/// A channel of this server, without its address and its secrets.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotifyChannel {
    /// Its name.
    pub name: String,
    /// How it sends messages.
    #[serde(rename = "type")]
    pub kind: ChannelType,
    /// The rules that use it.
    pub rules: Vec<String>,
    /// Its newest message; null if there is none.
    pub last: Option<NotifyDelivery>,
    /// How many messages are waiting to be sent, counted up to 1,000.
    pub pending: u64,
    /// How many messages are `dead`, counted up to 1,000.
    pub dead: u64,
}

/// A message to a channel.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotifyDelivery {
    /// Its id, which the receiver gets too. It stays the same when the message is sent again.
    pub id: String,
    /// The name of the channel.
    pub channel: String,
    /// The change that it is about.
    pub change: MessageChange,
    /// The title of the message.
    pub title: String,
    /// The id of the problem; null for a test.
    pub problem_id: Option<String>,
    /// The rule; null for a test.
    pub rule: Option<String>,
    /// Whether it was delivered.
    pub status: DeliveryStatus,
    /// How many times sending it was tried.
    pub attempts: u32,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it is tried next; null if it has ended.
    pub next_attempt_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When it was delivered or became `dead`.
    pub ended_at: Option<Timestamp>,
}

impl From<&alert::Delivery> for NotifyDelivery {
    fn from(delivery: &alert::Delivery) -> NotifyDelivery {
        let new = &delivery.new;
        let message: Option<Value> = parsed(Some(&new.message));
        let title = message.as_ref().and_then(|message| message.get("title")?.as_str()).unwrap_or_default();
        NotifyDelivery {
            id: new.id.to_string(),
            channel: new.channel.clone(),
            change: new.change.into(),
            title: title.to_owned(),
            problem_id: new.problem.map(|problem| problem.to_string()),
            rule: new.rule.clone(),
            status: delivery.status.into(),
            attempts: delivery.attempt,
            created_at: new.created_at,
            next_attempt_at: delivery.ended_at.is_none().then_some(delivery.next_attempt_at),
            error: delivery.error.clone(),
            ended_at: delivery.ended_at,
        }
    }
}
