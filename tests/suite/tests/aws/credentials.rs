//! Who Cloudwit is in AWS: keys that are right, wrong or allowed too little, and a role whose credentials end in the middle.

use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use serde_json::json;

use crate::scene::{Scene, refusal};

#[tokio::test(flavor = "multi_thread")]
async fn each_signature_passes_under_the_documented_policy() {
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
    let calls = scene.answered_calls().await;
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
async fn wrong_key_loses_nothing_and_emits_one_event_per_object() {
    let mut scene = Scene::new("wrong").await;
    let machine = scene.cluster.machines(scene.moto, 0, 1).await.unwrap().remove(0);
    let silent = machine.private_dns.as_str();
    let node = NodeBuilder::new(silent)
        .initialised()
        .provider_id(&machine.provider_id());
    node.create(&scene.client).await.unwrap();
    scene
        .ask("terminate_instances", json!({ "InstanceIds": [machine.id] }))
        .await;
    scene.falls_silent(silent).await;
    let joining = scene.joins("10.244.1.0/24").await.private_dns;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene.key.secret_key = "canary-7391-wrong".into();
    scene.start(&["--controllers=cloud-node-controller,cloud-node-lifecycle-controller,service-lb-controller"]);
    let mut told = Vec::new();
    for (name, reason) in [
        (silent, "MachineLookupFailed"),
        (&*joining, "InitializationFailed"),
        ("web", "SyncLoadBalancerFailed"),
    ] {
        let warning = scene.warned(name, reason, &["denied"]).await;
        // EC2 has another word for it than the other services.
        let words = ["AuthFailure: ", "SignatureDoesNotMatch: "];
        assert!(words.iter().any(|word| warning.message.contains(word)), "{warning:?}");
        told.push((name, warning));
    }
    let asked = scene.count("DescribeInstances").await;
    scene
        .settled("it was asked again and again", || async {
            let again = scene.count("DescribeInstances").await - asked;
            if again >= 3 {
                Ok(())
            } else {
                Err(format!("{again} times"))
            }
        })
        .await;
    for (name, mut first) in told {
        let mut now = scene.warnings(name).await;
        // A Service is tried again each time its pause is over, and the Event that is there counts that.
        if name == "web" {
            first.count = 0;
            now.iter_mut().for_each(|warning| warning.count = 0);
        }
        assert!(!first.message.contains("canary-7391"), "{first:?}");
        assert_eq!(now, [first], "{name}");
    }
    let refused = scene.answered_calls().await;
    assert!(
        !refused.is_empty() && refused.iter().all(|(_, status)| matches!(status, 401 | 403)),
        "{refused:?}"
    );
    assert!(scene.node(silent).await.is_some(), "silence is not absence");
    assert!(!scene.log().contains("canary-7391"));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permission_is_one_event_and_loses_nothing() {
    let mut scene = Scene::new("limited").await;
    let machine = scene.joins("10.244.1.0/24").await;
    let nothing = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*" }] });
    scene.key = scene.moto.user("limited-more", &nothing).await.unwrap();
    scene.start(&["--controllers=cloud-node-controller"]);
    let told = scene
        .warned(
            &machine.private_dns,
            "InitializationFailed",
            &["AccessDenied", "ec2:DescribeInstances"],
        )
        .await;
    let late = scene.joins("10.244.2.0/24").await;
    scene
        .warned(&late.private_dns, "InitializationFailed", &["AccessDenied"])
        .await;
    assert_eq!(scene.warnings(&machine.private_dns).await, [told]);
    assert!(scene.node(&machine.private_dns).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn role_is_assumed_once_and_again_on_expiry() {
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
    // The call that was refused asks for it; another one may have initialised the Node before.
    scene
        .settled("the role is assumed again", || async {
            match scene.count("AssumeRole").await {
                0 | 1 => Err("not yet".into()),
                _ => Ok(()),
            }
        })
        .await;
    assert_eq!(scene.count("AssumeRole").await, 2, "{}", scene.log());
}
