//! Static routes of the gateway: made, realized, found again, deleted; those of others stay.

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::{ROUTES, Scene};

fn leads(all: &[Value], wanted: &[(&str, &str)]) -> bool {
    let mut seen: Vec<(&str, &str)> = all
        .iter()
        .map(|route| {
            let hop = route["next_hops"][0]["ip_address"].as_str();
            (route["network"].as_str().unwrap_or_default(), hop.unwrap_or_default())
        })
        .collect();
    seen.sort_unstable();
    seen == wanted
}

#[tokio::test(flavor = "multi_thread")]
async fn node_routes_live_with_nodes_and_others_routes_stay() {
    let mut scene = Scene::new().await;
    scene.does("operations_take", json!({ "seconds": 1.0 })).await;
    scene.joins("one").await;
    scene.joins("two").await;
    let by_hand = json!({ "network": "192.168.0.0/16", "next_hops": [{ "ip_address": "10.0.0.254" }] });
    let path = "/infra/tier-1s/t1/static-routes/by-hand";
    scene.does("put", json!({ "path": path, "body": by_hand })).await;
    // As upstream's controller left it, for a Node of this cluster and one of another.
    let left =
        json!({ "cluster": "sandbox", "node": "gone", "hint": "u", "network": "10.244.99.0/24", "hop": "10.0.0.99" });
    let foreign =
        json!({ "cluster": "other", "node": "one", "hint": "u", "network": "10.244.98.0/24", "hop": "10.0.0.98" });
    for route in [left, foreign] {
        scene.client_says(&["leave", &route.to_string()]).await;
    }
    scene.start(&[ROUTES]).await;
    let others = [("10.244.98.0/24", "10.0.0.98"), ("192.168.0.0/16", "10.0.0.254")];
    let (one, two) = (("10.244.1.0/24", "10.0.0.1"), ("10.244.2.0/24", "10.0.0.2"));
    let all = [one, two, others[0], others[1]];
    scene
        .comes("both have routes", "static-routes", |seen| leads(seen, &all))
        .await;
    scene
        .settled("both count as made", || async {
            let node = scene.node("two").await.unwrap();
            let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
            match conditions
                .iter()
                .find(|condition| condition.type_ == "NetworkUnavailable")
            {
                Some(condition) if condition.status == "False" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    assert_eq!(
        scene.calls("PATCH static-routes/{id}").await,
        2 + 2,
        "two of them VMware's client's"
    );
    let shown = scene.client_says(&["shown"]).await;
    let own = |route: &&Value| route["network"] == "10.244.1.0/24";
    let route = shown["routes"].as_array().unwrap().iter().find(own).unwrap();
    assert_eq!(
        route["tags"],
        json!({ "vsphere.k8s.io/cluster-name": "sandbox", "vsphere.k8s.io/node-name": "one" })
    );
    assert_eq!(route["name"], "sandbox_one_10.244.1.0/24");

    scene.nodes().delete("two", &DeleteParams::default()).await.unwrap();
    let rest = [one, others[0], others[1]];
    scene
        .comes("the deleted Node's is gone", "static-routes", |seen| leads(seen, &rest))
        .await;
    // Deleted by somebody else: it comes back.
    let path = format!("/infra/tier-1s/t1/static-routes/{}", route["id"].as_str().unwrap());
    scene.does("delete", json!({ "path": path })).await;
    scene
        .comes("it is made again", "static-routes", |seen| leads(seen, &rest))
        .await;
    scene.only_what_the_readme_lists().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unrealizable_route_is_reported_and_made_later() {
    let mut scene = Scene::new().await;
    scene.joins("one").await;
    let fails = json!({ "kind": "static-routes", "text": "the edge has no room", "times": 3 });
    scene.does("fail_realization", fails).await;
    scene.start(&[ROUTES]).await;
    scene
        .warned("one", "FailedToCreateRoute", &["10.244.1.0/24", "the edge has no room"])
        .await;
    scene
        .comes("it is realized in the end", "static-routes", |all| {
            all.len() == 1 && all[0]["state"] == "REALIZED"
        })
        .await;
}
