//! The source of the event stream: changes in the whole cluster as they happen.
//!
//! Events of other instances are only in the database. One watcher polls it whenever something may have happened (a local
//! event, a notification of the store, or after a second) and publishes the differences: runs that were created, changed
//! status or ended, and new audit entries. It polls only while there are listeners. Events are hints: a client that was
//! disconnected has to read the current state from the API.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use everbell::core::store::PageRequest;
use everbell::{Everbell, RunFilter, RunId, RunRecord, RunStatus, StoreResult};
use everbell_wire as wire;
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast, watch};
use uuid::Uuid;

/// The minimum and the maximum time between two polls.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a listener waits for the first poll.
const FIRST_POLL_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of runs that a poll compares.
const MAX_COMPARED_RUNS: u32 = 500;
/// The maximum number of audit entries that a poll reads.
const MAX_COMPARED_ENTRIES: u32 = 100;
/// The number of events that are kept for clients that reconnect.
const MAX_BUFFERED_EVENTS: usize = 1_000;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct StreamEvent {
    pub number: u64,
    /// Such as `run.finished`.
    pub kind: String,
    pub job_key: Option<String>,
    pub data: Value,
}

/// Where events of the cluster go.
#[derive(Debug)]
pub struct Live {
    /// Distinguishes this process from an earlier one, whose event numbers are not valid here.
    epoch: String,
    sender: broadcast::Sender<Arc<StreamEvent>>,
    buffer: Mutex<EventBuffer>,
    /// Notified when a listener joins.
    listener_joined: Notify,
    /// Whether a first poll is done, so that all later changes are published.
    is_polling: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct EventBuffer {
    last: u64,
    events: VecDeque<Arc<StreamEvent>>,
}

/// A new subscription.
pub struct Listening {
    /// The events since the last id; `None` if they are no longer known.
    pub missed: Option<Vec<Arc<StreamEvent>>>,
    pub events: broadcast::Receiver<Arc<StreamEvent>>,
}

impl Live {
    /// Creates a source whose streams end when `ended` says so.
    pub fn new(ended: watch::Receiver<bool>) -> Live {
        let epoch = Uuid::new_v4().simple().to_string()[..8].to_owned();
        Live {
            epoch,
            sender: broadcast::channel(MAX_BUFFERED_EVENTS).0,
            buffer: Mutex::default(),
            listener_joined: Notify::new(),
            is_polling: watch::Sender::new(false),
            ended,
        }
    }

    /// Resolves when the server ends, and every stream with it.
    pub fn ended(&self) -> watch::Receiver<bool> {
        self.ended.clone()
    }

