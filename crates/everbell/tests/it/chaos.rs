//! Real processes on real databases, killed at random while schedules fire every second. Afterwards the checkers look at
//! what is written, and at what the handlers say they did.
//!
//! A process is this test binary again, told what to do by a variable.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use everbell::core::store::{JobFilter, LeaseTerms, PageRequest, RunFilter};
use everbell::{Builder, CatchUp, EngineOptions, Everbell, JobStatus, Overlap, Run, RunStatus, Schedule, State};
use everbell_store::conformance::checkers::Snapshot;
use everbell_store::conformance::dice::Dice;
use everbell_store::testing::OwnServer;

const DATABASE: &str = "EVERBELL_TEST_DATABASE";
const DIARY: &str = "EVERBELL_TEST_DIARY";

/// Where the handlers of a process write down what they begin, before anything else.
#[derive(Clone)]
struct Diary(PathBuf);

async fn tick(run: Run, State(diary): State<Diary>) -> Result<(), std::io::Error> {
    let mut file = File::options().create(true).append(true).open(&diary.0)?;
    file.write_all(format!("{} {}\n", run.id(), run.attempt()).as_bytes())?;
    // Some take long enough to be killed while they work; which, the slot decides.
    let millis = run.scheduled_at().as_second().unsigned_abs() * 7_919 % 400;
    tokio::time::sleep(Duration::from_millis(millis)).await;
    Ok(())
}

fn app(url: &str, diary: PathBuf) -> Builder {
    let mut options = EngineOptions::default();
    options.lease = LeaseTerms { duration: Duration::from_secs(3), heartbeat: Duration::from_secs(1) };
    options.poll = Duration::from_secs(1);
    let each_second = |key: &str| Schedule::cron(key, "* * * * * *").target("tick");
    Everbell::builder()
        .database(url)
        .state(Diary(diary))
        .target("tick", tick)
        .options(options)
        .schedule(each_second("plain"))
        .schedule(each_second("overlapping").overlap(Overlap::Allow))
        .schedule(each_second("queued").overlap(Overlap::Queue).catch_up(CatchUp::All))
        .schedule(each_second("all").catch_up(CatchUp::All).grace(Duration::ZERO))
        .schedule(Schedule::every("every", Duration::from_secs(2)).target("tick").catch_up(CatchUp::None))
}

