//! Signatures, clusters and faults of moto.

use http::Request;
use kube::client::Body;
use kube::{Client, Config};

use super::*;

#[tokio::test]
async fn a_cluster_is_made_and_only_signed_calls_are_answered() {
    let moto = Moto::shared().await;
    let cluster = moto.cluster("made").await.unwrap();
    let machines = cluster.machines(moto, 1, 3).await.unwrap();
    assert_eq!(machines.len(), 3);
    assert!(
        machines[0].provider_id().starts_with("aws:///us-east-1b/i-"),
        "{machines:?}"
    );
    let of_vpc = json!({ "Filters": [{ "Name": "vpc-id", "Values": [cluster.vpc] }] });
    let seen = moto.call("ec2", "describe_instances", of_vpc).await.unwrap();
    let ids: Vec<_> = machines.iter().map(|machine| machine.id.as_str()).collect();
    assert!(ids.iter().all(|id| seen.to_string().contains(id)), "{seen}");

    let unsigned = Client::try_from(Config::new(moto.url().parse().unwrap())).unwrap();
    let request = Request::post("/")
        .header("content-type", "application/x-www-form-urlencoded")
        .header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKIAX/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=0",
        )
        .body(Body::from(b"Action=DescribeVpcs&Version=2016-11-15".to_vec()))
        .unwrap();
    assert_eq!(unsigned.send(request).await.unwrap().status(), 401);
    let refused = CloudCall {
        service: "ec2".into(),
        action: "DescribeVpcs".into(),
        key: "AKIAX".into(),
        agent: String::new(),
        status: 401,
    };
    let calls = moto.calls().await.unwrap();
    assert!(
        calls.iter().any(|call| CloudCall {
            agent: String::new(),
            ..call.clone()
        } == refused),
        "{calls:?}"
    );
}

#[tokio::test]
async fn a_signature_covers_the_body_as_it_was_sent() {
    let moto = Moto::shared().await;
    // Signed with botocore for another spelling of the blank than Python's.
    let signed = "import sys,botocore.auth as a,botocore.credentials as c,botocore.awsrequest as r;\
        q=r.AWSRequest('POST',sys.argv[1]+'/',{'content-type':'application/x-www-form-urlencoded'},sys.argv[4]);\
        a.SigV4Auth(c.Credentials(sys.argv[2],sys.argv[3]),'ec2','us-east-1').add_auth(q);\
        print(q.headers['X-Amz-Date']);print(q.headers['Authorization'])";
    let python = xtask::servers::moto().unwrap().python();
    let (key, body) = (
        moto.administrator(),
        "Action=CreateSecurityGroup&GroupDescription=a%20b&GroupName=body&Version=2016-11-15",
    );
    let mut signer = std::process::Command::new(python);
    signer.args(["-c", signed, moto.url(), &key.access_key, &key.secret_key, body]);
    let printed = xtask::tools::output(&mut signer).unwrap();
    let (date, authorization) = printed.trim().split_once('\n').unwrap();
    for (body, status) in [(body, 200), (&body.replace("a%20b", "a%20c"), 401)] {
        let request = Request::post("/")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("x-amz-date", date)
            .header("authorization", authorization)
            .body(Body::from(body.as_bytes().to_vec()))
            .unwrap();
        let client = Client::try_from(Config::new(moto.url().parse().unwrap())).unwrap();
        assert_eq!(client.send(request).await.unwrap().status(), status, "{body}");
    }
}

#[tokio::test]
async fn a_route_to_an_instance_that_ended_is_a_black_hole() {
    let moto = Moto::shared().await;
    let cluster = moto.cluster("routed").await.unwrap();
    let machine = cluster.machines(moto, 0, 1).await.unwrap().remove(0);
    let route = json!({
        "RouteTableId": cluster.route_table, "DestinationCidrBlock": "10.244.1.0/24", "InstanceId": machine.id,
    });
    moto.call("ec2", "create_route", route).await.unwrap();
    let state = || async {
        let asked = json!({ "RouteTableIds": [cluster.route_table] });
        let table = moto.call("ec2", "describe_route_tables", asked).await.unwrap();
        let routes = table["RouteTables"][0]["Routes"].as_array().unwrap().clone();
        let mut to_pods = routes
            .into_iter()
            .filter(|route| route["DestinationCidrBlock"] == "10.244.1.0/24");
        to_pods.next().unwrap()["State"].clone()
    };
    assert_eq!(state().await, "active");
    let ended = json!({ "InstanceIds": [machine.id] });
    moto.call("ec2", "terminate_instances", ended).await.unwrap();
    assert_eq!(state().await, "blackhole");
}

#[tokio::test]
async fn what_boto3_refuses_is_an_error_with_its_code() {
    let moto = Moto::shared().await;
    let unknown = json!({ "VpcIds": ["vpc-0"] });
    let error = moto
        .call("ec2", "describe_vpcs", unknown)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("InvalidVpcID.NotFound"), "{error}");
}
