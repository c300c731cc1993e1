//! Jobs that are all due at the same moment, through real servers and their `log` targets.
//!
//! The witness is what the servers log: one line for each run, with the time of the machine. How long it takes until every run
//! is written down as ended is read from the rows.
#![allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use everbell_store::testing::OwnSetup;
use rustix::process::Signal;
use serde_json::json;

use crate::chaos::database::{Database, Engine};
use crate::chaos::{
    Folder, Instance, Launch, Options, Outcome, REQUEST_LIMIT, load_average, pause_s, seconds, true_time, wait_for,
};

/// From the creation of the last job until it is due.
const AHEAD_S: f64 = 5.0;
/// Until every run of a herd is written down.
const LIMIT: Duration = Duration::from_mins(2);
/// Connections of each of many instances: one of them listens.
const CONNECTIONS_OF_MANY: u32 = 3;

/// Options of the command line.
struct Herd {
    jobs: usize,
    instances: usize,
    rounds: usize,
    concurrency: u32,
    options: Options,
}

impl Herd {
    fn read(arguments: &[&str]) -> Result<Herd, String> {
        let mut herd = Herd { jobs: 1_000, instances: 1, rounds: 3, concurrency: 256, options: Options::default() };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name}: a value is missing; see --help"))?;
            let bad = |allowed: &str| format!("{name}: `{value}` is not allowed; use {allowed}");
            let number = |most: usize| {
                let number = value.parse().ok().filter(|number| (1..=most).contains(number));
                number.ok_or_else(|| bad(&format!("a number from 1 to {most}")))
            };
            match *name {
                "--jobs" => herd.jobs = number(100_000)?,
                "--instances" => herd.instances = number(100)?,
                "--rounds" => herd.rounds = number(100)?,
                "--concurrency" => herd.concurrency = u32::try_from(number(100_000)?).unwrap_or(u32::MAX),
                "--binary" => herd.options.binary = Some(value.into()),
                "--database" => {
                    herd.options.database = Engine::read(value).ok_or_else(|| bad("postgres or sqlite"))?;
                }
                _ => return Err(format!("unknown option `{name}`; see --help")),
            }
        }
        if herd.options.database == Engine::Sqlite && herd.instances > 1 {
            return Err("--instances: a file of SQLite serves one instance; use --database postgres".to_owned());
        }
        Ok(herd)
    }

    fn config(&self) -> String {
        let connections = match (self.options.database, self.instances) {
            (Engine::Postgres, 7..) => format!("[database]\nmax_connections = {CONNECTIONS_OF_MANY}\n"),
            _ => String::new(),
        };
        format!(
            "[api]\nwrite_rate = 0\n[engine]\nconcurrency = {}\n{connections}[[target]]\nlabel = \"print\"\ntype = \"log\"\n",
            self.concurrency
        )
    }
}

/// Puts a herd through real servers, a few times, and prints a line for each round. Whether every run was seen exactly once.
pub fn run(arguments: &[&str]) -> Result<bool, String> {
    let herd = Herd::read(arguments)?;
    measure(&herd).map_err(|error| error.to_string())
}

