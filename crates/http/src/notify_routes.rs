//! Routes of problems and notifications: a part of the table in `lib.rs`.

use axum::http::Method;
use everbell_wire as wire;

use super::access::Role::Operator;
use super::api::notify;
use super::problem::Kind::NotFound;
use super::route::Access::{Role, RunHistory};
use super::route::{Route, route};

/// Problems of jobs, channels and their messages.
#[rustfmt::skip]
pub(super) fn notify_routes() -> Vec<Route> {
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(get.clone(), "/problems", RunHistory, notify::list).does("listProblems", "List problems of jobs, newest first").query(notify::LIST)
            .returns_page::<wire::JobProblem>("A page of problems"),
        route(post.clone(), "/problems/{problemId}/acknowledge", Role(Operator), notify::acknowledge).does("acknowledgeProblem", "Acknowledge a problem").body("ProblemAcknowledge", notify::ACKNOWLEDGE)
            .details("No reminders follow.")
            .returns::<wire::JobProblem>(200, "The problem").problems(&[NotFound]),
        route(post.clone(), "/problems/{problemId}/mute", Role(Operator), notify::mute).does("muteProblem", "Mute a problem").body("ProblemMute", notify::MUTE)
            .details("No messages are sent until the mute ends. Channels that reported the problem are notified when it closes.")
            .returns::<wire::JobProblem>(200, "The problem").problems(&[NotFound]),
        route(post.clone(), "/problems/{problemId}/unmute", Role(Operator), notify::unmute).does("unmuteProblem", "Unmute a problem")
            .returns::<wire::JobProblem>(200, "The problem").problems(&[NotFound]),
        route(get.clone(), "/notify/channels", RunHistory, notify::channels).does("listChannels", "List notification channels (addresses and secrets are never shown)")
            .returns_items::<wire::NotifyChannel>("The channels of this server"),
        route(post, "/notify/channels/{name}/test", Role(Operator), notify::test).does("testChannel", "Send a test message through a channel")
            .details("The message is sent in the background, once. List the message by its id to see how that went.")
            .returns::<wire::NotifyDelivery>(202, "The message").problems(&[NotFound]),
        route(get, "/notify/deliveries", RunHistory, notify::deliveries).does("listDeliveries", "List notification messages, newest first").query(notify::DELIVERIES)
            .returns_page::<wire::NotifyDelivery>("A page of messages"),
    ]
}
