//! The cloud as a provider and a test see it, over real HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use cloudwit_sim_cloud::{
    BalancerPort, BalancerSpec, BalancerState, Fault, FaultKind, MachineState, NewMachine, Operation, PortProtocol,
    Scheme, SimCloud, SimCloudOptions,
};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

/// A cloud and a client for it.
struct Test {
    cloud: SimCloud,
    client: Client,
}

impl Test {
    async fn start() -> Self {
        Self::with(SimCloudOptions::default()).await
    }

    async fn with(options: SimCloudOptions) -> Self {
        // Fails when another test was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            cloud: SimCloud::start(options).await.unwrap(),
            client: Client::new(),
        }
    }

    async fn try_send(&self, method: Method, path: &str, body: Option<Value>) -> reqwest::Result<Response> {
        let url = self.cloud.url() + path;
        let mut request = self.client.request(method, url).bearer_auth(self.cloud.token());
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        request.send().await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let response = self.try_send(method, path, body).await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        (
            status,
            if text.is_empty() {
                Value::Null
            } else {
                serde_json::from_str(&text).unwrap()
            },
        )
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }
}

fn balancer(name: &str) -> BalancerSpec {
    BalancerSpec {
        name: name.into(),
        cluster: "test".into(),
        owner: Some(format!("uid-of-{name}")),
        scheme: Scheme::Public,
        ports: vec![BalancerPort {
            protocol: PortProtocol::Tcp,
            port: 80,
            node_port: 30080,
        }],
        targets: Vec::new(),
        source_ranges: Vec::new(),
        affinity_seconds: None,
        health_check_port: None,
        requested_address: None,
    }
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_request_without_the_token_is_refused_and_counted() {
    let test = Test::start().await;
    for token in [None, Some("wrong")] {
        let mut request = test.client.get(test.cloud.url() + "/v1/zones");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        assert_eq!(request.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
    assert_eq!(test.get("/v1/zones").await["items"].as_array().unwrap().len(), 3);
    let count = test.cloud.counters().operations[&Operation::ListZones];
    assert_eq!((count.requests, count.unauthorized), (3, 2));
}

#[tokio::test]
async fn pages_follow_each_other_to_the_end() {
    let test = Test::start().await;
    test.cloud.add_numbered_machines("node", 2100);
    let (mut seen, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = test.get(&format!("/v1/instances?limit=2000{token}")).await;
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => token = format!("&token={next}"),
            None => break,
        }
    }
    assert_eq!((pages, seen.len()), (3, 2100), "a page holds at most 1,000");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 2100);
    let (status, _) = test.send(Method::GET, "/v1/instances?token=nonsense", None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_batch_of_ids_gives_those_that_exist() {
    let test = Test::start().await;
    test.cloud.add_numbered_machines("node", 3);
    assert_eq!(test.cloud.delete_machines(["vm-2"]), 1);
    assert_eq!(
        ids(&test.get("/v1/instances?ids=vm-3,vm-2,vm-1").await),
        ["vm-3", "vm-1"]
    );
    assert_eq!(
        test.send(Method::GET, "/v1/instances/vm-2", None).await.0,
        StatusCode::NOT_FOUND
    );
    let many: Vec<String> = (0..1001).map(|number| format!("vm-{number}")).collect();
    let (status, body) = test
        .send(Method::GET, &format!("/v1/instances?ids={}", many.join(",")), None)
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
}

#[tokio::test]
async fn names_need_not_be_unique_and_regions_filter() {
    let test = Test::start().await;
    let in_zone = |name: &str, zone: &str| NewMachine {
        zone: Some(zone.into()),
        ..NewMachine::named(name)
    };
    test.cloud
        .add_machines([in_zone("a", "sim-1a"), in_zone("a", "sim-2a"), in_zone("b", "sim-1b")]);
    assert_eq!(ids(&test.get("/v1/instances?names=a,c").await), ["vm-1", "vm-2"]);
    assert_eq!(
        ids(&test.get("/v1/instances?names=a,b&region=sim-1").await),
        ["vm-1", "vm-3"]
    );
}

#[tokio::test]
async fn stopped_machine_is_reported_as_stopped() {
    let test = Test::start().await;
    test.cloud.add_numbered_machines("node", 2);
    assert_eq!(test.cloud.set_state(["node-1"], MachineState::Stopped), 1);
    let page = test.get("/v1/instances").await;
    assert_eq!(
        (&page["items"][0]["state"], &page["items"][1]["state"]),
        (&json!("running"), &json!("stopped"))
    );
}

#[tokio::test]
async fn five_thousand_machines_have_their_own_ids_and_addresses() {
    let test = Test::start().await;
    let machines = test.cloud.add_numbered_machines("node", 5000);
    let mut ips: Vec<&str> = machines
        .iter()
        .map(|machine| machine.addresses[0].ip.as_str())
        .collect();
    ips.sort();
    ips.dedup();
    assert_eq!(ips.len(), 5000);
    assert_eq!(
        (machines[4999].id.as_str(), machines[4999].name.as_str()),
        ("vm-5000", "node-4999")
    );
    assert_eq!(
        test.cloud.delete_machines(machines.iter().map(|machine| &machine.id)),
        5000
    );
}

#[tokio::test]
async fn a_load_balancer_is_built_before_it_is_active() {
    let hour = Duration::from_secs(3600);
    let test = Test::with(SimCloudOptions {
        balancer_build_time: hour,
        ..SimCloudOptions::default()
    })
    .await;
    test.cloud.add_numbered_machines("node", 1);
    let spec = serde_json::to_value(balancer("web")).unwrap();
    let (status, built) = test.send(Method::POST, "/v1/load-balancers", Some(spec.clone())).await;
    assert_eq!(
        (status, &built["state"], &built["address"]),
        (StatusCode::CREATED, &json!("building"), &Value::Null)
    );

    test.cloud.finish_load_balancers();
    let active = test.get("/v1/load-balancers/lb-1").await;
    assert_eq!(
        (&active["state"], &active["address"]),
        (&json!("active"), &json!("198.51.100.1"))
    );

    assert_eq!(
        test.send(Method::POST, "/v1/load-balancers", Some(spec)).await.0,
        StatusCode::CONFLICT
    );
    let targets = Some(json!({"targets": ["vm-1"]}));
    let (_, changed) = test.send(Method::PUT, "/v1/load-balancers/lb-1/targets", targets).await;
    assert_eq!(changed["spec"]["targets"], json!(["vm-1"]));
    let unknown = Some(json!({"targets": ["vm-9"]}));
    let (status, _) = test.send(Method::PUT, "/v1/load-balancers/lb-1/targets", unknown).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);

    assert_eq!(
        test.send(Method::DELETE, "/v1/load-balancers/lb-1", None).await.0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        test.send(Method::DELETE, "/v1/load-balancers/lb-1", None).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test(start_paused = true)]
async fn the_build_time_passes() {
    let second = Duration::from_secs(1);
    let cloud = SimCloud::start(SimCloudOptions {
        balancer_build_time: second,
        ..SimCloudOptions::default()
    })
    .await
    .unwrap();
    cloud.add_load_balancer(balancer("web")).unwrap();
    assert_eq!(cloud.load_balancers()[0].state, BalancerState::Building);
    tokio::time::advance(second).await;
    assert_eq!(cloud.load_balancers()[0].state, BalancerState::Active);
}

#[tokio::test]
async fn load_balancers_are_found_by_cluster_owner_and_name() {
    let test = Test::start().await;
    test.cloud.add_load_balancer(balancer("web")).unwrap();
    test.cloud
        .add_load_balancer(BalancerSpec {
            owner: None,
            ..balancer("old")
        })
        .unwrap();
    test.cloud
        .add_load_balancer(BalancerSpec {
            cluster: "other".into(),
            ..balancer("web")
        })
        .unwrap();
    assert_eq!(
        ids(&test.get("/v1/load-balancers?cluster=test&owner=uid-of-web").await),
        ["lb-1"]
    );
    assert_eq!(
        ids(&test.get("/v1/load-balancers?cluster=test&name=old").await),
        ["lb-2"]
    );
    assert_eq!(ids(&test.get("/v1/load-balancers").await), ["lb-1", "lb-2", "lb-3"]);
}

#[tokio::test]
async fn address_can_be_requested_once() {
    let test = Test::start().await;
    let wanted = |name| BalancerSpec {
        requested_address: Some("198.51.100.77".into()),
        ..balancer(name)
    };
    assert_eq!(
        test.cloud.add_load_balancer(wanted("a")).unwrap().address.as_deref(),
        Some("198.51.100.77")
    );
    let refused = test.cloud.add_load_balancer(wanted("b")).unwrap_err();
    assert!(
        refused.contains("lb-1 has the address 198.51.100.77 already"),
        "{refused}"
    );
}

#[tokio::test]
async fn routes_change_in_a_batch_with_a_result_each() {
    let test = Test::start().await;
    test.cloud.add_numbered_machines("node", 2);
    let route =
        |destination: &str, machine: &str| json!({"cluster": "test", "destination": destination, "machine": machine});
    let batch = json!({
        "create": [route("10.8.0.0/24", "vm-1"), route("10.8.1.0/24", "vm-2"), route("10.8.0.0/24", "vm-1"),
            route("10.8.0.0/24", "vm-2"), route("10.8.2.0/24", "vm-9")],
        "delete": ["rt-9"],
    });
    let (_, results) = test.send(Method::POST, "/v1/routes/batch", Some(batch)).await;
    let statuses = |part: &str| -> Vec<u64> {
        results[part]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["status"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(statuses("created"), [201, 201, 201, 409, 422]);
    assert_eq!(statuses("deleted"), [404]);

    test.cloud.delete_machines(["vm-2"]);
    let page = test.get("/v1/routes?cluster=test").await;
    assert_eq!(ids(&page), ["rt-1", "rt-2"]);
    assert_eq!(
        (&page["items"][0]["blackhole"], &page["items"][1]["blackhole"]),
        (&json!(false), &json!(true))
    );
    assert!(ids(&test.get("/v1/routes?cluster=other").await).is_empty());
}

#[tokio::test]
async fn faults_hit_what_they_are_for_and_then_stop() {
    let test = Test::start().await;
    test.cloud
        .set_faults([Fault::slow_down(7).on(Operation::ListZones).times(2)]);
    for _ in 0..2 {
        let response = test.try_send(Method::GET, "/v1/zones", None).await.unwrap();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["retry-after"], "7");
    }
    test.get("/v1/instances").await;
    test.get("/v1/zones").await;
    let count = test.cloud.counters().operations[&Operation::ListZones];
    assert_eq!((count.requests, count.injected_faults), (3, 2));
}

#[tokio::test]
async fn a_cut_connection_gives_no_answer_before_or_after_the_work() {
    let test = Test::start().await;
    let spec = |name| Some(serde_json::to_value(balancer(name)).unwrap());
    for (kind, name, done) in [(FaultKind::Cut, "before", 0), (FaultKind::CutAfter, "after", 1)] {
        test.cloud.set_faults([Fault::new(kind)]);
        let answer = test.try_send(Method::POST, "/v1/load-balancers", spec(name)).await;
        let broken = match answer {
            Err(_) => true,
            Ok(response) => response.bytes().await.is_err(),
        };
        assert!(broken, "{name}");
        assert_eq!(test.cloud.load_balancers().len(), done, "{name}");
    }
}

#[tokio::test]
async fn a_hanging_request_stays_in_flight_until_the_client_gives_up() {
    let test = Test::start().await;
    test.cloud.set_faults([Fault::new(FaultKind::Hang).times(1)]);
    let hanging = test.try_send(Method::GET, "/v1/zones", None);
    let seen = async {
        while test.cloud.counters().in_flight == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = hanging => panic!("{answer:?}"),
        () = seen => {}
    }
    // The client's future is gone and its connection with it.
    while test.cloud.counters().in_flight > 0 {
        tokio::task::yield_now().await;
    }
    test.get("/v1/zones").await;
    assert_eq!(test.cloud.counters().peak_in_flight, 1);
}

#[tokio::test]
async fn garbage_is_a_success_that_is_no_json() {
    let test = Test::start().await;
    test.cloud.set_faults([Fault::new(FaultKind::Garbage)]);
    let response = test.try_send(Method::GET, "/v1/zones", None).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.text().await.unwrap().starts_with("<html>"));
}

#[tokio::test]
async fn requests_at_the_same_time_are_counted() {
    let test = Test::with(SimCloudOptions {
        latency: Duration::from_secs(3),
        ..SimCloudOptions::default()
    })
    .await;
    let zones = || test.get("/v1/zones");
    tokio::join!(zones(), zones(), zones());
    let counters = test.cloud.counters();
    assert_eq!(
        (
            counters.total(),
            counters.requests(Operation::ListZones),
            counters.peak_in_flight
        ),
        (3, 3, 3)
    );
    assert_eq!(counters.in_flight, 0);
    test.cloud.reset_counters();
    assert_eq!(test.cloud.counters().total(), 0);
}

#[tokio::test]
async fn everything_can_be_controlled_over_http_without_the_token() {
    let test = Test::start().await;
    let control = async |method: Method, path: &str, body: Option<Value>| {
        let mut request = test.client.request(method, test.cloud.url() + "/control" + path);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap()
    };
    control(Method::POST, "/machines", Some(json!({"prefix": "node", "count": 3}))).await;
    control(
        Method::POST,
        "/machines",
        Some(json!({"machines": [{"name": "extra", "zone": "sim-2a"}]})),
    )
    .await;
    assert_eq!(
        control(Method::POST, "/machines/delete", Some(json!({"machines": ["node-0"]}))).await,
        json!({"changed": 1})
    );
    control(Method::POST, "/machines/stop", Some(json!({"machines": ["vm-2"]}))).await;
    let state = control(Method::GET, "/state", None).await;
    let names: Vec<&Value> = state["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|machine| &machine["name"])
        .collect();
    assert_eq!(names, ["node-1", "node-2", "extra"]);
    assert_eq!(state["machines"][0]["state"], "stopped");

    let fault =
        json!([{"operation": "list-zones", "fault": {"kind": "status", "status": 500, "retryAfter": 3}, "next": 1}]);
    control(Method::PUT, "/faults", Some(fault)).await;
    assert_eq!(
        test.send(Method::GET, "/v1/zones", None).await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    let counters = control(Method::GET, "/counters", None).await;
    assert_eq!(counters["operations"]["list-zones"]["injectedFaults"], 1);

    control(Method::POST, "/reset", None).await;
    assert_eq!(control(Method::GET, "/state", None).await["machines"], json!([]));
    assert_eq!(test.cloud.add_numbered_machines("again", 1)[0].id, "vm-1");
}

#[tokio::test]
async fn the_page_shows_everything_and_escapes_names() {
    let test = Test::start().await;
    test.cloud.add_machines([NewMachine::named("<b>odd</b>")]);
    test.cloud.add_load_balancer(balancer("web")).unwrap();
    test.get("/v1/zones").await;
    let page = test
        .client
        .get(test.cloud.url())
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    for part in [
        "Machines (1)",
        "&lt;b&gt;odd&lt;/b&gt;",
        "lb-1",
        "198.51.100.1",
        "list-zones",
        "Routes (0)",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
}

#[tokio::test]
async fn machine_reads_its_metadata_without_token() {
    let test = Test::start().await;
    test.cloud.add_machines([NewMachine::named("node-a")]);
    let url = test.cloud.url() + "/v1/metadata?hostname=";
    let get = async |name: &str| test.client.get(url.clone() + name).send().await.unwrap();
    let found: Value = serde_json::from_str(&get("node-a").await.text().await.unwrap()).unwrap();
    assert_eq!(found["id"], "vm-1");
    assert_eq!(get("other").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn ssh_key_is_added_once() {
    let test = Test::start().await;
    let key = json!({"user": "core", "publicKey": "ssh-ed25519 AAAA"});
    let add = async |key: &Value| test.send(Method::POST, "/v1/ssh-keys", Some(key.clone())).await.0;
    assert_eq!(add(&key).await, StatusCode::CREATED);
    assert_eq!(add(&key).await, StatusCode::OK);
    assert_eq!(test.get("/v1/ssh-keys").await["items"], json!([key]));
    test.cloud.remove_ssh_keys();
    assert!(test.cloud.ssh_keys().is_empty());
}
