//! Problems of jobs, and notification channels.

use everbell_wire as wire;

use crate::call::Call;
use crate::client::Client;
use crate::pages::Pages;
use crate::path::segment;
use crate::query::{DeliveryQuery, ProblemQuery};
use crate::request::{ProblemAcknowledge, ProblemMute};

/// Operations on problems of jobs.
#[derive(Clone, Copy, Debug)]
pub struct Problems<'a>(&'a Client);

/// Operations on notification channels and their messages.
#[derive(Clone, Copy, Debug)]
pub struct Notify<'a>(&'a Client);

impl Client {
    /// Operations on problems of jobs.
    pub fn problems(&self) -> Problems<'_> {
        Problems(self)
    }

    /// Operations on notification channels and their messages.
    pub fn notify(&self) -> Notify<'_> {
        Notify(self)
    }
}

impl Problems<'_> {
    /// Lists problems, newest first.
    pub fn list(self, query: &ProblemQuery) -> Pages<wire::JobProblem> {
        Pages::new(self.0, "/problems", query)
    }

    /// Acknowledges a problem: no reminders follow.
    pub fn acknowledge(self, id: &str, request: &ProblemAcknowledge) -> Call<wire::JobProblem> {
        self.0.post(&format!("/problems/{}/acknowledge", segment(id))).json(request)
    }

    /// Mutes a problem.
    pub fn mute(self, id: &str, request: &ProblemMute) -> Call<wire::JobProblem> {
        self.0.post(&format!("/problems/{}/mute", segment(id))).json(request)
    }

    /// Ends the silence about a problem.
    pub fn unmute(self, id: &str) -> Call<wire::JobProblem> {
        self.0.post(&format!("/problems/{}/unmute", segment(id)))
    }
}

impl Notify<'_> {
    /// Lists the channels of the server, without addresses and secrets.
    pub fn channels(self) -> Call<wire::Items<wire::NotifyChannel>> {
        self.0.get("/notify/channels")
    }

    /// Sends a test message through a channel, in the background.
    pub fn test(self, channel: &str) -> Call<wire::NotifyDelivery> {
        self.0.post(&format!("/notify/channels/{}/test", segment(channel)))
    }

    /// Lists messages, newest first.
    pub fn deliveries(self, query: &DeliveryQuery) -> Pages<wire::NotifyDelivery> {
        Pages::new(self.0, "/notify/deliveries", query)
    }
}
