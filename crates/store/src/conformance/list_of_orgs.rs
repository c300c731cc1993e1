//! The cases about declarations, orgs, starts with a plan, leases of instances, runs of remote sides, lost runs, pauses, purges,
//! queues, races, versions and sessions, for the list of all cases.

/// Adds the cases about declarations, orgs, starts with a plan, leases of instances, runs of remote sides, lost runs, pauses,
/// purges, queues, races, versions and sessions to those that it is given, and hands all of them to a macro.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases_of_orgs {
    ([$($then:tt)+] { $($given:tt)* } $($others:tt)*) => {
        $($then)+! { { $($given)* }
            $($others)*
            remote {
                a_run_that_was_handed_over_belongs_to_no_instance,
                only_the_attempt_at_work_is_handed_over,
                signs_of_life_of_a_remote_side_are_written,
                a_run_that_was_handed_over_ends_and_is_retried_like_any_other,
                a_remote_side_is_asked_to_stop,
                runs_of_remote_sides_are_listed_by_when_they_end,
                a_wrong_clock_takes_no_time_from_a_remote_side,
                all_instances_share_the_key_of_run_tokens,
            }
            backfills {
                a_backfill_goes_on_where_it_stopped_and_runs_each_slot_once,
                a_backfill_that_was_changed_meanwhile_is_a_conflict_and_writes_nothing,
                a_paused_backfill_withdraws_its_runs_and_creates_them_again,
                the_range_of_a_stopped_backfill_can_be_requested_again,
                slots_that_have_a_run_of_any_version_are_left_out,
                a_pause_holds_runs_of_a_backfill_unless_it_goes_on_then,
                a_backfill_stops_when_its_job_is_retired_and_goes_with_it,
                a_backfill_of_an_org_runs_for_it_alone,
            }
            chains {
                a_success_starts_the_next_job_once,
                only_the_last_attempt_counts_and_only_the_outcome_that_was_asked_for,
                a_lost_run_and_one_that_gives_up_have_failed,
                a_run_that_never_began_starts_nothing,
                runs_by_hand_start_others_only_if_asked,
                chains_go_on_also_within_one_batch,
                overlap_decides_about_the_next_run,
                a_pause_leaves_a_gap_and_a_retired_job_nothing,
                versions_of_both_jobs_follow_the_keys,
                chains_that_cannot_work_are_refused,
            }
            fan_in {
                the_job_starts_once_when_all_have_ended,
                ends_of_one_transaction_start_the_job_once,
                arms_of_a_chain_meet_for_the_slot_at_its_beginning,
                a_wait_that_is_over_becomes_a_gap,
                a_paused_job_gets_a_gap_instead_of_a_run,
                versions_follow_the_keys_and_links_name_each_parent,
                closed_groups_are_forgotten_and_purged,
                jobs_that_cannot_be_waited_for_are_refused,
            }
            declarations {
                a_declaration_is_written_with_its_job_and_stays_in_the_next_version,
                a_job_that_nobody_declares_has_no_declaration,
                a_release_that_was_replaced_waits_while_the_other_is_running,
                programs_and_sources_have_releases_of_their_own,
            }
            planned_starts {
                a_run_starts_with_its_plan_as_if_it_were_claimed,
                without_room_new_runs_are_pending,
                those_start_first_that_would_be_claimed_first,
                where_a_job_has_a_priority_more_are_planned_than_start,
                a_run_that_is_skipped_or_held_does_not_start,
                of_many_slots_that_are_caught_up_those_start_that_may_run_together,
                a_slot_that_has_its_run_starts_no_second_one,
                a_one_time_job_that_started_with_its_plan_is_retired_at_its_end,
            }
            instance_leases {
                a_heartbeat_renews_the_lease_on_every_run_of_its_instance,
                the_later_lease_of_a_run_and_its_instance_counts,
                a_late_heartbeat_never_shortens_the_lease_of_an_instance,
                a_lost_run_is_a_loss_of_its_runner,
                a_heartbeat_reports_which_runs_to_cancel,
                a_lost_run_that_was_to_be_canceled_is_not_reported_to_its_old_runner,
                an_instance_is_new_until_it_is_known,
                a_heartbeat_notices_that_the_lease_of_another_instance_has_ended,
                runs_of_an_instance_without_a_lease_count_by_their_own,
                a_heartbeat_that_looks_sees_work_for_its_targets,
                the_runs_that_an_instance_holds_are_listed_however_old_their_leases_are,
                an_instance_that_holds_runs_is_known_until_they_are_settled,
            }
            lost_runs {
                earlier_attempts_are_remembered_in_their_order,
                a_run_in_its_first_attempt_has_no_earlier_one,
                a_canceled_run_keeps_its_earlier_attempts,
                a_lost_run_that_waits_for_its_retry_is_canceled_at_once,
                a_run_that_was_asked_to_stop_is_canceled_instead_of_retried,
                a_claim_that_is_given_back_is_no_attempt,
                a_lost_run_is_retried_and_its_old_instance_can_write_nothing,
                a_lost_run_follows_the_policies_of_its_own_version,
            }
            pausing {
                a_paused_job_starts_nothing_that_waits,
                other_jobs_start_meanwhile,
                a_retry_waits_until_the_job_is_resumed,
                a_run_by_hand_starts_on_a_paused_job,
                what_waits_can_be_canceled_with_the_pause,
                the_next_version_keeps_the_pause_or_ends_it,
                retiring_a_paused_job_cancels_what_waits,
                nothing_starts_after_a_pause_was_answered,
                a_pause_holds_runs_that_an_org_update_has_yet_to_make,
                a_pause_and_an_org_update_at_once_start_nothing,
            }
            inbox {
                requests_are_read_back_oldest_first,
                a_request_is_answered_once_together_with_its_job,
                a_request_whose_key_is_taken_stays_open,
                a_request_replaces_an_unfinished_job_once,
                a_replacement_of_a_job_that_changed_meanwhile_stays_open,
                a_request_that_keeps_a_job_is_answered_with_its_key,
                a_request_with_a_key_of_any_length_is_answered,
                refused_requests_are_listed_latest_first,
                answered_requests_are_pruned_with_the_history,
                no_more_answered_requests_are_pruned_than_the_limit_and_they_are_counted,
                a_purge_removes_payloads_and_reasons_of_the_requests_for_its_job,
                one_of_many_answers_a_request,
            }
            purge {
                a_finished_one_time_job_goes_with_its_last_run,
                a_retired_one_time_job_without_a_run_goes,
                a_finished_job_stays_while_it_is_referred_to,
                finished_versions_of_a_key_go_one_by_one,
                a_one_time_version_of_a_recurring_job_stays,
                no_more_finished_jobs_go_than_the_limit_the_oldest_first,
                a_purged_job_leaves_nothing_but_the_trail,
                a_job_whose_run_is_at_work_is_not_purged,
                a_long_history_is_purged_in_steps,
                a_purge_takes_versions_orgs_and_overrides_along,
            }
            queue {
                an_enqueued_job_is_due_at_once,
                a_replaced_job_fires_as_the_new_one_only,
                a_run_that_has_not_started_is_replaced,
                the_new_one_waits_for_a_replaced_one_at_work,
                a_replaced_job_stays_paused,
                many_jobs_are_created_together,
                many_jobs_are_created_all_or_none,
                more_jobs_than_the_bound_are_refused,
                a_higher_priority_starts_first,
                runs_that_start_together_are_the_most_urgent_ones,
                priorities_respect_the_room_of_each_target,
                a_retry_keeps_its_priority,
            }
            calendars {
                a_calendar_reads_back_as_it_was_written,
                a_calendar_has_versions,
                a_job_does_not_fire_on_excluded_days,
                a_slot_of_an_excluded_day_runs_on_the_next_allowed_one,
                a_slot_that_ran_on_the_day_before_does_not_run_again_after_an_edit,
                a_job_with_other_days_than_its_calendar_is_refused,
                an_edit_reaches_a_job_as_its_next_version,
                the_zone_of_an_org_decides_its_days,
                a_calendar_that_a_job_uses_is_not_deleted,
            }
            freezes {
                a_freeze_reads_back_as_it_was_written,
                slots_inside_a_freeze_are_gaps_and_are_not_caught_up,
                slots_of_a_freeze_that_are_planned_one_by_one_are_one_gap,
                an_excepted_job_fires,
                a_one_time_job_waits_until_the_end,
                slots_fire_again_when_a_freeze_is_ended,
            }
            reports {
                an_absence_is_written_once,
                absences_are_pruned_with_the_history,
                the_last_heartbeat_of_an_instance_outlives_it,
                late_slots_are_those_that_got_their_outcome_after_the_absence,
                late_slots_have_the_reasons_of_an_outage_only,
                a_gap_belongs_to_the_absence_that_it_reaches_into,
                gaps_are_counted_by_reason,
                gaps_are_found_by_label,
                runs_are_found_by_label,
                fires_of_orgs_are_grouped_by_job_and_time,
                enabled_orgs_are_grouped_by_zone_and_override,
                keys_of_jobs_are_found_by_their_ids,
                entries_about_backfills_are_found_among_all_others,
            }
            problems {
                a_problem_reads_back_as_it_was_written,
                of_two_decisions_from_the_same_state_one_is_written,
                a_problem_is_not_opened_twice,
                each_org_of_a_job_has_problems_of_its_own,
                an_operator_changes_a_problem_and_voids_decisions_that_did_not_see_it,
                problems_are_listed_newest_first,
                a_message_is_taken_by_one_instance_at_a_time,
                messages_about_a_problem_keep_their_order,
                messages_are_listed_with_their_fate,
                a_problem_of_an_instance_is_not_one_of_a_job,
                messages_for_a_removed_channel_are_given_up,
                the_last_success_of_each_job_is_found,
                old_problems_and_messages_are_pruned,
            }
            sessions {
                a_session_is_found_by_its_hash,
                a_session_ends_by_itself,
                a_session_that_is_not_used_ends,
                sessions_are_listed_newest_first,
                ended_sessions_are_gone,
                a_revoked_token_has_no_sessions,
                a_token_has_a_bounded_number_of_sessions,
                sessions_that_ended_are_pruned,
            }
            trace_context {
                a_run_by_hand_continues_the_trace_of_its_request,
                the_run_of_a_one_time_job_continues_the_trace_of_its_creator,
                slots_of_a_recurring_job_continue_no_trace,
                every_attempt_continues_the_same_trace,
                many_jobs_at_once_have_the_trace_of_their_creator,
                a_trial_continues_the_trace_of_its_request,
                a_backfill_continues_the_trace_of_its_request,
                work_for_all_orgs_continues_the_trace_of_its_request,
                an_edit_keeps_the_trace_while_the_job_fires_once,
            }
            versions {
                a_run_of_the_version_before_is_in_the_way,
                a_run_that_waits_has_its_turn_in_the_next_version,
                failures_are_counted_on,
                the_last_run_stays_until_there_is_another,
                a_slot_that_was_skipped_ahead_is_no_last_run,
                a_run_of_an_org_is_in_the_way_of_the_next_version,
                a_failure_is_not_counted_for_another_job_of_the_same_key,
            }
            clock {
                a_timer_comes_back_from_a_false_future_and_each_slot_has_one_outcome,
                a_one_time_job_that_ran_in_a_false_future_is_not_armed_again,
                a_one_time_job_that_caught_up_in_a_false_future_is_not_armed_again,
                a_slot_that_ran_in_a_false_future_does_not_run_again,
                a_gap_that_lies_in_the_future_altogether_goes,
                a_job_that_was_made_in_a_false_future_begins_now,
                a_mark_that_an_operator_moved_stays,
                a_new_version_that_took_over_a_false_mark_comes_back_too,
                a_paused_job_comes_back_and_stays_paused,
                timers_come_back_in_bounded_steps,
                who_died_in_a_false_future_is_noticed,
                the_lease_of_an_instance_from_a_false_future_is_shortened,
                the_trusted_time_is_remembered_and_may_go_back,
                the_youngest_entry_is_known,
            }
            orgs {
                an_org_reads_back_as_it_was_written,
                an_unknown_org_is_not_found,
                orgs_are_written_all_or_none,
                ten_thousand_orgs_are_one_write,
                an_org_that_changed_meanwhile_is_not_written,
                orgs_are_found_by_text_zone_and_state,
                a_deleted_org_is_gone_with_what_it_overrides,
                an_override_is_written_listed_and_taken_back,
                a_job_and_an_org_see_each_other,
            }
            org_timers {
                each_org_fires_at_its_own_local_time,
                a_job_knows_the_first_fire_of_all_orgs,
                a_new_org_gets_its_timers,
                a_new_org_whose_time_has_gone_by_fires_at_once_and_once,
                an_org_that_moves_west_does_not_fire_twice_on_a_date,
                an_org_that_moves_east_past_the_time_fires_at_once,
                a_timer_that_is_due_is_judged_by_what_holds_now,
                an_org_that_is_off_has_a_gap_and_goes_on,
                an_override_moves_and_stops_one_org_alone,
                a_zone_that_ceased_to_be_concerns_its_org_alone,
                a_pause_stops_all_orgs_at_once_and_a_resume_wakes_them,
                a_resume_runs_once_for_each_org_that_missed_something,
                a_new_version_takes_over_without_firing_twice_on_a_date,
                versions_that_follow_each_other_faster_than_org_updates_lose_nothing,
                a_retired_job_leaves_no_timers,
                a_deleted_org_leaves_no_timers_and_keeps_its_runs,
                what_was_deleted_is_forgotten_in_the_end,
                an_org_update_goes_on_where_it_was,
                an_org_that_changes_before_an_org_update_comes_by_is_seen_by_it,
                the_set_of_timers_can_be_made_anew,
            }
            org_actions {
                a_run_by_hand_is_for_one_org,
                a_run_by_hand_for_all_orgs_is_made_once_for_each,
                a_backfill_for_all_orgs_has_the_slots_of_each,
                the_backlog_of_an_org_starves_nobody,
                an_org_update_that_makes_runs_is_stopped_and_no_other,
                orgs_that_a_job_cannot_fire_for_are_one_entry,
            }
            targets {
                a_target_reads_back_as_it_was_written,
                a_target_has_revisions,
                a_target_that_jobs_name_is_deleted_by_force_only,
                the_number_of_stored_targets_is_limited,
            }
            counters {
                counters_agree_with_the_runs,
                counters_of_one_job_and_of_some_hours_are_read,
                counters_of_a_job_are_read_by_hour,
                counters_know_the_target_of_each_run,
                an_hour_is_counted_by_one_and_again_with_the_same_result,
                outcomes_that_are_recorded_late_are_counted_by_the_second_count,
                a_run_that_never_started_took_no_time,
                versions_and_orgs_of_a_job_are_counted_together,
                counters_outlive_their_runs_and_go_in_the_end,
                a_purge_deletes_the_counters_of_its_job,
                every_store_has_the_same_buckets,
            }
            races {
                a_pause_that_races_with_the_planner,
                a_retirement_that_races_with_the_planner,
                new_versions_that_race_with_the_planner,
                runs_by_hand_that_race_with_the_planner,
                reschedules_that_race_with_the_planner,
                a_purge_that_races_with_the_start_of_a_run,
                a_purge_that_races_with_a_run_by_hand,
            }
            org_model {
                random_lives_of_orgs_are_those_of_the_model,
                other_random_lives_of_orgs_are_those_of_the_model,
                more_random_lives_of_orgs_are_those_of_the_model,
            }
        }
    };
}
