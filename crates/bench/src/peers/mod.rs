//! Everbell and its peers: the same work through each of them by turns, on one PostgreSQL.
//!
//! Each peer is a program of its own, with the protocol of `peers/protocol.rs`. It enqueues through the peer's own
//! interface, and the witness is the handler in its process. docs/benchmarks.md has the method.
#![allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]

mod adapter;
mod catalog;
mod child;
mod idle;
mod machine;
mod options;
#[path = "../../peers/protocol.rs"]
mod protocol;
mod report;
mod results;
mod svg;
mod tables;
mod work;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use everbell_store::testing::{OwnServer, OwnSetup};

use self::catalog::PEERS;
use self::machine::Ticks;
use self::options::{Entry, Options};
use self::results::{Results, Sample};
use self::tables::Measure;
use self::work::{Bench, Measured};

const INSTALLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/install");
/// How long the installation of a group may take.
const INSTALL_LIMIT: Duration = Duration::from_mins(30);
const WARM_UP_JOBS: u32 = 1_000;
const WARM_UP_LIMIT: Duration = Duration::from_secs(10);
const LAG_JOBS: u32 = 500;
const HERD_JOBS: u32 = 1_000;

/// Measures and prints everything, or what the options name; as `adapter` it is everbell's own program.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    if arguments == ["adapter"] {
        return adapter::run();
    }
    let options = Options::parse(arguments)?;
    std::fs::create_dir_all(&options.cache).map_err(|error| format!("create {}: {error}", options.cache.display()))?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure(&options))
}

/// A measure, and how to take it.
enum Task {
    Drain(u32),
    Timed(u32, Duration),
    Idle,
}

async fn measure(options: &Options) -> Result<(), String> {
    let mut settings = vec![("log_line_prefix".to_owned(), idle::LOG_LINE_PREFIX.to_owned())];
    if options.asynchronous {
        settings.push(("synchronous_commit".to_owned(), "off".to_owned()));
    }
    let server = OwnServer::start_with(&OwnSetup { settings, ..OwnSetup::default() });
    let mut results = if options.again { Results::default() } else { Results::load(&options.json)? };
    results.machine = machine::describe(&postgres(&server).await?);
    results.machine["synchronous_commit"] = if options.asynchronous { "off" } else { "on" }.into();
    let bench = Bench { server: &server, cache: &options.cache, limit: options.limit };
    let (tasks, measures): (Vec<Task>, Vec<Measure>) = plan(options).into_iter().unzip();
    let entries = options.entries();
    let absent = install_all(options, &entries).await;
    let mut taker = Taker { bench, results, options, absent };
    taker.warm_up(&entries).await;
    for (task, measure) in tasks.iter().zip(&measures) {
        taker.take(task, measure, &entries).await?;
    }
    tables::print(&taker.results, &measures, &entries);
    println!("Machine: {}", taker.results.machine);
    if let Some(file) = &options.svg {
        let drawn = svg::draw(&taker.results, &measures, &entries);
        std::fs::write(file, drawn).map_err(|error| format!("write {}: {error}", file.display()))?;
    }
    Ok(())
}

fn plan(options: &Options) -> Vec<(Task, Measure)> {
    let mut plan: Vec<(Task, Measure)> = Vec::new();
    if options.wants("drain") {
        plan.extend(options.sizes.iter().map(|jobs| (Task::Drain(*jobs), Measure::drain(*jobs))));
    }
    if options.wants("lag") {
        let seconds = options.lag_spread.as_secs();
        plan.push((Task::Timed(LAG_JOBS, options.lag_spread), Measure::lag(LAG_JOBS, seconds)));
    }
    if options.wants("herd") {
        plan.push((Task::Timed(HERD_JOBS, Duration::ZERO), Measure::herd(HERD_JOBS)));
    }
    if options.wants("idle") {
        plan.push((Task::Idle, Measure::idle()));
    }
    plan
}

/// Installs what the peers need, and returns the reason for each one that cannot be measured, by its index.
async fn install_all(options: &Options, entries: &[Entry]) -> BTreeMap<usize, String> {
    let mut groups: BTreeMap<&str, Result<(), String>> = BTreeMap::new();
    let mut absent = BTreeMap::new();
    for entry in entries {
        let Some(group) = PEERS[entry.peer].group else { continue };
        if !groups.contains_key(group) {
            eprintln!("installing {group}");
            groups.insert(group, install(group, &options.cache).await);
        }
        if let Some(Err(reason)) = groups.get(group) {
            absent.insert(entry.peer, format!("not installed: {reason}"));
        }
    }
    absent
}

