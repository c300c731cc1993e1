//! Values in the order of statements that both databases have. A macro, because a function would have to name every type
//! that both drivers can bind.

/// The values of `insert_job.sql`, from [`JobValues`](super::JobValues).
macro_rules! bind_job {
    ($query:expr, $values:expr) => {{
        let values = $values;
        let c = values.columns;
        $query
            .bind(c.id)
            .bind(c.job_key)
            .bind(c.version)
            .bind(c.target)
            .bind(c.payload)
            .bind(values.schedule_type)
            .bind(c.cron_expression)
            .bind(c.run_at)
            .bind(c.timezone)
            .bind(c.anchor_at)
            .bind(c.start_at)
            .bind(c.end_at)
            .bind(c.dst_gap)
            .bind(c.dst_fold)
            .bind(c.scope)
            .bind(c.policies)
            .bind(c.labels)
            .bind(c.description)
            .bind(c.source)
            .bind(values.content_hash)
            .bind(c.supersedes_job_id)
            .bind(c.created_by)
            .bind(c.created_at)
            .bind(c.status)
            .bind(c.error)
            .bind(c.pause_reason)
            .bind(c.paused_by)
            .bind(c.paused_at)
            .bind(c.paused_until)
            .bind(c.revision)
            .bind(c.consecutive_failures)
            .bind(c.updated_by)
            .bind(c.updated_at)
            .bind(c.declaration)
            .bind(c.trace_context)
            .bind(values.after_key)
    }};
}

/// The values of `insert_timer.sql`, from [`TimerColumns`](super::TimerColumns): with the target of the job, and the
/// version before it.
macro_rules! bind_timer {
    ($query:expr, $timer:expr, $target:expr, $before:expr) => {{
        let timer = $timer;
        $query
            .bind(timer.job_id)
            .bind(timer.org_id)
            .bind($target)
            .bind(timer.next_run_at)
            .bind(timer.last_slot_at)
            .bind(timer.rescheduled_from)
            .bind(timer.last_local_date)
            .bind($before)
    }};
}

/// The values of `update_job_state.sql`, from a [`JobState`](everbell_core::JobState).
macro_rules! bind_job_state {
    ($query:expr, $id:expr, $state:expr) => {{
        let state: &everbell_core::JobState = $state;
        let pause = state.pause.as_ref();
        $query
            .bind($id)
            .bind(state.status.as_str())
            .bind(state.error.clone())
            .bind(pause.map(|pause| pause.reason.clone()))
            .bind(pause.map(|pause| pause.by.clone()))
            .bind(pause.map(|pause| $crate::micros::Micros::from(pause.at)))
            .bind(pause.and_then(|pause| pause.until).map($crate::micros::Micros::from))
            .bind(state.revision as i64)
            .bind(state.consecutive_failures as i32)
            .bind(state.updated_by.clone())
            .bind($crate::micros::Micros::from(state.updated_at))
            .bind(state.declaration.as_ref().map($crate::rows::declarations::write))
    }};
}

/// The values of `heartbeat.sql`, from an [`Instance`](everbell_core::store::Instance) and the end of its lease.
macro_rules! bind_instance {
    ($query:expr, $instance:expr, $lease_until:expr) => {{
        let instance: &everbell_core::store::Instance = $instance;
        $query
            .bind(instance.id.as_uuid())
            .bind(instance.host.clone())
            .bind(i64::from(instance.pid))
            .bind(instance.version.clone())
            .bind($crate::rows::words_of(instance.roles.iter()))
            .bind($crate::rows::words_of(instance.targets.iter().map(everbell_core::Target::as_str)))
            .bind($crate::micros::Micros::from(instance.started_at))
            .bind($crate::micros::Micros::from(instance.heartbeat_at))
            .bind(instance.draining)
            .bind(instance.clock_skew_ms)
            .bind(instance.process.clone())
            .bind($lease_until.map($crate::micros::Micros::from))
    }};
}

/// The values of `insert_audit.sql`, from an [`AuditEntry`](everbell_core::store::AuditEntry).
macro_rules! bind_audit {
    ($query:expr, $audit:expr) => {{
        let audit: &everbell_core::store::AuditEntry = $audit;
        $query
            .bind(audit.id)
            .bind($crate::micros::Micros::from(audit.at))
            .bind(audit.actor.clone())
            .bind(audit.action.clone())
            .bind(audit.object.clone())
            .bind(audit.reason.clone())
            .bind($crate::rows::audit_json(audit.before.as_ref()))
            .bind($crate::rows::audit_json(audit.after.as_ref()))
            .bind(audit.origin.address.clone())
            .bind(audit.origin.request_id.clone())
            .bind(audit.origin.role.clone())
    }};
}

/// The values of `create_session.sql`, from a [`NewSession`](everbell_core::store::NewSession).
macro_rules! bind_session {
    ($query:expr, $session:expr) => {{
        let session: &everbell_core::store::NewSession = $session;
        $query
            .bind(session.id)
            .bind(session.hash.to_vec())
            .bind(session.token_hash.to_vec())
            .bind(session.actor.clone())
            .bind($crate::micros::Micros::from(session.created_at))
            .bind($crate::micros::Micros::from(session.expires_at))
            .bind(session.address.clone())
            .bind(session.user_agent.clone())
            .bind(session.role.clone())
    }};
}

/// The values of `insert_backfill.sql`, from a [`Backfill`](everbell_core::backfill::Backfill).
macro_rules! bind_new_backfill {
    ($query:expr, $backfill:expr) => {{
        let row = $crate::rows::backfills::BackfillColumns::new($backfill);
        let derived = $crate::rows::backfills::DerivedColumns::new($backfill);
        $query
            .bind(row.id)
            .bind(row.revision)
            .bind(row.job_key)
            .bind(row.org_id)
            .bind(row.requested_at)
            .bind(row.requested_by)
            .bind(row.reason)
            .bind(row.from_at)
            .bind(row.to_at)
            .bind(row.status)
            .bind(row.progress)
            .bind(row.updated_at)
            .bind(derived.is_open)
            .bind(derived.paused_ok)
            .bind(derived.run_trigger)
    }};
}

/// The values of `update_backfill.sql`, from a [`Backfill`](everbell_core::backfill::Backfill) and the revision that it
/// must still have.
macro_rules! bind_backfill {
    ($query:expr, $backfill:expr, $expected:expr) => {{
        let row = $crate::rows::backfills::BackfillColumns::new($backfill);
        let derived = $crate::rows::backfills::DerivedColumns::new($backfill);
        $query
            .bind(row.id)
            .bind(row.revision)
            .bind(row.status)
            .bind(row.progress)
            .bind(row.updated_at)
            .bind(derived.is_open)
            .bind(derived.paused_ok)
            .bind(i64::try_from($expected).unwrap_or(i64::MAX))
    }};
}

/// The values of `put_calendar.sql`, from a [`StoredCalendar`](everbell_core::store::StoredCalendar).
macro_rules! bind_calendar {
    ($query:expr, $calendar:expr) => {{
        let row = $crate::rows::calendars::CalendarColumns::new($calendar);
        $query
            .bind(row.name)
            .bind(row.version)
            .bind(row.applied_version)
            .bind(row.content)
            .bind(row.source)
            .bind(row.updated_by)
            .bind(row.created_at)
            .bind(row.updated_at)
    }};
}

pub(crate) use {
    bind_audit, bind_backfill, bind_calendar, bind_instance, bind_job, bind_job_state, bind_new_backfill, bind_session,
    bind_timer,
};
