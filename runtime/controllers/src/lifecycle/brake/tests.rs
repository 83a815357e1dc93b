//! Rules of the deletion brake, on incidents that users reported.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const OLD: Duration = Duration::from_secs(3600);

fn rules() -> Rules {
    Rules::from(&LifecycleOptions::default())
}

fn absent(uid: &str) -> Absent<'_> {
    Absent {
        uid,
        provider_id: "sim://a",
        age: OLD,
        announced: false,
    }
}

struct Story {
    guard: Guard,
    start: Instant,
}

impl Story {
    fn new() -> Self {
        let mut guard = Guard::new(rules());
        guard.set_digest("digest");
        Self {
            guard,
            start: Instant::now(),
        }
    }

    fn at(&self, seconds: u32) -> Instant {
        self.start + SECOND * seconds
    }

    fn absent(&mut self, uid: &str, seconds: u32) -> Verdict {
        self.guard.absent(absent(uid), self.at(seconds))
    }

    fn all_absent(&mut self, uids: &[&str], seconds: u32) {
        for uid in uids {
            self.absent(uid, seconds);
        }
    }

    /// What of these, which are certain to be gone, may go at `seconds` when the provider has so many Nodes.
    fn admit(&mut self, uids: &[&str], nodes: usize, seconds: u32) -> Admission {
        let certain: Vec<String> = uids.iter().map(|uid| (*uid).to_owned()).collect();
        self.guard.admit(&certain, nodes, self.at(seconds))
    }
}

#[test]
fn a_node_is_gone_only_when_two_absences_are_two_minutes_apart() {
    let mut story = Story::new();
    assert_eq!(story.absent("a", 0), Verdict::First(SECOND * 120));
    for seconds in [5, 60, 119] {
        assert_eq!(story.absent("a", seconds), Verdict::Again);
    }
    assert_eq!(
        story.absent("a", 120),
        Verdict::Certain(Proof {
            answers: 5,
            over: SECOND * 120
        })
    );
}

#[test]
fn a_sign_of_life_starts_over() {
    let mut story = Story::new();
    story.absent("a", 0);
    story.guard.alive("a");
    assert_eq!(story.absent("a", 120), Verdict::First(SECOND * 120));
}

#[test]
fn two_absences_with_silence_between_them_count() {
    let mut story = Story::new();
    story.absent("a", 0);
    // Failed look-ups in between never reach the guard.
    assert!(matches!(
        story.absent("a", 900),
        Verdict::Certain(Proof { answers: 2, .. })
    ));
}

#[test]
fn another_provider_or_configuration_starts_over() {
    let mut story = Story::new();
    story.absent("a", 0);
    story.guard.set_digest("digest");
    assert_eq!(story.absent("a", 60), Verdict::Again);
    story.guard.set_digest("another digest");
    assert_eq!(story.absent("a", 120), Verdict::First(SECOND * 120));
}

#[test]
fn another_id_on_the_node_starts_over() {
    let mut story = Story::new();
    story.absent("a", 0);
    let other = Absent {
        provider_id: "sim://b",
        ..absent("a")
    };
    assert_eq!(
        story.guard.absent(other, story.start + SECOND * 120),
        Verdict::First(SECOND * 120)
    );
}

/// kubernetes/kubernetes#58334, apache/cloudstack-kubernetes-provider#37: the cloud does not list a fresh machine yet.
#[test]
fn a_young_node_is_not_even_counted() {
    let mut story = Story::new();
    let young = Absent {
        age: SECOND * 299,
        ..absent("a")
    };
    assert_eq!(story.guard.absent(young, story.start), Verdict::Young);
    assert_eq!(story.guard.candidates(), 0);
    assert_eq!(
        story.absent("a", 1),
        Verdict::First(SECOND * 120),
        "the confirmation begins after the grace"
    );
}

#[test]
fn node_that_is_no_longer_looked_up_is_dropped() {
    let mut story = Story::new();
    story.absent("a", 0);
    story.absent("b", 0);
    story.guard.keep_only(&HashSet::from(["b"]));
    assert_eq!(story.guard.candidates(), 1);
    assert_eq!(story.absent("a", 120), Verdict::First(SECOND * 120));
}

#[test]
fn a_share_of_the_nodes_may_go() {
    let mut story = Story::new();
    let uids = ["a", "b", "c"];
    story.all_absent(&uids, 0);
    let admission = story.admit(&uids, 30, 120);
    assert_eq!(
        admission,
        Admission {
            admitted: uids.map(str::to_owned).into(),
            ..Admission::default()
        }
    );
}

