//! The stand-in is what it claims: Alibaba Cloud's two SDKs work on it with signers of their own, and are refused as by the cloud.

use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::alibaba::alibaba_sdks;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_clouds_two_sdks_find_alibaba_cloud_in_the_stand_in() {
    let cloud = StandIn::start("alibaba", &[]).await.unwrap();
    let seen = alibaba_sdks(&cloud).await.unwrap();
    // The older SDK says itself that it is the secret which is wrong, by comparing what was signed.
    let older = json!({
        "machines": 250, "found": 1, "throttled": [400, "Throttling.User"], "secret": [400, "InvalidAccessKeySecret"],
        "key": [404, "InvalidAccessKeyId.NotFound"], "action": [404, "InvalidAction.NotFound"], "parameter": [400, "InvalidParameter"],
    });
    assert_eq!(seen["older"], older);
    let newer = json!({
        "by_id": 1, "name": "judged-0", "again": true, "tagged": 1, "charge": "paybytraffic", "status": "running", "interval": 7,
        "clash": "ListenerAlreadyExists", "in_use": "RspoolVipExist", "gone": "InvalidLoadBalancerId.NotFound",
        "routes": [1, "InvalidCIDRBlock.Duplicate", true, 1],
    });
    assert_eq!(seen["newer"], newer);
    let network = json!({
        "first": "Provisioning", "waits": ["Succeeded", "Succeeded", "Succeeded"], "adding": "Adding", "locked": "Conflict.Lock", "status": "Running",
        "check": 7, "in_use": "ResourceInUse.ServerGroup", "ends": ["Failed", "Succeeded"], "left": 0,
    });
    assert_eq!(seen["network"], network);
    let refusals = json!({
        "secret": "SignatureDoesNotMatch", "key": "InvalidAccessKeyId.NotFound", "token": "InvalidSecurityToken.MismatchWithAccessKey",
        "size": "InvalidParameter.MaxResults",
    });
    assert_eq!(seen["refusals"], refusals);
    let calls = cloud.calls().await.unwrap();
    assert!(
        calls.iter().all(|call| call.status != 599),
        "the stand-in made a mistake"
    );
}
