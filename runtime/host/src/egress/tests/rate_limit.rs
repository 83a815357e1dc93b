//! The decisions, at times that are made up.

use std::time::Duration;

use tokio::time::Instant;

use crate::egress::budget::rate_limit::*;
use crate::grants::HttpGrant;

const SECOND: Duration = Duration::from_secs(1);

fn grant(requests_per_second: f64, burst: u32) -> HttpGrant {
    HttpGrant {
        requests_per_second: Some(requests_per_second),
        burst: Some(burst),
        ..HttpGrant::default()
    }
}

fn limited(requests_per_second: f64, burst: u32, now: Instant) -> RateLimit {
    RateLimit::new(Rate::of(&grant(requests_per_second, burst)), now)
}

/// Asks for a new ticket and leaves again unless it may go.
fn ask(limit: &mut RateLimit, now: Instant, latest: Instant) -> Turn {
    let ticket = limit.enter();
    let turn = limit.turn(ticket, now, latest);
    limit.leave(ticket);
    turn
}

#[test]
fn without_a_budget_no_call_waits() {
    let now = Instant::now();
    let mut limit = RateLimit::new(Rate::of(&HttpGrant::default()), now);
    assert!((0..10_000).all(|_| ask(&mut limit, now, now) == Turn::Go));
}

#[test]
fn burst_goes_at_once_and_then_the_flow_is_even() {
    let now = Instant::now();
    let mut limit = limited(4.0, 3, now);
    for _ in 0..3 {
        assert_eq!(ask(&mut limit, now, now + SECOND), Turn::Go);
    }
    let next = now + SECOND / 4;
    assert_eq!(ask(&mut limit, now, now + SECOND), Turn::Wait(next, Held::Budget));
    assert_eq!(ask(&mut limit, next, now + SECOND), Turn::Go);
    assert_eq!(
        ask(&mut limit, next, now + SECOND),
        Turn::Wait(next + SECOND / 4, Held::Budget)
    );
    // After a rest the whole burst is there again, and no more.
    let later = now + 100 * SECOND;
    assert!(limit.is_idle(later));
    let goes = (0..10)
        .filter(|_| ask(&mut limit, later, later + SECOND) == Turn::Go)
        .count();
    assert_eq!(goes, 3);
}

#[test]
fn what_is_left_of_a_budget_can_be_read_without_using_it() {
    let now = Instant::now();
    assert_eq!(RateLimit::new(None, now).left(now), None);
    let mut limit = limited(4.0, 3, now);
    let left = |limit: &RateLimit, at| limit.left(at).unwrap().left;
    assert_eq!((left(&limit, now), left(&limit, now)), (3, 3));
    assert_eq!(ask(&mut limit, now, now), Turn::Go);
    assert_eq!(ask(&mut limit, now, now), Turn::Go);
    assert_eq!((left(&limit, now), limit.left(now).unwrap().per_second), (1, 4.0));
    assert_eq!(left(&limit, now + SECOND / 8), 1, "no whole request yet");
    assert_eq!(left(&limit, now + SECOND / 4), 2);
    assert_eq!(left(&limit, now + SECOND), 3);
    limit.pause(10 * SECOND, now);
    assert_eq!((left(&limit, now), limit.paused_for(now)), (0, Some(10 * SECOND)));
    assert_eq!(limit.paused_for(now + 10 * SECOND), None);
    assert_eq!(left(&limit, now + 10 * SECOND), 1, "one trial after a pause");
}

#[test]
fn who_comes_first_goes_first() {
    let now = Instant::now();
    let mut limit = limited(1.0, 1, now);
    let far = now + 100 * SECOND;
    assert_eq!(ask(&mut limit, now, far), Turn::Go);
    let (first, second) = (limit.enter(), limit.enter());
    let next = now + SECOND;
    assert!(matches!(limit.turn(second, next, far), Turn::Wait(..)));
    assert_eq!(limit.turn(first, next, far), Turn::Go);
    assert_eq!(limit.turn(second, next, far), Turn::Wait(next + SECOND, Held::Budget));
    // Who gives up makes room for those behind.
    let third = limit.enter();
    limit.leave(second);
    assert_eq!(limit.turn(third, next + SECOND, far), Turn::Go);
}

