//! Who Cloudwit is in AWS: keys that are right, wrong or allowed too little, and a role whose credentials end in the middle.

use cloudwit_test_support::NodeBuilder;
use serde_json::json;

use crate::scene::{Scene, refusal};

#[tokio::test(flavor = "multi_thread")]
async fn every_signature_is_accepted_under_the_policy_that_operators_are_given() {
    let mut scene = Scene::new("signed").await;
    let machine = scene.joins("10.244.1.0/24").await;
    scene.start(&[]);
    scene.initialised(&machine.private_dns).await;
    scene
        .settled("the route is made", || async {
            if scene.count("CreateRoute").await > 0 {
                Ok(())
            } else {
                Err("not yet".into())
            }
        })
        .await;
    let calls = scene.calls().await;
    // moto has no topology and says so with 500.
    let refused: Vec<_> = calls
        .iter()
        .filter(|(action, status)| *status != 200 && action != "DescribeInstanceTopology")
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(
        !scene.log().contains(&scene.key.secret_key) && !scene.log().contains(&scene.key.access_key),
        "a key is in the log"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_wrong_key_nothing_is_lost_and_the_reason_is_told_without_it() {
    let mut scene = Scene::new("wrong").await;
    let machine = scene.cluster.machines(scene.moto, 0, 1).await.unwrap().remove(0);
    let node = NodeBuilder::new(&machine.private_dns)
        .initialised()
        .provider_id(&machine.provider_id());
    node.create(&scene.client).await.unwrap();
    scene
        .ask("terminate_instances", json!({ "InstanceIds": [machine.id] }))
        .await;
    scene.falls_silent(&machine.private_dns).await;
    scene.key.secret_key = "canary-7391-wrong".into();
    scene.start(&["--controllers=cloud-node-controller,cloud-node-lifecycle-controller"]);
    scene
        .settled("AWS's word is in the log, and it was asked again", || async {
            let asked = scene.count("DescribeInstances").await;
            let told = scene.log().contains("AuthFailure") || scene.log().contains("SignatureDoesNotMatch");
            if told && asked >= 3 {
                Ok(())
            } else {
                Err(format!("told: {told}, asked {asked} times"))
            }
        })
        .await;
    let refused = scene.calls().await;
    assert!(
        refused.iter().all(|(_, status)| matches!(status, 401 | 403)),
        "{refused:?}"
    );
    assert!(
        scene.node(&machine.private_dns).await.is_some(),
        "silence is not absence"
    );
    assert!(!scene.log().contains("canary-7391"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_allows_too_little_is_named_and_nothing_is_lost() {
    let mut scene = Scene::new("limited").await;
    let machine = scene.joins("10.244.1.0/24").await;
    let nothing = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*" }] });
    scene.key = scene.moto.user("limited-more", &nothing).await.unwrap();
    scene.start(&[]);
    scene
        .settled("the refusal is in the log", || async {
            let log = scene.log();
            if log.contains("UnauthorizedOperation") || log.contains("AccessDenied") {
                Ok(())
            } else {
                Err("not yet".into())
            }
        })
        .await;
    assert!(scene.node(&machine.private_dns).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_taken_on_once_and_again_when_its_credentials_end_in_the_middle() {
    let mut scene = Scene::new("role").await;
    let everybody =
        json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "*", "Resource": "*" }] });
    let trust = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Principal": { "AWS": "*" }, "Action": "sts:AssumeRole" }] });
    let role = json!({ "RoleName": "cloudwit", "AssumeRolePolicyDocument": trust.to_string() });
    let role = scene.moto.call("iam", "create_role", role).await.unwrap();
    let policy = json!({ "RoleName": "cloudwit", "PolicyName": "all", "PolicyDocument": everybody.to_string() });
    scene.moto.call("iam", "put_role_policy", policy).await.unwrap();
    let may_take_it = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*" }] });
    scene.key = scene.moto.user("role-taker", &may_take_it).await.unwrap();
    scene.more.0 = format!(
        "RoleARN = {}\nSourceARN = arn:aws:eks:us-east-1:123456789012:cluster/role\n",
        role["Role"]["Arn"].as_str().unwrap()
    );
    scene.more.1 = format!(
        "\n[ServiceOverride \"sts\"]\nService = STS\nRegion = us-east-1\nURL = {}\nSigningRegion = us-east-1\n",
        scene.gate.url()
    );
    let machine = scene.joins("10.244.1.0/24").await;
    scene.start(&[]);
    scene.initialised(&machine.private_dns).await;
    let own = scene.calls().await;
    assert_eq!(
        own,
        [("AssumeRole".to_owned(), 200)],
        "all else is signed with the role's credentials"
    );

    let ended = scene.fail("DescribeInstances", refusal(400, "RequestExpired").times(1));
    let late = scene.joins("10.244.2.0/24").await;
    scene.initialised(&late.private_dns).await;
    assert_eq!(ended.met(), 1);
    assert_eq!(scene.count("AssumeRole").await, 2, "{}", scene.log());
}
