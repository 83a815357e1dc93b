//! Every key of upstream's file is honoured or refused in one sentence.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::FakeHost;

use super::*;
use crate::Aws;
use crate::api::endpoints::{Endpoints, Service};

fn places(config: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(config);
    host.check::<Aws>().into_iter().map(|problem| problem.at).collect()
}

fn read(text: &str) -> Config {
    let host = FakeHost::new();
    host.config(text);
    host.provider::<Aws>().config
}

fn hosts(config: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(config);
    let wishes = host.describe::<Aws>().http;
    let name = |wish: HttpWish| format!("{}://{} {}", wish.scheme, wish.host, wish.methods.join(","));
    wishes.into_iter().map(name).collect()
}

const ALL: &str = "\
; as an operator of upstream's controller has it
[Global]
Zone = us-west-2a
VPC = vpc-1
SubnetID = subnet-1
RouteTableID = rtb-1
RoleARN = arn:aws:iam::123456789012:role/cluster
SourceARN = arn:aws:eks:us-west-2:123456789012:cluster/c
KubernetesClusterTag = legacy
DisableSecurityGroupIngress = true
ElbSecurityGroup = sg-1
NodeIPFamilies = ipv6
NodeIPFamilies = ipv4
ClusterServiceLoadBalancerHealthProbeMode = Shared
ClusterServiceSharedLoadBalancerHealthProbePort = 8080
ClusterServiceSharedLoadBalancerHealthProbePath = /alive
NLBSecurityGroupMode = Managed
[ServiceOverride \"1\"]
Service = EC2
Region = us-west-2
URL = https://ec2.example.com:8443/base/
SigningRegion = us-gov
SigningMethod = v4
SigningName = ec2-like
";

#[test]
fn every_key_of_upstreams_file_is_read_in_whatever_case() {
    assert_eq!(places(ALL), [""; 0]);
    for text in [
        ALL.to_owned(),
        ALL.to_lowercase()
            .replace("=shared", "=Shared")
            .replace("= shared", "= Shared")
            .replace("= managed", "= Managed"),
    ] {
        let config = read(&text);
        assert_eq!(config.region(), "us-west-2");
        assert_eq!(config.families(), [Family::Ipv6, Family::Ipv4]);
        assert!(config.global.disable_security_group_ingress);
        assert_eq!(config.global.shared_health_probe_port, Some(8080));
        assert_eq!(
            (config.global.vpc.as_str(), config.global.subnet_id.as_str()),
            ("vpc-1", "subnet-1")
        );
        let endpoints = Endpoints::new(&config);
        let ec2 = endpoints.of(Service::Ec2);
        assert_eq!(
            (ec2.url.as_str(), ec2.region.as_str(), ec2.name.as_str()),
            ("https://ec2.example.com:8443/base", "us-gov", "ec2-like")
        );
        assert_eq!(
            endpoints.of(Service::ElbV2).url,
            "https://elasticloadbalancing.us-west-2.amazonaws.com"
        );
    }
}

#[test]
fn json_with_the_same_keys_means_the_same() {
    let config = read(
        r#"{"Global": {"Region": "eu-central-1", "NodeIPFamilies": ["ipv6"], "DisableSecurityGroupIngress": true}}"#,
    );
    assert_eq!(
        (config.region(), config.families()),
        ("eu-central-1", vec![Family::Ipv6])
    );
    assert!(config.global.disable_security_group_ingress);
}

#[test]
fn single_values_of_the_settings_are_enough() {
    let host = FakeHost::new();
    host.value("global.region", "eu-west-1")
        .value("credentials.source", "instance-profile");
    assert_eq!(host.check::<Aws>(), []);
}

#[test]
fn all_mistakes_are_named_at_once() {
    let wrong = "\
[Global]
Zone = nowhere
Region = moon
VPC = 1
SubnetID = vpc-1
RouteTableID = 2
RoleARN = role
SourceARN = arn:aws:iam
KubernetesClusterTag = a
KubernetesClusterID = b
ElbSecurityGroup = default
NodeIPFamilies = ipv5
ClusterServiceLoadBalancerHealthProbeMode = None
ClusterServiceSharedLoadBalancerHealthProbePort = 0
ClusterServiceSharedLoadBalancerHealthProbePath = healthz
SupportedTopologyInstanceTypePattern = ^m
NLBSecurityGroupMode = managed
[ServiceOverride \"1\"]
Service = S3
URL = nowhere
SigningMethod = v2
[Credentials]
Source = guess
RoleSessionName = a b
MetadataURL = here
";
    let expected = [
        "global.zone",
        "global.region",
        "global.vpc",
        "global.subnetid",
        "global.routetableid",
        "global.elbsecuritygroup",
        "global.kubernetesclustertag",
        "global.rolearn",
        "global.sourcearn",
        "global.nodeipfamilies",
        "global.clusterserviceloadbalancerhealthprobemode",
        "global.clusterservicesharedloadbalancerhealthprobeport",
        "global.clusterservicesharedloadbalancerhealthprobepath",
        "global.supportedtopologyinstancetypepattern",
        "global.nlbsecuritygroupmode",
        "serviceoverride.1.region",
        "serviceoverride.1.signingregion",
        "serviceoverride.1.service",
        "serviceoverride.1.url",
        "serviceoverride.1.signingmethod",
        "credentials.source",
        "credentials.rolesessionname",
        "credentials.metadataurl",
    ];
    assert_eq!(places(wrong), expected);
}

#[test]
fn a_mistake_names_the_value_and_the_fix() {
    let host = FakeHost::new();
    host.config("[Global]\nRegion = eu-central-1\nNodeIPFamilies = ipv5\nColour = red\n");
    let problems = host.check::<Aws>();
    assert_eq!(problems[0].at, "global.colour");
    let host = FakeHost::new();
    host.config("[Global]\nRegion = eu-central-1\nNodeIPFamilies = ipv5\n");
    let text = host.check::<Aws>().remove(0).message;
    assert_eq!(text, "\"ipv5\" is no address family; write ipv4 or ipv6, one in a line");
}

#[test]
fn combinations_that_make_no_sense_are_refused() {
    let global = |more: &str| places(&format!("[Global]\nRegion = us-east-1\n{more}"));
    assert_eq!(places(""), ["global.region"]);
    assert_eq!(global("Zone = eu-west-1a\n"), ["global.region"]);
    assert_eq!(global("SourceARN = arn:aws:eks:a:1:b\n"), ["global.sourcearn"]);
    assert_eq!(
        global("[Credentials]\nSource = web-identity\n"),
        ["credentials.webidentityrolearn"]
    );
    let token = "[Credentials]\nSource = instance-profile\nSessionToken = true\n";
    assert_eq!(global(token), ["credentials.sessiontoken"]);
    assert_eq!(
        global("[Credentials]\nRoleSessionName = me\n"),
        ["credentials.rolesessionname"]
    );
    let twice = "[ServiceOverride \"A\"]\nService = EC2\nRegion = us-east-1\nURL = http://a\nSigningRegion = r\n\
                 [ServiceOverride \"B\"]\nService = ec2\nRegion = us-east-1\nURL = http://b\nSigningRegion = r\n";
    assert_eq!(global(twice), ["serviceoverride.b.service"]);
}

#[test]
fn only_what_the_configuration_needs_is_requested() {
    let plain = [
        "https://ec2.eu-west-1.amazonaws.com POST",
        "https://elasticloadbalancing.eu-west-1.amazonaws.com POST",
    ];
    assert_eq!(hosts("[Global]\nRegion = eu-west-1\n"), plain);
    let china = [
        "https://ec2.cn-north-1.amazonaws.com.cn POST",
        "https://elasticloadbalancing.cn-north-1.amazonaws.com.cn POST",
    ];
    assert_eq!(hosts("[Global]\nZone = cn-north-1a\n"), china);
    let role = hosts("[Global]\nRegion = eu-west-1\nRoleARN = arn:aws:iam::1:role/r\n");
    assert_eq!(role[2..], ["https://sts.eu-west-1.amazonaws.com POST"]);
    let profile = hosts("[Global]\nRegion = eu-west-1\n[Credentials]\nSource = instance-profile\n");
    assert_eq!(profile[2..], ["http://169.254.169.254 GET,PUT"]);
    let web = "[Global]\nRegion = eu-west-1\n[Credentials]\nSource = web-identity\nWebIdentityRoleARN = arn:aws:iam::1:role/r\n";
    assert_eq!(hosts(web)[2..], ["https://sts.eu-west-1.amazonaws.com POST"]);
    assert_eq!(hosts("[Global]\nRegion = nowhere\n"), [""; 0]);
}

#[test]
fn one_address_for_all_services_is_one_wish() {
    let mut text = String::from("[Global]\nRegion = us-east-1\n");
    for (number, service) in ["EC2", "Elastic Load Balancing", "Elastic Load Balancing v2", "STS"]
        .iter()
        .enumerate()
    {
        text += &format!(
            "[ServiceOverride \"{number}\"]\nService = {service}\nRegion = us-east-1\nURL = http://127.0.0.1:5000\nSigningRegion = us-east-1\n"
        );
    }
    assert_eq!(hosts(&text), ["http://127.0.0.1 POST"]);
}

#[test]
fn chosen_sources_secrets_are_requested_and_no_others() {
    let secrets = |more: &str| -> Vec<String> {
        let host = FakeHost::new();
        host.config(format!("[Global]\nRegion = eu-west-1\n[Credentials]\n{more}"));
        host.describe::<Aws>()
            .secrets
            .into_iter()
            .map(|secret| secret.name)
            .collect()
    };
    assert_eq!(secrets(""), ["access-key-id", "secret-access-key"]);
    assert_eq!(
        secrets("SessionToken\n"),
        ["access-key-id", "secret-access-key", "session-token"]
    );
    assert_eq!(secrets("Source = instance-profile\n"), [""; 0]);
    assert_eq!(
        secrets("Source = web-identity\nWebIdentityRoleARN = arn:aws:iam::1:role/r\n"),
        ["web-identity-token"]
    );
}

#[test]
fn the_region_of_a_zone_is_upstreams() {
    for (zone, region) in [
        ("us-east-1a", Some("us-east-1")),
        ("us-west-2-lax-1a", Some("us-west-2")),
        ("us-gov-west-1b", Some("us-gov-west-1")),
        ("ap-southeast-10c", Some("ap-southeast-10")),
        ("useast1", None),
        ("", None),
        ("-1a", None),
    ] {
        assert_eq!(region_of_zone(zone), region, "{zone}");
    }
}

#[test]
fn overrides_of_another_region_do_not_count() {
    let config = read(
        "[Global]\nRegion = us-east-1\n[ServiceOverride \"1\"]\nService = EC2\nRegion = eu-west-1\nURL = http://a\nSigningRegion = r\n",
    );
    assert_eq!(
        Endpoints::new(&config).of(Service::Ec2).url,
        "https://ec2.us-east-1.amazonaws.com"
    );
}
