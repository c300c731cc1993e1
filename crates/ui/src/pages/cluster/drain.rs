//! Draining an instance: its active runs, and the targets that no other instance serves.

use std::collections::BTreeSet;

use askama::Template;
use axum::http::Method;
use everbell::{PageRequest, RunFilter, RunStatus};
use everbell_core::store::Instance;
use everbell_core::{InstanceId, Target};
use jiff::Timestamp;

use crate::equivalent::Equivalent;
use crate::pages::ReturnTo;
use crate::pages::action::Refusal;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::{Role, expect_role};
use everbell_http::problem::{Kind, Problem};

/// The most runs that are counted.
const MAX_COUNTED_RUNS: u32 = 100;

#[derive(Template)]
#[template(path = "cluster/drain.html")]
struct DrainPage {
    frame: Frame,
    subject: ReturnTo,
    refusal: Refusal,
    host: String,
    pid: u32,
    /// How many runs it works on, as a sentence.
    running: String,
    /// Targets that no other live instance serves.
    only_here: Vec<String>,
    same: Equivalent,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let instances = request.app.bell.instances().await?;
    let id = request.part("id");
    let found = instances.iter().find(|instance| instance.id.to_string() == id);
    let instance = found.ok_or_else(|| Problem::new(Kind::NotFound, format!("There is no instance `{id}`.")))?;
    let page = DrainPage {
        frame: request.frame(Section::Cluster, format!("Drain {}", instance.host)).await,
        subject: ReturnTo("/cluster"),
        refusal: Refusal::default(),
        host: instance.host.clone(),
        pid: instance.pid,
        running: running(&request, instance.id).await?,
        only_here: only_here(instance, &instances, request.app.bell.alive_since())
            .iter()
            .map(ToString::to_string)
            .collect(),
        same: Equivalent::new(
            &request.api_base(),
            "POST",
            &format!("/instances/{id}/drain"),
            &["instances", "drain", id],
        ),
    };
    UiResponse::page(&page)
}

async fn running(request: &UiRequest, id: InstanceId) -> Result<String, Problem> {
    let filter = RunFilter { status: vec![RunStatus::Running], instance: Some(id), ..RunFilter::default() };
    let page = request.runs().list(&filter, &PageRequest { limit: MAX_COUNTED_RUNS, after: None }).await?;
    Ok(match (page.items.len(), page.next) {
        (_, Some(_)) => format!("More than {MAX_COUNTED_RUNS} runs are active there and will finish."),
        (0, None) => "No runs are active there.".to_owned(),
        (1, None) => "1 run is active there and will finish.".to_owned(),
        (many, None) => format!("{many} runs are active there and will finish."),
    })
}

/// Returns the targets that only this instance serves.
fn only_here<'a>(own: &'a Instance, all: &[Instance], alive_since: Timestamp) -> Vec<&'a Target> {
    let others = all.iter().filter(|other| other.id != own.id && !other.draining && other.heartbeat_at >= alive_since);
    let served: BTreeSet<&Target> = others.flat_map(|other| &other.targets).collect();
    own.targets.iter().filter(|target| !served.contains(target)).collect()
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    let id = request.part("id").to_owned();
    let (route, said) = if request.sent("draining") == Some("off") {
        ("/instances/{instanceId}/undrain", "The instance accepts work again.")
    } else {
        ("/instances/{instanceId}/drain", "The instance accepts no more work. Its active runs continue.")
    };
    request.perform::<()>(Method::POST, route, &[("instanceId", &id)], &()).await?;
    Ok(UiResponse::done("/cluster", said))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn instance(number: u128, targets: &[&str], heard: i64, draining: bool) -> Instance {
        everbell_core::with!(Instance {
            targets: targets.iter().map(|target| Target::new(target).unwrap()).collect(),
            heartbeat_at: Timestamp::from_second(heard).unwrap(),
            draining,
            ..Instance::new(
                InstanceId::from_uuid(Uuid::from_u128(number)),
                "h".to_owned(),
                1,
                "1".to_owned(),
                Timestamp::UNIX_EPOCH
            )
        })
    }

    #[test]
    fn only_who_lives_and_works_counts_as_another() {
        let own = instance(1, &["a", "b", "c", "d"], 100, false);
        let others = [instance(2, &["a"], 100, false), instance(3, &["b"], 10, false), instance(4, &["c"], 100, true)];
        let all = [vec![own.clone()], others.to_vec()].concat();
        let shown: Vec<&str> =
            only_here(&own, &all, Timestamp::from_second(50).unwrap()).into_iter().map(Target::as_str).collect();
        assert_eq!(shown, ["b", "c", "d"]);
    }
}
