//! A storm of updates.

use std::time::{Duration, Instant};

use cloudwit_test_support::eventually;
use serde_json::json;

use crate::fleet::{Fleet, PATIENCE, node};

/// Nodes that wait for their machines while somebody writes to them all the time.
const WAITING: usize = 100;
const UPDATES: usize = 100;

/// Time that each look-up takes: as long as it runs, its Nodes are not asked for again.
const LOOKUP_TIME: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn ten_thousand_updates_of_100_waiting_nodes_are_100_entries() {
    let fleet = Fleet::new().await;
    fleet.add_nodes((0..WAITING).map(|number| node(number).build())).await;
    fleet.site.cloud.set_latency(LOOKUP_TIME);
    let process = fleet.start(&["--configure-cloud-routes=false"]);
    let nodes_asked = async || {
        process
            .metrics()
            .await
            .sum("cloudwit_node_lookup_nodes_total", &["purpose=\"init\""])
    };
    eventually(PATIENCE, "all Nodes have been asked for", || async {
        nodes_asked().await >= WAITING as f64
    })
    .await;

    let (began, asked) = (Instant::now(), nodes_asked().await);
    for round in 0..UPDATES {
        // A change that counts: by its labels a provider may find the machine.
        let label = json!({ "metadata": { "labels": { "example.com/round": round.to_string() } } });
        fleet.patch_nodes(0..WAITING, label).await;
    }
    let (time, asked) = (began.elapsed(), nodes_asked().await - asked);
    // No Node is asked for twice at once, so each at most once in the time of a look-up, and once before and after.
    let most = WAITING as f64 * (time.as_secs_f64() / LOOKUP_TIME.as_secs_f64() + 2.0);
    assert!(
        (WAITING as f64..=most).contains(&asked),
        "{asked} Nodes asked for, at most {most}"
    );
    // A write that conflicts with one of ours here is made again, and does not count.
    let writes = async || {
        process
            .metrics()
            .await
            .sum("cloudwit_api_writes_total", &["resource=\"nodes", "result=\"ok\""])
    };
    let told = || async { writes().await == WAITING as f64 };
    eventually(
        PATIENCE,
        "each Node says once why it waits, and nothing else is written",
        told,
    )
    .await;
    println!("{} updates in {time:.1?}: {asked} Nodes asked for", WAITING * UPDATES);

    fleet.site.cloud.set_latency(Duration::ZERO);
    fleet.site.cloud.add_numbered_machines("node", WAITING);
    fleet
        .patch_nodes(
            0..WAITING,
            json!({ "metadata": { "labels": { "example.com/round": "last" } } }),
        )
        .await;
    fleet.nodes_initialised(WAITING).await;
    eventually(PATIENCE, "the writes are counted", || async {
        writes().await >= 3.0 * WAITING as f64
    })
    .await;
    assert_eq!(writes().await, 3.0 * WAITING as f64, "then status and taint of each");
}
