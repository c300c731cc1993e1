//! Options of the command line.

use std::path::PathBuf;
use std::time::Duration;

use super::Outcome;
use super::database::Engine;
use super::experiments::Experiment;

/// How experiments are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database of the experiments that work on both.
    pub(crate) database: Engine,
    /// The `everbell` binary; the one beside this program if absent.
    pub(crate) binary: Option<PathBuf>,
    /// How many instances a cluster has.
    pub(crate) instances: usize,
    /// Short leases and fewer rounds, for tests.
    pub(crate) brief: bool,
    pub(crate) seed: u64,
    minutes: f64,
    experiments: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            database: Engine::Postgres,
            binary: None,
            instances: 3,
            brief: false,
            seed: 1,
            minutes: 0.0,
            experiments: vec!["all".to_owned()],
        }
    }
}

impl Options {
    /// Short leases and few rounds, for tests of this binary.
    pub fn brief(database: Engine, binary: PathBuf) -> Options {
        Options { database, binary: Some(binary), brief: true, ..Options::default() }
    }

    pub(super) fn read(arguments: &[&str]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            if *name == "--brief" {
                options.brief = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name}: a value is missing; see --help"))?;
            let bad = |allowed: &str| format!("{name}: `{value}` is not allowed; use {allowed}");
            match *name {
                "--minutes" => options.minutes = value.parse().map_err(|_| bad("a number of minutes"))?,
                "--database" => options.database = Engine::read(value).ok_or_else(|| bad("postgres or sqlite"))?,
                "--seed" => options.seed = value.parse().map_err(|_| bad("a whole number"))?,
                "--instances" => {
                    let count = value.parse().ok().filter(|count| (2..=20).contains(count));
                    options.instances = count.ok_or_else(|| bad("a number from 2 to 20"))?;
                }
                "--experiment" => options.experiments = value.split(',').map(str::to_owned).collect(),
                "--binary" => options.binary = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown option `{name}`; see --help")),
            }
        }
        Ok(options)
    }

    pub(super) fn lists(&self) -> bool {
        self.experiments == ["list"]
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64(60.0 * self.minutes.clamp(0.0, 1e6))
    }

    /// Whether an experiment was asked for and works on the database.
    pub(super) fn wants(&self, experiment: &Experiment) -> bool {
        let named = self.experiments.iter().any(|name| name == experiment.name);
        let all = self.experiments == ["all"];
        (named || all) && experiment.databases.contains(&self.database)
    }

    /// The binary under test.
    pub(crate) fn binary(&self) -> Outcome<PathBuf> {
        let beside = || Ok::<_, std::io::Error>(std::env::current_exe()?.with_file_name("everbell"));
        let binary = self.binary.clone().map_or_else(beside, Ok)?;
        let found = binary.canonicalize();
        found.map_err(|error| format!("{}: {error}; build it or name it with --binary", binary.display()).into())
    }

    /// The lease of the instances, in seconds.
    pub(crate) fn lease_s(&self) -> f64 {
        if self.brief { 12.0 } else { 30.0 }
    }

    /// The lines of the `[engine]` table.
    pub(crate) fn engine(&self) -> String {
        let lease = self.lease_s();
        let heartbeat = lease / 6.0;
        let brief = if self.brief { "cancel_grace = \"1s\"\nshutdown_grace = \"2s\"\n" } else { "" };
        format!("lease = \"{lease}s\"\nheartbeat = \"{heartbeat}s\"\n{brief}")
    }
}
