//! What is in the rows: the names, texts and times of a site with a few thousand jobs.

use uuid::Uuid;

/// 2027-01-15: everything in the benches happens around it.
pub(super) const EPOCH: i64 = 1_800_000_000_000_000;
pub(super) const SECOND: i64 = 1_000_000;
pub(super) const TARGETS: [&str; 4] = ["http:billing-report", "http:cleanup", "command:backup-db", "send-digest-mail"];
pub(super) const RARE_TARGET: &str = "command:rotate-keys";
pub(super) const TRIGGER: &str = "schedule:*/5 * * * *";
/// A tenth of the runs has a payload of its own; the others take the job's.
pub(super) const PAYLOAD: &str = r#"{"customer":"c-20417","report":"monthly","formats":["pdf","csv"],"dryRun":false}"#;

/// A timer that is due.
pub(super) struct Due {
    pub(super) job: Uuid,
    pub(super) org: String,
    pub(super) at: i64,
    /// Where the row is, for databases that say so.
    pub(super) place: String,
}

/// The n-th job: ids of jobs lie all over an index, as they would after years.
pub(super) fn job(n: u64) -> Uuid {
    Uuid::from_u64_pair(mix(n), mix(n ^ 0xb5ad_4ece_da1c_e2a9))
}

/// Every fourth job belongs to one of 200 orgs.
pub(super) fn org(n: u64) -> String {
    if n.is_multiple_of(4) { format!("org_{:03}", n % 200) } else { String::new() }
}

/// The id of a slot's run: 48 bits of time, then a hash.
pub(super) fn run_id(due: &Due) -> Uuid {
    let tail = mix(due.job.as_u64_pair().0 ^ due.at as u64);
    Uuid::from_u64_pair(((due.at / 1000) as u64) << 16 | 0x8000 | (tail >> 52), tail | 0x8000_0000_0000_0000)
}

pub(super) fn target(job: Uuid) -> &'static str {
    TARGETS[(job.as_u64_pair().1 % 4) as usize]
}

pub(super) fn payload(job: Uuid) -> Option<&'static str> {
    job.as_u64_pair().1.is_multiple_of(10).then_some(PAYLOAD)
}

/// The finalizer of splitmix64.
fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
