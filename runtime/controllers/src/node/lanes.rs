//! Keeps the look-ups of several providers apart: one that hangs holds up its own Nodes and no others. Pure.
//!
//! Each provider has so many look-ups in flight at most, and fewer where they are full; what comes meanwhile waits and then shares the
//! next one.

use std::collections::VecDeque;

/// Look-ups of one provider that may be in flight at once: a slow one must not hold up Nodes that come after it, and a crowd of them
/// must not undo the batching.
pub const LOOKUPS_IN_FLIGHT: usize = 4;

/// Full look-ups of one provider: one is written while the next is asked for. What is known of each of their Nodes is held until that Node is
/// written, a kilobyte and more, so four thousand instead of two would be megabytes in a wave.
const FULL_LOOKUPS_IN_FLIGHT: usize = 2;

/// One lane for each provider.
#[derive(Debug)]
pub struct Lanes<T>(Vec<Lane<T>>);

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<T>,
    in_flight: usize,
    items_in_flight: usize,
}

impl<T> Lane<T> {
    /// Whether a look-up for at most `limit` items may begin.
    fn has_room(&self, limit: usize) -> bool {
        self.in_flight < LOOKUPS_IN_FLIGHT && self.items_in_flight < limit.saturating_mul(FULL_LOOKUPS_IN_FLIGHT)
    }
}

impl<T> Lanes<T> {
    /// So many empty lanes.
    pub fn new(count: usize) -> Self {
        let lane = || Lane {
            waiting: VecDeque::new(),
            in_flight: 0,
            items_in_flight: 0,
        };
        Self(std::iter::repeat_with(lane).take(count).collect())
    }

    /// Whether any provider could be asked at once, about at most `limit` items. While none could, what comes is better left in the queue.
    pub fn have_room(&self, limit: usize) -> bool {
        self.0.iter().any(|lane| lane.has_room(limit))
    }

    /// Something to ask the provider at this place about.
    pub fn add(&mut self, place: usize, item: T) {
        if let Some(lane) = self.0.get_mut(place) {
            lane.waiting.push_back(item);
        }
    }

    /// The next look-up that may begin, for at most `limit` items (at least 1), and its place. It counts as in flight until [`done`](Self::done).
    pub fn next(&mut self, limit: usize) -> Option<(usize, Vec<T>)> {
        let may_begin = |lane: &Lane<T>| lane.has_room(limit) && !lane.waiting.is_empty();
        let place = self.0.iter().position(may_begin)?;
        let lane = &mut self.0[place];
        let items: Vec<T> = lane.waiting.drain(..lane.waiting.len().min(limit)).collect();
        lane.in_flight += 1;
        lane.items_in_flight += items.len();
        Some((place, items))
    }

    /// A look-up of the provider at this place, for so many items, has ended, and so has all work that it led to.
    pub fn done(&mut self, place: usize, items: usize) {
        if let Some(lane) = self.0.get_mut(place) {
            lane.in_flight = lane.in_flight.saturating_sub(1);
            lane.items_in_flight = lane.items_in_flight.saturating_sub(items);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_hangs_does_not_keep_another_from_being_asked() {
        let mut lanes = Lanes::new(2);
        for item in 0..10 {
            lanes.add(0, item);
            let begun = lanes.next(100).map(|(place, _)| place);
            assert_eq!(begun, (item < LOOKUPS_IN_FLIGHT).then_some(0), "{item}");
        }
        assert!(lanes.have_room(100));
        lanes.add(1, 99);
        assert_eq!(lanes.next(100), Some((1, vec![99])));
    }

    #[test]
    fn what_came_meanwhile_shares_the_next_look_up_up_to_the_limit() {
        let mut lanes = Lanes::new(1);
        for item in 0..LOOKUPS_IN_FLIGHT {
            lanes.add(0, item);
            lanes.next(100).unwrap();
        }
        assert!(!lanes.have_room(100));
        (10..15).for_each(|item| lanes.add(0, item));
        assert_eq!(lanes.next(3), None);
        lanes.done(0, 1);
        assert_eq!(lanes.next(3), Some((0, vec![10, 11, 12])));
        lanes.done(0, 1);
        assert_eq!(lanes.next(3), Some((0, vec![13, 14])));
    }

    #[test]
    fn a_wave_is_held_by_two_full_look_ups_and_not_by_four() {
        let mut lanes = Lanes::new(1);
        (0..10).for_each(|item| lanes.add(0, item));
        assert_eq!(lanes.next(3), Some((0, vec![0, 1, 2])));
        assert_eq!(lanes.next(3), Some((0, vec![3, 4, 5])));
        assert_eq!(lanes.next(3), None);
        assert!(!lanes.have_room(3));
        lanes.done(0, 3);
        assert_eq!(lanes.next(3), Some((0, vec![6, 7, 8])));
        lanes.done(0, 3);
        lanes.done(0, 3);
        assert_eq!(lanes.next(3), Some((0, vec![9])));
        assert!(lanes.have_room(3));
    }
}