#[test]
fn overlong_wait_is_refused_at_once_with_its_length() {
    let now = Instant::now();
    let mut limit = limited(1.0, 1, now);
    let far = now + 100 * SECOND;
    assert_eq!(ask(&mut limit, now, far), Turn::Go);
    let _waiting = [limit.enter(), limit.enter()];
    let late = limit.enter();
    assert_eq!(
        limit.turn(late, now, now + 2 * SECOND),
        Turn::TooLate(3 * SECOND, Held::Budget)
    );
    assert!(matches!(limit.turn(late, now, now + 3 * SECOND), Turn::Wait(..)));
}

#[test]
fn pause_holds_all_and_is_never_longer_than_the_longest() {
    let now = Instant::now();
    let mut limit = RateLimit::new(None, now);
    assert!(limit.pause(10 * SECOND, now));
    assert!(!limit.pause(SECOND, now), "it began twice");
    assert_eq!(
        ask(&mut limit, now, now + SECOND),
        Turn::TooLate(10 * SECOND, Held::Pause)
    );
    assert_eq!(
        ask(&mut limit, now, now + 20 * SECOND),
        Turn::Wait(now + 10 * SECOND, Held::Pause)
    );
    limit.pause(Duration::from_secs(86_400), now);
    assert_eq!(
        ask(&mut limit, now, now + SECOND),
        Turn::TooLate(MAX_PAUSE, Held::Pause)
    );
    assert_eq!(ask(&mut limit, now + MAX_PAUSE, now + MAX_PAUSE), Turn::Go);
}

#[test]
fn syself_1331_one_request_probes_after_a_pause() {
    let now = Instant::now();
    let mut limit = RateLimit::new(None, now);
    limit.pause(SECOND, now);
    let over = now + SECOND;
    let far = now + 100 * SECOND;
    let [trial, second, third] = [limit.enter(), limit.enter(), limit.enter()];
    assert_eq!(limit.turn(trial, over, far), Turn::Go);
    assert_eq!(limit.turn(second, over, far), Turn::Wait(far, Held::Pause));
    // It meets the limit again: the next pause, and the next single trial.
    assert!(limit.pause(SECOND, over));
    limit.leave(trial);
    let over = over + SECOND;
    assert_eq!(limit.turn(second, over, far), Turn::Go);
    assert_eq!(limit.turn(third, over, far), Turn::Wait(far, Held::Pause));
    limit.leave(second);
    assert_eq!(limit.turn(third, over, far), Turn::Go);
    limit.leave(third);
    assert!(limit.is_idle(over));
}

#[test]
fn slow_trial_does_not_hold_another_call_past_its_deadline() {
    let now = Instant::now();
    let mut limit = RateLimit::new(None, now);
    limit.pause(SECOND, now);
    let over = now + SECOND;
    let [trial, other] = [limit.enter(), limit.enter()];
    assert_eq!(limit.turn(trial, over, over), Turn::Go);
    let latest = over + SECOND;
    assert_eq!(limit.turn(other, over, latest), Turn::Wait(latest, Held::Pause));
    assert_eq!(limit.turn(other, latest, latest), Turn::TooLate(SOON, Held::Pause));
}

#[test]
fn syself_1331_after_a_pause_there_is_no_burst() {
    let now = Instant::now();
    let mut limit = limited(1.0, 10, now);
    limit.pause(5 * SECOND, now);
    let over = now + 5 * SECOND;
    let far = over + 100 * SECOND;
    assert_eq!(ask(&mut limit, over, far), Turn::Go);
    assert_eq!(ask(&mut limit, over, far), Turn::Wait(over + SECOND, Held::Budget));
}

#[test]
fn hcloud_661_hourly_quota_holds_for_any_request_rate() {
    let start = Instant::now();
    // The quota of Hetzner: 3600 requests an hour. A provider gone wild asks ten times a second, and may have the half of it.
    let mut limit = limited(0.5, 10, start);
    let sent = (0..36_000)
        .filter(|tick| {
            let now = start + *tick * SECOND / 10;
            ask(&mut limit, now, now) == Turn::Go
        })
        .count();
    assert!((1800..=1810).contains(&sent), "{sent} requests in an hour");
}

#[test]
fn of_two_budgets_the_smaller_numbers_count() {
    let [a, b] = [grant(1.0, 10), grant(5.0, 2)].map(|grant| Rate::of(&grant).unwrap());
    assert_eq!(a.smaller(b), Rate::of(&grant(1.0, 2)).unwrap());
    assert_eq!(b.smaller(a), a.smaller(b));
}
