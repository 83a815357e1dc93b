//! Explanations of a Node's routes. Pure; all of them continue `Node NAME `.

use crate::kube::node::Node;

use crate::report::explain::{span, times};
use crate::route::condition::has_routes;
use crate::route::plan::waits;
use crate::route::troubles::{Failed, FailedChange, NodeRoutes};

/// What the route controller has to say.
pub fn routes(node: &Node, known: &NodeRoutes) -> String {
    let mut text = state(node, known);
    for (range, reason) in &known.refused {
        text += &format!(" Its Pod range {range} gets no route: {reason}.");
    }
    for failed in &known.failed {
        text += &failure(failed);
    }
    if let Some((reason, next)) = &known.list_failed {
        text += &format!(
            " The routes of the cloud could not be listed: {reason}. Next try in {}.",
            span(*next)
        );
    }
    text
}

fn state(node: &Node, known: &NodeRoutes) -> String {
    let ranges = node
        .spec
        .as_ref()
        .and_then(|spec| spec.pod_cidrs.as_deref())
        .unwrap_or_default();
    if waits(node) {
        return "gets its routes when its initialisation is over.".into();
    }
    if ranges.is_empty() {
        return "has no Pod range (spec.podCIDRs), so it needs no route.".into();
    }
    let ranges = ranges.join(", ");
    if !known.compared && has_routes(node) {
        return format!(
            "has all its routes ({ranges}), says its condition NetworkUnavailable; the routes of the cloud have not been listed since this \
             process began."
        );
    }
    if !known.compared {
        return format!("waits until the routes of the cloud have been listed for the first time (for {ranges}).");
    }
    if known.failed.is_empty() && known.refused.is_empty() {
        return format!("has all its routes ({ranges}).");
    }
    let unreachable = known.failed.iter().any(|failed| failed.what == Failed::Create) || !known.refused.is_empty();
    if unreachable {
        format!("lacks a route for its Pods ({ranges}).")
    } else {
        format!("has all its routes ({ranges}), and one too many.")
    }
}

fn failure(failed: &FailedChange) -> String {
    if failed.pending {
        let what = match failed.what {
            Failed::Create => "creates the route",
            Failed::Delete => "deletes an old route",
        };
        let (range, reason, next) = (&failed.range, &failed.reason, span(failed.next));
        return format!(" The cloud {what} to {range} ({reason}). Next check in {next}.");
    }
    let what = match failed.what {
        Failed::Create => "The route to",
        Failed::Delete => "An old route to",
    };
    let done = match failed.what {
        Failed::Create => "created",
        Failed::Delete => "deleted",
    };
    format!(
        " {what} {} could not be {done}{}. Last answer of the provider: {}. Next try in {}.",
        failed.range,
        times(failed.failures),
        failed.reason,
        span(failed.next)
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::kube::node::view::UNINITIALIZED;

    fn node(ranges: &[&str], taints: &[&str]) -> Node {
        let mut node = crate::testing::node("a", "True", taints);
        let ranges = ranges.iter().map(|range| (*range).to_owned()).collect();
        node.spec.as_mut().unwrap().pod_cidrs = Some(ranges);
        node
    }

    fn compared() -> NodeRoutes {
        NodeRoutes {
            compared: true,
            ..NodeRoutes::default()
        }
    }

    fn failed(what: Failed) -> FailedChange {
        FailedChange {
            what,
            range: "10.0.1.0/24".into(),
            reason: "denied: no rights".into(),
            failures: 3,
            pending: false,
            next: Duration::from_secs(300),
        }
    }

    #[test]
    fn node_without_trouble_reports_what_it_has_or_waits_for() {
        assert_eq!(
            routes(&node(&["10.0.1.0/24", "fd00::/64"], &[]), &compared()),
            "has all its routes (10.0.1.0/24, fd00::/64)."
        );
        assert_eq!(
            routes(&node(&["10.0.1.0/24"], &[UNINITIALIZED]), &compared()),
            "gets its routes when its initialisation is over."
        );
        assert!(routes(&node(&[], &[]), &compared()).starts_with("has no Pod range"));
        assert!(routes(&node(&["10.0.1.0/24"], &[]), &NodeRoutes::default()).starts_with("waits until"));
    }

    #[test]
    fn condition_proves_routes_after_a_restart() {
        let mut node = node(&["10.0.1.0/24"], &[]);
        let condition = |status: &str| k8s_openapi::api::core::v1::NodeCondition {
            type_: "NetworkUnavailable".into(),
            status: status.into(),
            reason: Some("RouteCreated".into()),
            ..Default::default()
        };
        let known = NodeRoutes {
            list_failed: Some(("unavailable: down".into(), Duration::from_secs(9))),
            ..NodeRoutes::default()
        };
        node.status.as_mut().unwrap().conditions = Some(vec![condition("False")]);
        assert_eq!(
            routes(&node, &known),
            "has all its routes (10.0.1.0/24), says its condition NetworkUnavailable; the routes of the cloud have not been listed \
             since this process began. The routes of the cloud could not be listed: unavailable: down. Next try in 9 s."
        );
        node.status.as_mut().unwrap().conditions = Some(vec![condition("True")]);
        assert!(routes(&node, &known).starts_with("waits until the routes"));
    }

    #[test]
    fn failed_route_shows_reason_count_and_next_attempt() {
        let known = NodeRoutes {
            failed: vec![failed(Failed::Create)],
            ..compared()
        };
        assert_eq!(
            routes(&node(&["10.0.1.0/24"], &[]), &known),
            "lacks a route for its Pods (10.0.1.0/24). The route to 10.0.1.0/24 could not be created (3 tries). Last answer of \
             the provider: denied: no rights. Next try in 5 m."
        );
        let known = NodeRoutes {
            failed: vec![failed(Failed::Delete)],
            ..compared()
        };
        let said = routes(&node(&["10.0.1.0/24"], &[]), &known);
        assert!(
            said.starts_with(
                "has all its routes (10.0.1.0/24), and one too many. An old route to 10.0.1.0/24 could not be deleted"
            ),
            "{said}"
        );
    }

    #[test]
    fn range_that_gets_no_route_and_a_list_that_failed_are_reported() {
        let known = NodeRoutes {
            refused: vec![("10.9.0.0/24".into(), "it is outside of the cluster's ranges".into())],
            list_failed: Some(("unavailable: down".into(), Duration::from_secs(9))),
            ..compared()
        };
        assert_eq!(
            routes(&node(&["10.9.0.0/24"], &[]), &known),
            "lacks a route for its Pods (10.9.0.0/24). Its Pod range 10.9.0.0/24 gets no route: it is outside of the cluster's \
             ranges. The routes of the cloud could not be listed: unavailable: down. Next try in 9 s."
        );
    }
}
