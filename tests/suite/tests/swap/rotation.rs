//! Tokens, cloud configs and components that change on disk are used without a restart.

use std::fs;
use std::time::Duration;

use cloudwit_sim_cloud::Operation;
use cloudwit_test_support::eventually;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::stack::{SOON, Stack, variant};

/// How often that token was sent so far.
fn sent(stack: &Stack, token: &str) -> u64 {
    stack.site.cloud.token_uses().get(token).map_or(0, |used| used.requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn hcloud_1139_rotated_token_is_used_and_old_one_never_again() {
    let stack = Stack::start().await;
    stack.initialises_a_node().await;
    for number in 1..=5_u64 {
        let (old, new) = (format!("token-{}", number - 1), format!("token-{number}"));
        stack.site.cloud.set_tokens([&old, &new]);
        stack.secret.write(&[("token", new.as_bytes())]);
        stack.until_swaps("swapped", number).await;
        // Calls in flight end with the token they began with; the next look-ups come every second.
        let seen = sent(&stack, &new);
        eventually(SOON, "calls are made with the new token", || async {
            sent(&stack, &new) > seen + 2
        })
        .await;
        let (last, seen) = (sent(&stack, &old), sent(&stack, &new));
        stack.site.cloud.set_tokens([&new]);
        eventually(SOON, "more calls are made", || async { sent(&stack, &new) > seen + 5 }).await;
        assert_eq!(sent(&stack, &old), last, "the old token was used again");
        stack.initialises_a_node().await;
    }
    assert_eq!(stack.site.cloud.counters().unauthorized(), 0);
    let log = fs::read_to_string(stack.cloudwit.log()).unwrap();
    assert!(
        !log.contains("token-0") && !log.contains("token-5"),
        "a token is in the log"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn vsphere_531_changed_cloud_config_needs_no_restart() {
    let stack = Stack::start().await;
    stack.initialises_a_node().await;
    let (sim, settings) = stack.configuration();
    // A region without machines: the Node that comes next is not found, which the old configuration would not say.
    stack.configure(&sim.replace('}', ",\"region\":\"nowhere\"}"), &settings);
    stack.until_swaps("swapped", 1).await;
    stack.until_event("ProviderSwapped", "sim").await;
    stack.configure(&sim, &settings);
    stack.until_swaps("swapped", 2).await;
    stack.initialises_a_node().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vsphere_786_late_valid_token_is_taken_once_it_works() {
    let stack = Stack::start().await;
    stack.secret.write(&[("token", b"token-1")]);
    stack.until_swaps("probe", 1).await;
    stack.initialises_a_node().await;
    stack.site.cloud.set_tokens(["token-0", "token-1"]);
    // Without any further change of the files.
    stack.until_swaps("swapped", 1).await;
    stack.site.cloud.set_tokens(["token-1"]);
    stack.initialises_a_node().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_files_are_watched_and_packed_component_is_equal() {
    let stack = Stack::start().await;
    let file = stack.components.path("sim.wasm");
    // A copy over the mount: a plain file in the place of the link.
    fs::remove_file(&file).unwrap();
    fs::write(&file, variant(&stack.component, 1)).unwrap();
    stack.until_swaps("swapped", 1).await;
    // Written slowly: what is half there is either left alone or refused, and the whole is taken.
    let whole = variant(&stack.component, 2);
    fs::write(&file, &whole[..1000]).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    fs::write(&file, &whole).unwrap();
    stack.until_swaps("swapped", 2).await;
    // The same component, packed: nothing to do.
    let before = stack.swaps("unchanged").await.unwrap();
    let packed = compress_to_vec(whole.as_slice(), CompressionLevel::Fastest);
    let beside = stack.components.path("..beside");
    fs::write(&beside, packed).unwrap();
    fs::rename(&beside, stack.components.path("sim.wasm.zst")).unwrap();
    fs::remove_file(&file).unwrap();
    stack.until_swaps("unchanged", before + 1).await;
    stack.initialises_a_node().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_604_changed_secret_reinitialises_provider() {
    let stack = Stack::start().await;
    // Probes are the only ones that ask for zones.
    let probes = || stack.site.cloud.counters().requests(Operation::ListZones);
    eventually(SOON, "the probe of the start", || async { probes() >= 1 }).await;
    let before = probes();
    stack.site.cloud.set_tokens(["token-0", "token-1"]);
    stack.secret.write(&[("token", b"token-1")]);
    stack.until_swaps("swapped", 1).await;
    assert_eq!(
        probes(),
        before + 1,
        "the new one was probed, with the new secret, before the switch"
    );
    assert!(sent(&stack, "token-1") > 0);
    stack.until_event("ProviderSwapped", "sim").await;
}
