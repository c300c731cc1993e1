//! Several instances on one database, each behind its own proxy, and the log of their targets.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::clock::{instant, stretch, wait_for};
use super::database::Database;
use super::http::{self, Response};
use super::instance::{Instance, Launch};
use super::proxy::Proxy;
use super::readiness::Readiness;
use super::target_log::{SCRIPT, TargetLog};
use super::{Options, Outcome};

/// How long a request may take before an experiment gives up on it.
pub(crate) const REQUEST_LIMIT: Duration = Duration::from_secs(70);

/// The plan of a cluster.
pub(crate) struct Plan {
    pub(crate) instances: usize,
    /// Seconds that the programs of the target `long` take.
    pub(crate) long_s: f64,
    /// Lines of the `[engine]` table.
    pub(crate) engine: String,
    /// Further lines of the configuration.
    pub(crate) config: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) wrapper: Vec<String>,
    pub(crate) unread_stderr: bool,
}

impl Plan {
    pub(crate) fn new(instances: usize) -> Plan {
        Plan {
            instances,
            long_s: 60.0,
            engine: String::new(),
            config: String::new(),
            environment: Vec::new(),
            wrapper: Vec::new(),
            unread_stderr: false,
        }
    }
}

/// An instance and its proxy. The instance may be absent for a while.
pub(crate) struct Node {
    pub(crate) instance: Option<Instance>,
    proxy: Option<Proxy>,
    pub(crate) launch: Launch,
}

impl Node {
    pub(crate) fn start(&mut self) -> Outcome<()> {
        let instance = self.launch.start()?;
        if let Some(proxy) = &self.proxy {
            proxy.serves(instance.pid());
        }
        self.instance = Some(instance);
        Ok(())
    }

    /// The proxy; an error on SQLite, which has none.
    pub(crate) fn proxy(&self) -> Outcome<&Proxy> {
        self.proxy.as_ref().ok_or_else(|| "this experiment needs PostgreSQL".into())
    }

    pub(crate) fn running(&self) -> Outcome<&Instance> {
        self.instance.as_ref().ok_or_else(|| "the instance does not run".into())
    }
}

/// Everything that an experiment treats badly. It ends with this value.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) log: TargetLog,
    pub(crate) readiness: Readiness,
    pub(crate) database: Database,
    folder: Folder,
}

/// A folder that goes with the experiment.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Outcome<Folder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("everbell-chaos-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::env::var_os("EVERBELL_CHAOS_KEEP").is_none() {
            let _best_effort = fs::remove_dir_all(&self.0);
        }
    }
}

impl Cluster {
    /// On a fresh database; no instance runs yet.
    pub(crate) fn prepare(options: &Options, plan: &Plan) -> Outcome<Cluster> {
        let folder = Folder::new()?;
        let database = Database::create(options.database, folder.path())?;
        Cluster::prepare_on(options, plan, database, folder)
    }

    pub(crate) fn prepare_on(options: &Options, plan: &Plan, database: Database, folder: Folder) -> Outcome<Cluster> {
        let log = TargetLog::new(folder.path());
        let mut nodes = Vec::new();
        for number in 0..plan.instances {
            let home = folder.path().join(format!("instance-{number}"));
            fs::create_dir_all(&home)?;
            fs::write(home.join("everbell.toml"), config(plan, &log))?;
            let proxy = database.socket().map(Proxy::start).transpose()?;
            let url = proxy.as_ref().map_or_else(|| database.url(), |proxy| proxy.url(database.name()));
            let launch = Launch {
                binary: options.binary()?,
                folder: home,
                database: url,
                environment: plan.environment.clone(),
                wrapper: plan.wrapper.clone(),
                unread_stderr: plan.unread_stderr,
            };
            nodes.push(Node { instance: None, proxy, launch });
        }
        Ok(Cluster { nodes, log, readiness: Readiness::default(), database, folder })
    }

    /// On a fresh database, with every instance running.
    pub(crate) fn start(options: &Options, plan: &Plan) -> Outcome<Cluster> {
        let mut cluster = Cluster::prepare(options, plan)?;
        cluster.start_all()?;
        Ok(cluster)
    }

