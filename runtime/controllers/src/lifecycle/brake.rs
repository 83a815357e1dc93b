//! Deletion brake: may this Node be deleted now? Pure; the clock is passed in.
//!
//! Upstream deletes a Node that is not Ready at the first "does not exist" from the cloud. Wrong credentials, a wrong
//! region or an API that lags then delete healthy Nodes (oracle/oci-cloud-controller-manager#57,
//! kubernetes/kubernetes#58334). Here every "deleted at once" of upstream's table became "deleted after
//! confirmation":
//!
//! 1. **By id.** Only the answer "there is no machine with exactly this provider id" counts, and only for an id with
//!    one of the provider's prefixes. Errors, silence and searches by name never count.
//! 2. **Twice.** Two such answers at least `confirm_after` (default 2 minutes) apart, with nothing else in between. A
//!    failed look-up in between changes nothing; any sign of life starts over, and so does another provider,
//!    configuration or secret (they change the provider's digest): two opinions have to come from the same source.
//! 3. **Not young.** Answers count from `registration_grace` (default 5 minutes) after the Node's creation; clouds
//!    list new machines late.
//! 4. **Not many.** If the Nodes that seem gone, together with those deleted within `window` (default 10 minutes),
//!    are more than the `share` (default 10 % of the provider's Nodes, at least 1), the brake engages and nothing is
//!    deleted. It releases by itself when they are no more than the share again; an operator releases it by deleting
//!    the Nodes herself or by raising the share. Nodes that the cluster autoscaler announced to remove (taint
//!    `ToBeDeletedByClusterAutoscaler`) are expected to go: they do not count and are not held.
//!
//! That the Node is still not Ready, still has its id and is the same object is checked against the API server right
//! before the delete ([`lifecycle`](crate::lifecycle)).

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::options::{LifecycleOptions, Share};
pub use crate::report::snapshot::Brake;

/// After a delete that failed, the Node is left alone for this long.
pub(crate) const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// The numbers behind the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Time between the two absences.
    pub confirm_after: Duration,
    /// Youth of a Node.
    pub registration_grace: Duration,
    /// How many may go.
    pub share: Share,
    /// Deletions count for this long.
    pub window: Duration,
}

impl From<&LifecycleOptions> for Rules {
    fn from(options: &LifecycleOptions) -> Self {
        Self {
            confirm_after: options.confirm_after,
            registration_grace: options.registration_grace,
            share: options.share,
            window: options.window,
        }
    }
}

/// A Node whose machine was not found by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent<'a> {
    /// `metadata.uid`.
    pub uid: &'a str,
    /// `spec.providerID`.
    pub provider_id: &'a str,
    /// Since its creation.
    pub age: Duration,
    /// Whether its removal was announced.
    pub announced: bool,
}

/// What an absence means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The Node is too young.
    Young,
    /// The first absence: it will count if another follows this much later.
    First(Duration),
    /// Not the first, but too soon after it.
    Again,
    /// Confirmed. [`Guard::admit`] decides whether it may go.
    Certain(Proof),
}

/// Why a Node is taken for gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Answers that said so.
    pub answers: u32,
    /// Time between the first and the last of them.
    pub over: Duration,
}

/// Which of the Nodes that are certain to be gone may be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admission {
    /// May go, by uid.
    pub admitted: Vec<String>,
    /// Held by the brake for the first time since it engaged, by uid.
    pub newly_held: Vec<String>,
    /// Whether the brake is engaged, and by which numbers.
    pub brake: Option<Brake>,
}

#[derive(Debug)]
struct Sighting {
    provider_id: String,
    first: Instant,
    answers: u32,
    announced: bool,
    held: bool,
    not_before: Option<Instant>,
    /// When a delete was sent that the API server did not answer.
    unanswered: Option<Instant>,
}

/// What is known about a Node whose machine seems to be gone; for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspectedAbsence {
    /// Answers that said so.
    pub answers: u32,
    /// Time since the first of them.
    pub since: Duration,
    /// Whether the brake holds it.
    pub held: bool,
    /// Time until the next try, after a delete that failed.
    pub not_before: Option<Duration>,
}

impl SuspectedAbsence {
    /// The same, this much later.
    pub fn later(&self, by: Duration) -> Self {
        Self {
            since: self.since + by,
            not_before: self.not_before.map(|pause| pause.saturating_sub(by)),
            ..self.clone()
        }
    }
}

/// Remembers absences and deletions.
#[derive(Debug)]
pub struct Guard {
    rules: Rules,
    provider: String,
    absent: HashMap<String, Sighting>,
    deletions: VecDeque<Instant>,
    brake: Option<Brake>,
}

