//! Which Services share a call that brings their targets up to date. Pure.
//!
//! A provider lists its load balancers once a call, so one call for many costs the cloud fewer requests than a call for each. Workers that are
//! idle share the work, so that a batch takes no longer than calls side by side would.

use cloudwit_model::MAX_TARGET_UPDATES;

use crate::kube::cache::Key;

/// How many ready keys are considered when the first of them is taken, with so many workers idle.
pub fn horizon(idle: usize) -> usize {
    idle.max(1).saturating_mul(MAX_TARGET_UPDATES)
}

/// Of the Services that wait for new targets and may share a call, those that go into the call of the one that was taken. `idle` workers, among
/// them the one that makes this call, have the same work to do.
pub fn company(mut waiting: Vec<Key>, idle: usize) -> Vec<Key> {
    let size = (waiting.len() + 1).div_ceil(idle.max(1)).min(MAX_TARGET_UPDATES);
    waiting.truncate(size - 1);
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of the calls that idle workers make one after the other.
    fn sizes(services: usize, workers: usize) -> Vec<usize> {
        let (mut left, mut idle, mut sizes) = (services, workers, Vec::new());
        while left > 0 {
            let keys: Vec<Key> = (1..left).map(|number| Key::from(number.to_string())).collect();
            let seen = keys.into_iter().take(horizon(idle) - 1).collect();
            let size = 1 + company(seen, idle).len();
            sizes.push(size);
            (left, idle) = (left - size, if idle > 1 { idle - 1 } else { workers });
        }
        sizes
    }

    #[test]
    fn services_are_shared_out_among_idle_workers() {
        assert_eq!(sizes(200, 8), [25; 8]);
        assert_eq!(sizes(200, 1), [50; 4], "no call is larger than the contract allows");
        assert_eq!(sizes(3, 8), [1; 3]);
        assert_eq!(sizes(10, 4), [3, 3, 2, 2]);
        assert_eq!(sizes(1000, 2), [50; 20]);
        assert!(company(Vec::new(), 0).is_empty());
    }

    #[test]
    fn those_that_waited_longest_go_first() {
        let keys: Vec<Key> = ["a", "b", "c", "d"].map(Key::from).into();
        assert_eq!(company(keys.clone(), 2), keys[..2]);
    }
}
