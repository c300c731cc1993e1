//! The engine, step by step: no loop, no clock of the machine, no waiting.

mod absences;
mod backfills;
mod clock_steps;
mod failure_requests;
mod fencing;
mod instance_leases;
mod lab;
mod leases;
mod lost_runs;
mod printing;
mod priorities;
mod repairs;
mod simulation;
mod starts;
mod steps;
