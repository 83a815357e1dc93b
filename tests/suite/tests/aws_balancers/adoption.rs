//! What upstream's controller left behind: the same calls with the same parameters as kubernetes/cloud-provider-aws makes them (commit
//! 63ec440c), and then ours comes.

use cloudwit_model::{Cloud, Service};
use serde_json::{Value, json};

use crate::stand::{Stand, hostname, name, service, text};

/// The tags that upstream gives to everything but security groups, which have only the first.
fn tags(stand: &Stand, service: &Service) -> Value {
    json!([
        { "Key": format!("kubernetes.io/cluster/{}", stand.cluster.name), "Value": "owned" },
        { "Key": "kubernetes.io/service-name", "Value": format!("default/{}", service.name) },
    ])
}

fn subnets(stand: &Stand) -> Vec<&str> {
    stand.cluster.subnets.iter().map(|subnet| subnet.id.as_str()).collect()
}

async fn classic_as_upstream(stand: &Stand, service: &Service) {
    let name = name(service);
    let group = stand
        .ask(
            "ec2",
            "create_security_group",
            json!({
                "GroupName": format!("k8s-elb-{name}"),
                "Description": format!("Security group for Kubernetes ELB {name} (default/{})", service.name),
                "VpcId": stand.cluster.vpc,
                "TagSpecifications": [{ "ResourceType": "security-group", "Tags": [tags(stand, service)[0]] }],
            }),
        )
        .await;
    let group = text(&group["GroupId"]);
    let everybody = json!([{ "CidrIp": "0.0.0.0/0" }]);
    let rules = json!([
        { "IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "IpRanges": everybody },
        { "IpProtocol": "icmp", "FromPort": 3, "ToPort": 4, "IpRanges": everybody },
    ]);
    stand
        .ask(
            "ec2",
            "authorize_security_group_ingress",
            json!({ "GroupId": group, "IpPermissions": rules }),
        )
        .await;
    let trust = json!([{ "IpProtocol": "-1", "UserIdGroupPairs": [{ "GroupId": group }] }]);
    let nodes = &stand.cluster.security_group;
    stand
        .ask(
            "ec2",
            "authorize_security_group_ingress",
            json!({ "GroupId": nodes, "IpPermissions": trust }),
        )
        .await;
    let listener =
        json!([{ "Protocol": "tcp", "LoadBalancerPort": 80, "InstanceProtocol": "tcp", "InstancePort": 30080 }]);
    let balancer = json!({
        "LoadBalancerName": name, "Listeners": listener, "Subnets": subnets(stand), "SecurityGroups": [group], "Tags": tags(stand, service),
    });
    stand.ask("elb", "create_load_balancer", balancer).await;
    let health =
        json!({ "Target": "TCP:30080", "Interval": 10, "Timeout": 5, "UnhealthyThreshold": 6, "HealthyThreshold": 2 });
    stand
        .ask(
            "elb",
            "configure_health_check",
            json!({ "LoadBalancerName": name, "HealthCheck": health }),
        )
        .await;
    let attributes = json!({
        "AccessLog": { "Enabled": false }, "ConnectionDraining": { "Enabled": false },
        "ConnectionSettings": { "IdleTimeout": 60 }, "CrossZoneLoadBalancing": { "Enabled": false },
    });
    let modify = json!({ "LoadBalancerName": name, "LoadBalancerAttributes": attributes });
    stand.ask("elb", "modify_load_balancer_attributes", modify).await;
    let instances: Vec<Value> = stand
        .machines
        .iter()
        .map(|machine| json!({ "InstanceId": machine.id }))
        .collect();
    let register = json!({ "LoadBalancerName": name, "Instances": instances });
    stand
        .ask("elb", "register_instances_with_load_balancer", register)
        .await;
}

async fn network_as_upstream(stand: &Stand, service: &Service, target_group: &str) {
    let mappings: Vec<Value> = subnets(stand).iter().map(|id| json!({ "SubnetId": id })).collect();
    let balancer =
        json!({ "Type": "network", "Name": name(service), "SubnetMappings": mappings, "Tags": tags(stand, service) });
    let made = stand.ask("elbv2", "create_load_balancer", balancer).await;
    let balancer = made["LoadBalancers"][0]["LoadBalancerArn"].clone();
    let group = json!({
        "VpcId": stand.cluster.vpc, "Name": target_group, "Port": 30080, "Protocol": "TCP", "TargetType": "instance",
        "HealthCheckIntervalSeconds": 30, "HealthCheckPort": "traffic-port", "HealthCheckProtocol": "TCP",
        "HealthyThresholdCount": 3, "UnhealthyThresholdCount": 3, "Tags": tags(stand, service),
    });
    let made = stand.ask("elbv2", "create_target_group", group).await;
    let group = made["TargetGroups"][0]["TargetGroupArn"].clone();
    let targets: Vec<Value> = stand
        .machines
        .iter()
        .map(|machine| json!({ "Id": machine.id, "Port": 30080 }))
        .collect();
    stand
        .ask(
            "elbv2",
            "register_targets",
            json!({ "TargetGroupArn": group, "Targets": targets }),
        )
        .await;
    let listener = json!({
        "LoadBalancerArn": balancer, "Port": 80, "Protocol": "TCP", "Tags": tags(stand, service),
        "DefaultActions": [{ "Type": "forward", "TargetGroupArn": group }],
    });
    stand.ask("elbv2", "create_listener", listener).await;
    let attributes = json!([
        { "Key": "load_balancing.cross_zone.enabled", "Value": "false" },
        { "Key": "access_logs.s3.enabled", "Value": "false" },
    ]);
    let modify = json!({ "LoadBalancerArn": balancer, "Attributes": attributes });
    stand.ask("elbv2", "modify_load_balancer_attributes", modify).await;
    let described = |text: &str| json!([{ "CidrIp": "0.0.0.0/0", "Description": text }]);
    let client = format!("kubernetes.io/rule/nlb/client={}", name(service));
    let rules = json!([
        { "IpProtocol": "tcp", "FromPort": 30080, "ToPort": 30080, "IpRanges": described(&client) },
        { "IpProtocol": "icmp", "FromPort": 3, "ToPort": 4, "IpRanges": described("kubernetes.io/rule/nlb/mtu") },
    ]);
    let nodes = &stand.cluster.security_group;
    stand
        .ask(
            "ec2",
            "authorize_security_group_ingress",
            json!({ "GroupId": nodes, "IpPermissions": rules }),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_classic_balancer_is_adopted_without_write() {
    let stand = Stand::new("adopted-classic").await;
    let service = service("adopted-classic", "");
    classic_as_upstream(&stand, &service).await;
    let before = stand.classic(&service).await.unwrap();
    let (ensured, writes) = stand.writes(stand.ensure(&service)).await;
    assert_eq!(hostname(&ensured.unwrap()), text(&before["DNSName"]));
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(stand.classic(&service).await, Some(before));
    stand.delete(&service).await.unwrap();
    stand.nothing_left(&[&service]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_network_balancer_is_adopted_without_write() {
    // The first is `buildTargetGroupName`'s, computed by `printf 'adopted-nlb''default''adopted-nlb''80''30080''TCP''instance''TCP''30' | sha1sum`;
    // the second is one that another version of upstream made.
    for (cluster, group) in [
        ("adopted-nlb", "k8s-default-adoptedn-1a8c2302ef"),
        ("adopted-nlb-old", "k8s-default-adoptedn-0123456789"),
    ] {
        let stand = Stand::new(cluster).await;
        let service = service(cluster, "nlb");
        network_as_upstream(&stand, &service, group).await;
        let before = stand.network(&service).await.unwrap();
        let (ensured, writes) = stand.writes(stand.ensure(&service)).await;
        assert_eq!(hostname(&ensured.unwrap()), text(&before["DNSName"]));
        assert_eq!(writes, Vec::<String>::new());
        assert_eq!(stand.network(&service).await, Some(before));
        assert_eq!(stand.target_groups().await[0]["TargetGroupName"], group);
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_load_balancer_is_used_and_never_deleted() {
    let stand = Stand::new("shared").await;
    let service = service("shared", "nlb");
    stand.ensure(&service).await.unwrap();
    let arn = stand.network(&service).await.unwrap()["LoadBalancerArn"].clone();
    let tag = json!([{ "Key": "kubernetes.io/cluster/shared", "Value": "shared" }]);
    stand
        .ask("elbv2", "add_tags", json!({ "ResourceArns": [arn], "Tags": tag }))
        .await;
    let (ensured, writes) = stand.writes(stand.ensure(&service)).await;
    assert_eq!(
        (ensured.is_ok(), writes),
        (true, Vec::new()),
        "the tag is not taken back"
    );
    let (deleted, writes) = stand.writes(stand.delete(&service)).await;
    assert_eq!((deleted, writes), (Ok(()), Vec::new()));
    assert!(stand.provider.get_balancer(&service).await.unwrap().is_some());
}
