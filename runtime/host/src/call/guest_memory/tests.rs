//! Who may grow, and when. A future that is polled once shows whether a call waits.

use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

/// Whether the call has the memory at once.
fn grows(call: &CallMemory, bytes: u64) -> bool {
    let mut growing = Box::pin(call.grow(bytes));
    matches!(
        growing.as_mut().poll(&mut Context::from_waker(Waker::noop())),
        Poll::Ready(())
    )
}

#[test]
fn ten_calls_never_have_more_than_the_share() {
    let memory = GuestMemory::new(Some(128));
    let share = memory.share("a", 64).unwrap();
    let calls: Vec<CallMemory> = (0..10).map(|_| share.call()).collect();
    let granted = calls.iter().filter(|call| grows(call, 60)).count();
    assert_eq!(granted, 2);
    assert_eq!(
        share.in_use(),
        GuestMemoryUse {
            used: 120,
            peak: 120,
            share: 128
        }
    );
}

#[test]
fn the_oldest_call_always_gets_what_its_limit_allows() {
    let memory = GuestMemory::new(Some(100));
    let share = memory.share("a", 60).unwrap();
    let (oldest, younger, youngest) = (share.call(), share.call(), share.call());
    assert!(grows(&younger, 40) && !grows(&youngest, 1));
    assert!(grows(&oldest, 60));
    drop(oldest);
    assert!(grows(&younger, 20) && grows(&youngest, 40));
}

#[tokio::test]
async fn a_waiting_call_grows_when_another_ends() {
    let memory = GuestMemory::new(Some(100));
    let share = memory.share("a", 100).unwrap();
    let (oldest, waiting) = (share.call(), share.call());
    assert!(grows(&oldest, 100));
    let ends = async {
        tokio::task::yield_now().await;
        drop(oldest);
    };
    tokio::join!(waiting.grow(100), ends);
    assert_eq!(share.in_use().used, 100);
}

#[test]
fn one_provider_takes_nothing_from_another() {
    let memory = GuestMemory::new(Some(300));
    let (hungry, modest) = (
        memory.share("hungry", 100).unwrap(),
        memory.share("modest", 50).unwrap(),
    );
    assert_eq!((hungry.in_use().share, modest.in_use().share), (175, 125));
    let calls: Vec<CallMemory> = (0..10).map(|_| hungry.call()).collect();
    for call in &calls {
        grows(call, 75);
    }
    assert_eq!(hungry.in_use().used, 150);
    let calls: Vec<CallMemory> = (0..3).map(|_| modest.call()).collect();
    assert_eq!(calls.iter().filter(|call| grows(call, 40)).count(), 2);
}

#[test]
fn without_a_total_each_provider_has_two_largest_calls() {
    let memory = GuestMemory::new(None);
    let first = memory.share("a", 64).unwrap();
    assert_eq!(first.in_use().share, 128);
    let second = memory.share("b", 64).unwrap();
    assert_eq!((first.in_use().share, second.in_use().share), (128, 128));
}

#[test]
fn a_total_below_one_call_of_each_is_refused() {
    let memory = GuestMemory::new(Some(100));
    let _first = memory.share("a", 64).unwrap();
    let error = memory.share("b", 64).unwrap_err();
    assert_eq!(
        error,
        "limits.memoryBytes: one call of each provider may need 128 bytes together, and guestMemoryBytes is 100"
    );
    assert!(memory.share("b", 36).is_ok());
}

#[test]
fn a_successor_shares_with_its_predecessor() {
    let memory = GuestMemory::new(Some(128));
    let before = memory.share("a", 64).unwrap();
    let after = memory.share("a", 64).unwrap();
    let (old, new) = (before.call(), after.call());
    assert!(grows(&old, 64) && grows(&new, 64) && !grows(&after.call(), 1));
    drop((old, before));
    assert_eq!(after.in_use().used, 64);
    drop((new, after));
    assert!(memory.accounts().is_empty());
}

/// What happens to memory: a call begins, wants more, or ends.
#[derive(Debug, Clone)]
enum Step {
    Begin,
    Grow(usize, u64),
    End(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Begin),
        (any::<usize>(), 0_u64..40).prop_map(|(call, bytes)| Step::Grow(call, bytes)),
        any::<usize>().prop_map(Step::End),
    ]
}

proptest! {
    #[test]
    fn no_sequence_exceeds_the_share_or_stops_the_oldest(steps in prop::collection::vec(step(), 0..100)) {
        const LIMIT: u64 = 64;
        let memory = GuestMemory::new(Some(100));
        let share = memory.share("a", LIMIT).unwrap();
        let mut calls: Vec<(CallMemory, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Begin => calls.push((share.call(), 0)),
                Step::Grow(at, bytes) if !calls.is_empty() => {
                    let at = at % calls.len();
                    // What a call may have at most is for the limiter of its store.
                    let bytes = bytes.min(LIMIT - calls[at].1);
                    let grown = grows(&calls[at].0, bytes);
                    prop_assert!(grown || at > 0, "the oldest waits");
                    calls[at].1 += if grown { bytes } else { 0 };
                }
                Step::End(at) if !calls.is_empty() => drop(calls.remove(at % calls.len())),
                Step::Grow(..) | Step::End(_) => {}
            }
            let used: u64 = calls.iter().map(|(_, held)| held).sum();
            prop_assert_eq!(share.in_use().used, used);
            prop_assert!(used <= 100);
        }
    }
}
