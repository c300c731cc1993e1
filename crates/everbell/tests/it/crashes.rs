//! Programs that are killed or asked to stop while a handler works, and the instance that takes its run over.
//!
//! A program is this test binary again, told what to do by a variable. What its handlers do is read from its output.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use everbell::core::store::LeaseTerms;
use everbell::{Backoff, Builder, EngineOptions, Event, Everbell, OnLost, Run, RunRecord, RunStatus, Schedule};
use everbell_store::testing::TestDatabase;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;
use tokio::time::timeout;

const DATABASE: &str = "EVERBELL_TEST_CRASHING_DATABASE";

/// Generous, for a machine that has much else to do. Usually it takes some seconds.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// Begins a line that the tests read.
const MARK: &str = "everbell-test: ";

fn say(text: &str) {
    // At once and in one piece: the process may be killed the moment it is read.
    std::io::stdout().write_all(format!("\n{MARK}{text}\n").as_bytes()).unwrap();
}

/// Never ends in its first attempt, and does not listen.
async fn work(run: Run) {
    say(&format!("attempt {} with fence {} of {}", run.attempt(), run.fence(), run.idempotency_key()));
    if run.attempt() == 1 {
        std::future::pending::<()>().await;
    }
}

fn app(url: &str) -> Builder {
    let mut options = EngineOptions::default();
    options.lease = LeaseTerms { duration: Duration::from_secs(6), heartbeat: Duration::from_secs(1) };
    options.poll = Duration::from_millis(200);
    options.shutdown_grace = Duration::from_millis(300);
    options.cancel_grace = Duration::from_millis(300);
    Everbell::builder().database(url).options(options).target("work", work).observe(|event| {
        if let Event::Finished { run, status, .. } = event {
            say(&format!("attempt {} {status}", run.attempt));
        }
    })
}

/// The body of the program that the tests start. Run alone, it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program() {
    let Ok(url) = std::env::var(DATABASE) else { return };
    app(&url).build().await.unwrap().run_until(everbell::shutdown_signal()).await.unwrap();
}

struct Program {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Program {
    fn start(url: &str) -> Program {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "crashes::the_program", "--nocapture"]).env(DATABASE, url);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (line, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for text in output.lines().map_while(Result::ok) {
                if let Some(text) = text.strip_prefix(MARK) {
                    drop(line.send(text.to_owned()));
                }
            }
        });
        Program { child, lines }
    }

    /// The next thing that it says.
    async fn says(&mut self) -> String {
        let line = timeout(MAX_WAIT, self.lines.recv()).await.expect("it says something in time");
        line.expect("it is still there")
    }

    /// `kill -9`.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM, and waits for its end.
    async fn terminate(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        // It is the end of its output that is waited for: a program that does not end is killed when this is dropped.
        let ended = async { while self.lines.recv().await.is_some() {} };
        timeout(MAX_WAIT, ended).await.expect("it ends in time");
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail if it has ended, which is what they are for.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A job that fires once and whose lost runs are retried, and a program whose handler is at work on it. Returns the
/// idempotency key too.
async fn at_work(url: &str) -> (Everbell, Program, String) {
    let bell = app(url).build().await.unwrap();
    let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(1) };
    let at = bell.now() + Duration::from_secs(3);
    let once = Schedule::once("work", at).target("work").retry(2, backoff).on_lost(OnLost::Retry);
    bell.jobs().create(once).await.unwrap();
    let mut program = Program::start(url);
    let key = format!("schedule:work:{}", at.as_second());
    assert_eq!(program.says().await, format!("attempt 1 with fence 1 of {key}"));
    (bell, program, key)
}

/// Expects another program to do the run from the beginning; returns its record.
async fn taken_over(bell: &Everbell, mut other: Program, key: &str) -> RunRecord {
    assert_eq!(other.says().await, format!("attempt 2 with fence 2 of {key}"));
    assert_eq!(other.says().await, "attempt 2 succeeded");
    let run = bell.jobs().get("work").await.unwrap().last_run.unwrap();
    assert_eq!((run.status, run.attempt), (RunStatus::Succeeded, 2));
    run
}

async fn a_killed_program_is_replaced(url: &str) {
    let (bell, program, key) = at_work(url).await;
    let other = Program::start(url);
    program.kill();
    let run = taken_over(&bell, other, &key).await;
    assert_eq!(run.attempts_in_words().unwrap(), "attempt 1 was lost, attempt 2 succeeded");
    assert_eq!(run.attempts_used(), 2);
}

async fn a_stopped_program_is_replaced(url: &str) {
    let (bell, program, key) = at_work(url).await;
    let other = Program::start(url);
    assert!(program.terminate().await.success(), "an orderly end, not one by the signal");
    let run = taken_over(&bell, other, &key).await;
    let words = "attempt 1 was stopped by a shutdown and does not count, attempt 2 succeeded";
    assert_eq!(run.attempts_in_words().unwrap(), words);
    assert_eq!(run.attempts_used(), 1);
}

/// A database file in a folder of its own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> (Folder, String) {
        let folder = std::env::temp_dir().join(format!("everbell-crashes-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let url = format!("sqlite:{}", folder.join("everbell.db").display());
        (Folder(folder), url)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[tokio::test]
async fn another_instance_finishes_the_run_of_a_killed_one_on_postgresql() {
    let database = TestDatabase::create().await;
    a_killed_program_is_replaced(database.url()).await;
}

#[tokio::test]
async fn another_instance_finishes_the_run_of_a_killed_one_on_sqlite() {
    let (_folder, url) = Folder::new("killed");
    a_killed_program_is_replaced(&url).await;
}

#[tokio::test]
async fn another_instance_takes_over_from_one_that_gets_sigterm_on_postgresql() {
    let database = TestDatabase::create().await;
    a_stopped_program_is_replaced(database.url()).await;
}

#[tokio::test]
async fn another_instance_takes_over_from_one_that_gets_sigterm_on_sqlite() {
    let (_folder, url) = Folder::new("stopped");
    a_stopped_program_is_replaced(&url).await;
}
