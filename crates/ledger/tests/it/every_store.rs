//! The same promises on every store: what elsewhere is tried in memory, tried on a disk, in an etcd and in a cluster.

use std::sync::Arc;

use crate::{
    faults::nobody_is_lied_to_on, properties::the_book_comes_back_from, store_under_test::StoreFactory,
};

macro_rules! tests {
    ($($module:ident: $($test:ident)*;)*) => {
        &[$($((concat!(stringify!($module), "::", stringify!($test)), crate::$module::$test as fn())),*),*]
    };
}

/// All that a store can have a part in.
const TESTS: &[(&str, fn())] = tests! {
    commit_pipelining: when_a_commit_fails_what_was_decided_on_it_is_decided_anew
        when_a_commit_landed_after_all_what_follows_stands_on_it
        a_refusal_because_of_what_never_came_to_be_is_never_heard the_second_commit_may_fail_as_well
        each_answer_comes_when_its_own_commit_is_durable_and_reads_wait_for_all
        what_writes_nothing_waits_for_the_commit_before_it_and_needs_none_of_its_own
        a_leader_that_was_deposed_meanwhile_has_done_neither
        a_ledger_that_closes_answers_what_it_has_decided
        who_waits_in_the_queue_hears_only_what_is_durable;
    store_check: what_a_ledger_and_the_other_rooms_wrote_is_sound a_store_without_a_ledger_is_sound
        what_is_wrong_with_the_store_as_a_whole_is_told
        what_can_be_mended_is_mended_and_nobody_loses_an_address
        what_changed_since_the_check_is_not_mended half_a_store_is_not_mended;
    following: who_follows_reads_what_was_acknowledged_and_decides_nothing
        the_lead_goes_back_and_forth_and_events_reach_everybody_once
        before_there_is_a_ledger_there_is_nothing_to_read_and_then_there_is
        who_missed_too_much_loads_everything_anew
        a_new_leader_gives_each_lease_its_full_time_whatever_it_followed
        who_closes_gives_up_the_lead_and_who_follows_goes_on;
    hazards: a1_a_second_leader_fences_the_first a1_a_commit_that_landed_unnoticed_is_noticed
        a1_what_a_deposed_leader_cannot_learn_is_unknown a2_a_repeat_on_a_stale_leader_is_refused
        a2_a_repeat_waits_for_the_commit_it_repeats a4_a_request_that_comes_too_late_is_dropped
        a5_ledger_time_stands_still_while_nobody_leads a6_many_hosts_may_report_one_address
        a8_sixty_four_entries_are_one_commit_and_more_are_refused
        a8_a_bulk_fits_however_many_ask_beside_it a8_a_bulk_is_all_or_none
        a10_a_restored_ledger_hands_out_nothing_by_itself_until_it_is_resumed
        a16_an_outage_is_told_and_heals a11_what_is_large_still_goes_in_time;
    history: every_change_of_a_holder_or_a_pool_leaves_an_event
        renewals_repeats_and_sightings_leave_none an_event_says_who_asked_with_which_request
        history_is_found_by_address_by_key_and_by_time pages_of_events_go_on_where_they_ended
        who_listens_hears_every_event_once_and_in_order
        old_events_go_but_the_newest_of_each_address_stays events_older_than_they_are_kept_for_go
        what_was_spared_goes_once_something_newer_happened_there
        the_newest_of_an_address_stays_in_each_vrf a_clock_that_jumps_a_year_ahead_costs_no_history;
    migrate: a_moved_ledger_is_the_same_ledger what_is_not_empty_or_not_sound_is_left_alone
        whatever_commit_breaks_one_store_opens_at_most_and_moving_again_ends_it
        what_changes_while_it_is_copied_is_not_moved;
    claim_names: a_name_is_the_hostname_else_the_key_else_there_is_none_with_a_reason;
    pools: pools_of_one_vrf_never_overlap a_pool_may_lie_inside_a_held_prefix_which_then_stays
        the_lease_of_a_prefix_with_a_pool_in_it_goes_on
        a_change_that_would_strand_a_holder_is_refused a_change_names_the_version_it_was_made_from
        a_pool_in_use_stays_unless_forced_with_a_reason
        what_rests_goes_on_resting_under_another_pool pools_of_the_file_are_changed_by_the_file_only
        a_reserved_range_is_for_its_owner_by_name only_the_owner_or_a_manager_touches_a_claim
        a_prefix_over_the_seam_of_two_ranges_is_as_good_as_any;
    promises: asking_again_returns_the_same_address
        another_owner_hears_who_holds_the_key_unless_it_adopts
        a_repeat_with_other_labels_changes_them_and_leaves_an_event
        a_past_claim_is_already_gone_and_its_address_stays_with_the_next
        a_released_address_rests_and_its_own_key_gets_it_back
        force_takes_what_rests_but_never_what_is_held
        when_nothing_else_is_free_what_rested_longest_goes_early the_order_of_the_pool_decides
        the_first_of_several_pools_with_room_wins_and_the_key_is_one_over_all
        a_lease_is_renewed_or_expires_into_rest a_clock_that_jumps_a_year_either_way_expires_nothing
        what_was_seen_is_handed_out_to_nobody_and_never_ends_by_age
        a_sighting_ends_when_complete_reports_lack_it_beyond_grace
        what_was_seen_before_there_was_a_pool_is_not_handed_out_by_one_made_later
        only_who_may_write_forces_its_way_over_a_reservation an_owner_gets_no_more_than_its_share
        a_restart_keeps_everything answers_carry_the_number_they_know_of;
    queueing: whoever_came_first_is_served_first the_end_of_a_rest_wakes_the_queue
        a_place_in_the_queue_survives_a_new_leader
        whose_caller_went_away_leaves_the_queue_unless_it_keeps_its_place
        waiting_ends_with_exhausted_when_its_time_is_over
        whoever_asked_last_decides_whether_a_place_outlasts_the_wait
        hundreds_whose_time_is_over_at_once_all_hear_the_same
        whose_place_is_given_up_hears_of_it_at_once the_pool_named_first_serves_if_several_can
        who_may_have_no_more_holds_up_nobody a_ledger_that_closes_tells_those_who_wait;
    concurrent_claims: sixty_four_at_once_get_sixty_four_addresses
        of_sixty_four_for_sixty_three_addresses_one_hears_that_there_is_none
        sixty_four_who_ask_with_one_key_get_one_address;
    retries: every_kind_of_request_may_be_repeated;
    restoring: what_was_given_out_after_the_backup_is_given_to_nobody_else
        who_lost_something_gets_it_back_by_name_and_an_old_id_touches_nothing
        whatever_commit_breaks_half_a_ledger_is_not_opened what_was_not_sound_is_restored_and_said_to_be_so
        the_backup_of_a_newer_store_touches_no_store_of_an_older_program;
    regressions: behind_a_resting_prefix_there_may_be_a_holder
        a_resting_prefix_does_not_come_back_over_what_was_forced_out_of_it
        a_pool_inside_a_prefix_leaves_the_prefix_alone_when_it_goes
        a_refused_bulk_leaves_no_claim_behind_in_a_pool_inside_a_prefix
        reservations_of_pools_inside_each_other_are_kept_apart
        a_prefix_over_two_reservations_is_for_neither_owner
        a_prefix_may_lie_over_the_seam_of_two_ranges
        the_last_of_several_addresses_comes_back_whoever_leads what_is_refused_lengthens_no_lease
        many_machines_on_one_address_are_one_sighting who_waits_for_a_prefix_is_not_given_an_address
        what_did_not_fit_beside_a_resume_is_not_written;
};

