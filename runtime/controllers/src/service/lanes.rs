//! Shares the workers among the load balancers of several providers: one that hangs holds up its own and no others. Pure.
//!
//! A provider may have every worker but those that are left for the others: one for each that has none at work. So each always has a worker
//! to begin with, and a provider that is alone, or the only busy one but for these, has all of them.

use std::collections::VecDeque;

/// One lane for each provider, and how many workers there are for all.
#[derive(Debug)]
pub struct ServiceLanes<T> {
    workers: usize,
    lanes: Vec<Lane<T>>,
}

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<T>,
    at_work: usize,
}

impl<T> ServiceLanes<T> {
    /// Empty lanes. With fewer workers than providers there are as many workers as providers.
    pub fn new(workers: usize, providers: usize) -> Self {
        let lane = || Lane {
            waiting: VecDeque::new(),
            at_work: 0,
        };
        let providers = providers.max(1);
        Self {
            workers: workers.max(providers),
            lanes: std::iter::repeat_with(lane).take(providers).collect(),
        }
    }

    fn free(&self) -> usize {
        let at_work: usize = self.lanes.iter().map(|lane| lane.at_work).sum();
        self.workers.saturating_sub(at_work)
    }

    /// Whether any worker is free. While none is, what comes is better left in the queue.
    pub fn have_room(&self) -> bool {
        self.free() > 0
    }

    /// Something to do for the provider at this place.
    pub fn add(&mut self, place: usize, item: T) {
        let last = self.lanes.len() - 1;
        self.lanes[place.min(last)].waiting.push_back(item);
    }

    /// What a worker may begin now, and for which provider: that with the fewest at work. It counts as at work until [`done`](Self::done).
    pub fn next(&mut self) -> Option<(usize, T)> {
        let free = self.free();
        let idle = self.lanes.iter().filter(|lane| lane.at_work == 0).count();
        let may_begin = |lane: &Lane<T>| {
            let left_for_others = idle - usize::from(lane.at_work == 0);
            !lane.waiting.is_empty() && free > left_for_others
        };
        let places = (0..self.lanes.len()).filter(|place| may_begin(&self.lanes[*place]));
        let place = places.min_by_key(|place| self.lanes[*place].at_work)?;
        let lane = &mut self.lanes[place];
        let item = lane.waiting.pop_front()?;
        lane.at_work += 1;
        Some((place, item))
    }

    /// Work for the provider at this place has ended.
    pub fn done(&mut self, place: usize) {
        if let Some(lane) = self.lanes.get_mut(place) {
            lane.at_work = lane.at_work.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many items of one provider begin.
    fn begun(lanes: &mut ServiceLanes<usize>, place: usize, items: usize) -> usize {
        (0..items).for_each(|item| lanes.add(place, item));
        std::iter::from_fn(|| lanes.next()).count()
    }

    #[test]
    fn a_provider_that_is_alone_has_all_workers_and_no_more() {
        let mut lanes = ServiceLanes::new(3, 1);
        assert_eq!(begun(&mut lanes, 0, 10), 3);
        assert!(!lanes.have_room());
        lanes.done(0);
        assert!(lanes.have_room());
        assert_eq!(lanes.next(), Some((0, 3)), "in the order in which they came");
    }

    #[test]
    fn providers_that_hang_leave_a_worker_to_each_other_one() {
        let mut lanes = ServiceLanes::new(5, 3);
        assert_eq!(begun(&mut lanes, 0, 10), 3);
        assert_eq!(begun(&mut lanes, 1, 10), 1, "the last one is for the third");
        assert_eq!(begun(&mut lanes, 2, 10), 1);
        assert!(!lanes.have_room());
        lanes.done(2);
        assert_eq!(lanes.next().map(|(place, _)| place), Some(2), "its own goes on with it");
    }

    #[test]
    fn with_fewer_workers_than_providers_each_has_one() {
        let mut lanes = ServiceLanes::new(1, 2);
        assert_eq!(begun(&mut lanes, 0, 10), 1);
        assert!(lanes.have_room());
        assert_eq!(begun(&mut lanes, 1, 10), 1);
        assert!(!lanes.have_room());
    }

    #[test]
    fn who_has_the_fewest_at_work_is_next() {
        let mut lanes = ServiceLanes::new(6, 2);
        (0..4).for_each(|item| lanes.add(0, item));
        (0..4).for_each(|item| lanes.add(1, item));
        let places: Vec<usize> = std::iter::from_fn(|| lanes.next()).map(|(place, _)| place).collect();
        assert_eq!(places, [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_place_that_is_nobodys_is_the_last_ones() {
        let mut lanes = ServiceLanes::new(1, 1);
        lanes.add(7, "x");
        assert_eq!(lanes.next(), Some((0, "x")));
    }
}