/// oracle/oci-cloud-controller-manager#57, kubernetes/cloud-provider-vsphere#479: the cloud denies everything.
#[test]
fn more_than_the_share_engages_the_brake_and_nothing_goes() {
    let mut story = Story::new();
    let uids = ["a", "b", "c", "d"];
    story.all_absent(&uids, 0);
    let admission = story.admit(&uids, 30, 120);
    assert_eq!(
        admission.brake,
        Some(Brake {
            absent: 4,
            deleted: 0,
            allowed: 3
        })
    );
    assert_eq!((admission.admitted.len(), admission.newly_held.len()), (0, 4));
    assert_eq!(
        story.admit(&uids, 30, 125).newly_held.len(),
        0,
        "each Node is told once"
    );
}

#[test]
fn nodes_that_are_still_being_confirmed_count_for_the_brake() {
    let mut story = Story::new();
    story.absent("a", 0);
    story.all_absent(&["b", "c", "d"], 100);
    assert!(story.admit(&["a"], 30, 120).brake.is_some());
}

#[test]
fn the_brake_releases_when_the_others_turn_out_to_live() {
    let mut story = Story::new();
    let uids = ["a", "b", "c", "d"];
    story.all_absent(&uids, 0);
    assert!(story.admit(&uids, 30, 120).brake.is_some());
    story.guard.alive("d");
    let admission = story.admit(&uids[..3], 30, 125);
    assert_eq!((admission.brake, admission.admitted.len()), (None, 3));
}

#[test]
fn deletions_count_until_the_window_is_over() {
    let mut story = Story::new();
    story.all_absent(&["a", "b", "c"], 0);
    ["a", "b", "c"]
        .iter()
        .for_each(|uid| story.guard.deleted(uid, story.start + SECOND * 120));
    story.absent("d", 130);
    let admission = story.admit(&["d"], 27, 250);
    assert_eq!(
        admission.brake,
        Some(Brake {
            absent: 1,
            deleted: 3,
            allowed: 3
        })
    );
    let admission = story.admit(&["d"], 27, 720);
    assert_eq!((admission.brake, admission.admitted.len()), (None, 1));
}

#[test]
fn one_node_may_go_but_never_a_whole_small_cluster() {
    let mut story = Story::new();
    story.absent("a", 0);
    assert_eq!(story.admit(&["a"], 1, 120).admitted, ["a"]);
    story.absent("b", 0);
    story.absent("c", 0);
    assert!(story.admit(&["a", "b", "c"], 3, 125).brake.is_some());
}

#[test]
fn announced_removals_neither_count_nor_wait() {
    let mut story = Story::new();
    let at = story.start;
    for uid in ["x", "y", "z"] {
        story.guard.absent(
            Absent {
                announced: true,
                ..absent(uid)
            },
            at,
        );
    }
    assert_eq!(story.admit(&["x", "y", "z"], 4, 120).admitted.len(), 3);
    story.all_absent(&["a", "b"], 0);
    let admission = story.admit(&["x", "a", "b"], 4, 120);
    assert_eq!(
        (admission.admitted, admission.newly_held.len()),
        (vec!["x".to_owned()], 2)
    );
    story.guard.deleted("x", at + SECOND * 121);
    assert_eq!(
        story.admit(&[], 4, 122).brake,
        Some(Brake {
            absent: 2,
            deleted: 0,
            allowed: 1
        })
    );
}

#[test]
fn a_delete_without_an_answer_counts_once_its_node_is_gone() {
    let mut story = Story::new();
    story.all_absent(&["a", "b"], 0);
    story.guard.unanswered("a", story.at(120));
    assert_eq!(
        story.guard.deleted_lately(story.at(121)),
        0,
        "the Node may still be there"
    );
    story.guard.keep_only(&HashSet::from(["b"]));
    assert_eq!(story.guard.deleted_lately(story.at(121)), 1);
    assert!(
        story.admit(&["b"], 10, 180).admitted.is_empty(),
        "one may go, and one went"
    );
    assert_eq!(story.admit(&["b"], 10, 721).admitted, ["b"]);
}

#[test]
fn delete_without_answer_or_effect_does_not_count() {
    let mut story = Story::new();
    story.absent("a", 0);
    story.guard.unanswered("a", story.at(120));
    assert_eq!(story.absent("a", 150), Verdict::Again);
    assert_eq!(
        story.admit(&["a"], 10, 180).admitted,
        ["a"],
        "the second try of the one that may go"
    );
    story.guard.vanished("a");
    assert_eq!(story.guard.deleted_lately(story.at(181)), 1, "the first try had worked");
}

#[test]
fn a_delete_that_failed_is_not_repeated_in_each_period() {
    let mut story = Story::new();
    story.absent("a", 0);
    assert!(matches!(story.absent("a", 120), Verdict::Certain(_)));
    story.guard.failed("a", story.start + SECOND * 120);
    assert_eq!(story.absent("a", 125), Verdict::Again);
    assert!(matches!(story.absent("a", 180), Verdict::Certain(_)));
}