fn measure(herd: &Herd) -> Outcome<bool> {
    let folder = Folder::new()?;
    let database = match herd.options.database {
        Engine::Postgres => {
            let settings = vec![("max_connections".into(), "500".into())];
            Database::own(&OwnSetup { settings, ..OwnSetup::default() })?
        }
        Engine::Sqlite => Database::create(Engine::Sqlite, folder.path())?,
    };
    let servers = (0..herd.instances).map(|number| launch(herd, &folder, &database, number));
    let servers = servers.collect::<Outcome<Vec<Launch>>>()?;
    let instances = servers.iter().map(Launch::start).collect::<Outcome<Vec<Instance>>>()?;
    println!(
        "{} jobs due at once, {} {} on {:?}, target `log`\n",
        herd.jobs,
        herd.instances,
        if herd.instances == 1 { "server" } else { "servers" },
        herd.options.database
    );
    println!("round  lag p50 ms  lag p99 ms  lag max ms  started/s  ended/s  twice  never  load");
    let mut is_exact = true;
    for round in 0..herd.rounds {
        let due = create(herd, &instances[0], round)?;
        pause_s(due + 1.0 - true_time());
        // A run that never starts must not hold the measurement up for long: it is counted below.
        let _all = wait_for(LIMIT, || (lines(&servers, round).len() >= herd.jobs).then_some(()));
        let ended = wait_for(LIMIT, || last_end(&database, herd.jobs, due));
        let ended = ended.ok_or_else(|| format!("not every run had ended after {LIMIT:?}"))?;
        let mut seen: HashMap<String, Vec<f64>> = HashMap::new();
        for (job, at) in lines(&servers, round) {
            seen.entry(job).or_default().push(at);
        }
        let mut lags: Vec<f64> = seen.values().flatten().map(|at| 1e3 * (at - due)).collect();
        lags.sort_by(f64::total_cmp);
        let at = |share: f64| lags.get(((lags.len().max(1) - 1) as f64 * share).round() as usize).copied();
        let at = |share: f64| at(share).unwrap_or(f64::NAN);
        let twice = seen.values().filter(|times| times.len() > 1).count();
        let never = herd.jobs - seen.len();
        is_exact &= twice == 0 && never == 0;
        let rate = |seconds: f64| herd.jobs as f64 / seconds;
        println!(
            "{:5} {:11.1} {:11.1} {:11.1} {:10.0} {:8.0} {twice:6} {never:6}  {}",
            round + 1,
            at(0.5),
            at(0.99),
            at(1.0),
            rate(at(1.0) / 1e3),
            rate(ended - due),
            load_average(),
        );
    }
    for mut instance in instances {
        instance.signal(Signal::TERM);
        if instance.ends_within(Duration::from_secs(40)).is_none() {
            instance.kill();
        }
    }
    Ok(is_exact)
}

fn launch(herd: &Herd, folder: &Folder, database: &Database, number: usize) -> Outcome<Launch> {
    let home = folder.path().join(format!("instance-{number}"));
    fs::create_dir_all(&home)?;
    fs::write(home.join("everbell.toml"), herd.config())?;
    Ok(Launch {
        binary: herd.options.binary()?,
        folder: home,
        database: database.url(),
        environment: Vec::new(),
        wrapper: Vec::new(),
        unread_stderr: false,
    })
}

/// Creates the jobs of a round; when all of them are due.
fn create(herd: &Herd, instance: &Instance, round: usize) -> Outcome<f64> {
    let post = |path: &str, body: &serde_json::Value| instance.post(&format!("/api/v1{path}"), body, REQUEST_LIMIT);
    // The first jobs tell how long all of them will take.
    let begun = true_time();
    let warm = herd.jobs.min(20);
    let far = jiff::Timestamp::from_second(begun as i64 + 86_400)?;
    for number in 0..warm {
        let body = json!({ "jobKey": format!("warm-{round}-{number}"), "target": "print", "runAt": far.to_string() });
        post("/jobs", &body)?.expect(201)?;
    }
    let each = (true_time() - begun) / warm as f64;
    let due = (true_time() + 1.5 * each * herd.jobs as f64 + AHEAD_S).ceil();
    let at = jiff::Timestamp::from_second(due as i64)?;
    for number in 0..herd.jobs {
        let body = json!({ "jobKey": format!("herd-{round}-{number}"), "target": "print", "runAt": at.to_string() });
        post("/jobs", &body)?.expect(201)?;
    }
    if true_time() > due - 1.0 {
        return Err("creating the jobs took longer than planned; the machine is too busy for this".into());
    }
    Ok(due)
}

/// The jobs that the servers logged in this round, each with the time of its line.
fn lines(servers: &[Launch], round: usize) -> Vec<(String, f64)> {
    let key = format!(" job=herd-{round}-");
    let parse = |line: &str| {
        let (_, number) = line.split_once(&key).filter(|_| line.contains(" target_label=print "))?;
        let at: jiff::Timestamp = line.split_whitespace().next()?.parse().ok()?;
        Some((number.split_whitespace().next()?.to_owned(), seconds(at)))
    };
    let texts = servers.iter().map(|server| fs::read_to_string(server.log()).unwrap_or_default());
    texts.flat_map(|text| text.lines().filter_map(parse).collect::<Vec<_>>()).collect()
}

/// The end of the last run of a herd, once this many runs that were due then have ended.
fn last_end(database: &Database, jobs: usize, due: f64) -> Option<f64> {
    let runs = database.snapshot().ok()?.runs;
    let ends: Vec<f64> = runs.iter().filter_map(|run| run.finished_at).map(seconds).filter(|end| *end >= due).collect();
    (ends.len() >= jobs).then(|| ends.iter().copied().fold(due, f64::max))
}
