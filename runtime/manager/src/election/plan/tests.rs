use super::*;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn held_by(holder: &str, seconds: i32, renewed: i64) -> Lease {
    Lease {
        metadata: ObjectMeta {
            uid: Some("u".into()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: (!holder.is_empty()).then(|| holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            acquire_time: Some(MicroTime(wall(0))),
            renew_time: Some(MicroTime(wall(renewed))),
            lease_transitions: Some(3),
            strategy: Some("OldestEmulationVersion".into()),
            ..LeaseSpec::default()
        }),
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn me(seen: Option<&ObservedLease>, leading: bool, now: Duration) -> Step {
    step(seen, "me", TIMING, leading, now, wall(100))
}

#[test]
fn a_missing_lease_is_created_in_upstreams_shape() {
    let Step::Create(spec) = me(None, false, at(0)) else {
        panic!()
    };
    let expected = serde_json::json!({
        "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2023-11-14T22:15:00.000000Z", "renewTime": "2023-11-14T22:15:00.000000Z",
    });
    assert_eq!(serde_json::to_value(spec).unwrap(), expected);
}

#[test]
fn held_lease_expires_after_its_unchanged_duration() {
    // The holder's own times are years off; only what we see counts.
    let first = ObservedLease::look(None, held_by("other", 40, -100_000_000), at(100));
    assert_eq!(
        me(Some(&first), false, at(139)),
        Step::Wait {
            holder: "other".into(),
            rest: at(1)
        }
    );
    let renewed = ObservedLease::look(Some(first.clone()), held_by("other", 40, 7), at(139));
    assert_eq!(renewed.since, at(139));
    assert!(matches!(me(Some(&renewed), false, at(178)), Step::Wait { .. }));
    let silent = ObservedLease::look(Some(renewed), held_by("other", 40, 7), at(178));
    assert_eq!(silent.since, at(139), "nothing has changed");
    let Step::Replace(spec) = me(Some(&silent), false, at(179)) else {
        panic!()
    };
    assert_eq!(spec.holder_identity.as_deref(), Some("me"));
    assert_eq!(
        (spec.lease_transitions, spec.lease_duration_seconds),
        (Some(4), Some(15))
    );
    assert_eq!(spec.acquire_time, Some(MicroTime(wall(100))));
    assert_eq!(
        spec.strategy.as_deref(),
        Some("OldestEmulationVersion"),
        "fields of others stay"
    );
}

#[test]
fn lease_without_holder_is_taken_at_once() {
    let free = ObservedLease::look(None, held_by("", 40, 0), at(5));
    assert!(matches!(me(Some(&free), false, at(5)), Step::Replace(_)));
}

#[test]
fn our_own_lease_is_renewed_and_keeps_its_beginning() {
    let ours = ObservedLease::look(None, held_by("me", 15, 0), at(5));
    for leading in [true, false] {
        let Step::Replace(spec) = me(Some(&ours), leading, at(500)) else {
            panic!()
        };
        assert_eq!(
            (spec.lease_transitions, spec.acquire_time),
            (Some(3), Some(MicroTime(wall(0))))
        );
        assert_eq!(spec.renew_time, Some(MicroTime(wall(100))));
    }
}

#[test]
fn leader_that_sees_another_holder_or_none_has_lost_at_once() {
    for holder in ["other", ""] {
        let theirs = ObservedLease::look(None, held_by(holder, 15, 0), at(5));
        assert_eq!(me(Some(&theirs), true, at(5)), Step::Lost { holder: holder.into() });
    }
}

#[test]
fn a_lease_of_the_same_name_that_was_made_anew_counts_from_now() {
    let first = ObservedLease::look(None, held_by("other", 15, 0), at(0));
    let mut anew = held_by("other", 15, 0);
    anew.metadata.uid = Some("v".into());
    assert_eq!(ObservedLease::look(Some(first), anew, at(10)).since, at(10));
}

#[test]
fn parts_of_a_second_are_recorded_as_a_whole_one() {
    let of = |millis| {
        Timing {
            lease_duration: Duration::from_millis(millis),
            ..TIMING
        }
        .recorded_seconds()
    };
    assert_eq!([of(1), of(1000), of(1001), of(15_000)], [1, 1, 2, 15]);
}

#[test]
fn only_our_own_lease_is_released_and_then_it_is_free() {
    assert_eq!(released(&held_by("other", 15, 0), "me", wall(100)), None);
    let free = released(&held_by("me", 15, 0), "me", wall(100)).unwrap();
    assert_eq!(
        (free.holder_identity.as_deref(), free.lease_transitions),
        (None, Some(3))
    );
    let seen = ObservedLease::look(None, replacement(&held_by("me", 15, 0), free), at(0));
    assert!(matches!(
        step(Some(&seen), "next", TIMING, false, at(0), wall(100)),
        Step::Replace(_)
    ));
}

#[test]
fn a_request_never_outlives_the_deadline() {
    let limit = |millis| {
        Timing {
            renew_deadline: Duration::from_millis(millis),
            ..TIMING
        }
        .request_limit()
    };
    assert_eq!(
        [limit(10_000), limit(1500), limit(600)],
        [at(5), at(1), Duration::from_millis(600)]
    );
}
