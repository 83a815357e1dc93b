//! Deletion brake for Nodes without a provider id, found missing by name. Pure; the clock is passed in.
//!
//! A search by name that finds nothing is weak evidence: names are guessed, written in another way, or used again. So it has to be found in
//! every check of a long grace (`--node-deletion-by-name-after`, 1 h by default):
//!
//! 1. **Never initialised.** The Node carries the `uninitialized` taint and has no provider id: it was meant for a cloud, and nothing
//!    was ever scheduled to it. Of several providers only the one that its label names counts.
//! 2. **In every check.** [`CHECKS`] of them are spread over the grace, and at least [`ENOUGH`] have to have come. Any other answer starts
//!    over: a machine that runs or is stopped, a failure, another provider, configuration or secret. So does a Ready Node.
//! 3. **One machine.** A Node whose name was seen to belong to two machines is never deleted
//!    ([`cloud::seen_machines`](crate::cloud::seen_machines)).
//! 4. **Not young, not many.** As in [`lifecycle::brake`](crate::lifecycle::brake): the registration grace, and the brake, which counts these Nodes when their
//!    grace is over. They hold up no Node whose machine is gone by its id.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::lifecycle::brake::{AFTER_FAILURE, Proof, SuspectedAbsence};
use crate::options::LifecycleOptions;

/// So many checks are spread over the grace.
const CHECKS: u32 = 12;
/// At least so many have to have come: a process that stood still for an hour has seen nothing.
const ENOUGH: u32 = CHECKS / 2;

/// What an absence by name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameVerdict {
    /// The Node is too young.
    Young,
    /// The grace begins: the Node may go after this long.
    First(Duration),
    /// The grace is not over.
    Again,
    /// Confirmed. The brake decides.
    Certain(Proof),
}

#[derive(Debug)]
struct Absence {
    first: Instant,
    answers: u32,
    held: bool,
    not_before: Option<Instant>,
}

/// Remembers absences by name.
#[derive(Debug)]
pub struct GuardByName {
    after: Option<Duration>,
    registration_grace: Duration,
    provider: String,
    absent: HashMap<String, Absence>,
}

impl GuardByName {
    /// With no memory.
    pub fn new(options: &LifecycleOptions) -> Self {
        Self {
            after: options.by_name_after,
            registration_grace: options.registration_grace,
            provider: String::new(),
            absent: HashMap::new(),
        }
    }

    /// Time between two checks, when there are any.
    pub fn interval(&self) -> Option<Duration> {
        self.after.map(|after| after / CHECKS)
    }

    /// Who answers from now on. Another digest than before makes all absences so far worthless.
    pub fn set_digest(&mut self, digest: &str) {
        if self.provider != digest {
            self.provider = digest.to_owned();
            self.restart_all();
        }
    }

    /// The Node got another answer, or none.
    pub fn restart(&mut self, uid: &str) {
        self.absent.remove(uid);
    }

    /// There was no answer about any Node.
    pub fn restart_all(&mut self) {
        self.absent.clear();
    }

    /// Drops all Nodes but these: the others are gone, Ready, or have a provider id.
    pub fn keep_only(&mut self, uids: &HashSet<&str>) {
        self.absent.retain(|uid, _| uids.contains(uid.as_str()));
    }

    /// The cloud found no machine by the Node's name. `age` is the time since the Node's creation.
    pub fn absent(&mut self, uid: &str, age: Duration, now: Instant) -> NameVerdict {
        let Some(after) = self.after.filter(|_| age >= self.registration_grace) else {
            return NameVerdict::Young;
        };
        let Some(absence) = self.absent.get_mut(uid) else {
            let absence = Absence {
                first: now,
                answers: 1,
                held: false,
                not_before: None,
            };
            self.absent.insert(uid.to_owned(), absence);
            return NameVerdict::First(after);
        };
        absence.answers = absence.answers.saturating_add(1);
        let over = now - absence.first;
        if over < after || absence.answers < ENOUGH || absence.not_before.is_some_and(|at| now < at) {
            return NameVerdict::Again;
        }
        NameVerdict::Certain(Proof {
            answers: absence.answers,
            over,
        })
    }

    /// The brake holds the Node. Answers whether it did not before.
    pub fn hold(&mut self, uid: &str) -> bool {
        let absence = self.absent.get_mut(uid);
        absence.is_some_and(|absence| !std::mem::replace(&mut absence.held, true))
    }

