//! The machine: what it is, and what else it was doing.

use serde_json::{Value, json};

/// Time of all processors, in ticks since the start of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    steal: u64,
}

impl Ticks {
    pub(super) fn now() -> Ticks {
        Ticks::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; what follows is
    /// part of user and nice.
    fn parse(text: &str) -> Ticks {
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|tick| tick.parse().ok()).collect();
        Ticks { all: ticks.iter().sum(), steal: ticks.get(7).copied().unwrap_or(0) }
    }

    /// Returns the share of time, in percent, that the hypervisor took from this machine since then.
    pub(super) fn steal_since(self, before: Ticks) -> f64 {
        let (all, steal) = (self.all.saturating_sub(before.all), self.steal.saturating_sub(before.steal));
        if all == 0 { 0.0 } else { 100.0 * steal as f64 / all as f64 }
    }
}

/// Returns the load average of the last minute.
pub(super) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// Describes the hardware and the database server.
pub(super) fn describe(postgres: &str) -> Value {
    let line = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        found.trim_start_matches([' ', '\t', ':']).trim().to_owned()
    };
    let memory: u64 = line("/proc/meminfo", "MemTotal").split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    json!({
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "processor": line("/proc/cpuinfo", "model name"),
        "memory_gib": (memory as f64 / 1024.0 / 1024.0).round(),
        "kernel": std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "postgres": postgres,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_ticks_between_two_looks() {
        let before = Ticks::parse("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 2 3\n");
        let now = Ticks::parse("cpu  150 0 50 830 10 0 0 60 9 0\n");
        assert_eq!(before, Ticks { all: 1_000, steal: 40 });
        assert_eq!(now.steal_since(before).to_bits(), 20f64.to_bits());
        assert_eq!(before.steal_since(before).to_bits(), 0f64.to_bits());
    }
}
