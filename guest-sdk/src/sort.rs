//! Sorting in little code.
//!
//! The standard library's sort is fast and comes to 3 to 5 KB of component for each type that is sorted; a provider sorts a dozen types. These
//! take 200 bytes each: places in the list are sorted, which is the same code for all, and the entries moved once.

use crate::without_std::prelude::*;
use core::cmp::Ordering;

/// Sorts a list; equal entries keep their order.
///
/// ```
/// let mut zones = ["b", "a", "c"];
/// cloudwit_guest_sdk::sort::sort(&mut zones);
/// assert_eq!(zones, ["a", "b", "c"]);
/// ```
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, Ord::cmp);
}

/// Sorts a list by what `key` gives; equal entries keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts a list by a comparison; equal entries keep their order.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let places = places(items.len(), &|a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b).is_lt(),
        _ => false,
    });
    for place in 0..places.len() {
        items.swap(place, moved(&places, place));
    }
}

/// For each place of the sorted list the one its entry comes from: sorted runs of twice the length each round.
fn places(count: usize, less: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    let mut length = 1;
    while length < count {
        let mut merged = Vec::with_capacity(count);
        for runs in places.chunks(2 * length) {
            let (mut first, mut second) = runs.split_at(length.min(runs.len()));
            while let ([a, ..], [b, ..]) = (first, second) {
                let next = if less(*b, *a) { &mut second } else { &mut first };
                merged.extend(next.split_off_first());
            }
            merged.extend_from_slice(first);
            merged.extend_from_slice(second);
        }
        places = merged;
        length *= 2;
    }
    places
}

/// Where the entry for this place is now, after those before it have been swapped into theirs.
fn moved(places: &[usize], place: usize) -> usize {
    let mut from = place;
    loop {
        from = places.get(from).copied().unwrap_or(place);
        if from >= place {
            return from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_a_few_entries_is_sorted() {
        // 5 entries of 4 kinds in every arrangement, so that equal ones are among them.
        for n in 0..4usize.pow(5) {
            let kinds: Vec<usize> = (0..5).map(|digit| n >> (2 * digit) & 3).collect();
            let mut items: Vec<(usize, usize)> = kinds.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(kind, _)| *kind);
            sort_by_key(&mut items, |(kind, _)| *kind);
            assert_eq!(items, expected, "equal entries keep their order");
        }
    }

    #[test]
    fn long_lists_in_any_order_are_sorted() {
        let count = 5_000u64;
        let mixed = |step: u64| (0..count).map(move |n| n * step % 4_999);
        for items in [mixed(1), mixed(4_998), mixed(1_237), mixed(0)] {
            let mut items: Vec<String> = items.map(|n| n.to_string()).collect();
            let mut expected = items.clone();
            expected.sort();
            sort(&mut items);
            assert!(items == expected);
        }
        sort::<u8>(&mut []);
    }

    #[test]
    fn what_has_no_sensible_order_ends_all_the_same_and_loses_nothing() {
        let mut items: Vec<u32> = (0..100).collect();
        sort_by(&mut items, |_, _| Ordering::Less);
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
