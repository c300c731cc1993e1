//! Options of `everbell-bench peers`.

use std::path::PathBuf;
use std::time::Duration;

use super::catalog::PEERS;

const MEASURES: [&str; 4] = ["drain", "lag", "herd", "idle"];

/// One peer with one of its settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// An index of [`PEERS`].
    pub(super) peer: usize,
    pub(super) best: bool,
}

impl Entry {
    pub(super) fn setting(self) -> &'static str {
        if self.best { "best" } else { "default" }
    }
}

/// The choice of what to measure, and of where to put it.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) rounds: u32,
    pub(super) sizes: Vec<u32>,
    pub(super) lag_spread: Duration,
    /// How long one drain may take, and how long a job may be late.
    pub(super) limit: Duration,
    pub(super) asynchronous: bool,
    pub(super) cache: PathBuf,
    pub(super) json: PathBuf,
    pub(super) svg: Option<PathBuf>,
    /// Measures everything again, also what the file of results has already.
    pub(super) again: bool,
    only: Vec<String>,
    measures: Vec<String>,
    settings: Vec<bool>,
}

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut json = None;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value =
                || rest.next().map(|text| (*text).to_owned()).ok_or_else(|| format!("{argument} needs a value"));
            match *argument {
                "--only" => options.only = listed(argument, &value()?, &PEERS.map(|peer| peer.name))?,
                "--measure" => options.measures = listed(argument, &value()?, &MEASURES)?,
                "--setting" => {
                    let named = listed(argument, &value()?, &["default", "best"])?;
                    options.settings = named.iter().map(|name| name == "best").collect();
                }
                "--rounds" => options.rounds = number(argument, &value()?, 1..=99)?,
                "--jobs" => {
                    let text = value()?;
                    options.sizes =
                        text.split(',').map(|n| number(argument, n, 1..=1_000_000)).collect::<Result<_, _>>()?;
                }
                "--lag-seconds" => options.lag_spread = seconds(argument, &value()?)?,
                "--limit" => options.limit = seconds(argument, &value()?)?,
                "--cache" => options.cache = value()?.into(),
                "--json" => json = Some(PathBuf::from(value()?)),
                "--svg" => options.svg = Some(value()?.into()),
                "--again" => options.again = true,
                "--synchronous-commit-off" => options.asynchronous = true,
                other => return Err(format!("`{other}` is not an option of peers; see --help")),
            }
        }
        options.json = json.unwrap_or_else(|| options.cache.join("results.json"));
        Ok(options)
    }

    pub(super) fn wants(&self, measure: &str) -> bool {
        self.measures.is_empty() || self.measures.iter().any(|wanted| wanted == measure)
    }

    /// Returns the peers that are wanted, each with its settings.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let wanted = |peer: &usize| self.only.is_empty() || self.only.iter().any(|name| name == PEERS[*peer].name);
        let peers = (0..PEERS.len()).filter(wanted);
        peers.flat_map(|peer| self.settings.iter().map(move |best| Entry { peer, best: *best })).collect()
    }
}

impl Default for Options {
    fn default() -> Options {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        Options {
            rounds: 3,
            sizes: vec![10_000, 100_000],
            lag_spread: Duration::from_secs(30),
            limit: Duration::from_mins(1),
            asynchronous: false,
            cache: target.join("peers"),
            json: PathBuf::new(),
            svg: None,
            again: false,
            only: Vec::new(),
            measures: Vec::new(),
            settings: vec![false, true],
        }
    }
}

fn listed(option: &str, text: &str, known: &[&str]) -> Result<Vec<String>, String> {
    let one = |name: &str| {
        let is_known = known.contains(&name);
        is_known.then(|| name.to_owned()).ok_or_else(|| format!("{option}: `{name}` is none of {}", known.join(", ")))
    };
    text.split(',').map(one).collect()
}

fn number(option: &str, text: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let wrong = || format!("{option}: `{text}` is not a number from {} to {}", range.start(), range.end());
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
}

fn seconds(option: &str, text: &str) -> Result<Duration, String> {
    number(option, text, 1..=600).map(|seconds| Duration::from_secs(u64::from(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_peers_settings_and_measures() {
        let options = Options::parse(&["--only", "awa,everbell", "--setting", "best", "--measure", "herd"]).unwrap();
        let names: Vec<_> = options.entries().iter().map(|entry| PEERS[entry.peer].name).collect();
        assert_eq!(names, ["everbell", "awa"]);
        assert!(options.entries().iter().all(|entry| entry.best));
        assert!(options.wants("herd") && !options.wants("drain"));
        assert_eq!(Options::parse(&[]).unwrap().entries().len(), 2 * PEERS.len());
    }

    #[test]
    fn a_wrong_option_says_what_is_allowed() {
        for (arguments, reason) in [
            (vec!["--only", "cron"], "--only: `cron` is none of everbell, graphile-worker"),
            (vec!["--rounds", "0"], "--rounds: `0` is not a number from 1 to 99"),
            (vec!["--jobs", "10,x"], "--jobs: `x` is not a number from 1 to 1000000"),
            (vec!["--limit"], "--limit needs a value"),
            (vec!["--fast"], "`--fast` is not an option of peers"),
        ] {
            let said = Options::parse(&arguments).unwrap_err();
            assert!(said.starts_with(reason), "{said}");
        }
    }
}
