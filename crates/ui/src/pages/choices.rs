//! Display preferences of a browser: theme, time zone and live updates.

use crate::choices::Choices;
use crate::request::{UiRequest, UiResponse, safe_return_path};
use everbell_http::problem::Problem;

pub(crate) async fn choose(request: UiRequest) -> Result<UiResponse, Problem> {
    let back = safe_return_path(request.sent("back").unwrap_or("/")).to_owned();
    let chosen = Choices::COOKIES.into_iter().filter_map(|(name, cookie)| {
        let value = request.sent(name)?;
        request.choices.with(name, value).map(|_| request.cookies.set(cookie, value))
    });
    Ok(chosen.fold(UiResponse::redirect(back), |response, cookie| response.header("set-cookie", cookie)))
}