impl Guard {
    /// With no memory.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            provider: String::new(),
            absent: HashMap::new(),
            deletions: VecDeque::new(),
            brake: None,
        }
    }

    /// Who answers from now on. Another digest than before makes all absences so far worthless.
    pub fn set_digest(&mut self, digest: &str) {
        if self.provider != digest {
            self.provider = digest.to_owned();
            self.keep_only(&HashSet::new());
        }
    }

    /// The Node's machine exists, or the Node is Ready.
    pub fn alive(&mut self, uid: &str) {
        self.absent.remove(uid);
    }

    /// Drops all Nodes but these: the others are gone or not looked up any more. One that went after a delete without an answer was deleted by it.
    pub fn keep_only(&mut self, uids: &HashSet<&str>) {
        let deletions = &mut self.deletions;
        self.absent.retain(|uid, sighting| {
            let kept = uids.contains(uid.as_str());
            if !kept && !sighting.announced {
                deletions.extend(sighting.unanswered);
            }
            kept
        });
    }

    /// The cloud says that the Node's machine does not exist.
    pub fn absent(&mut self, node: Absent<'_>, now: Instant) -> Verdict {
        if node.age < self.rules.registration_grace {
            return Verdict::Young;
        }
        let known = self
            .absent
            .get_mut(node.uid)
            .filter(|sighting| sighting.provider_id == node.provider_id);
        let Some(sighting) = known else {
            let sighting = Sighting {
                provider_id: node.provider_id.to_owned(),
                first: now,
                answers: 1,
                announced: node.announced,
                held: false,
                not_before: None,
                unanswered: None,
            };
            self.absent.insert(node.uid.to_owned(), sighting);
            return Verdict::First(self.rules.confirm_after);
        };
        sighting.answers = sighting.answers.saturating_add(1);
        sighting.announced = node.announced;
        let over = now - sighting.first;
        if over < self.rules.confirm_after || sighting.not_before.is_some_and(|at| now < at) {
            return Verdict::Again;
        }
        Verdict::Certain(Proof {
            answers: sighting.answers,
            over,
        })
    }

    /// Of the Nodes that are certain to be gone, by uid, which may be deleted. `nodes` is how many Nodes the provider
    /// has.
    pub fn admit(&mut self, certain: &[String], nodes: usize, now: Instant) -> Admission {
        while self.deletions.front().is_some_and(|at| now - *at >= self.rules.window) {
            self.deletions.pop_front();
        }
        let absent = self.absent.values().filter(|sighting| !sighting.announced).count();
        let deleted = self.deletions.len();
        // Those deleted just now were part of the whole of which a share may go.
        let allowed = self.rules.share.of(nodes + deleted);
        let brake = (absent + deleted > allowed && absent > 0).then_some(Brake {
            absent,
            deleted,
            allowed,
        });
        self.brake = brake;
        let mut admission = Admission {
            brake,
            ..Admission::default()
        };
        for uid in certain {
            let Some(sighting) = self.absent.get_mut(uid) else {
                continue;
            };
            if brake.is_none() || sighting.announced {
                sighting.held = false;
                admission.admitted.push(uid.clone());
            } else if !std::mem::replace(&mut sighting.held, true) {
                admission.newly_held.push(uid.clone());
            }
        }
        admission
    }

    /// Whether the brake holds so many Nodes that are certain to be gone by their name alone
    /// ([`lifecycle::brake_by_name`](crate::lifecycle::brake_by_name)), and by which numbers. `nodes` is how many Nodes the provider has, these included.
    pub fn brake_by_name(&self, certain: usize, nodes: usize, now: Instant) -> Option<Brake> {
        let deleted = self.deleted_lately(now);
        let absent = certain + self.absent.values().filter(|sighting| !sighting.announced).count();
        let allowed = self.rules.share.of(nodes + deleted);
        (absent + deleted > allowed).then_some(Brake {
            absent,
            deleted,
            allowed,
        })
    }

    /// A Node was deleted by its name alone.
    pub fn deleted_by_name(&mut self, now: Instant) {
        self.deletions.push_back(now);
    }

    /// The Node was deleted.
    pub fn deleted(&mut self, uid: &str, now: Instant) {
        if self.absent.remove(uid).is_some_and(|sighting| !sighting.announced) {
            self.deletions.push_back(now);
        }
    }

    /// The Node could not be deleted; it is not tried again at once.
    pub fn failed(&mut self, uid: &str, now: Instant) {
        if let Some(sighting) = self.absent.get_mut(uid) {
            sighting.not_before = Some(now + AFTER_FAILURE);
        }
    }

    /// A delete was sent and not answered: the Node may be gone. If it is not, it is not tried again at once.
    pub fn unanswered(&mut self, uid: &str, now: Instant) {
        self.failed(uid, now);
        if let Some(sighting) = self.absent.get_mut(uid) {
            sighting.unanswered = Some(now);
        }
    }

    /// The Node is gone before it was deleted here, unless an earlier delete had no answer.
    pub fn vanished(&mut self, uid: &str) {
        if let Some(sighting) = self.absent.remove(uid).filter(|sighting| !sighting.announced) {
            self.deletions.extend(sighting.unanswered);
        }
    }

    /// What is known about the Nodes that seem to be gone, by uid.
    pub fn all(&self, now: Instant) -> HashMap<String, SuspectedAbsence> {
        let seen = |sighting: &Sighting| SuspectedAbsence {
            answers: sighting.answers,
            since: now - sighting.first,
            held: sighting.held,
            not_before: sighting.not_before.filter(|at| *at > now).map(|at| at - now),
        };
        self.absent
            .iter()
            .map(|(uid, sighting)| (uid.clone(), seen(sighting)))
            .collect()
    }

    /// Whether the brake was engaged at the last [`admit`](Self::admit).
    pub fn brake(&self) -> Option<Brake> {
        self.brake
    }

    /// Nodes that were deleted within the window and were not expected to go.
    pub fn deleted_lately(&self, now: Instant) -> usize {
        let lately = |at: &&Instant| now - **at < self.rules.window;
        self.deletions.iter().filter(lately).count()
    }

    /// Nodes that seem to be gone.
    pub fn candidates(&self) -> usize {
        self.absent.len()
    }
}

#[cfg(test)]
mod tests;
