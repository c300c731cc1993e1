//! A proxy between a store and its server that cuts the connection when it is told to: the real thing, as seen by both.
//!
//! It understands just enough of the protocol to count requests. *Before*: the request never reaches the server. *After*:
//! the server has done it, and the answer is lost; for a commit that is the worst there is. Instead of cutting it can fall
//! silent: connections stay open and carry nothing any more, like a network that drops packets or a process that is frozen.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use everbell_store::conformance::faults::Fault;
use everbell_store::memory::FaultPoint;
use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Listens on loopback until it is dropped.
pub(crate) struct Proxy {
    url: String,
    plan: Arc<Plan>,
    task: JoinHandle<()>,
}

/// Requests left until the cut; negative when there will be none.
struct Plan {
    left: AtomicI64,
    after: AtomicBool,
    /// Falls silent instead of cutting, for good and on every connection.
    silences: AtomicBool,
    silent: watch::Sender<bool>,
}

impl Plan {
    /// Counts a request: whether the connection is to be cut now.
    fn cuts(&self) -> bool {
        self.left.fetch_sub(1, Ordering::SeqCst) == 0
    }

    /// Resolves when nothing is carried any more.
    async fn silence(&self) {
        let mut silent = self.silent.subscribe();
        let _told = silent.wait_for(|silent| *silent).await;
    }
}

impl Proxy {
    /// In front of the server of this address.
    pub(crate) async fn start(url: &str) -> Proxy {
        let options = PgConnectOptions::from_str(url).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (user, database) = (options.get_username().to_owned(), options.get_database().unwrap().to_owned());
        let plan = Arc::new(Plan {
            left: AtomicI64::new(-1),
            after: AtomicBool::new(false),
            silences: AtomicBool::new(false),
            silent: watch::channel(false).0,
        });
        let task = tokio::spawn(accept(listener, options, Arc::clone(&plan)));
        Proxy { url: format!("postgres://{user}@127.0.0.1:{port}/{database}?sslmode=disable"), plan, task }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// How many requests there were, if it was never armed.
    pub(crate) fn requests(&self) -> i64 {
        -1 - self.plan.left.load(Ordering::SeqCst)
    }

    /// Cuts the connection of the request of this number, counted from now.
    pub(crate) fn arm(&self, fault: Fault) {
        self.plan.after.store(fault.point == FaultPoint::After, Ordering::SeqCst);
        self.plan.left.store(i64::from(fault.at), Ordering::SeqCst);
    }

    /// Falls silent once the server has done the request of this number, counted from now. Its answer does not arrive.
    pub(crate) fn silence_after(&self, at: u32) {
        self.plan.silences.store(true, Ordering::SeqCst);
        self.arm(Fault { at, point: FaultPoint::After });
    }

    /// Resolves when it has fallen silent.
    pub(crate) async fn fell_silent(&self) {
        self.plan.silence().await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, options: PgConnectOptions, plan: Arc<Plan>) {
    while let Ok((client, _)) = listener.accept().await {
        let (options, plan) = (options.clone(), Arc::clone(&plan));
        tokio::spawn(async move {
            // Either side may end whenever it likes; that is what this is for.
            let ended = match options.get_socket().cloned().or_else(|| socket_of(&options)) {
                Some(folder) => {
                    let socket = folder.join(format!(".s.PGSQL.{}", options.get_port()));
                    carry(client, UnixStream::connect(socket).await, &plan).await
                }
                None => carry(client, TcpStream::connect((options.get_host(), options.get_port())).await, &plan).await,
            };
            drop(ended);
        });
    }
}

/// A host that is a folder is a socket in it.
fn socket_of(options: &PgConnectOptions) -> Option<std::path::PathBuf> {
    options.get_host().starts_with('/').then(|| options.get_host().into())
}

async fn carry<S>(mut client: TcpStream, server: std::io::Result<S>, plan: &Plan) -> std::io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut server = server?;
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    let mut pending = Vec::new();
    let mut started = false;
    loop {
        tokio::select! {
            biased;
            () = plan.silence() => std::future::pending().await,
            read = client.read(&mut from_client) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                pending.extend_from_slice(&from_client[..read]);
                while let Some(message) = take(&mut pending, started) {
                    let request = started && matches!(message[0], b'Q' | b'S');
                    started = true;
                    if request && plan.cuts() {
                        if plan.after.load(Ordering::SeqCst) {
                            server.write_all(&message).await?;
                            wait_until_done(&mut server).await?;
                        }
                        if plan.silences.load(Ordering::SeqCst) {
                            plan.silent.send_replace(true);
                            continue;
                        }
                        return Ok(());
                    }
                    server.write_all(&message).await?;
                }
            }
            read = server.read(&mut from_server) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                client.write_all(&from_server[..read]).await?;
            }
        }
    }
}

/// Takes the first whole message from what was read. The very first one has no letter.
fn take(pending: &mut Vec<u8>, started: bool) -> Option<Vec<u8>> {
    let letter = usize::from(started);
    let length = pending.get(letter..letter + 4)?;
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize + letter;
    (pending.len() >= length).then(|| pending.drain(..length).collect())
}

/// Reads what the server answers up to `ReadyForQuery`, and keeps it to itself.
async fn wait_until_done(server: &mut (impl tokio::io::AsyncRead + Unpin)) -> std::io::Result<()> {
    let (mut pending, mut buffer) = (Vec::new(), vec![0; 65_536]);
    loop {
        while let Some(message) = take(&mut pending, true) {
            if message[0] == b'Z' {
                return Ok(());
            }
        }
        let read = server.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&buffer[..read]);
    }
}