    pub(crate) fn start_all(&mut self) -> Outcome<()> {
        for node in &mut self.nodes {
            node.start()?;
        }
        self.watch_readiness();
        Ok(())
    }

    /// Asks every running instance for its readiness from now on.
    pub(crate) fn watch_readiness(&mut self) {
        let instances = self.nodes.iter().filter_map(|node| node.instance.as_ref());
        self.readiness.watch(instances.map(|instance| (instance.address.clone(), instance.pid())).collect());
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Any instance that runs and is not stopped, for requests.
    pub(crate) fn any(&self) -> Outcome<&Instance> {
        let mut running = self.nodes.iter().rev().filter_map(|node| node.instance.as_ref());
        running.find(|instance| instance.is_alive()).ok_or_else(|| "no instance runs".into())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Outcome<Response> {
        self.any()?.post(&format!("/api/v1{path}"), body, REQUEST_LIMIT)
    }

    pub(crate) fn get(&self, path: &str) -> Outcome<Response> {
        self.any()?.get(&format!("/api/v1{path}"), REQUEST_LIMIT)
    }

    /// Creates jobs `KEY-0`, `KEY-1` … for a target.
    pub(crate) fn jobs(&self, key: &str, count: usize, target: &str, cron: &str, policies: &Value) -> Outcome<()> {
        for number in 0..count {
            self.job(&format!("{key}-{number}"), target, cron, policies)?;
        }
        Ok(())
    }

    pub(crate) fn job(&self, key: &str, target: &str, cron: &str, policies: &Value) -> Outcome<Value> {
        let body = json!({ "jobKey": key, "target": target, "cronExpression": cron, "policies": policies });
        // An instance registers its targets a moment after it listens.
        self.post("/jobs", &body)?.expect(201)
    }

    /// Waits until the targets saw this many more starts, of jobs that fire again and again.
    pub(crate) fn wait_for_starts(&self, more: usize, limit: Duration) -> Outcome<()> {
        self.wait_until_started(self.log.started() + more, limit)
    }

    /// Waits until the targets saw this many starts in all.
    pub(crate) fn wait_until_started(&self, wanted: usize, limit: Duration) -> Outcome<()> {
        let seen = wait_for(limit.mul_f64(stretch()), || (self.log.started() >= wanted).then_some(()));
        seen.ok_or_else(|| format!("only {} of {wanted} starts", self.log.started()).into())
    }

    /// Asks every instance to stop and waits for it. The longest time that one took; those that do not obey are killed, and
    /// count as the limit.
    pub(crate) fn stop_all(&mut self, limit: Duration) -> f64 {
        self.readiness.stop();
        let begun = instant();
        for instance in self.nodes.iter().filter_map(|node| node.instance.as_ref()) {
            instance.signal(Signal::CONT);
            instance.signal(Signal::TERM);
        }
        for node in &mut self.nodes {
            let Some(mut instance) = node.instance.take() else { continue };
            let left = limit.saturating_sub(begun.elapsed());
            if instance.ends_within(left).is_none() {
                instance.kill();
            }
        }
        begun.elapsed().as_secs_f64()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.readiness.stop();
        // The programs end with their servers, which have to be awake for that.
        for instance in self.nodes.iter().filter_map(|node| node.instance.as_ref()) {
            instance.signal(Signal::CONT);
        }
    }
}

fn config(plan: &Plan, log: &TargetLog) -> String {
    let program = |label: &str, seconds: f64| {
        let argv = json!(["bash", "-c", SCRIPT, "target", log.path().display().to_string(), seconds.to_string()]);
        format!("[[target]]\nlabel = \"{label}\"\ntype = \"command\"\nargv = {argv}\nenv = {{ LC_ALL = \"C\" }}\n")
    };
    let targets = [program("quick", 0.0), program("short", 0.4), program("long", plan.long_s)].concat();
    let engine = &plan.engine;
    format!("[engine]\n{engine}\n{}\n[[target]]\nlabel = \"print\"\ntype = \"log\"\n{targets}", plan.config)
}

/// Sends a request to an instance and measures it.
pub(crate) fn ask(instance: &Instance, method: &str, path: &str, body: Option<&Value>) -> Outcome<Response> {
    http::request(&instance.address, method, path, &[], body, REQUEST_LIMIT)
}
