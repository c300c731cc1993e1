//! Everything that was measured, in a file that a later run goes on with.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::report::median;
use super::work::Figures;

/// One piece of work of one peer in one round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) peer: String,
    pub(super) setting: String,
    /// Such as `drain of 10,000`.
    pub(super) measure: String,
    pub(super) round: u32,
    pub(super) version: String,
    /// When it was measured.
    pub(super) at: String,
    /// The load average of the last minute before it.
    pub(super) load: f64,
    /// The share of time that the hypervisor took meanwhile, in percent.
    pub(super) steal: f64,
    /// The figures, or why there are none.
    pub(super) outcome: Result<Figures, String>,
}

/// All samples, with the machine that they are from.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) machine: Value,
    pub(super) samples: Vec<Sample>,
}

/// Samples of one figure, summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Results {
    /// Reads the file of an earlier run; without one there is nothing yet.
    pub(super) fn load(file: &Path) -> Result<Results, String> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Results::default()),
            Err(error) => return Err(format!("read {}: {error}", file.display())),
        };
        Results::parse(&text).map_err(|reason| format!("{}: {reason}", file.display()))
    }

    /// Writes the file whole, so that a run that is stopped leaves the one before.
    pub(super) fn save(&self, file: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(&self.to_json()).map_err(|error| error.to_string())?;
        let draft = file.with_extension("part");
        let written = std::fs::write(&draft, text + "\n").and_then(|()| std::fs::rename(&draft, file));
        written.map_err(|error| format!("write {}: {error}", file.display()))
    }

    /// Returns whether this piece of work was measured. One that failed is tried again.
    pub(super) fn has(&self, peer: &str, setting: &str, measure: &str, round: u32) -> bool {
        self.samples(peer, setting, measure).any(|sample| sample.round == round && sample.outcome.is_ok())
    }

    /// Adds a sample, in the place of one of the same piece of work.
    pub(super) fn add(&mut self, sample: Sample) {
        let key = |of: &Sample| (of.peer.clone(), of.setting.clone(), of.measure.clone(), of.round);
        let added = key(&sample);
        self.samples.retain(|old| key(old) != added);
        self.samples.push(sample);
    }

    /// Returns the samples of all rounds.
    pub(super) fn samples(&self, peer: &str, setting: &str, measure: &str) -> impl Iterator<Item = &Sample> {
        let is_it = move |sample: &&Sample| {
            (&*sample.peer, &*sample.setting, &*sample.measure) == (&*peer, &*setting, &*measure)
        };
        self.samples.iter().filter(is_it)
    }

    fn parse(text: &str) -> Result<Results, String> {
        let mut said: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let samples = said["samples"].as_array().ok_or("`samples` is not a list")?;
        let samples = samples.iter().map(Sample::from_json).collect::<Result<_, _>>()?;
        Ok(Results { samples, machine: said["machine"].take() })
    }

    fn to_json(&self) -> Value {
        json!({"machine": self.machine, "samples": self.samples.iter().map(Sample::to_json).collect::<Vec<_>>()})
    }
}

impl Sample {
    /// Returns a figure, if it was measured.
    pub(super) fn figure(&self, name: &str) -> Option<f64> {
        self.outcome.as_ref().ok()?.get(name).copied()
    }

    fn to_json(&self) -> Value {
        let mut said = json!({
            "peer": self.peer, "setting": self.setting, "measure": self.measure, "round": self.round,
            "version": self.version, "at": self.at, "load": self.load, "steal_percent": self.steal,
        });
        match &self.outcome {
            Ok(figures) => {
                let figures: Map<_, _> = figures.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                said["figures"] = figures.into();
            }
            Err(reason) => said["failure"] = json!(reason),
        }
        said
    }

    fn from_json(said: &Value) -> Result<Sample, String> {
        let text = |name: &str| said[name].as_str().map(str::to_owned).ok_or(format!("a sample has no `{name}`"));
        let number = |name: &str| said[name].as_f64().ok_or(format!("a sample has no `{name}`"));
        let outcome = match said["figures"].as_object() {
            Some(figures) => Ok(figures.iter().filter_map(|(k, v)| Some((k.clone(), v.as_f64()?))).collect()),
            None => Err(text("failure")?),
        };
        Ok(Sample {
            peer: text("peer")?,
            setting: text("setting")?,
            measure: text("measure")?,
            round: number("round")? as u32,
            version: text("version")?,
            at: text("at")?,
            load: number("load")?,
            steal: number("steal_percent")?,
            outcome,
        })
    }
}

/// Sums up one figure of some samples; `None` if none of them has it.
pub(super) fn summary<'a>(samples: impl Iterator<Item = &'a Sample>, figure: &str) -> Option<Summary> {
    let values: Vec<f64> = samples.filter_map(|sample| sample.figure(figure)).collect();
    let bound = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
    Some(Summary { median: median(&values)?, least: bound(f64::min)?, most: bound(f64::max)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(round: u32, outcome: Result<f64, &str>) -> Sample {
        Sample {
            peer: "everbell".to_owned(),
            setting: "best".to_owned(),
            measure: "herd".to_owned(),
            round,
            version: "1".to_owned(),
            at: "2026-11-18T12:00:00Z".to_owned(),
            load: 0.5,
            steal: 1.5,
            outcome: outcome.map(|p99| Figures::from([("p99_ms".to_owned(), p99)])).map_err(str::to_owned),
        }
    }

    #[test]
    fn results_survive_the_file() {
        let folder = std::env::temp_dir().join(format!("everbell-bench-results-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("results.json");
        assert!(Results::load(&file).unwrap().samples.is_empty());
        let written = Results { machine: json!({"cores": 2}), samples: vec![sample(1, Ok(3.5)), sample(2, Err("no"))] };
        written.save(&file).unwrap();
        let read = Results::load(&file).unwrap();
        assert_eq!((read.samples, read.machine), (written.samples, written.machine));
        std::fs::write(&file, "{}").unwrap();
        assert!(Results::load(&file).unwrap_err().ends_with("results.json: `samples` is not a list"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_failed_is_measured_again_and_replaced() {
        let mut results = Results::default();
        results.add(sample(1, Err("no")));
        assert!(!results.has("everbell", "best", "herd", 1));
        results.add(sample(1, Ok(2.0)));
        assert!(results.has("everbell", "best", "herd", 1) && !results.has("everbell", "best", "herd", 2));
        assert_eq!(results.samples.len(), 1);
    }

    #[test]
    fn a_summary_leaves_out_what_failed() {
        let samples = [sample(1, Ok(4.0)), sample(2, Err("no")), sample(3, Ok(1.0)), sample(4, Ok(2.0))];
        let expected = Summary { median: 2.0, least: 1.0, most: 4.0 };
        assert_eq!(summary(samples.iter(), "p99_ms"), Some(expected));
        assert_eq!(summary(samples.iter(), "p50_ms"), None);
    }
}
