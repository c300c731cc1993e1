//! Targets, instances, tokens, sessions and the audit trail.

use serde_json::json;

use super::{ACTOR, CREATED_AT, Example, INSTANCE_ID, NOW, at};
use crate::problem::ProblemKind;
use crate::{
    AuditEntry, EndedSessions, Instance, NewToken, ProblemCode, Role, Session, Source, Status, Target, TargetRuns,
    TargetTrend, TargetType, TargetWritten, Targets, Token,
};

impl Example for Target {
    fn example() -> Target {
        Target {
            target: "send-report".to_owned(),
            r#type: Some(TargetType::Http),
            address: Some("https://reports.example.com".to_owned()),
            concurrency: Some(4),
            source: Some(Source::Api),
            revision: Some(1),
            problem: None,
            instances: vec![INSTANCE_ID.to_owned()],
            jobs: 1,
            waiting_jobs: Vec::new(),
            last_day: Some(TargetRuns {
                runs: 21,
                succeeded: 19,
                failed: 1,
                canceled: 0,
                skipped: 1,
                success_rate: Some(0.95),
                failure_rate: Some(0.05),
                earlier_failure_rate: Some(0.02),
                trend: Some(TargetTrend::Usual),
                p95_ms: Some(8_400),
                longest_ms: Some(9_120),
            }),
            block: None,
            definition: None,
            updated_by: Some(ACTOR.to_owned()),
            updated_at: Some(at(CREATED_AT)),
        }
    }
}

impl Example for TargetWritten {
    fn example() -> TargetWritten {
        TargetWritten { dry_run: false, created: true, problem: None, target: Some(Target::example()) }
    }
}

impl Example for Targets {
    fn example() -> Targets {
        Targets { complete: Some(true), items: vec![Target::example()] }
    }
}

impl Example for Instance {
    fn example() -> Instance {
        Instance {
            id: INSTANCE_ID.to_owned(),
            host: "worker-1".to_owned(),
            pid: 4_711,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roles: vec!["scheduler".to_owned(), "api".to_owned()],
            targets: vec!["send-report".to_owned(), "send-briefing".to_owned()],
            started_at: at("2027-03-13T07:00:00Z"),
            heartbeat_at: at("2027-03-15T09:29:58Z"),
            alive: true,
            draining: false,
            clock_skew_ms: 3,
        }
    }
}

impl Example for Status {
    fn example() -> Status {
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tz_data: "2026e".to_owned(),
            now: at(NOW),
            actor: ACTOR.to_owned(),
            role: Role::Operator,
            database: "postgresql 17.2".to_owned(),
            schema_version: 6,
            size_bytes: Some(48_234_496),
            active_jobs: 2,
            paused_jobs: 0,
            errored_jobs: 0,
            orgs: 1,
            errored_org_timers: 0,
            pending_runs: 0,
            running_runs: 1,
            due_timers: 0,
            oldest_due_at: None,
            oldest_transaction_at: None,
            notes: Vec::new(),
        }
    }
}

impl Example for AuditEntry {
    fn example() -> AuditEntry {
        AuditEntry {
            id: "01a49743-2e60-72aa-9e17-294a8a57cc01".to_owned(),
            at: at(NOW),
            actor: ACTOR.to_owned(),
            action: "job.pause".to_owned(),
            object: "job:daily-report".to_owned(),
            reason: Some("The mail server is down".to_owned()),
            before: Some(json!({ "status": "active" })),
            after: Some(json!({ "status": "paused" })),
            from: Some("192.0.2.17".to_owned()),
            request_id: Some("230b217a-28d3-447f-8438-23e8a41d5d23".to_owned()),
            role: Some(Role::Operator),
        }
    }
}

impl Example for Token {
    fn example() -> Token {
        Token {
            name: "ci".to_owned(),
            role: Role::Operator,
            created_at: at(NOW),
            expires_at: Some(at("2028-01-01T00:00:00Z")),
            revoked_at: None,
            last_used_at: None,
        }
    }
}

impl Example for NewToken {
    fn example() -> NewToken {
        NewToken { about: Token::example(), token: "evb_EXAMPLE-a-secret-that-is-shown-only-once".to_owned() }
    }
}

impl Example for Session {
    fn example() -> Session {
        Session {
            id: "5f0c1a52-6b0e-4c43-9d6e-2f1f7f3f9b10".to_owned(),
            actor: ACTOR.to_owned(),
            role: Role::Operator,
            created_at: at(CREATED_AT),
            expires_at: at("2027-03-15T21:30:00Z"),
            last_used_at: at(NOW),
            from: Some("192.0.2.17".to_owned()),
            user_agent: Some("Mozilla/5.0".to_owned()),
            current: false,
        }
    }
}

impl Example for EndedSessions {
    fn example() -> EndedSessions {
        EndedSessions { ended: 2 }
    }
}

impl Example for ProblemKind {
    fn example() -> ProblemKind {
        ProblemKind {
            r#type: "/docs/problems/not-found".to_owned(),
            title: "Not found".to_owned(),
            status: 404,
            code: ProblemCode::NotFound,
            help: "Check the path. A job is identified by its id, `key:NAME` or `key:NAME@VERSION`.".to_owned(),
        }
    }
}
