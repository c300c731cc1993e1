//! The list of all cases: what is not in it is not run, and a test compares it with the files.

use super::fresh::Case;

/// Hands the list of all cases to a macro: `{ what was given } family { case, … } …`.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ([$($then:tt)+] $($given:tt)*) => {
        $crate::conformance_cases_of_orgs! { [$($then)+] { $($given)* }
            jobs {
                a_new_job_is_armed_and_has_no_run,
                a_job_is_found_by_id_key_and_version,
                a_job_reads_back_as_it_was_written,
                every_kind_of_schedule_reads_back,
                a_fixed_rate_keeps_its_anchor,
                an_unknown_job_is_not_found,
                the_key_of_a_living_job_is_taken,
                an_id_and_a_version_are_taken_for_good,
                a_key_names_its_living_version_or_else_the_newest,
                a_job_may_begin_paused,
                a_schedule_that_cannot_be_read_keeps_its_text,
                the_last_run_is_the_one_of_the_latest_slot,
            }
            job_lists {
                jobs_are_found_by_status,
                replaced_versions_are_left_out_where_only_the_latest_are_asked_for,
                jobs_are_found_by_target_key_and_source,
                jobs_are_found_by_how_their_last_run_stands,
                jobs_are_found_by_what_became_of_the_last_run_and_of_no_other,
                jobs_whose_last_run_is_the_newest_come_first,
                the_last_run_is_the_one_of_the_latest_time_whenever_it_was_made,
                errored_jobs_are_found,
                failing_jobs_are_found,
                jobs_are_found_by_whether_they_fire_once_or_at_all,
                jobs_are_found_by_label,
                jobs_are_counted_up_to_a_cap,
                text_is_looked_for_in_key_target_and_description,
                text_is_text_and_no_pattern,
                lists_are_in_order_and_pages_of_any_size_hold_the_same,
                keys_are_ordered_by_their_bytes,
                a_page_neither_repeats_nor_hides_jobs_when_others_come_and_go,
            }
            change {
                pausing_disarms,
                pauses_that_end_are_told_earliest_first,
                resuming_arms_and_writes_the_gap_of_the_pause,
                resuming_may_run_what_was_missed_once,
                retiring_is_final_and_keeps_history,
                retiring_fires_a_slot_that_is_just_due,
                a_new_version_takes_over_in_one_step,
                a_new_version_of_a_paused_job_stays_paused,
                a_new_version_whose_id_is_taken_changes_nothing,
                a_stale_revision_changes_nothing,
                a_refusal_changes_nothing,
                a_change_that_came_to_nothing_lets_go_of_its_job,
                a_decision_sees_the_job_as_it_is,
                a_run_by_hand_is_pending_at_once,
                a_run_by_hand_obeys_overlap,
                a_run_by_hand_may_replace,
                the_same_run_by_hand_is_inserted_once,
                a_backfill_runs_what_had_no_run_and_nothing_twice,
                the_next_fire_can_be_moved,
                the_next_slots_can_be_skipped,
                skipping_the_only_slot_of_a_one_time_job_retires_it,
                replacing_the_only_run_of_a_one_time_job_retires_it,
            }
            planning {
                a_due_slot_becomes_a_pending_run_and_the_timer_advances,
                nothing_is_due_before_its_time,
                an_empty_store_has_nothing_due,
                the_oldest_are_planned_first_and_no_more_than_the_limit,
                only_the_targets_asked_for_are_planned,
                a_slot_gets_one_run_however_often_it_is_proposed,
                the_mark_never_goes_back,
                a_plan_may_leave_its_timer_as_it_is,
                a_plan_can_retire_its_job,
                a_schedule_that_cannot_be_read_stops_its_job_alone,
                a_stored_schedule_in_an_unknown_zone_errors,
                a_thousand_runs_fit_into_one_plan,
            }
            planning_effects {
                a_slot_that_overlaps_is_a_skipped_run,
                a_slot_that_queues_is_held,
                a_replaced_pending_run_is_canceled_at_once,
                a_replaced_running_run_is_asked_to_stop,
                canceling_what_has_ended_or_never_was_does_nothing,
                folded_slots_are_a_gap,
                gaps_of_several_reasons_are_written_as_given,
                the_same_gap_twice_is_one_gap,
                a_plan_sees_what_is_active_oldest_first,
                a_dependency_is_met_by_a_recent_success_of_any_version,
                a_dependency_counts_from_the_end_of_the_run_not_from_its_slot,
                a_one_time_job_fires_once_and_waits_for_its_end,
                a_one_time_job_that_is_not_caught_up_retires,
                the_next_fire_is_not_looked_for_behind_very_many_others,
                an_org_has_its_own_timer_slots_and_runs,
            }
            starting {
                a_started_run_is_leased_to_its_instance,
                runs_start_in_the_order_of_their_time,
                runs_of_the_same_instant_start_in_the_order_of_their_ids,
                an_instance_gets_no_more_of_a_target_than_it_has_room_for,
                a_full_target_does_not_keep_others_waiting,
                a_backfill_is_beside_the_schedule,
                a_stopped_backfill_leaves_what_runs,
                backfills_that_are_not_wanted_do_not_keep_others_waiting,
                the_oldest_of_all_targets_start_first,
                a_retry_starts_not_before_its_time,
                a_held_run_waits_until_the_others_have_ended,
                a_pending_run_that_is_not_held_keeps_held_ones_waiting,
                held_runs_start_one_after_the_other_in_order,
                a_held_run_starts_in_its_place_among_the_others,
                as_many_held_runs_are_active_as_the_job_allows,
                held_runs_wait_for_their_own_job_only,
                runs_of_a_retired_job_still_start_and_those_of_a_paused_one_wait,
                a_canceled_run_never_starts,
                a_trial_of_a_target_has_no_job,
            }
            recording {
                a_success_is_written_with_result_and_output,
                a_failure_is_written_with_code_message_and_details,
                a_stopped_run_is_canceled,
                a_pending_run_can_be_canceled_by_a_transition,
                only_the_attempt_that_holds_the_run_can_end_it,
                what_has_ended_never_changes_again,
                answers_come_in_the_order_of_the_questions,
                the_same_run_twice_in_a_batch_is_recorded_once,
                an_empty_batch_is_fine,
                failures_in_a_row_are_counted,
                failures_in_one_batch_count_in_its_order,
                a_retry_is_pending_again_and_keeps_its_attempt,
                a_success_leaves_no_failure_of_an_earlier_attempt,
                a_late_answer_counts_until_somebody_settled_the_run,
                a_one_time_job_retires_when_its_run_ends,
                a_one_time_job_waits_for_the_last_attempt,
                a_run_by_hand_does_not_retire_a_one_time_job,
                a_success_ends_the_failures_of_the_one_time_job_that_it_retires,
                a_large_batch_is_recorded_whole,
            }
            outputs {
                what_a_run_printed_so_far_is_read_with_it,
                only_the_attempt_at_work_can_add_to_its_output,
                a_lost_run_keeps_what_was_heard_of_it,
                a_failed_attempt_is_read_until_the_next_begins,
                a_run_that_waits_tells_when_it_is_tried_again,
                lists_leave_out_what_runs_printed,
                outputs_go_with_their_runs,
            }
            leases {
                an_instance_extends_its_own_leases,
                a_lease_that_ran_out_is_not_extended,
                a_late_request_never_shortens_a_lease,
                the_leases_of_an_instance_are_listed,
                what_has_ended_is_not_reported,
                a_heartbeat_learns_what_is_to_be_stopped,
                a_second_attempt_is_reported_with_its_number,
                leases_that_ran_out_are_found_oldest_first,
                an_expired_lease_tells_what_settle_must_know,
                a_lost_trial_of_a_target_is_found_too,
                a_lost_run_is_settled_once,
                an_extended_lease_is_not_expired,
            }
            runs {
                an_unknown_run_is_not_found,
                a_pending_run_is_canceled_at_once,
                a_running_run_is_asked_to_stop,
                a_run_that_has_ended_cannot_be_canceled,
                canceling_the_run_of_a_one_time_job_retires_it,
                a_trial_of_a_target_reads_back,
                a_run_is_inserted_once,
            }
            run_lists {
                runs_are_listed_newest_first,
                runs_are_found_by_job,
                runs_are_found_by_status,
                runs_are_found_by_target_trigger_org_instance_and_code,
                runs_are_found_by_time,
                runs_are_counted_up_to_a_cap,
                everything_that_is_given_must_hold,
                pages_of_any_size_hold_the_same_runs,
                a_page_neither_repeats_nor_hides_runs_when_others_come,
                the_last_page_has_no_next,
                a_cursor_that_no_page_gave_is_refused_or_harmless,
            }
            gaps {
                gaps_are_listed_latest_first,
                gaps_are_found_by_reason_and_time,
                gaps_are_found_by_job_and_org,
                a_page_of_gaps_goes_on_where_the_last_ended,
                a_slot_ends_in_a_run_or_a_gap,
                a_run_inside_a_gap_is_the_outcome_of_its_slot,
                a_gap_keeps_who_made_it,
                a_pause_that_begins_again_makes_two_gaps,
            }
            instances {
                a_heartbeat_makes_an_instance_known,
                a_later_heartbeat_updates_everything,
                instances_are_listed_oldest_first,
                an_instance_learns_that_it_shall_drain,
                an_unknown_instance_cannot_be_drained,
                silent_instances_are_forgotten,
                an_instance_that_leaves_is_forgotten,
            }
            tokens {
                a_token_is_found_by_its_hash,
                a_use_is_remembered_to_the_minute,
                a_name_and_a_hash_are_taken,
                a_token_ends_when_it_expires,
                a_revoked_token_is_not_found,
                an_unknown_token_cannot_be_revoked,
                the_last_admin_stays_unless_it_may_go,
                one_of_the_last_admins_remains,
            }
            audit {
                an_entry_reads_back,
                the_trail_is_newest_first_and_in_pages,
                the_trail_of_one_object,
                the_same_entry_twice_is_one_entry,
                every_change_leaves_its_entry,
            }
            recent_runs {
                nothing_is_seen_of_jobs_that_nobody_has,
                the_newest_runs_of_each_job_are_seen,
                runs_of_every_version_are_seen,
                a_glimpse_is_what_the_run_is,
                recent_runs_may_lie_between_two_times,
                runs_of_the_same_time_are_seen_in_the_order_of_ids,
                runs_of_no_job_are_not_seen,
            }
            run_histogram {
                spans_without_runs_are_told_too,
                runs_are_counted_by_time_and_status,
                a_span_begins_with_its_bound_and_ends_before_the_next,
                runs_of_one_job_or_target_are_counted,
                lags_are_of_scheduled_runs_in_their_first_attempt,
                durations_are_of_what_began_and_ended,
            }
            counts {
                nothing_is_counted_where_there_is_nothing,
                jobs_are_counted_by_status_and_kind,
                a_job_that_cannot_fire_is_counted_while_it_lives,
                active_runs_are_counted_by_target_and_status,
                timers_that_are_due_are_counted_with_the_oldest,
                living_jobs_are_counted_by_target_and_status,
                counting_changes_nothing,
            }
            requests {
                an_answer_is_remembered,
                another_request_under_the_same_key_is_told,
                keys_are_apart,
                a_deed_is_remembered_with_what_it_made,
                a_deed_is_done_once,
                an_answer_is_kept_for_a_day,
                an_answer_stays_whatever_comes_late,
                one_of_many_does_it,
            }
            prune {
                old_runs_go_and_young_ones_stay,
                a_run_of_an_old_slot_that_ended_lately_stays,
                active_runs_are_never_pruned,
                a_job_shows_the_last_of_the_runs_that_are_kept,
                skipped_and_canceled_runs_are_pruned_too,
                no_more_of_a_kind_goes_than_the_limit,
                gaps_audit_entries_and_answers_go_with_their_time,
                requests_have_a_time_of_their_own,
                audit_entries_have_a_time_of_their_own,
                jobs_timers_and_tokens_stay,
                a_slot_whose_run_was_pruned_does_not_run_again,
            }
            text {
                names_are_any_printable_text,
                descriptions_labels_and_reasons_are_any_text,
                orgs_are_any_printable_text,
                payloads_keep_their_meaning,
                integers_that_no_machine_word_holds_keep_their_digits,
                a_payload_of_a_mebibyte_fits,
                failures_results_and_output_keep_their_text,
                a_message_with_nul_is_recorded_all_the_same,
                actors_and_objects_of_the_trail_are_any_text,
                an_edit_keeps_texts_that_it_does_not_change,
            }
            time {
                what_is_finer_than_a_microsecond_is_dropped,
                runs_and_leases_keep_microseconds,
                a_timer_is_due_to_the_microsecond,
                distant_years_read_back,
                instances_keep_their_times,
                audit_entries_keep_their_times,
                jobs_of_the_same_instant_are_all_listed,
                runs_of_the_same_instant_are_all_listed,
                the_clock_of_the_store_does_not_go_back,
            }
            waking {
                a_new_job_wakes,
                a_change_of_a_job_wakes,
                a_planned_run_wakes,
                an_inserted_run_and_its_cancellation_wake,
                everybody_who_waits_is_woken,
                a_store_tells_what_it_is,
            }
            concurrency {
                ten_workers_and_one_due_timer,
                fifty_workers_and_a_thousand_due_timers,
                eight_claimers_and_five_hundred_pending_runs,
                one_of_many_creates_a_key,
                one_of_many_changes_a_revision,
                one_of_many_records_an_outcome,
                runs_by_hand_at_once_obey_overlap,
                held_runs_start_one_at_a_time_however_many_ask,
                a_lease_is_extended_or_lost_but_not_both,
            }
            faults {
                a_failure_before_the_verb_changes_nothing_and_one_after_it_everything,
                an_engine_whose_nth_call_fails_loses_and_doubles_nothing,
                an_engine_over_a_flaky_store_loses_and_doubles_nothing,
                two_engines_over_flaky_connections_lose_and_double_nothing,
                a_failure_inside_of_a_verb_loses_and_doubles_nothing,
            }
            model {
                random_sequences_of_planning_and_running,
                more_random_sequences_of_planning_and_running,
                random_sequences_of_what_operators_do,
                more_random_sequences_of_what_operators_do,
                random_sequences_of_failures_and_lost_leases,
                more_random_sequences_of_failures_and_lost_leases,
                random_sequences_of_everything,
                more_random_sequences_of_everything,
            }
        }
    };
}

/// Makes a test of each case of the conformance suite, in one module for each family.
///
/// The argument is the name of an `async fn() -> Fresh` in scope, which opens an empty store.
#[macro_export]
macro_rules! conformance_tests {
    ($fresh:ident) => {
        $crate::conformance_cases! { [$crate::conformance_test_functions] $fresh }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_test_functions {
    ({ $fresh:ident } $($family:ident { $($case:ident),+ $(,)? })+) => {
        $(mod $family {
            $(
                #[test]
                fn $case() {
                    $crate::conformance::run(super::$fresh(), $crate::conformance::$family::$case);
                }
            )+
        })+
    };
}

macro_rules! case_values {
    ({} $($family:ident { $($case:ident),+ $(,)? })+) => {
        vec![$($(
            Case {
                family: stringify!($family),
                name: stringify!($case),
                run: |fresh| Box::pin(super::$family::$case(fresh)),
            },
        )+)+]
    };
}

/// Every case, for a runner of one's own.
pub fn cases() -> Vec<Case> {
    conformance_cases!([case_values])
}