    /// The id of an event in the stream.
    pub fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.epoch)
    }

    /// Listens from now on, or from behind the event of this id.
    pub fn listen(&self, last_id: Option<&str>) -> Listening {
        let buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let events = self.sender.subscribe();
        let missed = match last_id {
            None => Some(Vec::new()),
            Some(id) => {
                let number = id.strip_prefix(&format!("{}-", self.epoch)).and_then(|n| n.parse::<u64>().ok());
                let oldest = buffer.events.front().map_or(buffer.last + 1, |event| event.number);
                number
                    .filter(|number| number + 1 >= oldest && *number <= buffer.last)
                    .map(|number| buffer.events.iter().filter(|event| event.number > number).cloned().collect())
            }
        };
        Listening { missed, events }
    }

    /// Resolves when all later changes will be published, or after a timeout if the database does not respond.
    pub async fn ready(&self) {
        self.listener_joined.notify_one();
        let mut is_polling = self.is_polling.subscribe();
        let _ = tokio::time::timeout(FIRST_POLL_TIMEOUT, is_polling.wait_for(|is_polling| *is_polling)).await;
    }

    fn publish(&self, kind: String, job_key: Option<String>, data: Value) {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.last += 1;
        let event = Arc::new(StreamEvent { number: buffer.last, kind, job_key, data });
        buffer.events.push_back(Arc::clone(&event));
        if buffer.events.len() > MAX_BUFFERED_EVENTS {
            buffer.events.pop_front();
        }
        // An error means that there are no listeners.
        drop(self.sender.send(event));
    }

    /// Watches until the server ends.
    pub async fn watch(&self, bell: &Everbell) {
        let mut ended = self.ended();
        let mut seen = None;
        let mut here = bell.events();
        loop {
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => return,
                () = self.listener_joined.notified() => {}
                () = wait_for_activity(bell, &mut here) => {}
            }
            if self.sender.receiver_count() == 0 {
                seen = None;
                self.is_polling.send_replace(false);
            } else {
                match self.poll(bell, seen.as_ref()).await {
                    Ok(now) => {
                        seen = Some(now);
                        self.is_polling.send_replace(true);
                    }
                    // What was seen before stays, so nothing that happens meanwhile is missed.
                    Err(error) => tracing::debug!(%error, "the event stream could not poll; retrying"),
                }
            }
            tokio::time::sleep(MIN_POLL_INTERVAL).await;
        }
    }

    async fn poll(&self, bell: &Everbell, before: Option<&Snapshot>) -> StoreResult<Snapshot> {
        let now = Snapshot::read(bell).await?;
        let Some(before) = before else { return Ok(now) };
        for run in now.runs.values().filter(|run| before.is_news(run)) {
            self.publish_run(run);
        }
        // An active run that is not among those that were looked at any more may have ended.
        for id in before.active().filter(|id| !now.runs.contains_key(id)) {
            let run = bell.runs().get(id).await?;
            if run.status.is_terminal() {
                self.publish_run(&run);
            }
        }
        for (id, action, object, actor) in now.entries.iter().rev().filter(|entry| before.is_new_entry(entry.0)) {
            let key = object.strip_prefix("job:").map(str::to_owned);
            let data = json!({ "auditId": id, "action": action, "object": object, "actor": actor, "jobKey": key });
            self.publish(action.clone(), key, data);
        }
        Ok(now)
    }

    fn publish_run(&self, run: &RunRecord) {
        let event = wire::RunEvent::from(run);
        self.publish(format!("run.{}", run.status), event.job_key.clone(), json!(event));
    }
}

/// The state that a poll has read.
struct Snapshot {
    runs: HashMap<RunId, RunRecord>,
    /// The oldest of the newest runs, if there are more than were looked at: what is older and unknown is no news.
    oldest: Option<RunId>,
    entries: Vec<(Uuid, String, String, String)>,
    /// Whether there are more entries than were looked at: what is older and unknown is no news.
    more_entries: bool,
}

impl Snapshot {
    async fn read(bell: &Everbell) -> StoreResult<Snapshot> {
        let page = PageRequest { limit: MAX_COMPARED_RUNS, after: None };
        let active = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
        // The active ones first: one that ends in between is seen as ended in the second list, or asked for by its id.
        let active = bell.runs().list(&active, &page).await?;
        let newest = bell.runs().list(&RunFilter::default(), &page).await?;
        let entries = bell.store().list_audit(None, &PageRequest { limit: MAX_COMPARED_ENTRIES, after: None }).await?;
        let more_entries = entries.next.is_some();
        let entries: Vec<_> =
            entries.items.into_iter().map(|entry| (entry.id, entry.action, entry.object, entry.actor)).collect();
        let oldest = newest.next.as_ref().and(newest.items.last()).map(|run| run.id);
        let runs = active.items.into_iter().chain(newest.items).map(|run| (run.id, run)).collect();
        Ok(Snapshot { runs, oldest, entries, more_entries })
    }

    fn is_news(&self, run: &RunRecord) -> bool {
        match self.runs.get(&run.id) {
            Some(known) => (known.status, known.attempt) != (run.status, run.attempt),
            None => self.oldest.is_none_or(|oldest| run.id > oldest) || !run.status.is_terminal(),
        }
    }

    /// Ids begin with the time at which something began, so one that took longer may come behind a newer one.
    fn is_new_entry(&self, id: Uuid) -> bool {
        let oldest = self.entries.iter().map(|entry| entry.0).min().filter(|_| self.more_entries);
        oldest.is_none_or(|oldest| id > oldest) && self.entries.iter().all(|entry| entry.0 != id)
    }

    fn active(&self) -> impl Iterator<Item = RunId> {
        self.runs.values().filter(|run| !run.status.is_terminal()).map(|run| run.id)
    }
}

/// Resolves when something may have happened.
async fn wait_for_activity(bell: &Everbell, here: &mut everbell::EventStream) {
    tokio::select! {
        _ = here.recv() => {}
        () = bell.store().woken() => {}
        () = tokio::time::sleep(MAX_POLL_INTERVAL) => {}
    }
}
