//! A steady load for a long time: memory, descriptors, threads and files must stay flat.
#![allow(clippy::cast_precision_loss, reason = "counts and sizes are far below 2^52")]

use std::fs;
use std::path::Path;

use crate::chaos::database::Engine;
use crate::chaos::{Cluster, Options, Outcome, Plan, instant, pause_s};
use crate::usage::Usage;
use serde_json::json;

const SAMPLE_S: f64 = 10.0;
/// Growth of memory in the second half, for an hour, that still counts as flat.
const FLAT_MB_PER_HOUR: f64 = 12.0;

/// Options of the command line.
struct Soak {
    minutes: f64,
    rate: usize,
    options: Options,
}

impl Soak {
    fn read(arguments: &[&str]) -> Result<Soak, String> {
        let mut soak = Soak { minutes: 60.0, rate: 200, options: Options::default() };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name}: a value is missing; see --help"))?;
            let bad = |allowed: &str| format!("{name}: `{value}` is not allowed; use {allowed}");
            match *name {
                "--minutes" => soak.minutes = value.parse().map_err(|_| bad("a number of minutes"))?,
                "--rate" => soak.rate = value.parse().map_err(|_| bad("a number of runs a second"))?,
                "--binary" => soak.options.binary = Some(value.into()),
                "--database" => {
                    soak.options.database = Engine::read(value).ok_or_else(|| bad("postgres or sqlite"))?;
                }
                _ => return Err(format!("unknown option `{name}`; see --help")),
            }
        }
        Ok(soak)
    }
}

/// Runs a soak and prints a line every 10 seconds. Whether everything stayed flat.
pub fn run(arguments: &[&str]) -> Result<bool, String> {
    let soak = Soak::read(arguments)?;
    watch(&soak).map_err(|error| error.to_string())
}

fn watch(soak: &Soak) -> Outcome<bool> {
    let config = "[log]\nlevel = \"warn\"\n".to_owned();
    let plan = Plan { config, ..Plan::new(1) };
    let mut cluster = Cluster::start(&soak.options, &plan)?;
    cluster.readiness.stop();
    let policies = json!({ "overlap": "allow", "catchUp": "none" });
    cluster.jobs("tick", soak.rate, "print", "* * * * * *", &policies)?;
    let pid = cluster.nodes[0].running()?.pid();
    let (begun, mut samples) = (instant(), Vec::new());
    println!("minute  memory MB  anonymous MB  descriptors  threads  database MB");
    while begun.elapsed().as_secs_f64() < 60.0 * soak.minutes {
        pause_s(SAMPLE_S);
        let (usage, minute) = (Usage::read(pid)?, begun.elapsed().as_secs_f64() / 60.0);
        let Usage { rss_mb, anonymous_mb, descriptors, threads } = usage;
        let size = size_mb(cluster.folder());
        println!("{minute:6.1} {rss_mb:10.1} {anonymous_mb:13.1} {descriptors:12} {threads:8} {size:12.1}");
        samples.push((minute, usage));
    }
    Ok(judge(&samples))
}

/// Of the files of SQLite.
fn size_mb(folder: &Path) -> f64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes =
        files.filter(|file| file.file_name().to_string_lossy().contains(".db")).filter_map(|file| file.metadata().ok());
    sizes.map(|metadata| metadata.len() as f64).sum::<f64>() / 1e6
}

fn judge(samples: &[(f64, Usage)]) -> bool {
    let half = &samples[samples.len() / 2..];
    let slope = |value: &dyn Fn(&Usage) -> f64| {
        let points: Vec<(f64, f64)> = half.iter().map(|(minute, usage)| (minute / 60.0, value(usage))).collect();
        slope(&points)
    };
    let memory = slope(&|usage| usage.anonymous_mb);
    let (descriptors, threads) = (slope(&|usage| usage.descriptors as f64), slope(&|usage| usage.threads as f64));
    let flat = memory < FLAT_MB_PER_HOUR && descriptors < 20.0 && threads < 20.0;
    println!(
        "\n{}: memory {memory:+.1} MB, descriptors {descriptors:+.1}, threads {threads:+.1} an hour, in the second half",
        if flat { "flat" } else { "NOT FLAT" }
    );
    flat
}

/// By least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
    let above: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let below: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if below == 0.0 { 0.0 } else { above / below }
}
