//! Deduplication and rate limit of Events, as in client-go. Pure; clocks are passed in.
//!
//! The rules are those of client-go's recorder (`client-go tools/record`, `spec/node-controller.md` 10): an Event
//! that says the same again counts up the one that is there; more than 10 similar ones in 600 s are folded into one;
//! an object gets at most 25 in a burst and then one every 300 s from each component.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use cloudwit_model::EventKind;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use crate::kube::events::budget::Budget;

/// Similar Events that are written each for itself before they are folded.
const SIMILAR: usize = 10;
/// Similar Events count together for this long after the last one.
const SIMILAR_WINDOW: Duration = Duration::from_secs(600);
/// After the burst, one every so often.
const REFILL: Duration = Duration::from_secs(300);
/// Memory of each kind is bounded; the longest unused goes first. client-go keeps as many.
const REMEMBERED: usize = 4096;
/// An Event lives for an hour on an API server with default flags; then there is none to be counted up.
const EVENT_LIFE: Duration = Duration::from_secs(3600);
/// How often to look for memories that make no difference any more, those of deleted objects above all.
const SWEEP: Duration = Duration::from_secs(60);
/// How a folded Event begins.
const FOLDED: &str = "(combined from similar events): ";

/// An Event before folding.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Who says it.
    pub component: &'static str,
    /// About what.
    pub object: ObjectReference,
    /// How serious.
    pub kind: EventKind,
    /// CamelCase reason.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// What to do with an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folded {
    /// Write a new one with this message.
    New {
        /// The message, perhaps with the prefix of folded Events.
        message: String,
        /// To be handed to [`Folding::written`].
        memory: Memory,
    },
    /// Count up the one with this name.
    Again {
        /// Name of the Event object.
        name: String,
        /// How often it has been said now.
        count: i32,
        /// The message.
        message: String,
        /// To be handed to [`Folding::written`].
        memory: Memory,
    },
    /// Its object has too many; nothing is written.
    Limited,
}

/// What an Event is kept by: a hash, since thousands are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Memory(u64);

impl Memory {
    fn of(parts: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        parts.hash(&mut hasher);
        Self(hasher.finish())
    }
}

#[derive(Debug)]
struct Written {
    name: String,
    count: i32,
    at: Instant,
}

#[derive(Debug)]
struct Similar {
    messages: Vec<Memory>,
    at: Instant,
}

/// Remembers what was written.
#[derive(Debug, Default)]
pub struct Folding {
    buckets: HashMap<Memory, Budget>,
    similar: HashMap<Memory, Similar>,
    written: HashMap<Memory, Written>,
    swept: Option<Instant>,
}

impl Folding {
    /// Decides about an Event.
    pub fn fold(&mut self, event: &NewEvent, now: Instant) -> Folded {
        self.sweep(now);
        let object = &event.object;
        let speaker = Memory::of((
            event.component,
            &object.kind,
            &object.namespace,
            &object.name,
            &object.uid,
        ));
        if !self.take_token(speaker, now) {
            return Folded::Limited;
        }
        let about = Memory::of((speaker, event.kind == EventKind::Warning, &event.reason));
        let exactly = Memory::of((about, &event.message));
        let (memory, message) = if self.many_similar(about, exactly, now) {
            (about, format!("{FOLDED}{}", event.message))
        } else {
            (exactly, event.message.clone())
        };
        match self.written.get_mut(&memory) {
            Some(written) => {
                written.at = now;
                Folded::Again {
                    name: written.name.clone(),
                    count: written.count + 1,
                    message,
                    memory,
                }
            }
            None => Folded::New { message, memory },
        }
    }

    /// Remembers that an Event was written under this name.
    pub fn written(&mut self, memory: Memory, name: String, count: i32, now: Instant) {
        forget_oldest(&mut self.written, |written| written.at);
        self.written.insert(memory, Written { name, count, at: now });
    }

    /// Forgets what would be as new.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_some_and(|last| now - last < SWEEP) {
            return;
        }
        self.swept = Some(now);
        self.buckets.retain(|_, budget| !budget.is_as_new(now));
        self.similar.retain(|_, similar| now - similar.at <= SIMILAR_WINDOW);
        self.written.retain(|_, written| now - written.at < EVENT_LIFE);
    }

    fn take_token(&mut self, speaker: Memory, now: Instant) -> bool {
        forget_oldest(&mut self.buckets, Budget::last_taken);
        let budget = self.buckets.entry(speaker);
        budget.or_insert_with(|| Budget::new(REFILL, now)).take(now)
    }

    fn many_similar(&mut self, about: Memory, exactly: Memory, now: Instant) -> bool {
        forget_oldest(&mut self.similar, |similar| similar.at);
        let similar = self.similar.entry(about).or_insert(Similar {
            messages: Vec::new(),
            at: now,
        });
        if now - similar.at > SIMILAR_WINDOW {
            similar.messages.clear();
        }
        similar.at = now;
        if similar.messages.contains(&exactly) {
            return false;
        }
        if similar.messages.len() >= SIMILAR {
            return true;
        }
        similar.messages.push(exactly);
        false
    }
}