    /// The Node could not be deleted; it is not tried again at once.
    pub fn failed(&mut self, uid: &str, now: Instant) {
        if let Some(absence) = self.absent.get_mut(uid) {
            absence.not_before = Some(now + AFTER_FAILURE);
        }
    }

    /// What is known about the Nodes that seem to be gone, by uid.
    pub fn all(&self, now: Instant) -> HashMap<String, SuspectedAbsence> {
        let seen = |absence: &Absence| SuspectedAbsence {
            answers: absence.answers,
            since: now - absence.first,
            held: absence.held,
            not_before: absence.not_before.filter(|at| *at > now).map(|at| at - now),
        };
        let absent = self.absent.iter();
        absent.map(|(uid, absence)| (uid.clone(), seen(absence))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);

    /// What happens to a Node at a minute.
    #[derive(Clone, Copy)]
    enum At {
        Absent(u32),
        /// Running, stopped, a failure of this Node.
        Other,
        NoAnswer,
        Swap,
        Ready,
    }

    fn guard(after: Option<Duration>) -> GuardByName {
        let mut guard = GuardByName::new(&LifecycleOptions {
            by_name_after: after,
            ..LifecycleOptions::default()
        });
        guard.set_digest("digest");
        guard
    }

    /// The last verdict of the story.
    fn verdict(story: &[At]) -> NameVerdict {
        let (mut guard, start) = (guard(Some(HOUR)), Instant::now());
        let mut verdict = NameVerdict::Young;
        for at in story {
            match *at {
                At::Absent(minute) => verdict = guard.absent("u", HOUR, start + MINUTE * minute),
                At::Other => guard.restart("u"),
                At::NoAnswer => guard.restart_all(),
                At::Swap => guard.set_digest("another digest"),
                At::Ready => guard.keep_only(&HashSet::new()),
            }
        }
        verdict
    }

    fn every_five_minutes(from: u32, to: u32) -> Vec<At> {
        (from..=to).step_by(5).map(At::Absent).collect()
    }

    #[test]
    fn node_goes_after_an_hour_of_the_same_answer() {
        assert_eq!(guard(Some(HOUR)).interval(), Some(MINUTE * 5));
        assert_eq!(verdict(&every_five_minutes(0, 0)), NameVerdict::First(HOUR));
        for minute in (5..60).step_by(5) {
            assert_eq!(verdict(&every_five_minutes(0, minute)), NameVerdict::Again, "{minute}");
        }
        let proof = Proof {
            answers: 13,
            over: HOUR,
        };
        assert_eq!(verdict(&every_five_minutes(0, 60)), NameVerdict::Certain(proof));
    }

    #[test]
    fn any_other_answer_starts_over() {
        for at in [At::Other, At::NoAnswer, At::Swap, At::Ready] {
            let mut story = every_five_minutes(0, 30);
            story.push(at);
            story.push(At::Absent(35));
            assert_eq!(verdict(&story), NameVerdict::First(HOUR));
            story.extend(every_five_minutes(40, 90));
            assert_eq!(verdict(&story), NameVerdict::Again);
            story.push(At::Absent(95));
            assert!(matches!(verdict(&story), NameVerdict::Certain(_)));
        }
    }

    #[test]
    fn two_answers_an_hour_apart_are_too_few() {
        assert_eq!(verdict(&[At::Absent(0), At::Absent(60)]), NameVerdict::Again);
        let story: Vec<At> = (0..ENOUGH).map(|check| At::Absent(check * 60)).collect();
        assert!(matches!(verdict(&story), NameVerdict::Certain(_)));
    }

    #[test]
    fn young_node_is_not_counted_nor_any_when_disabled() {
        let now = Instant::now();
        assert_eq!(guard(Some(HOUR)).absent("u", MINUTE, now), NameVerdict::Young);
        let mut off = guard(None);
        assert_eq!((off.absent("u", HOUR, now), off.interval()), (NameVerdict::Young, None));
    }

    #[test]
    fn a_node_is_held_once_and_tried_again_after_a_minute() {
        let (mut guard, start) = (guard(Some(HOUR)), Instant::now());
        for check in 0..13 {
            guard.absent("u", HOUR, start + MINUTE * 5 * check);
        }
        assert!(guard.hold("u") && !guard.hold("u") && !guard.hold("another"));
        let later = start + HOUR;
        guard.failed("u", later);
        assert_eq!(guard.absent("u", HOUR, later + MINUTE / 2), NameVerdict::Again);
        assert!(matches!(
            guard.absent("u", HOUR, later + MINUTE),
            NameVerdict::Certain(_)
        ));
        assert!(guard.all(later)["u"].held);
    }
}
