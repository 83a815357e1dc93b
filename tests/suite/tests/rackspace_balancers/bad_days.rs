//! Bad days of Cloud Load Balancers, and bad input.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::gate::fault::Fault;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::stage::{PREFIX, Stage, addresses, id, nodes, ports};

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_busy_one_wait_and_error_state_is_left() {
    let stage = Stage::new("").await;
    stage.create(ServiceBuilder::new("web")).await;
    let address = stage.exposed("web").await;
    let made = id(&stage.balancers().await[0]);
    let account = stage.account().await;
    account.set_balancer_status(made, "PENDING_UPDATE").await.unwrap();
    let before = stage.writes().await;
    let lists = stage.lists().await;
    stage.annotate("web", "timeout", json!("60")).await;
    // Three looks: the change is wanted, and the load balancer is still busy.
    stage.looked_again(lists + 2).await;
    assert_eq!(stage.writes().await, before, "nothing is sent while it is busy");
    account.set_balancer_status(made, "ACTIVE").await.unwrap();
    stage
        .shows("it is changed now", |shown| shown[0]["timeout"] == 60)
        .await;

    // Busy between the look and the change: mimic's own refusal.
    let text = format!("Load Balancer '{made}' has a status of 'PENDING_UPDATE' and is considered immutable.");
    let refusal = Fault::status(StatusCode::UNPROCESSABLE_ENTITY)
        .body("application/json", json!({ "message": text, "code": 422 }).to_string())
        .times(2);
    let refusal = stage
        .gate
        .fail(Point::before(Method::PUT, format!("/loadbalancers/{made}")), refusal);
    stage.annotate("web", "timeout", json!("90")).await;
    stage
        .shows("it is changed at last", |shown| shown[0]["timeout"] == 90)
        .await;
    assert_eq!(refusal.met(), 2);
    assert_eq!(stage.installation.warnings("web").await, [], "it is no failure");

    account.set_balancer_status(made, "ERROR").await.unwrap();
    stage.annotate("web", "timeout", json!("100")).await;
    stage
        .told(
            "web",
            &format!("load balancer {made} is in ERROR and cannot be changed"),
        )
        .await;
    assert_eq!(id(&stage.balancers().await[0]), made);
    assert_eq!(addresses(&stage.service("web").await), [address]);
    stage.delete("web").await;
    assert_eq!(stage.balancers().await, [Value::Null; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_made_is_completed_and_never_working_is_replaced() {
    let mut stage = Stage::stopped("").await;
    stage
        .create(ServiceBuilder::new("web").spec(|spec| {
            let mut second = spec.ports.clone().unwrap_or_default().remove(0);
            (second.name, second.port) = (Some("https".into()), 443);
            spec.ports.get_or_insert_default().push(second);
        }))
        .await;
    stage.create(ServiceBuilder::new("api")).await;
    let account = stage.account().await;
    let by_hand = async |service: &str| {
        let body = json!({ "loadBalancer": {
            "name": stage.name_of(service).await, "port": 80, "protocol": "TCP", "algorithm": "RANDOM", "timeout": 30,
            "virtualIps": [{ "type": "PUBLIC", "ipVersion": "IPV4" }],
        } });
        let made = account.by_hand(Method::POST, "", body).await.unwrap();
        id(&made["loadBalancer"])
    };
    let (half, broken) = (by_hand("web").await, by_hand("api").await);
    account.set_balancer_status(broken, "ERROR").await.unwrap();
    drop(account);
    stage.start().await;
    let (web, api) = (stage.exposed("web").await, stage.exposed("api").await);
    let shown = stage
        .shows("all three are complete", |shown| {
            ports(shown) == ["TCP 80", "TCP 80", "TCP 443"] && shown.iter().all(|one| nodes(one).len() == 2)
        })
        .await;
    let own = |address: &str| -> Vec<&Value> {
        shown
            .iter()
            .filter(|one| one["virtualIps"][0]["address"] == address)
            .collect()
    };
    assert_eq!((own(&web).len(), own(&api).len()), (2, 1), "{shown:#?}");
    assert_eq!(
        (id(own(&web)[0]), &own(&web)[0]["algorithm"]),
        (half, &json!("ROUND_ROBIN"))
    );
    assert_ne!(id(own(&api)[0]), broken);
    stage.delete("web").await;
    stage.delete("api").await;
    assert_eq!(stage.balancers().await, [Value::Null; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_deleted_outside_is_made_anew() {
    let stage = Stage::new("").await;
    stage
        .create(ServiceBuilder::new("web").spec(|spec| {
            let mut second = spec.ports.clone().unwrap_or_default().remove(0);
            (second.name, second.port) = (Some("https".into()), 443);
            spec.ports.get_or_insert_default().push(second);
        }))
        .await;
    let address = stage.exposed("web").await;
    let shown = stage.shows("there are two", |shown| shown.len() == 2).await;
    let account = stage.account().await;
    let delete = async |one: &Value| {
        let path = format!("/{}", id(one));
        account.by_hand(Method::DELETE, &path, Value::Null).await.unwrap();
    };
    delete(&shown[0]).await;
    stage.annotate("web", "timeout", json!("60")).await;
    let shown = stage
        .shows("the port is back", |shown| {
            ports(shown) == ["TCP 80", "TCP 443"] && shown.iter().all(|one| one["timeout"] == 60)
        })
        .await;
    assert_eq!(
        shown[0]["virtualIps"][0]["address"],
        json!(address),
        "the other one kept the address"
    );
    for one in &shown {
        delete(one).await;
    }
    stage.annotate("web", "timeout", json!("61")).await;
    let shown = stage
        .shows("both are back", |shown| ports(shown) == ["TCP 80", "TCP 443"])
        .await;
    let new = shown[0]["virtualIps"][0]["address"].as_str().unwrap().to_owned();
    stage
        .installation
        .settled("the Service shows the new address", || async {
            match addresses(&stage.service("web").await) {
                shown if shown == [new.clone()] => Ok(()),
                shown => Err(format!("{shown:?}")),
            }
        })
        .await;
    for one in &shown {
        delete(one).await;
    }
    stage.delete("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limits_are_awaited_and_quotas_reported() {
    let stage = Stage::new("node-limit = 1\n").await;
    let post = || Point::before(Method::POST, "/loadbalancers");
    let slow = json!({ "overLimit": { "code": 413, "message": "OverLimit Retry..." } }).to_string();
    let limited = Fault::status(StatusCode::PAYLOAD_TOO_LARGE)
        .body("application/json", slow)
        .header("retry-after", "1")
        .times(2);
    let limited = stage.gate.fail(post(), limited);
    stage.create(ServiceBuilder::new("web")).await;
    stage.exposed("web").await;
    assert_eq!(limited.met(), 2);
    stage.told("web", "NodeLimitReached: 1 Nodes are left out").await;
    assert_eq!(nodes(&stage.balancers().await[0]), [stage.address_of("node-1").await]);

    let full = json!({ "message": "Your account is currently over the limit", "code": 413 }).to_string();
    let full = Fault::status(StatusCode::PAYLOAD_TOO_LARGE).body("application/json", full);
    let full = stage.gate.fail(post(), full);
    stage.create(ServiceBuilder::new("api")).await;
    stage.told("api", "Your account is currently over the limit").await;
    assert!(full.met() > 0);
    stage.gate.open();
    stage.exposed("api").await;
    stage.delete("web").await;
    stage.delete("api").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_reported_together_and_nothing_is_made() {
    let stage = Stage::new("").await;
    let service = ServiceBuilder::new("web")
        .annotation(&format!("{PREFIX}timeout"), "121")
        .annotation(&format!("{PREFIX}algorithm"), "WEIGHTED");
    stage.create(service).await;
    stage
        .told("web", "timeout is \"121\", but has to be a whole number from 1 to 120")
        .await;
    stage.told("web", "algorithm is \"WEIGHTED\"").await;
    assert_eq!(stage.balancers().await, [Value::Null; 0]);
    let right = json!({ "metadata": { "annotations": {
        format!("{PREFIX}timeout"): null, format!("{PREFIX}algorithm"): null, format!("{PREFIX}interal"): "true",
    } } });
    stage.patch("web", right).await;
    stage.told("web", &format!("did you mean {PREFIX}internal?")).await;
    stage.exposed("web").await;
    stage
        .patch("web", json!({ "spec": { "loadBalancerIP": "203.0.113.9" } }))
        .await;
    stage
        .told("web", "loadBalancerIP 203.0.113.9 is no virtual IP of this account")
        .await;
    assert_eq!(stage.balancers().await.len(), 1);
    stage.delete("web").await;
    assert_eq!(stage.balancers().await, [Value::Null; 0]);
}