/// Makes room for one more. Forgets half at a time, so that a full memory is not sorted for each Event.
fn forget_oldest<V>(map: &mut HashMap<Memory, V>, at: impl Fn(&V) -> Instant) {
    if map.len() < REMEMBERED {
        return;
    }
    let mut times: Vec<Instant> = map.values().map(&at).collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    map.retain(|_, value| at(value) > median);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::events::budget::BURST;

    fn event(node: &str, message: &str) -> NewEvent {
        NewEvent {
            component: "test",
            object: ObjectReference {
                kind: Some("Node".into()),
                name: Some(node.into()),
                ..ObjectReference::default()
            },
            kind: EventKind::Normal,
            reason: "Tested".into(),
            message: message.into(),
        }
    }

    fn write(folding: &mut Folding, event: &NewEvent, now: Instant) -> Folded {
        let folded = folding.fold(event, now);
        match folded.clone() {
            Folded::New { memory, message } => folding.written(memory, format!("name-of-{message}"), 1, now),
            Folded::Again {
                memory, name, count, ..
            } => folding.written(memory, name, count, now),
            Folded::Limited => {}
        }
        folded
    }

    #[test]
    fn the_same_event_is_counted_up() {
        let (mut folding, now) = (Folding::default(), Instant::now());
        assert!(matches!(write(&mut folding, &event("a", "x"), now), Folded::New { .. }));
        for expected in 2..5 {
            let Folded::Again { name, count, .. } = write(&mut folding, &event("a", "x"), now) else {
                panic!("new")
            };
            assert_eq!((name.as_str(), count), ("name-of-x", expected));
        }
        assert!(matches!(write(&mut folding, &event("b", "x"), now), Folded::New { .. }));
    }

    #[test]
    fn the_eleventh_similar_event_is_folded_and_so_are_the_next() {
        let (mut folding, now) = (Folding::default(), Instant::now());
        for i in 0..10 {
            let Folded::New { message, .. } = write(&mut folding, &event("a", &format!("m{i}")), now) else {
                panic!()
            };
            assert_eq!(message, format!("m{i}"));
        }
        let Folded::New { message, .. } = write(&mut folding, &event("a", "m10"), now) else {
            panic!()
        };
        assert_eq!(message, "(combined from similar events): m10");
        let Folded::Again { count, message, .. } = write(&mut folding, &event("a", "m11"), now) else {
            panic!()
        };
        assert_eq!((count, message.as_str()), (2, "(combined from similar events): m11"));
        let later = now + SIMILAR_WINDOW + Duration::from_secs(1);
        let Folded::New { message, .. } = write(&mut folding, &event("a", "m12"), later) else {
            panic!()
        };
        assert_eq!(message, "m12");
    }

    #[test]
    fn an_object_has_a_burst_and_then_one_event_every_five_minutes() {
        let (mut folding, now) = (Folding::default(), Instant::now());
        for _ in 0..25 {
            assert_ne!(write(&mut folding, &event("a", "x"), now), Folded::Limited);
        }
        assert_eq!(write(&mut folding, &event("a", "x"), now), Folded::Limited);
        assert_ne!(
            write(&mut folding, &event("b", "x"), now),
            Folded::Limited,
            "another object is not affected"
        );
        assert_eq!(write(&mut folding, &event("a", "x"), now + REFILL / 2), Folded::Limited);
        assert_ne!(write(&mut folding, &event("a", "x"), now + REFILL), Folded::Limited);
        assert_eq!(write(&mut folding, &event("a", "x"), now + REFILL), Folded::Limited);
    }

    #[test]
    fn what_makes_no_difference_any_more_is_dropped() {
        let (mut folding, start) = (Folding::default(), Instant::now());
        for number in 0..1000 {
            write(&mut folding, &event(&format!("node-{number}"), "x"), start);
        }
        let mut sizes_after = |time: Duration| {
            write(&mut folding, &event("last", "x"), start + time);
            (folding.similar.len(), folding.written.len(), folding.buckets.len())
        };
        assert_eq!(sizes_after(SIMILAR_WINDOW), (1001, 1001, 1001));
        assert_eq!(sizes_after(SIMILAR_WINDOW + SWEEP), (1, 1001, 1001));
        assert_eq!(sizes_after(EVENT_LIFE), (1, 1, 1001));
        assert_eq!(sizes_after(REFILL.mul_f64(BURST)), (1, 1, 1));
    }

    #[test]
    fn memory_is_bounded_and_the_newest_is_kept() {
        let (mut folding, start) = (Folding::default(), Instant::now());
        for i in 0..10_000u64 {
            write(
                &mut folding,
                &event(&format!("node-{i}"), "x"),
                start + Duration::from_millis(i),
            );
        }
        assert!(folding.written.len() <= REMEMBERED && folding.buckets.len() <= REMEMBERED);
        assert!(folding.similar.len() <= REMEMBERED);
        let again = folding.fold(&event("node-9999", "x"), start + Duration::from_secs(11));
        assert!(matches!(again, Folded::Again { count: 2, .. }), "{again:?}");
    }
}
