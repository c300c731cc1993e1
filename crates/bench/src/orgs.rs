//! One job for very many orgs: what it costs to make their timers, and to fire those that are due.
//!
//! All orgs but some are spread over the zones of the world; ten thousand are in Nepal, which has an offset of its own, so
//! they are due in the same second and nobody else is. Beside them stand as many jobs with one timer each.
#![allow(clippy::cast_precision_loss, reason = "counts of orgs are far below 2^52")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use everbell_core::org::{MAX_ORGS_AT_ONCE, OrgWrite};
use everbell_core::store::{AuditEntry, Due, PlanDue, Store, StoreResult};
use everbell_core::{
    Definition, JobId, JobKey, Json, OrgId, Overlap, Policies, PolicyValues, Scope, Spec, Target, Zone, change,
};
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::{Durability, TestDatabase, postgres_url_with};
use jiff::Timestamp;
use uuid::Uuid;

use crate::measure::Stopwatch;
use crate::population::{self, Database};
use crate::table::{Table, thousands};

/// How many are due in the same second.
const DUE: u32 = 10_000;
/// How many timers are claimed at once, as an instance does.
const BATCH: u32 = 500;
/// How many orgs the reconciler looks at in one transaction.
const STEP: u32 = 500;
/// The zone of the orgs that are due together: 09:00 there is 03:15 in UTC, and nowhere else.
const TOGETHER: &str = "Asia/Kathmandu";
const TOGETHER_AT: &str = "2026-11-16T03:15:00Z";
/// After it is nine o'clock elsewhere.
const CREATED_AT: &str = "2026-11-16T03:00:00Z";
/// When the other timers fire.
const OTHERS_FIRST: &str = "2026-11-16T03:05:00Z";
const OTHERS_AGAIN: &str = "2026-11-16T03:10:00Z";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Measures and prints what is wanted.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (mut sizes, mut postgres, mut sqlite) = (vec![20_000, 100_000, 1_000_000], true, true);
    for argument in arguments {
        match *argument {
            "--quick" => sizes = vec![20_000, 50_000],
            "--postgres" => sqlite = false,
            "--sqlite" => postgres = false,
            other => return Err(format!("`{other}` is not known; known are --quick, --postgres and --sqlite")),
        }
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure(&sizes, postgres, sqlite)).map_err(|error| error.to_string())
}

async fn measure(sizes: &[u32], postgres: bool, sqlite: bool) -> Outcome<()> {
    let heading = [
        "store",
        "orgs",
        "orgs written/s",
        "timers made/s",
        "a move, ms",
        "due timers/s",
        "others/s",
        "ratio",
        "peak MB",
    ];
    let mut table = Table::new(1, &heading);
    for orgs in sizes {
        if postgres {
            let database = TestDatabase::empty_on(&postgres_url_with(Durability::Durable)).await;
            let store = PostgresStore::connect(database.url()).await?;
            table.row(one("PostgreSQL", Arc::new(store), Database::Postgres(database.url()), *orgs).await?);
        }
        if sqlite {
            let folder = std::env::temp_dir().join(format!("everbell-bench-orgs-{}-{orgs}", std::process::id()));
            let path = folder.join("bench.db");
            let store = SqliteStore::open(&path).await?;
            table.row(one("SQLite", Arc::new(store), Database::Sqlite(&path), *orgs).await?);
            std::fs::remove_dir_all(&folder)?;
        }
    }
    table.print("One job for many orgs; ten thousand of them are due in the same second");
    println!("\n`a move`: one org is written with another zone, and its timer follows.");
    println!("`ratio`: due timers of orgs to as many timers of other jobs, in the same database.");
    println!("`peak MB`: the most memory that this process had so far.");
    Ok(())
}

