//! What is done for every org of a job, a few orgs at a time.

use axum::http::StatusCode;
use uuid::Uuid;

use super::actions::REASON;
use crate::form::{Field, optional};
use crate::http::call::{Answer, Call, shown};
use crate::http::model::{SweepBegunDocument, SweepDocument};
use crate::http::problem::{Kind, Problem};

pub(crate) const WHY: &[Field] = &[optional("reason", REASON, "Why, for the audit trail.")];

/// Makes the timers of a job anew.
pub(crate) async fn rebuild(call: Call) -> Result<Answer, Problem> {
    let orgs = call.orgs_because(call.body(WHY).text("reason"));
    let begun = orgs.rebuild(call.job()?).await?;
    Answer::json(StatusCode::ACCEPTED, &SweepBegunDocument::from(&begun))
}

/// Ends what makes runs before every org had its turn.
pub(crate) async fn stop(call: Call) -> Result<Answer, Problem> {
    let name = call.part("sweepId");
    let missing = || Problem::new(Kind::NotFound, format!("There is no sweep `{}`.", shown(name)));
    let id = Uuid::try_parse(name).map_err(|_| missing())?;
    let orgs = call.orgs_because(call.body(WHY).text("reason"));
    let stopped = orgs.stop_sweep(call.job()?, id).await?;
    Answer::ok(&SweepDocument::from(&stopped))
}
