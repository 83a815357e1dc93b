//! A hundred swaps of everything that can be swapped, while a thousand Nodes and two hundred Services come into the cluster.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cloudwit_sim_cloud::NewMachine;
use cloudwit_test_support::foreign_events::is_of_the_api_server;
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, eventually};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::stack::{SOON, Stack, variant};

const SWAPS: usize = 100;
/// Made during each swap.
const NODES: usize = 10;
const SERVICES: usize = 2;
/// So many older tokens are still taken: longer than any call takes.
const OLD_TOKENS: usize = 20;
/// For everything to be done after the last swap.
const SETTLE: Duration = Duration::from_secs(240);

/// Nodes and Services that have to be worked on while the swap takes place.
async fn make_work(stack: &Stack, swap: usize) {
    let client = stack.site.server.client();
    let names: Vec<String> = (0..NODES).map(|number| format!("wave-{swap}-{number}")).collect();
    stack.site.cloud.add_machines(names.iter().map(NewMachine::named));
    let nodes = names.iter().map(|name| NodeBuilder::new(name).create(&client));
    try_join_all(nodes).await.unwrap();
    let services: Vec<String> = (0..SERVICES).map(|number| format!("web-{swap}-{number}")).collect();
    let services = services.iter().map(|name| ServiceBuilder::new(name).create(&client));
    try_join_all(services).await.unwrap();
}

/// Changes the secret, and each second time the component too, each third time the configuration.
fn change(stack: &Stack, swap: usize) {
    if swap.is_multiple_of(2) {
        let number = u8::try_from(swap / 2 % 3).unwrap();
        stack
            .components
            .write(&[("sim.wasm", &variant(&stack.component, number))]);
    }
    if swap.is_multiple_of(3) {
        let (sim, settings) = stack.configuration();
        let page_size = 400 + swap % 100;
        stack.configure(&sim.replace('}', &format!(",\"pageSize\":{page_size}}}")), &settings);
    }
    // As when a cloud rotates, older ones are still taken for a while: a call in flight ends with the one it began with.
    let tokens: Vec<String> = (swap.saturating_sub(OLD_TOKENS)..=swap)
        .map(|number| format!("token-{number}"))
        .collect();
    stack.site.cloud.set_tokens(&tokens);
    let new = &tokens[tokens.len() - 1];
    stack.secret.write(&[("token", new.as_bytes())]);
}

/// Waits until a call was made with the token of this swap; the probe of the candidate is the first request with it.
async fn first_call(stack: &Stack, swap: usize) {
    let token = format!("token-{swap}");
    let called = || async {
        let uses = stack.site.cloud.token_uses();
        uses.get(&token).is_some_and(|used| used.requests >= 2)
    };
    eventually(SOON, "a call is made on the new one", called).await;
}

/// Calls of the provider that did not end well, as the metric says them.
async fn bad_calls(stack: &Stack) -> Vec<String> {
    let metrics = stack.metrics().await;
    let bad = |line: &&str| {
        line.starts_with("cloudwit_provider_calls_total") && !line.contains("result=\"ok\"")
            || line.starts_with("cloudwit_provider_faults_total")
    };
    metrics.lines().filter(bad).map(str::to_owned).collect()
}

/// What is not done yet.
async fn left(stack: &Stack) -> Result<(), String> {
    let client = stack.site.server.client();
    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = nodes
        .list(&ListParams::default())
        .await
        .map_err(|error| error.to_string())?;
    let waiting = nodes.iter().filter(|node| is_uninitialised(node)).count();
    let services: Api<Service> = Api::namespaced(client, "default");
    let services = services
        .list(&ListParams::default())
        .await
        .map_err(|error| error.to_string())?;
    let without_address = |service: &&Service| {
        let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        balancer.and_then(|balancer| balancer.ingress.as_ref()).is_none()
    };
    let made = services.iter().filter(|service| service.name_any() != "kubernetes");
    let without: Vec<String> = made.filter(without_address).map(ResourceExt::name_any).collect();
    if (nodes.items.len(), waiting, without.len()) == (SWAPS * NODES, 0, 0) {
        return Ok(());
    }
    Err(format!(
        "of {} Nodes {waiting} wait, {} Services have no address",
        nodes.items.len(),
        without.len()
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn hundred_swaps_under_load_fail_no_reconcile() {
    let mut stack = Stack::start().await;
    let mut took = Vec::new();
    for swap in 1..=SWAPS {
        let began = Instant::now();
        change(&stack, swap);
        let ((), at) = tokio::join!(make_work(&stack, swap), async {
            first_call(&stack, swap).await;
            began.elapsed()
        });
        took.push(at);
        let done = u64::try_from(swap).unwrap();
        stack.until_swaps("swapped", done).await;
    }
    eventually(SETTLE, "all Nodes and Services are done", || left(&stack)).await;
    took.sort_unstable();
    let metrics = stack.metrics().await;
    let swaps: Vec<&str> = metrics
        .lines()
        .filter(|line| line.starts_with("cloudwit_provider_swaps"))
        .collect();
    println!(
        "{SWAPS} swaps; from the change of a file to the first call on the new one: median {:?}, 95 of 100 {:?}, longest {:?}; {swaps:?}",
        took[SWAPS / 2],
        took[SWAPS * 95 / 100],
        took[SWAPS - 1]
    );
    assert_eq!(bad_calls(&stack).await, Vec::<String>::new());
    let refused = |line: &&&str| !line.contains("\"swapped\"") && !line.contains("\"unchanged\"");
    assert_eq!(swaps.iter().filter(refused).count(), 0, "{swaps:?}");
    assert_eq!(stack.site.cloud.counters().unauthorized(), 0);
    assert_eq!(
        stack.site.cloud.load_balancers().len(),
        SWAPS * SERVICES,
        "none was made twice"
    );
    let owners: BTreeSet<_> = stack
        .site
        .cloud
        .load_balancers()
        .into_iter()
        .map(|one| one.spec.owner)
        .collect();
    assert_eq!(owners.len(), SWAPS * SERVICES);
    let events: Api<Event> = Api::all(stack.site.server.client());
    let events = events.list(&ListParams::default()).await.unwrap();
    // The API server writes some of its own, about the addresses of Services.
    let ours = |event: &&Event| {
        let component = event.source.as_ref().and_then(|source| source.component.as_ref());
        component.is_some() && !is_of_the_api_server(event)
    };
    let is_warning = |event: &&Event| event.type_.as_deref() == Some("Warning");
    let warnings: Vec<_> = events.iter().filter(ours).filter(is_warning).collect();
    assert!(events.iter().any(|event| ours(&event)), "the filter is wrong");
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(stack.cloudwit.ended().unwrap(), None);
}
