//! Listeners that are others again, or refused, at every try.

use super::*;
use crate::balancers::testing::service;
use crate::testing::NOW;
use crate::testing::cloud::{SmallCloud, small_targets};

/// Eleven tries in ten seconds.
fn eleven(cloud: &SmallCloud) -> Vec<Failure> {
    let each = |second| {
        cloud.host.now(NOW + second);
        let service = service(&[("security-groups", "sg-user")]);
        cloud.aws().ensure(&service, &small_targets(), None).err()
    };
    (0..11).filter_map(each).collect()
}

#[test]
fn listener_that_is_changed_back_is_replaced_once_a_minute() {
    let cloud = SmallCloud::new("", &["sg-user"]);
    cloud.trust("sg-user");
    cloud.standing(&service(&[]), &["sg-user"]);
    let meddle = |state: &mut crate::testing::cloud::CloudState, action: &str| {
        if action == "DescribeLoadBalancerAttributes" {
            let balancer = state.balancers.values_mut().next().unwrap();
            balancer.listeners = vec![(80, 31000)];
        }
    };
    cloud
        .state
        .borrow_mut()
        .balancers
        .values_mut()
        .next()
        .unwrap()
        .listeners = vec![(80, 31000)];
    cloud.state.borrow_mut().meddler = Some(Box::new(meddle));
    let failures = eleven(&cloud);
    assert!(
        failures
            .iter()
            .all(|failure| matches!(failure, Failure { kind: FailureKind::Other, message: text, .. } if text.contains("another controller"))),
        "{failures:?}"
    );
    assert_eq!(cloud.count("DeleteLoadBalancerListeners"), 1);
    assert_eq!(cloud.count("CreateLoadBalancerListeners"), 1);
    cloud.host.now(NOW + 61);
    let service = service(&[("security-groups", "sg-user")]);
    let _ = cloud.aws().ensure(&service, &small_targets(), None);
    assert_eq!(
        cloud.count("CreateLoadBalancerListeners"),
        2,
        "a minute later it is tried again"
    );
}

#[test]
fn refused_listener_is_not_deleted_and_made_again_and_again() {
    let cloud = SmallCloud::new("", &["sg-user"]);
    cloud.trust("sg-user");
    cloud.standing(&service(&[]), &["sg-user"]);
    cloud
        .state
        .borrow_mut()
        .balancers
        .values_mut()
        .next()
        .unwrap()
        .listeners = vec![(80, 31000)];
    cloud.state.borrow_mut().refuses = Some(("CreateLoadBalancerListeners", "DuplicateListener"));
    let failures = eleven(&cloud);
    assert!(failures[0].kind == FailureKind::AlreadyExists, "{failures:?}");
    assert!(
        failures[1..].iter().all(|failure| failure.kind == FailureKind::Other),
        "{failures:?}"
    );
    assert_eq!(cloud.count("DeleteLoadBalancerListeners"), 1);
    assert_eq!(cloud.count("CreateLoadBalancerListeners"), 1);
}

#[test]
fn other_listeners_are_made_at_once() {
    let cloud = SmallCloud::new("", &["sg-user"]);
    cloud.trust("sg-user");
    cloud.standing(&service(&[]), &["sg-user"]);
    for node_port in [30001, 30002, 30003] {
        let mut service = service(&[("security-groups", "sg-user"), ("healthcheck-port", "30080")]);
        service.ports[0].node_port = Some(node_port);
        cloud.aws().ensure(&service, &small_targets(), None).unwrap();
    }
    assert_eq!(cloud.count("CreateLoadBalancerListeners"), 3);
}
