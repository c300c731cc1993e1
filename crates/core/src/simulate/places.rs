//! The places of a simulation, and the runs that wait for one: all instances together have some, and a target may have fewer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Scenario, SimulatedJob};
use crate::ids::RunId;

/// Runs that may start, in the order in which production starts them.
type Ready = BTreeSet<(Reverse<i32>, Timestamp, RunId, usize)>;

/// The runs of a target with a limit, or of all targets without one.
struct Lane {
    places: u32,
    running: u32,
    ready: Ready,
}

pub(super) struct Places {
    /// How many there are of all instances together.
    all: u32,
    running: u32,
    pub(super) peak: u32,
    pub(super) peak_at: Option<Timestamp>,
    lanes: Vec<Lane>,
    /// The lane of each job.
    lane_of: Vec<usize>,
}

impl Places {
    pub(super) fn new(jobs: &[SimulatedJob], scenario: &Scenario) -> Places {
        let lane = |places| Lane { places, running: 0, ready: Ready::new() };
        let mut lanes = vec![lane(scenario.places)];
        let mut of_target = BTreeMap::new();
        for (target, places) in &scenario.target_places {
            of_target.insert(target, lanes.len());
            lanes.push(lane(*places));
        }
        let lane_of = jobs.iter().map(|job| of_target.get(&job.definition.target).copied().unwrap_or(0));
        Places { all: scenario.places, running: 0, peak: 0, peak_at: None, lane_of: lane_of.collect(), lanes }
    }

    fn lane(&mut self, job: usize) -> &mut Lane {
        &mut self.lanes[self.lane_of[job]]
    }

    /// Lets a run of a job wait for a place.
    pub(super) fn offer(&mut self, job: usize, priority: i32, available_at: Timestamp, run: RunId) {
        self.lane(job).ready.insert((Reverse(priority), available_at, run, job));
    }

    /// A run of a job waits no longer.
    pub(super) fn withdraw(&mut self, job: usize, run: RunId) {
        self.lane(job).ready.retain(|(_, _, ready, _)| *ready != run);
    }

    /// No run of a job waits any longer.
    pub(super) fn withdraw_all(&mut self, job: usize) {
        self.lane(job).ready.retain(|(_, _, _, owner)| *owner != job);
    }

    /// Takes the first run whose target has a place, if any place is free.
    pub(super) fn take_next(&mut self) -> Option<(RunId, usize)> {
        let free = self.lanes.iter().enumerate().filter(|(_, lane)| lane.running < lane.places);
        let first = free.filter_map(|(index, lane)| Some((lane.ready.first()?, index))).min();
        let lane = first.filter(|_| self.running < self.all).map(|(_, lane)| lane)?;
        self.lanes[lane].ready.pop_first().map(|(_, _, run, job)| (run, job))
    }

    /// A run of a job takes a place.
    pub(super) fn enter(&mut self, job: usize, now: Timestamp) {
        self.lane(job).running += 1;
        self.running += 1;
        if self.running > self.peak {
            (self.peak, self.peak_at) = (self.running, Some(now));
        }
    }

    /// A run of a job gives its place back.
    pub(super) fn leave(&mut self, job: usize) {
        self.lane(job).running -= 1;
        self.running -= 1;
    }

    /// Every instance is gone, and every run at work with it.
    pub(super) fn clear(&mut self) {
        self.running = 0;
        self.lanes.iter_mut().for_each(|lane| lane.running = 0);
    }
}
