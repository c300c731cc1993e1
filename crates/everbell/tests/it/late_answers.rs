//! An answer of PostgreSQL to a claim that comes seconds late, on one connection of an otherwise healthy instance. What handlers say they
//! did is the truth: no run begins twice.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell::{Builder, Everbell, Run, RunId, RunStatus, Schedule, State};
use everbell_store::testing::TestDatabase;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

use crate::given::within;

/// A text that only the statement of a claim has.
const CLAIM: &[u8] = b"set status = 'running', held = false";

/// Stands between an instance and its server, and keeps back the answer to the next claim when it is asked to.
struct Proxy {
    url: String,
    orders: Arc<Orders>,
}

struct Orders {
    next: Mutex<Option<Duration>>,
    /// How many answers were kept back and have been passed on, or could not be any more.
    passed_on: watch::Sender<u32>,
}

impl Proxy {
    async fn start(url: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (rest, query) = url.split_once('?').unwrap_or((url, ""));
        let (server, database) = rest.rsplit_once('/').unwrap();
        let (user, host) = server.trim_start_matches("postgres://").split_once('@').unwrap();
        let folder = query.split('&').find_map(|pair| pair.strip_prefix("host=")).map(PathBuf::from);
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:5432") };
        let orders = Arc::new(Orders { next: Mutex::default(), passed_on: watch::channel(0).0 });
        let shared = Arc::clone(&orders);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (folder, host, orders) = (folder.clone(), host.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    // Either side may end whenever it likes.
                    let _ended = match folder {
                        Some(folder) => {
                            let server = UnixStream::connect(folder.join(".s.PGSQL.5432")).await;
                            carry(client, server, &orders).await
                        }
                        None => carry(client, TcpStream::connect(&*host).await, &orders).await,
                    };
                });
            }
        });
        Proxy { url: format!("postgres://{user}@127.0.0.1:{port}/{database}?sslmode=disable"), orders }
    }

    fn keep_back_the_next_claim(&self, time: Duration) {
        *self.orders.next.lock().unwrap() = Some(time);
    }

    async fn until_passed_on(&self) {
        self.orders.passed_on.subscribe().wait_for(|count| *count > 0).await.unwrap();
    }
}

async fn carry<S>(client: TcpStream, server: std::io::Result<S>, orders: &Orders) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(server?);
    let hold: Mutex<Option<Duration>> = Mutex::default();
    let asking = async {
        let (mut pending, mut buffer) = (Vec::new(), vec![0; 65_536]);
        let (mut started, mut claims) = (false, HashSet::new());
        loop {
            let read = from_client.read(&mut buffer).await?;
            if read == 0 {
                return Ok::<_, std::io::Error>(());
            }
            pending.extend_from_slice(&buffer[..read]);
            while let Some(message) = take(&mut pending, started) {
                if started && is_claim(&message, &mut claims) {
                    let next = orders.next.lock().unwrap().take();
                    *hold.lock().unwrap() = next;
                }
                started = true;
                to_server.write_all(&message).await?;
            }
        }
    };
    let answering = async {
        let mut buffer = vec![0; 65_536];
        loop {
            let read = from_server.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            let mut kept_back = hold.lock().unwrap().take();
            if !has_rows(&buffer[..read]) {
                // A claim that found nothing is not the one that is meant.
                let mut next = orders.next.lock().unwrap();
                *next = next.take().or(kept_back.take());
            }
            if let Some(time) = kept_back {
                tokio::time::sleep(time).await;
            }
            let written = to_client.write_all(&buffer[..read]).await;
            if kept_back.is_some() {
                orders.passed_on.send_modify(|count| *count += 1);
            }
            written?;
        }
    };
    // The asking side may have given up while its answer is kept back.
    let (asked, answered) = tokio::join!(asking, answering);
    asked.and(answered)
}

/// Whether a message executes a claim: binds a statement that was parsed with that text, on this connection.
fn is_claim(message: &[u8], claims: &mut HashSet<Vec<u8>>) -> bool {
    let mut texts = message[5..].split(|byte| *byte == 0);
    let first = texts.next().unwrap_or_default().to_vec();
    let second = texts.next().unwrap_or_default();
    match message[0] {
        b'P' if second.windows(CLAIM.len()).any(|part| part == CLAIM) => {
            claims.insert(first);
            false
        }
        b'B' => claims.contains(second),
        _ => false,
    }
}

/// Whether a row is among these messages of the server.
fn has_rows(messages: &[u8]) -> bool {
    let mut pending = messages.to_vec();
    std::iter::from_fn(|| take(&mut pending, true)).any(|message| message[0] == b'D')
}

/// Takes the first whole message from what was read. The very first one has no letter.
fn take(pending: &mut Vec<u8>, started: bool) -> Option<Vec<u8>> {
    let letter = usize::from(started);
    let length = pending.get(letter..letter + 4)?;
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize + letter;
    (pending.len() >= length).then(|| pending.drain(..length).collect())
}

/// The starts of handlers, and whether those that wait may go on.
#[derive(Clone)]
struct Diary {
    starts: Arc<Mutex<BTreeMap<RunId, u32>>>,
    end: watch::Sender<bool>,
}

async fn quick(run: Run, State(diary): State<Diary>) {
    *diary.starts.lock().unwrap().entry(run.id()).or_default() += 1;
}

async fn busy(run: Run, State(diary): State<Diary>) {
    *diary.starts.lock().unwrap().entry(run.id()).or_default() += 1;
    diary.end.subscribe().wait_for(|end| *end).await.unwrap();
}

const JOBS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn instance(url: &str, diary: &Diary) -> Builder {
    let yearly = |key: &str, target: &str| Schedule::cron(key, "0 0 1 1 *").target(target);
    let builder = Everbell::builder().database(url).state(diary.clone()).target("quick", quick).target("busy", busy);
    JOBS.iter().fold(builder.schedule(yearly("busy", "busy")), |builder, key| builder.schedule(yearly(key, "quick")))
}

async fn a_late_answer_starts_no_run_twice(late: Duration) {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(database.url()).await;
    let diary = Diary { starts: Arc::default(), end: watch::channel(false).0 };
    let slow = instance(&proxy.url, &diary).build().await.unwrap();
    let started = |id: RunId| diary.starts.lock().unwrap().contains_key(&id);
    let story = async {
        // While a handler is at work, the heart beats faster when something happens.
        let working = slow.jobs().run_now("busy").await.unwrap().run().id;
        until(|| started(working)).await;
        proxy.keep_back_the_next_claim(late);
        let mut asked = vec![];
        for key in JOBS {
            asked.push(slow.jobs().run_now(key).await.unwrap().run().id);
        }
        proxy.until_passed_on().await;
        for id in &asked {
            while slow.runs().get(*id).await.unwrap().status != RunStatus::Succeeded {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        diary.end.send_replace(true);
    };
    within(slow.run_until(story)).await.unwrap();
    let starts = diary.starts.lock().unwrap();
    assert_eq!(starts.len(), JOBS.len() + 1);
    assert!(starts.values().all(|times| *times == 1), "{starts:?}");
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn three_seconds() {
    a_late_answer_starts_no_run_twice(Duration::from_secs(3)).await;
}

#[tokio::test]
async fn fourteen_seconds() {
    a_late_answer_starts_no_run_twice(Duration::from_secs(14)).await;
}