async fn install(group: &str, cache: &Path) -> Result<(), String> {
    let mut command = tokio::process::Command::new(INSTALLER);
    command.arg(group).arg(cache).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = tokio::time::timeout(INSTALL_LIMIT, command.output()).await;
    let output = output.map_err(|_| format!("it took more than {} s", INSTALL_LIMIT.as_secs()))?;
    let output = output.map_err(|error| format!("run {INSTALLER}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let telling = text.lines().find(|line| line.to_lowercase().contains("error")).or_else(|| text.lines().last());
    Err(telling.unwrap_or("the installer failed").trim().to_owned())
}

async fn postgres(server: &OwnServer) -> Result<String, String> {
    let mut connection = work::connect(server.url()).await?;
    let version = sqlx::query_scalar("show server_version").fetch_one(&mut connection).await;
    version.map_err(|error| format!("ask for the version of PostgreSQL: {error}"))
}

/// Takes every measure, and saves each sample at once.
struct Taker<'a> {
    bench: Bench<'a>,
    results: Results,
    options: &'a Options,
    absent: BTreeMap<usize, String>,
}

impl Taker<'_> {
    /// Puts a little work through each peer that does not count. One that cannot do it is not tried again.
    async fn warm_up(&mut self, entries: &[Entry]) {
        let bench = Bench { limit: WARM_UP_LIMIT, ..self.bench };
        for entry in entries {
            if self.absent.contains_key(&entry.peer) {
                continue;
            }
            let name = PEERS[entry.peer].name;
            match work::drain(&bench, *entry, WARM_UP_JOBS).await {
                Ok(_) => eprintln!("{name} ({}): warm", entry.setting()),
                Err(reason) => {
                    eprintln!("{name} ({}): {reason}", entry.setting());
                    self.absent.insert(entry.peer, reason);
                }
            }
        }
    }

    async fn take(&mut self, task: &Task, measure: &Measure, entries: &[Entry]) -> Result<(), String> {
        for round in 1..=self.options.rounds {
            // In another order each time: the first one finds a server that was just busy with something else.
            let mut turn = entries.to_vec();
            turn.rotate_left((round as usize - 1) * 3 % entries.len().max(1));
            turn.retain(|entry| !self.results.has(PEERS[entry.peer].name, entry.setting(), &measure.name, round));
            match task {
                Task::Idle => return self.idle(measure, &turn).await,
                Task::Drain(_) | Task::Timed(..) => {
                    for entry in turn {
                        self.one(task, measure, entry, round).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn one(&mut self, task: &Task, measure: &Measure, entry: Entry, round: u32) -> Result<(), String> {
        let (load, before) = (machine::load(), Ticks::now());
        let outcome = match (self.absent.get(&entry.peer), task) {
            (Some(reason), _) => Err(reason.clone()),
            (None, Task::Drain(jobs)) => work::drain(&self.bench, entry, *jobs).await,
            (None, Task::Timed(jobs, spread)) => work::timed(&self.bench, entry, *jobs, *spread).await,
            (None, Task::Idle) => return Ok(()),
        };
        let steal = Ticks::now().steal_since(before);
        self.add(measure, entry, round, (load, steal), outcome)
    }

    /// All at once, so the first round is the only one.
    async fn idle(&mut self, measure: &Measure, entries: &[Entry]) -> Result<(), String> {
        let (load, before) = (machine::load(), Ticks::now());
        let (present, absent): (Vec<Entry>, Vec<Entry>) =
            entries.iter().partition(|entry| !self.absent.contains_key(&entry.peer));
        let outcomes = if present.is_empty() { Vec::new() } else { idle::measure(&self.bench, &present).await? };
        let steal = Ticks::now().steal_since(before);
        for (entry, outcome) in present.into_iter().zip(outcomes) {
            self.add(measure, entry, 1, (load, steal), outcome)?;
        }
        for entry in absent {
            let reason = self.absent.get(&entry.peer).cloned().unwrap_or_default();
            self.add(measure, entry, 1, (load, steal), Err(reason))?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        measure: &Measure,
        entry: Entry,
        round: u32,
        (load, steal): (f64, f64),
        outcome: Result<Measured, String>,
    ) -> Result<(), String> {
        let peer = PEERS[entry.peer].name;
        let version = outcome.as_ref().map_or_else(|_| "unknown".to_owned(), |measured| measured.version.clone());
        let outcome = outcome.map(|measured| measured.figures);
        eprintln!("{peer} ({}), {}, round {round}: {}", entry.setting(), measure.name, outcome_text(measure, &outcome));
        self.results.add(Sample {
            peer: peer.to_owned(),
            setting: entry.setting().to_owned(),
            measure: measure.name.clone(),
            round,
            version,
            at: work::now(),
            load,
            steal,
            outcome,
        });
        self.results.save(&self.options.json)
    }
}

fn outcome_text(measure: &Measure, outcome: &Result<work::Figures, String>) -> String {
    let (figure, unit) = measure.figures[0];
    match outcome {
        Ok(figures) => format!("{} {unit}", tables::short(figures.get(figure).copied().unwrap_or(0.0))),
        Err(reason) => format!("failed: {reason}"),
    }
}
