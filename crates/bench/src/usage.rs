//! The resources of a process.

use std::{fs, io};

/// The resources that a process uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) rss_mb: f64,
    pub(crate) anonymous_mb: f64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

impl Usage {
    pub(crate) fn read(pid: u32) -> io::Result<Usage> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0)
        };
        Ok(Usage {
            rss_mb: field("VmRSS:") / 1e3,
            anonymous_mb: field("RssAnon:") / 1e3,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
            threads: field("Threads:") as usize,
        })
    }
}
