//! Schedules a job in a transaction of the program's own pool, beside SeaORM and a queue of apalis on the same database.

use std::error::Error;
use std::time::Duration;

use apalis_postgres::PostgresStorage;
use everbell::{Everbell, Schedule};
use sea_orm::{ConnectionTrait, Database, Statement};
use sqlx::PgPool;

async fn remind() {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let pool = PgPool::connect(&url).await?;
    let orm = Database::connect(&url).await?;
    let backend = orm.get_database_backend();
    orm.execute_raw(Statement::from_string(backend, "create table if not exists orders (id bigint)")).await?;
    // Its tables are in a schema of their own, too, and so is the record of its migrations.
    PostgresStorage::<()>::setup(&pool).await?;

    let bell = Everbell::builder().database(&url).target("remind", remind).build().await?;
    let schedule = Schedule::once("reminder-7", bell.now() + Duration::from_secs(60)).target("remind");

    let mut tx = pool.begin().await?;
    sqlx::query("insert into orders (id) values ($1)").bind(7_i64).execute(&mut *tx).await?;
    bell.jobs().by("web").create_in(&mut tx, &schedule).await?;
    tx.commit().await?;
    Ok(())
}
