//! [`summarize`]: one message instead of many, when many problems change at once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use super::{Change, Notice};
use crate::ids::alert_id;

/// A message as a channel gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// About one problem.
    One(Box<Notice>),
    /// About many.
    Many(Summary),
}

/// A message about many problems that changed in the same way at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The id of its delivery.
    pub id: Uuid,
    /// The channel that gets it.
    pub channel: String,
    /// The change of the problems.
    pub change: Change,
    /// When it may be sent.
    pub available_at: Timestamp,
    /// The messages that it replaces, in their order. There are at least two.
    pub notices: Vec<Notice>,
}

/// Joins messages to a channel that has a limit, if more problems than that changed in the same way. The first message keeps
/// its place, so each message about a problem stays behind those about its earlier changes.
pub fn summarize(notices: Vec<Notice>, limits: &BTreeMap<String, usize>, now: Timestamp) -> Vec<Message> {
    let key = |notice: &Notice| (notice.channel.clone(), notice.change, notice.available_at);
    let mut groups: BTreeMap<_, Vec<Notice>> = BTreeMap::new();
    for notice in &notices {
        groups.entry(key(notice)).or_default().push(notice.clone());
    }
    groups.retain(|(channel, ..), group| limits.get(channel).is_some_and(|limit| group.len() > (*limit).max(1)));
    let mut messages = Vec::new();
    let mut written = Vec::new();
    for notice in notices {
        let key = key(&notice);
        match groups.remove(&key) {
            Some(group) => {
                let (channel, change, available_at) = key.clone();
                let first = notice.problem.id;
                let parts = [b"summary".as_slice(), first.as_bytes(), channel.as_bytes(), change.as_str().as_bytes()];
                let id = alert_id(&parts, now, change as u8);
                messages.push(Message::Many(Summary { id, channel, change, available_at, notices: group }));
                written.push(key);
            }
            None if written.contains(&key) => {}
            None => messages.push(Message::One(Box::new(notice))),
        }
    }
    messages
}
