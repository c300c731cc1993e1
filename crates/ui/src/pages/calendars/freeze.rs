//! Announcing a freeze, and ending it before its time.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_http::problem::Problem;
use everbell_wire as wire;
use serde::Serialize;

use crate::equivalent::Equivalent;
use crate::pages::action::{Refusal, correctable, expect_operator, typed};
use crate::{Frame, Section, UiRequest, UiResponse};

const FIELDS: [&str; 5] = ["from", "until", "reason", "label", "except"];

#[derive(Template)]
#[template(path = "calendars/freeze.html")]
struct FreezePage {
    frame: Frame,
    refusal: Refusal,
    zone: String,
    from: String,
    until: String,
    reason: String,
    label: String,
    except: String,
    same: Equivalent,
}

/// The body of the request. Times are local ones of the zone.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<&'a str>,
    timezone: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    except: Vec<&'a str>,
}

impl<'a> Body<'a> {
    fn sent(request: &'a UiRequest, zone: &'a str) -> Body<'a> {
        let keys = request.sent("except").unwrap_or_default();
        let except = keys.split([',', ' ', '\n', '\r']).filter(|key| !key.is_empty()).collect();
        let field = |name| request.sent(name);
        let (from, until, reason, label) = (field("from"), field("until"), field("reason"), field("label"));
        Body { from, until, timezone: zone, reason, label, except }
    }

    fn same(&self, request: &UiRequest) -> Result<Equivalent, Problem> {
        let mut words = vec!["freeze", "add"];
        words.extend(self.from.iter().flat_map(|from| ["--from", *from]));
        words.extend(["--until", self.until.unwrap_or("…"), "--tz", self.timezone]);
        words.extend(self.label.iter().flat_map(|label| ["--label", *label]));
        words.extend(self.except.iter().flat_map(|key| ["--except", *key]));
        words.extend(["--reason", self.reason.unwrap_or("…")]);
        Equivalent::with_body(&request.api_base(), "POST", "/freezes", self, &words)
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, None).await
}

async fn form(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let zone = request.clock().mine.name().to_owned();
    let page = FreezePage {
        same: Body::sent(request, &zone).same(request)?,
        refusal: Refusal::from_problem(problem, &FIELDS),
        from: typed(request, "from"),
        until: typed(request, "until"),
        reason: typed(request, "reason"),
        label: typed(request, "label"),
        except: typed(request, "except"),
        frame: request.frame(Section::Calendars, "Announce a freeze").await,
        zone,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let zone = request.clock().mine.name().to_owned();
    let body = Body::sent(&request, &zone);
    match request.perform::<wire::Freeze>(Method::POST, "/freezes", &[], &body).await {
        Ok(freeze) if freeze.in_force => Ok(UiResponse::done("/calendars", "The freeze is in force.")),
        Ok(_) => Ok(UiResponse::done("/calendars", "The freeze is announced.")),
        Err(problem) => form(&request, Some(&correctable(problem)?)).await,
    }
}

pub(crate) async fn end(request: UiRequest) -> Result<UiResponse, Problem> {
    let path = [("freezeId", request.part("id"))];
    request.perform::<wire::Freeze>(Method::DELETE, "/freezes/{freezeId}", &path, &()).await?;
    Ok(UiResponse::done("/calendars", "The freeze has ended."))
}