async fn one(name: &str, store: Arc<dyn Store>, place: Database<'_>, orgs: u32) -> Outcome<Vec<String>> {
    let created_at: Timestamp = CREATED_AT.parse()?;
    let begun = Stopwatch::start();
    write(&*store, orgs, created_at).await?;
    let written = rate(orgs, &begun);
    let briefing = job("briefing", "brief", "0 9 * * *", Scope::PerOrg, created_at)?;
    store.create_job(&change::create(briefing), &audit(created_at)).await?;
    let begun = Stopwatch::start();
    while store.reconcile_orgs(created_at, STEP).await?.more {}
    let made = rate(orgs, &begun);

    let begun = Stopwatch::start();
    let mover = OrgWrite { timezone: Some("Europe/Lisbon".to_owned()), ..OrgWrite::new(org_id(orgs - 1)?) };
    store.write_orgs(&[mover], &audit(created_at)).await?;
    while store.reconcile_orgs(created_at, STEP).await?.more {}
    let followed = begun.seconds();

    let others = job("template", "noop", "5,10 3 * * *", Scope::Global, created_at)?;
    store.create_job(&change::create(others), &audit(created_at)).await?;
    population::copies(place, DUE, OTHERS_FIRST.parse()?).await?;
    // The first time, definitions are read; that is once in the life of an instance.
    drain(&*store, OTHERS_FIRST.parse()?).await?;
    let begun = Stopwatch::start();
    let other = rate(drain(&*store, OTHERS_AGAIN.parse()?).await?, &begun);
    let begun = Stopwatch::start();
    let fired = drain(&*store, TOGETHER_AT.parse()?).await?;
    let due = rate(fired, &begun);
    if fired != DUE {
        return Err(format!("{fired} orgs fired together, not {DUE}").into());
    }
    let whole = |number: f64| thousands(number as u64);
    Ok(vec![
        name.to_owned(),
        thousands(u64::from(orgs)),
        whole(written),
        whole(made),
        format!("{:.1}", followed * 1_000.0),
        whole(due),
        whole(other),
        format!("{:.2}", due / other),
        thousands(peak_megabytes()),
    ])
}

fn rate(count: u32, begun: &Stopwatch) -> f64 {
    f64::from(count) / begun.seconds()
}

async fn write(store: &dyn Store, orgs: u32, now: Timestamp) -> Outcome<()> {
    let own = Zone::get(TOGETHER)?;
    let offset = |zone: &Zone| zone.as_jiff().to_offset(now).seconds();
    let zones: Vec<Zone> = Zone::names().filter_map(|name| Zone::get(name).ok()).collect();
    let zones: Vec<Zone> = zones.into_iter().filter(|zone| offset(zone) != offset(&own)).collect();
    let many = MAX_ORGS_AT_ONCE as u32;
    for first in (0..orgs).step_by(MAX_ORGS_AT_ONCE) {
        let of = |number: u32| -> Outcome<OrgWrite> {
            let zone = if number < DUE { &own } else { &zones[number as usize % zones.len()] };
            let settings = Some(Json::parse("settings", r#"{"plan":"gold"}"#)?);
            let name = Some(format!("Organisation number {number}"));
            Ok(OrgWrite { timezone: Some(zone.name().to_owned()), name, settings, ..OrgWrite::new(org_id(number)?) })
        };
        let writes: Vec<OrgWrite> = (first..orgs.min(first + many)).map(of).collect::<Outcome<_>>()?;
        store.write_orgs(&writes, &audit(now)).await?;
    }
    Ok(())
}

/// In an order of ids that has nothing to do with that of zones.
fn org_id(number: u32) -> Outcome<OrgId> {
    Ok(OrgId::new(&format!("org-{:08x}", number.wrapping_mul(2_654_435_761)))?)
}

/// Plans everything that is due, as an instance that serves all targets; how many runs that makes.
async fn drain(store: &dyn Store, now: Timestamp) -> StoreResult<u32> {
    let targets = [Target::new("brief")?, Target::new("noop")?];
    let decide = |due: &Due, now: Timestamp| due.plan(now);
    let mut total = 0;
    loop {
        let planned = store.plan_due(&PlanDue::new(now, BATCH, &targets), &decide).await?;
        total += planned.runs.len() as u32;
        if planned.timers == 0 {
            return Ok(total);
        }
    }
}

fn job(key: &str, target: &str, expression: &str, scope: Scope, created_at: Timestamp) -> Outcome<Definition> {
    // The runs are not executed here, so earlier ones must not block later ones.
    let policies = PolicyValues { overlap: Overlap::Allow, ..PolicyValues::default() };
    Ok(everbell_core::with!(Definition {
        payload: Json::parse("payload", r#"{"message":"good morning"}"#)?,
        policies: Policies::new(policies).map_err(|problems| format!("{problems:?}"))?,
        scope,
        created_by: "bench".to_owned(),
        ..Definition::new(
            JobId::new(created_at, [target.len() as u8; 10]),
            JobKey::new(key)?,
            Target::new(target)?,
            Ok(Spec::recurring(expression.parse()?, Zone::utc(), created_at)),
            created_at
        )
    }))
}

fn audit(at: Timestamp) -> AuditEntry {
    static NUMBER: AtomicU64 = AtomicU64::new(1_000);
    AuditEntry {
        id: Uuid::from_u128(u128::from(NUMBER.fetch_add(1, Ordering::Relaxed))),
        at,
        actor: "bench".to_owned(),
        action: "org.import".to_owned(),
        object: "orgs".to_owned(),
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: everbell_core::store::Origin::default(),
    }
}

/// The most memory that this process ever had.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1_024
}
