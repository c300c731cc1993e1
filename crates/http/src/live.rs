//! What happens in the whole cluster, as it happens: the source of the event stream.
//!
//! An instance tells its own events at once, but those of the others are only in the database. So there is one watcher,
//! which looks there whenever something may have happened (an event here, a notice of the store, or a second has gone by)
//! and tells what is different: runs that came, moved on or ended, and new entries of the audit trail. It looks only
//! while somebody listens. Events only tell: who was away asks the API.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use everbell::core::store::PageRequest;
use everbell::{Everbell, RunFilter, RunId, RunRecord, RunStatus, StoreResult};
use everbell_wire as wire;
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast, watch};
use uuid::Uuid;

/// The shortest and the longest time between two looks.
const PACE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a listener waits for the first look.
const HASTE: Duration = Duration::from_secs(5);
/// How many runs a look compares.
const SEEN: u32 = 500;
/// How many entries of the audit trail a look reads.
const ENTRIES: u32 = 100;
/// How many events are kept for who comes back.
const KEPT: usize = 1_000;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Told {
    pub number: u64,
    /// Such as `run.finished`.
    pub kind: String,
    pub job_key: Option<String>,
    pub data: Value,
}

/// Where events of the cluster go.
#[derive(Debug)]
pub struct Live {
    /// Tells this process apart from an earlier one, whose numbers mean nothing here.
    epoch: String,
    sender: broadcast::Sender<Arc<Told>>,
    kept: Mutex<Kept>,
    /// Somebody came to listen.
    came: Notify,
    /// Whether there was a look, so that whatever happens from now on is told.
    looking: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
    /// Kept so that nobody takes its absence for the end.
    _never: Option<watch::Sender<bool>>,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    events: VecDeque<Arc<Told>>,
}

/// What a listener gets first.
pub struct Listening {
    /// What it missed; nothing if that is not known any more.
    pub missed: Option<Vec<Arc<Told>>>,
    pub events: broadcast::Receiver<Arc<Told>>,
}

impl Live {
    pub fn new(ended: watch::Receiver<bool>) -> Live {
        let epoch = Uuid::new_v4().simple().to_string()[..8].to_owned();
        Live {
            epoch,
            sender: broadcast::channel(KEPT).0,
            kept: Mutex::default(),
            came: Notify::new(),
            looking: watch::Sender::new(false),
            ended,
            _never: None,
        }
    }

    /// For a program that ends when it ends.
    pub fn without_end() -> Live {
        let (end, ended) = watch::channel(false);
        Live { _never: Some(end), ..Live::new(ended) }
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
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let events = self.sender.subscribe();
        let missed = match last_id {
            None => Some(Vec::new()),
            Some(id) => {
                let number = id.strip_prefix(&format!("{}-", self.epoch)).and_then(|n| n.parse::<u64>().ok());
                let oldest = kept.events.front().map_or(kept.last + 1, |event| event.number);
                number
                    .filter(|number| number + 1 >= oldest && *number <= kept.last)
                    .map(|number| kept.events.iter().filter(|event| event.number > number).cloned().collect())
            }
        };
        Listening { missed, events }
    }

    /// Resolves when whatever happens from now on will be told; or after a while, if the database does not answer.
    pub async fn ready(&self) {
        self.came.notify_one();
        let mut looking = self.looking.subscribe();
        let _ = tokio::time::timeout(HASTE, looking.wait_for(|looking| *looking)).await;
    }

    fn tell(&self, kind: String, job_key: Option<String>, data: Value) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let told = Arc::new(Told { number: kept.last, kind, job_key, data });
        kept.events.push_back(Arc::clone(&told));
        if kept.events.len() > KEPT {
            kept.events.pop_front();
        }
        // An error means that nobody listens.
        drop(self.sender.send(told));
    }

    /// Watches until the server ends.
    pub async fn watch(&self, bell: &Everbell) {
        let mut ended = self.ended();
        let mut seen = None;
        let mut here = bell.events();
        loop {
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => return,
                () = self.came.notified() => {}
                () = something(bell, &mut here) => {}
            }
            if self.sender.receiver_count() == 0 {
                seen = None;
                self.looking.send_replace(false);
            } else {
                match self.look(bell, seen.as_ref()).await {
                    Ok(now) => {
                        seen = Some(now);
                        self.looking.send_replace(true);
                    }
                    // What was seen before stays, so nothing that happens meanwhile is missed.
                    Err(error) => tracing::debug!(%error, "the event stream could not look; it tries again"),
                }
            }
            tokio::time::sleep(PACE).await;
        }
    }

    async fn look(&self, bell: &Everbell, before: Option<&Seen>) -> StoreResult<Seen> {
        let now = Seen::look(bell).await?;
        let Some(before) = before else { return Ok(now) };
        for run in now.runs.values().filter(|run| before.is_news(run)) {
            self.tell_run(run);
        }
        // An active run that is not among those that were looked at any more may have ended.
        for id in before.active().filter(|id| !now.runs.contains_key(id)) {
            let run = bell.store().get_run(id).await?;
            if run.status.is_terminal() {
                self.tell_run(&run);
            }
        }
        for (id, action, object, actor) in now.entries.iter().rev().filter(|entry| before.is_new_entry(entry.0)) {
            let key = object.strip_prefix("job:").map(str::to_owned);
            let data = json!({ "auditId": id, "action": action, "object": object, "actor": actor, "jobKey": key });
            self.tell(action.clone(), key, data);
        }
        Ok(now)
    }

    fn tell_run(&self, run: &RunRecord) {
        let event = wire::RunEvent::from(run);
        self.tell(format!("run.{}", run.status), event.job_key.clone(), json!(event));
    }
}

/// What a look saw.
struct Seen {
    runs: HashMap<RunId, RunRecord>,
    /// The oldest of the newest runs, if there are more than were looked at: what is older and unknown is no news.
    oldest: Option<RunId>,
    entries: Vec<(Uuid, String, String, String)>,
    /// Whether there are more entries than were looked at: what is older and unknown is no news.
    more_entries: bool,
}

impl Seen {
    async fn look(bell: &Everbell) -> StoreResult<Seen> {
        let page = PageRequest { limit: SEEN, after: None };
        let active = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
        // The active ones first: one that ends in between is seen as ended in the second list, or asked for by its id.
        let active = bell.store().list_runs(&active, &page).await?;
        let newest = bell.store().list_runs(&RunFilter::default(), &page).await?;
        let entries = bell.store().list_audit(None, &PageRequest { limit: ENTRIES, after: None }).await?;
        let more_entries = entries.next.is_some();
        let entries: Vec<_> =
            entries.items.into_iter().map(|entry| (entry.id, entry.action, entry.object, entry.actor)).collect();
        let oldest = newest.next.as_ref().and(newest.items.last()).map(|run| run.id);
        let runs = active.items.into_iter().chain(newest.items).map(|run| (run.id, run)).collect();
        Ok(Seen { runs, oldest, entries, more_entries })
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
async fn something(bell: &Everbell, here: &mut broadcast::Receiver<Arc<everbell::Event>>) {
    tokio::select! {
        _ = here.recv() => {}
        () = bell.store().woken() => {}
        () = tokio::time::sleep(PATIENCE) => {}
    }
}
