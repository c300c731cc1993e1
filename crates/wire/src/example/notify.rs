//! Examples of problems, channels and messages.

use super::{ACTOR, Example, NOW, RUN_ID, at};
use crate::notify::{ChannelType, DeliveryStatus, JobProblemKind, MessageChange};
use crate::reload::ConfigPart;
use crate::{ConfigChange, JobProblem, NotifyChannel, NotifyDelivery, ProblemNote, Reloaded};

const PROBLEM: &str = "0195d5c8-1a40-8f01-9c3e-5a2b7d9e4f10";

impl Example for JobProblem {
    fn example() -> JobProblem {
        JobProblem {
            id: PROBLEM.to_owned(),
            kind: JobProblemKind::Failed,
            job_key: "daily-report".to_owned(),
            org_id: None,
            instance: None,
            open: true,
            since: at("2027-03-15T07:00:12Z"),
            opened_at: at("2027-03-15T07:00:15Z"),
            closed_at: None,
            closed_because: None,
            count: 2,
            reason: "exit_code: ended with code 1".to_owned(),
            run_id: Some(RUN_ID.to_owned()),
            told: vec!["failed,recovered of team=sales".to_owned()],
            acknowledged: Some(ProblemNote {
                by: ACTOR.to_owned(),
                at: at(NOW),
                reason: Some("The mail server is down".to_owned()),
            }),
            muted: None,
            muted_until: None,
        }
    }
}

impl Example for NotifyDelivery {
    fn example() -> NotifyDelivery {
        NotifyDelivery {
            id: "0195d5c8-1a40-8101-8e2d-7c4b9a5f3e60".to_owned(),
            channel: "ops-slack".to_owned(),
            change: MessageChange::Opened,
            title: "daily-report is failing".to_owned(),
            problem_id: Some(PROBLEM.to_owned()),
            rule: Some("failed,recovered of team=sales".to_owned()),
            status: DeliveryStatus::Delivered,
            attempts: 1,
            created_at: at("2027-03-15T07:00:15Z"),
            next_attempt_at: None,
            error: None,
            ended_at: Some(at("2027-03-15T07:00:16Z")),
        }
    }
}

impl Example for NotifyChannel {
    fn example() -> NotifyChannel {
        NotifyChannel {
            name: "ops-slack".to_owned(),
            kind: ChannelType::Slack,
            rules: vec!["failed,recovered of team=sales".to_owned()],
            last: Some(NotifyDelivery::example()),
            pending: 0,
            dead: 0,
        }
    }
}

impl Example for Reloaded {
    fn example() -> Reloaded {
        let change =
            |part, name: &str, change: &str| ConfigChange { part, name: name.to_owned(), change: change.to_owned() };
        Reloaded {
            dry_run: false,
            file: Some("everbell.toml".to_owned()),
            instance: "web-1:4711".to_owned(),
            changes: vec![
                change(ConfigPart::Target, "billing-api", "changed"),
                change(ConfigPart::Job, "daily-report", "create version 1"),
            ],
            needs_restart: vec!["server.listen".to_owned()],
            warnings: Vec::new(),
        }
    }
}
