//! The stand-in is what it claims: VMware's own client works on it, and is refused as by NSX.

use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::vsphere::nsx_client;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn vmwares_client_finds_nsx_in_the_stand_in() {
    let nsx = StandIn::start("nsx", &[]).await.unwrap();
    let seen = nsx_client(&nsx, &["judge"]).await.unwrap();
    let refusals = json!({
        "stale": ["ApiError", 412, 604], "used": ["ApiError", 400, 500030], "missing": ["ApiError", 404, 500090], "size": ["ApiError", 400, 220],
        "discriminator": ["ApiError", 400, 220], "reference": ["ApiError", 400, 500012], "second": ["ApiError", 400, 500302],
        "family": ["ApiError", 400, 503000], "password": ["ApiError", 403, 403],
    });
    let expected = json!({
        "ip": "192.0.2.10", "listed": [1, 1], "server": [["80"], ["30080"], 0], "changed": [1, 1], "pages": 6,
        "route": ["uid-1_10.244.1.0_24", "REALIZED"], "found": ["uid-1_10.244.1.0_24"], "refusals": refusals, "others": [1, 1],
        "deleting": ["ApiError", 400, 500045], "left": [0, 0],
    });
    assert_eq!(seen, expected);
    let calls = nsx.calls().await.unwrap();
    assert!(calls.len() > 40, "{}", calls.len());
    assert!(
        calls.iter().all(|call| call.status != 599),
        "the stand-in made a mistake"
    );
}
