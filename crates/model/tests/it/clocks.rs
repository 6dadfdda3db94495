use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use netstead_model::{Clock, ManualClock, SystemClock};

#[test]
fn a_manual_clock_stands_still_and_its_clones_move_with_it() {
    let clock = ManualClock::default();
    let (other, start) = (clock.shared(), clock.wall());
    assert_eq!((other.wall(), other.monotonic()), (start, Duration::ZERO));
    clock.advance(Duration::from_millis(1500));
    assert_eq!(other.monotonic(), Duration::from_millis(1500));
    assert_eq!(other.wall().duration_since(start), SignedDuration::from_millis(1500));
}

#[test]
fn a_jump_of_the_wall_leaves_the_measured_time_alone() {
    let clock = ManualClock::at("2026-03-29T01:59:59Z".parse().unwrap());
    clock.jump_wall(SignedDuration::from_hours(-1));
    assert_eq!(clock.wall().to_string(), "2026-03-29T00:59:59Z");
    assert_eq!(clock.monotonic(), Duration::ZERO);
}

#[test]
fn a_manual_clock_stops_at_the_ends_of_time() {
    let clock = ManualClock::default();
    clock.jump_wall(SignedDuration::MIN);
    assert_eq!(clock.wall(), Timestamp::MIN);
    clock.advance(Duration::MAX);
    clock.advance(Duration::MAX);
    assert_eq!((clock.wall(), clock.monotonic()), (Timestamp::MAX, Duration::MAX));
}

#[test]
fn the_system_clock_never_goes_back_and_all_of_it_agrees() {
    let (one, other) = (SystemClock, SystemClock::shared());
    let moments = [one.monotonic(), other.monotonic(), one.monotonic()];
    assert!(moments.is_sorted(), "{moments:?}");
    assert!(one.wall() > ManualClock::default().wall());
}
