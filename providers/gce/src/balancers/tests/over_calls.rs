//! Over several calls: what is read again, and what is not.

use super::*;

/// Calls with the token of the call before, until it is done.
fn until_done<T>(mut call: impl FnMut(Option<&str>) -> Result<T, Failure>) -> T {
    let mut token: Option<String> = None;
    for _ in 0..20 {
        match call(token.as_deref()) {
            Ok(done) => return done,
            Err(Failure {
                kind: FailureKind::Pending(next),
                ..
            }) => token = Some(next),
            Err(failure) => panic!("{failure:?}"),
        }
    }
    panic!("it is never done")
}

/// From now on each change is an operation that is done when it is polled.
fn with_operations(world: &World) {
    world.borrow_mut().insert(SLOW.into(), json!({ "status": "DONE" }));
    world.borrow_mut().insert(OPERATIONS.into(), json!({}));
}

/// Last two parts of what was read, without operations.
fn reads(host: &FakeHost, before: usize) -> Vec<String> {
    let sent = host.requests().into_iter().skip(before);
    let read = sent.filter(|request| request.method == "GET" && !request.url.contains("/operations/"));
    let shown = read.map(|request| {
        let mut parts: Vec<&str> = request.url.rsplit('/').take(2).collect();
        parts.reverse();
        parts.join("/")
    });
    shown.collect()
}

#[test]
fn over_many_calls_only_what_changed_is_read_again() {
    let (host, world) = host(&json!({}));
    with_operations(&world);
    until_done(|token| host.provider::<Gce>().ensure(&service(), &targets(), token));
    let expected = [
        &format!("forwardingRules/{NAME}"),
        &format!("backendServices/{NAME}"),
        &format!("targetPools/{NAME}"),
        &format!("addresses/{NAME}"),
        "httpHealthChecks/k8s-id-node",
        &format!("httpHealthChecks/{NAME}"),
        &format!("healthChecks/{NAME}"),
        &format!("forwardingRules/{NAME}"),
        &format!("firewalls/k8s-fw-{NAME}"),
        "firewalls/k8s-id-node-http-hc",
    ];
    assert_eq!(reads(&host, 0), expected);
}

#[test]
fn after_a_failure_all_is_read_again() {
    let (host, world) = host(&json!({}));
    with_operations(&world);
    let pending = |token: Option<&str>| {
        let failure = host
            .provider::<Gce>()
            .ensure(&service(), &targets(), token)
            .unwrap_err();
        let FailureKind::Pending(token) = failure.kind else {
            panic!("{failure:?}");
        };
        token
    };
    let check = pending(None);
    let pool = pending(Some(&check));
    world.borrow_mut().insert(FAULT.into(), json!({}));
    let failure = host
        .provider::<Gce>()
        .ensure(&service(), &targets(), Some(&pool))
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    world.borrow_mut().remove(FAULT);
    let before = host.requests().len();
    pending(Some(&pool));
    assert!(reads(&host, before).contains(&format!("targetPools/{NAME}")));
}

#[test]
fn parts_are_deleted_without_a_look_and_shared_ones_with_the_last() {
    let (host, world) = host(&json!({}));
    until_done(|token| host.provider::<Gce>().ensure(&service(), &targets(), token));
    let check = format!("{API}/projects/p/global/httpHealthChecks/k8s-id-node");
    let other = "projects/p/regions/us-central1/targetPools/other";
    world
        .borrow_mut()
        .insert(other.into(), json!({ "healthChecks": [check] }));
    with_operations(&world);
    let before = (host.requests().len(), changes(&host).len());
    until_done(|token| host.provider::<Gce>().delete(&service(), token));
    let expected = [
        format!("forwardingRules/{NAME}"),
        format!("addresses/{NAME}"),
        format!("httpHealthChecks/{NAME}"),
    ];
    assert_eq!(reads(&host, before.0), expected);
    let expected = [
        &format!("DELETE forwardingRules/{NAME}"),
        &format!("DELETE firewalls/k8s-fw-{NAME}"),
        &format!("DELETE targetPools/{NAME}"),
        "DELETE httpHealthChecks/k8s-id-node",
    ];
    assert_eq!(changes(&host)[before.1..], expected);
    let left = |world: &World| {
        world
            .borrow()
            .keys()
            .filter(|path| path.contains("k8s-id-node"))
            .count()
    };
    assert_eq!(
        left(&world),
        2,
        "another load balancer uses the check and its firewall rule"
    );
    // The last one takes them along.
    world.borrow_mut().remove(other);
    until_done(|token| host.provider::<Gce>().ensure(&service(), &targets(), token));
    until_done(|token| host.provider::<Gce>().delete(&service(), token));
    assert_eq!(left(&world), 0);
}
