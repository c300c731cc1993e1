//! The whole engine: how fast it drains what is due, how late runs start, and what it costs to do nothing.
#![allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]

mod drain;
mod idle;
mod instances;
mod lag;
mod options;
mod queue;
mod start;

use everbell_store::testing::{Durability, postgres_url_with};

use self::options::Options;
use crate::population::Fresh;

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Measures and prints everything, or the parts that are named; `--quick` leaves out what takes minutes.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = Options::read(arguments)?;
    let server = postgres_url_with(Durability::Durable);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    let measure = async {
        if options.wants("drain") {
            drain::measure(&server, &options).await?;
        }
        if options.wants("instances") && options.postgres {
            instances::measure(&server, &options).await?;
        }
        if options.wants("lag") {
            lag::measure(&server).await?;
        }
        if options.wants("idle") {
            idle::measure(&server).await?;
        }
        if options.wants("start") {
            start::measure(&server, options.quick).await?;
        }
        if options.wants("queue") {
            queue::measure(&server, options.quick).await?;
        }
        Ok(())
    };
    runtime.block_on(measure).map_err(|error: Box<dyn std::error::Error>| error.to_string())
}

/// The databases that the options ask for.
async fn wanted(server: &str, options: &Options) -> impl Iterator<Item = (&'static str, Fresh)> {
    let (postgres, sqlite) = (options.postgres, options.sqlite);
    let is_wanted = move |(_, database): &(_, Fresh)| match database {
        Fresh::Postgres(_) => postgres,
        Fresh::Sqlite(_) => sqlite,
    };
    Fresh::both(server).await.into_iter().filter(is_wanted)
}
