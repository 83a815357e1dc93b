//! State under paused time: expiry, eviction, versions, swaps, locks.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::*;

const FOR_EVER: Keep = Keep {
    for_time: None,
    over_swap: false,
};

fn keep(seconds: u64) -> Keep {
    Keep {
        for_time: Some(Duration::from_secs(seconds)),
        over_swap: false,
    }
}

/// Room for so many entries with a key of one byte and a value of nine.
fn room_for(entries: u64) -> StateStore {
    StateStore::new(entries * (10 + ENTRY_OVERHEAD))
}

fn value() -> Vec<u8> {
    vec![7; 9]
}

fn keys(store: &StateStore) -> String {
    ["a", "b", "c", "d", "e"]
        .into_iter()
        .filter(|key| store.get(key).is_some())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_there_until_it_expires() {
    let store = room_for(3);
    store.put("a", value(), keep(10)).unwrap();
    store.put("b", value(), FOR_EVER).unwrap();
    tokio::time::advance(Duration::from_millis(9_999)).await;
    assert_eq!(keys(&store), "ab");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(keys(&store), "b");
    assert_eq!(usage(&store), (10 + ENTRY_OVERHEAD, 1));
}

#[tokio::test(start_paused = true)]
async fn the_entry_closest_to_its_expiry_makes_room() {
    let store = room_for(3);
    store.put("a", value(), FOR_EVER).unwrap();
    store.put("b", value(), keep(10)).unwrap();
    store.put("c", value(), keep(5)).unwrap();
    store.put("d", value(), FOR_EVER).unwrap();
    assert_eq!(keys(&store), "abd");
    store.put("e", value(), FOR_EVER).unwrap();
    assert_eq!(keys(&store), "ade");
    store.put("b", value(), FOR_EVER).unwrap();
    assert_eq!(
        keys(&store),
        "bde",
        "the one longest unchanged goes first among those without expiry"
    );
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_could_never_fit_changes_nothing() {
    let store = room_for(1);
    store.put("a", value(), FOR_EVER).unwrap();
    assert_eq!(
        store.put("a", vec![0; 10], FOR_EVER),
        Err(StateError::TooLarge(10 + ENTRY_OVERHEAD))
    );
    assert_eq!(store.get("a").unwrap().value, value());
}

#[tokio::test(start_paused = true)]
async fn replacing_an_entry_gives_its_room_back_first() {
    let store = room_for(2);
    store.put("a", value(), FOR_EVER).unwrap();
    store.put("b", value(), FOR_EVER).unwrap();
    for _ in 0..10 {
        store.put("a", value(), FOR_EVER).unwrap();
    }
    assert_eq!(keys(&store), "ab");
    store.remove("a");
    store.remove("b");
    assert_eq!(usage(&store), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn versions_grow_and_never_come_again() {
    let store = room_for(2);
    let first = store.put("a", value(), FOR_EVER).unwrap();
    let second = store.put("a", value(), FOR_EVER).unwrap();
    store.remove("a");
    let third = store.put("a", value(), FOR_EVER).unwrap();
    assert!(first < second && second < third);
    assert_eq!(store.get("a").unwrap().version, third);
}

#[tokio::test(start_paused = true)]
async fn compare_and_swap_only_replaces_the_version_it_names() {
    let store = room_for(2);
    assert_eq!(
        store.compare_and_swap("a", Some(1), value(), FOR_EVER),
        Err(StateError::Changed)
    );
    let version = store.compare_and_swap("a", None, value(), keep(1)).unwrap();
    assert_eq!(
        store.compare_and_swap("a", None, value(), FOR_EVER),
        Err(StateError::Changed)
    );
    let version = store
        .compare_and_swap("a", Some(version), b"new".to_vec(), keep(1))
        .unwrap();
    assert_eq!(
        store.get("a"),
        Some(Entry {
            value: b"new".to_vec(),
            version
        })
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(
        store.compare_and_swap("a", Some(version), value(), FOR_EVER),
        Err(StateError::Changed)
    );
    assert!(store.compare_and_swap("a", None, value(), FOR_EVER).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_swap_keeps_only_what_was_marked() {
    let store = room_for(3);
    store.put("a", value(), FOR_EVER).unwrap();
    store
        .put(
            "b",
            value(),
            Keep {
                over_swap: true,
                ..keep(10)
            },
        )
        .unwrap();
    let successor = store.successor(store.max_bytes);
    assert_eq!(keys(&successor), "", "it is checked with nothing but its own");
    successor.take_over(&store);
    assert_eq!(keys(&successor), "b");
    assert_eq!(keys(&store), "ab", "calls that still run there keep all");
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(keys(&successor), "", "the expiry stays the same");
}

const OVER_SWAP: Keep = Keep {
    for_time: None,
    over_swap: true,
};

#[tokio::test(start_paused = true)]
async fn what_the_successor_wrote_itself_stays_and_versions_go_on() {
    let (store, successor) = (room_for(3), room_for(3));
    store.put("a", b"old".to_vec(), OVER_SWAP).unwrap();
    let last = store.put("b", b"old".to_vec(), OVER_SWAP).unwrap();
    successor.put("a", b"new".to_vec(), OVER_SWAP).unwrap();
    successor.take_over(&store);
    assert_eq!(successor.get("a").unwrap().value, b"new");
    assert_eq!(successor.get("b").unwrap().value, b"old");
    assert!(successor.get("b").unwrap().version > last);
    assert!(successor.put("c", value(), FOR_EVER).unwrap() > successor.get("b").unwrap().version);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_room_in_a_smaller_successor_is_left_behind() {
    let (store, successor) = (room_for(3), room_for(1));
    for key in ["a", "b", "c"] {
        store.put(key, value(), OVER_SWAP).unwrap();
    }
    successor.take_over(&store);
    assert_eq!(keys(&successor), "a");
}

#[tokio::test(start_paused = true)]
async fn lock_of_old_component_is_respected_by_the_new() {
    let store = room_for(1);
    let held = store.lock("lock", Duration::ZERO).await;
    let successor = store.successor(1000);
    assert!(held.is_some() && successor.lock("lock", Duration::ZERO).await.is_none());
    drop(held);
    assert!(successor.lock("lock", Duration::ZERO).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_expiry_beyond_all_clocks_is_none() {
    let store = room_for(1);
    store
        .put(
            "a",
            value(),
            Keep {
                for_time: Some(Duration::MAX),
                over_swap: false,
            },
        )
        .unwrap();
    tokio::time::advance(Duration::from_secs(86_400 * 365)).await;
    assert_eq!(keys(&store), "a");
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_held_by_one_until_its_guard_is_dropped() {
    let store = room_for(1);
    let held = store.lock("router", Duration::ZERO).await.unwrap();
    assert!(store.lock("other", Duration::ZERO).await.is_some());
    let start = Instant::now();
    assert!(store.lock("router", Duration::from_secs(3)).await.is_none());
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    drop(held);
    assert!(store.lock("router", Duration::ZERO).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_the_lock_when_it_is_free() {
    let store = Arc::new(room_for(1));
    let held = store.lock("router", Duration::ZERO).await.unwrap();
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.lock("router", Duration::from_secs(30)).await.is_some() }
    });
    tokio::time::advance(Duration::from_secs(10)).await;
    drop(held);
    assert!(waiting.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn no_call_waits_longer_than_the_limit() {
    let store = room_for(1);
    let _held = store.lock("router", Duration::ZERO).await;
    let start = Instant::now();
    assert!(store.lock("router", Duration::MAX).await.is_none());
    assert_eq!(start.elapsed(), MAX_LOCK_WAIT);
}

#[tokio::test(start_paused = true)]
async fn locks_unused_take_no_space_and_their_number_is_bounded() {
    let store = room_for(1);
    let mut held = Vec::new();
    for name in 0..MAX_LOCKS {
        held.push(store.lock(&name.to_string(), Duration::ZERO).await.unwrap());
    }
    assert!(store.lock("one more", Duration::ZERO).await.is_none());
    assert!(store.lock("0", Duration::ZERO).await.is_none());
    assert_eq!(store.locks.0.lock().len(), MAX_LOCKS);
    held.clear();
    assert_eq!(store.locks.0.lock().len(), 0);
    assert!(
        store
            .lock(&"x".repeat(MAX_LOCK_NAME + 1), Duration::ZERO)
            .await
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_while_it_waits_leaves_nothing_behind() {
    let store = Arc::new(room_for(1));
    let held = store.lock("router", Duration::ZERO).await;
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.lock("router", Duration::from_secs(30)).await.is_some() }
    });
    tokio::task::yield_now().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    drop(held);
    assert_eq!(store.locks.0.lock().len(), 0);
}

/// Bytes in use and number of entries.
fn usage(store: &StateStore) -> (u64, usize) {
    let entries = store.entries();
    (entries.bytes, entries.by_key.len())
}