/// The body of the process that other tests start, until it is killed. Run alone, it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_process() {
    let (Ok(url), Some(diary)) = (std::env::var(DATABASE), std::env::var_os(DIARY)) else { return };
    loop {
        // The database may be restarting.
        match app(&url, PathBuf::from(&diary)).build().await {
            Ok(bell) => bell.run_until(std::future::pending()).await.unwrap(),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// The processes, each with a diary of its own, which outlives it.
struct Crowd {
    url: String,
    folder: PathBuf,
    children: Vec<Child>,
    born: usize,
}

impl Crowd {
    /// The name is that of its folder: tests may share a process.
    fn new(name: &str, url: &str, size: usize) -> Crowd {
        let folder = std::env::temp_dir().join(format!("everbell-chaos-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut crowd = Crowd { url: url.to_owned(), folder, children: Vec::new(), born: 0 };
        for _ in 0..size {
            let child = crowd.spawn();
            crowd.children.push(child);
        }
        crowd
    }

    fn spawn(&mut self) -> Child {
        self.born += 1;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "chaos::the_other_process", "--nocapture"]);
        command.env(DATABASE, &self.url).env(DIARY, self.folder.join(self.born.to_string()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// `kill -9`, and another one.
    fn replace(&mut self, number: usize) {
        let child = self.spawn();
        end(std::mem::replace(&mut self.children[number], child));
    }

    /// Everybody is gone. How often each attempt of a run was begun.
    fn end(&mut self) -> BTreeMap<String, u32> {
        self.children.drain(..).for_each(end);
        let mut begun = BTreeMap::new();
        for diary in std::fs::read_dir(&self.folder).unwrap() {
            let text = std::fs::read_to_string(diary.unwrap().path()).unwrap();
            text.lines().for_each(|line| *begun.entry(line.to_owned()).or_default() += 1);
        }
        begun
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.children.drain(..).for_each(end);
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits until the database is there and every run has ended, with one more process to see to it.
async fn settle(url: &str, folder: &Path) -> Snapshot {
    let bell = app(url, folder.join("last")).build().await.unwrap();
    let page = PageRequest { limit: 100, after: None };
    let current = JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
    for row in bell.jobs().list(&current, &page).await.unwrap().items {
        // A pause would hold the runs that wait.
        bell.jobs().retire(row.job.definition.id).await.unwrap();
    }
    let unfinished = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
    let store = bell.store();
    let done = async {
        let mut events = bell.events();
        while !store.list_runs(&unfinished, &page).await.unwrap().items.is_empty() {
            // Something ends, or somebody's lease does.
            drop(tokio::time::timeout(Duration::from_secs(1), events.recv()).await);
        }
    };
    bell.run_until(done).await.unwrap();
    Snapshot::read(&**store).await
}

fn assert_whole(snapshot: &Snapshot, begun: &BTreeMap<String, u32>, at_least: usize) {
    let mut complaints = snapshot.complaints();
    complaints.extend(snapshot.unfinished_runs());
    complaints
        .extend(begun.iter().filter(|(_, times)| **times > 1).map(|(run, times)| format!("{run} began {times} times")));
    let unheard = snapshot.runs.iter().filter(|run| {
        run.status == RunStatus::Succeeded && !begun.contains_key(&format!("{} {}", run.id, run.attempt))
    });
    complaints.extend(unheard.map(|run| format!("{} succeeded and nobody began it", run.id)));
    assert!(complaints.is_empty(), "{} complaint(s):\n{}", complaints.len(), complaints.join("\n"));
    let succeeded = snapshot.runs.iter().filter(|run| run.status == RunStatus::Succeeded).count();
    assert!(succeeded >= at_least, "only {succeeded} of {} runs succeeded", snapshot.runs.len());
}

/// How often a process or the server is ended: `EVERBELL_CHAOS_ROUNDS`, or 20.
fn rounds() -> u32 {
    std::env::var("EVERBELL_CHAOS_ROUNDS").ok().map_or(20, |rounds| rounds.parse().expect("a number of rounds"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_on_postgresql_and_a_server_that_crashes() {
    let server = OwnServer::start();
    let mut crowd = Crowd::new("postgresql", server.url(), 3);
    let mut dice = Dice::new(u64::from(std::process::id()));
    for _ in 0..rounds() {
        tokio::time::sleep(Duration::from_millis(500 + dice.roll() % 1_000)).await;
        match dice.below(8) {
            0 => tokio::task::block_in_place(|| server.crash_and_restart()),
            number => crowd.replace(number % 3),
        }
    }
    let (url, folder) = (crowd.url.clone(), crowd.folder.clone());
    crowd.end();
    let snapshot = settle(&url, &folder).await;
    assert_whole(&snapshot, &crowd.end(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_sqlite_file() {
    let folder = std::env::temp_dir().join(format!("everbell-chaos-file-{}", std::process::id()));
    let mut crowd = Crowd::new("sqlite", &format!("sqlite:{}", folder.join("everbell.db").display()), 2);
    let mut dice = Dice::new(u64::from(std::process::id()));
    for _ in 0..rounds() {
        tokio::time::sleep(Duration::from_millis(500 + dice.roll() % 1_000)).await;
        crowd.replace(dice.below(2));
    }
    let (url, diaries) = (crowd.url.clone(), crowd.folder.clone());
    crowd.end();
    let snapshot = settle(&url, &diaries).await;
    let begun = crowd.end();
    std::fs::remove_dir_all(folder).unwrap();
    assert_whole(&snapshot, &begun, 10);
}