fn the_promises_hold_on(ground: &Arc<StoreFactory>) {
    for (name, test) in TESTS {
        println!("{name}");
        ground.run_test(test);
    }
}

/// Random commands are stored and make the same Book again; random faults cause no wrong answer.
fn luck_changes_nothing_on(ground: &Arc<StoreFactory>, cases: u32, seeds: u64) {
    the_book_comes_back_from(ground, cases);
    nobody_is_lied_to_on(ground, seeds);
}

#[test]
fn the_promises_hold_on_a_disk() {
    the_promises_hold_on(&StoreFactory::local());
}

#[test]
fn on_a_disk_luck_changes_nothing() {
    luck_changes_nothing_on(&StoreFactory::local(), 8, 6);
}

#[test]
fn the_promises_hold_in_an_etcd() {
    let Some(ground) = StoreFactory::etcd(1) else { return };
    the_promises_hold_on(&ground);
}

#[test]
fn in_an_etcd_luck_changes_nothing() {
    let Some(ground) = StoreFactory::etcd(1) else { return };
    luck_changes_nothing_on(&ground, 6, 4);
}

#[test]
fn the_promises_hold_in_three_etcds() {
    let Some(ground) = StoreFactory::etcd(3) else { return };
    the_promises_hold_on(&ground);
}

#[test]
fn in_three_etcds_luck_changes_nothing() {
    let Some(ground) = StoreFactory::etcd(3) else { return };
    luck_changes_nothing_on(&ground, 4, 4);
}

#[test]
fn the_promises_hold_in_a_cluster() {
    the_promises_hold_on(&StoreFactory::raft());
}

#[test]
fn in_a_cluster_luck_changes_nothing() {
    luck_changes_nothing_on(&StoreFactory::raft(), 4, 4);
}

#[test]
#[ignore = "it takes as long as it is told to: CONTRIBUTING.md has the command"]
fn luck_changes_nothing_however_long_it_is_tried() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let cases = number("PROPTEST_CASES").unwrap_or(100);
    let seeds = number("LEDGER_SEEDS").unwrap_or(40);
    let grounds = [
        Some(StoreFactory::local()),
        StoreFactory::etcd(1),
        StoreFactory::etcd(3),
        Some(StoreFactory::raft()),
    ];
    for ground in grounds.iter().flatten() {
        luck_changes_nothing_on(ground, cases, seeds.into());
    }
}
